package server;

import com.google.common.cache.Cache;
import java.nio.file.Path;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Semaphore;
import java.util.function.BooleanSupplier;
import org.apache.commons.lang3.tuple.Pair;
import org.apache.helix.HelixManager;
import org.apache.pinot.common.restlet.resources.SegmentErrorInfo;
import org.apache.pinot.core.data.manager.provider.TableDataManagerProvider;
import org.apache.pinot.core.data.manager.realtime.RealtimeTableDataManager;
import org.apache.pinot.segment.local.data.manager.TableDataManager;
import org.apache.pinot.segment.local.utils.SegmentLocks;
import org.apache.pinot.segment.local.utils.SegmentOperationsThrottlerSet;
import org.apache.pinot.segment.local.utils.SegmentReloadSemaphore;
import org.apache.pinot.segment.local.utils.ServerReloadJobStatusCache;
import org.apache.pinot.spi.config.instance.InstanceDataManagerConfig;
import org.apache.pinot.spi.config.table.TableConfig;
import org.apache.pinot.spi.data.Schema;

/**
 * Pinot's own data managers of REALTIME tables, behind a {@link Gate}. It is what a server's setting
 * `table.data.manager.provider.class` names, so a server of a whole distribution takes it as well.
 */
public class GatedTables implements TableDataManagerProvider {
  private InstanceDataManagerConfig _settings;
  private HelixManager _helix;
  private SegmentLocks _locks;
  private SegmentOperationsThrottlerSet _throttlers;
  private Semaphore _gate;

  @Override
  public void init(InstanceDataManagerConfig settings, HelixManager helix, SegmentLocks locks,
      SegmentOperationsThrottlerSet throttlers, ServerReloadJobStatusCache reloads) {
    _settings = settings;
    _helix = helix;
    _locks = locks;
    _throttlers = throttlers;
    _gate = new Gate(Path.of(settings.getConfig().getProperty("gate")));
  }

  @Override
  public TableDataManager getTableDataManager(TableConfig table, Schema schema, SegmentReloadSemaphore reloading,
      ExecutorService reloader, ExecutorService preloader, Cache<Pair<String, String>, SegmentErrorInfo> errors,
      BooleanSupplier ready, boolean refreshesLater, ServerReloadJobStatusCache reloads) {
    TableDataManager made = new RealtimeTableDataManager(_gate, ready);
    made.init(_settings, _helix, _locks, table, schema, reloading, reloader, preloader, errors, _throttlers,
        refreshesLater, reloads);
    return made;
  }
}
