package server;

import java.lang.reflect.Field;
import java.nio.file.Path;
import org.apache.helix.HelixManager;
import org.apache.pinot.core.data.manager.provider.DefaultTableDataManagerProvider;
import org.apache.pinot.segment.local.utils.SegmentLocks;
import org.apache.pinot.segment.local.utils.SegmentOperationsThrottlerSet;
import org.apache.pinot.segment.local.utils.ServerReloadJobStatusCache;
import org.apache.pinot.spi.config.instance.InstanceDataManagerConfig;

/**
 * Pinot's own data managers of tables, whose builds of segments wait at a {@link Gate}. It is what a server's
 * setting `table.data.manager.provider.class` names, so a server of a whole distribution takes it as well.
 *
 * What makes a data manager has other parameters in each release: so only the semaphore of the builds, which
 * has had one name, is exchanged.
 */
public class GatedTables extends DefaultTableDataManagerProvider {
  @Override
  public void init(InstanceDataManagerConfig settings, HelixManager helix, SegmentLocks locks,
      SegmentOperationsThrottlerSet throttlers, ServerReloadJobStatusCache reloads) {
    super.init(settings, helix, locks, throttlers, reloads);
    try {
      Field builds = DefaultTableDataManagerProvider.class.getDeclaredField("_segmentBuildSemaphore");
      builds.setAccessible(true);
      builds.set(this, new Gate(Path.of(settings.getConfig().getProperty("gate"))));
    } catch (ReflectiveOperationException changed) {
      throw new IllegalStateException(changed);
    }
  }
}
