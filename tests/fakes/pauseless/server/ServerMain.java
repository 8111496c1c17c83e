package server;

import java.io.File;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.apache.helix.HelixAdmin;
import org.apache.helix.HelixManager;
import org.apache.helix.HelixManagerFactory;
import org.apache.helix.InstanceType;
import org.apache.helix.model.IdealState;
import org.apache.helix.model.InstanceConfig;
import org.apache.helix.model.Message;
import org.apache.pinot.common.metrics.BrokerMetrics;
import org.apache.pinot.common.metrics.ServerMetrics;
import org.apache.pinot.common.utils.ServiceStatus;
import org.apache.pinot.common.utils.fetcher.SegmentFetcherFactory;
import org.apache.pinot.common.utils.helix.HelixHelper;
import org.apache.pinot.core.data.manager.realtime.PinotFSSegmentUploader;
import org.apache.pinot.server.realtime.ControllerLeaderLocator;
import org.apache.pinot.server.realtime.ServerSegmentCompletionProtocolHandler;
import org.apache.pinot.spi.env.CommonsConfigurationUtils;
import org.apache.pinot.spi.env.PinotConfiguration;
import org.apache.pinot.spi.filesystem.PinotFSFactory;
import org.apache.pinot.spi.metrics.PinotMetricUtils;
import org.apache.pinot.spi.metrics.PinotMetricsRegistry;
import org.apache.pinot.spi.utils.builder.TableNameBuilder;

/**
 * A server of REALTIME tables from a properties file, with the keys of Pinot's own. Pinot's is not on Maven Central;
 * its data managers are, so all that consumes, commits, downloads and answers here is Pinot's.
 */
public final class ServerMain {
  private ServerMain() {
  }

  public static void main(String[] arguments) throws Exception {
    PinotConfiguration set = new PinotConfiguration(CommonsConfigurationUtils.fromFile(new File(arguments[0])));
    String host = "127.0.0.1";
    String cluster = set.getProperty("pinot.cluster.name");
    int port = Integer.parseInt(set.getProperty("pinot.server.netty.port"));
    int admin = Integer.parseInt(set.getProperty("pinot.server.adminapi.access.protocols.http.port"));
    String name = "Server_" + host + "_" + port;
    set.setProperty("pinot.server.instance.id", name);

    PinotMetricUtils.init(set.subset("pinot.server.metrics"));
    PinotMetricsRegistry registry = PinotMetricUtils.getPinotMetricsRegistry();
    ServerMetrics metrics = new ServerMetrics(registry);
    ServerMetrics.register(metrics);
    PinotFSFactory.init(set.subset("pinot.server.storage.factory"));
    SegmentFetcherFactory.init(set.subset("pinot.server.segment.fetcher"));
    ServerSegmentCompletionProtocolHandler.init(set.subset("pinot.server.segment.uploader"));

    HelixManager helix = HelixManagerFactory.getZKHelixManager(cluster, name, InstanceType.PARTICIPANT,
        set.getProperty("pinot.zk.server"));
    ControllerLeaderLocator.create(helix);
    BooleanSupplier ready = () -> ServiceStatus.getServiceStatus(name) == ServiceStatus.Status.GOOD;
    PinotConfiguration instance = set.subset("pinot.server.instance");
    Tables tables = new Tables(Settings.of(instance), helix, ready);
    helix.getStateMachineEngine().registerStateModelFactory(States.NAME, new States(tables));
    helix.connect();
    introduce(helix, name, host, port, admin);
    helix.getMessagingService()
        .registerMessageHandlerFactory(Message.MessageType.USER_DEFINE_MSG.toString(), new Messages(tables));
    awaitTables(helix, cluster, name);

    Segments segments = new Segments(tables, helix, new PinotFSSegmentUploader(
        instance.getProperty("segment.store.uri"),
        ServerSegmentCompletionProtocolHandler.getSegmentUploadRequestTimeoutMs(), metrics));
    new Admin(set.toMap(), segments, new Reingestion(tables, metrics), new Query(tables, new BrokerMetrics(registry)),
        ready).start(admin);
  }

  private static void introduce(HelixManager helix, String name, String host, int port, int admin) {
    InstanceConfig told = HelixHelper.getInstanceConfig(helix, name);
    HelixHelper.updateHostnamePort(told, host, port);
    HelixHelper.addDefaultTags(told, () -> List.of("DefaultTenant_OFFLINE", "DefaultTenant_REALTIME"));
    HelixHelper.updatePinotVersion(told);
    told.getRecord().setSimpleField("adminPort", String.valueOf(admin));
    HelixHelper.updateInstanceConfig(helix, told);
  }

  /** Not ready until every segment that the server should have is in its state, or failed. */
  private static void awaitTables(HelixManager helix, String cluster, String name) {
    HelixAdmin all = helix.getClusterManagmentTool();
    List<String> tables = all.getResourcesInCluster(cluster).stream().filter(TableNameBuilder::isTableResource)
        .filter(table -> has(all.getResourceIdealState(cluster, table), name)).collect(Collectors.toList());
    ServiceStatus.setServiceStatusCallback(name, new ServiceStatus.MultipleCallbackServiceStatusCallback(List.of(
        new ServiceStatus.IdealStateAndCurrentStateMatchServiceStatusCallback(helix, cluster, name, tables, 100.0),
        new ServiceStatus.IdealStateAndExternalViewMatchServiceStatusCallback(helix, cluster, name, tables, 100.0))));
  }

  private static boolean has(IdealState ideal, String name) {
    return ideal.getPartitionSet().stream().anyMatch(segment -> ideal.getInstanceSet(segment).contains(name));
  }
}
