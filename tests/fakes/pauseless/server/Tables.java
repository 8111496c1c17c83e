package server;

import com.google.common.cache.CacheBuilder;
import java.io.File;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.Lock;
import java.util.function.BooleanSupplier;
import org.apache.commons.io.FileUtils;
import org.apache.helix.HelixManager;
import org.apache.pinot.common.metadata.ZKMetadataProvider;
import org.apache.pinot.core.data.manager.realtime.RealtimeSegmentDataManager;
import org.apache.pinot.core.data.manager.realtime.SegmentBuildTimeLeaseExtender;
import org.apache.pinot.segment.local.data.manager.SegmentDataManager;
import org.apache.pinot.segment.local.data.manager.TableDataManager;
import org.apache.pinot.segment.local.utils.SegmentLocks;
import org.apache.pinot.segment.local.utils.SegmentReloadSemaphore;
import org.apache.pinot.segment.local.utils.ServerReloadJobStatusCache;
import org.apache.pinot.spi.config.instance.InstanceDataManagerConfig;
import org.apache.pinot.spi.config.table.TableConfig;
import org.apache.pinot.spi.data.Schema;

/** The tables of one server: Pinot's own data managers, and what Helix's messages do to them. */
final class Tables {
  private final Map<String, TableDataManager> _tables = new ConcurrentHashMap<>();
  private final SegmentLocks _locks = new SegmentLocks();
  private final ExecutorService _reloader = Executors.newSingleThreadExecutor();
  private final InstanceDataManagerConfig _settings;
  private final HelixManager _helix;
  private final BooleanSupplier _ready;
  private final ServerReloadJobStatusCache _reloads;
  private final GatedTables _made = new GatedTables();

  Tables(InstanceDataManagerConfig settings, HelixManager helix, BooleanSupplier ready) {
    _settings = settings;
    _helix = helix;
    _ready = ready;
    _reloads = new ServerReloadJobStatusCache(settings.getInstanceId());
    _made.init(settings, helix, _locks, null, _reloads);
    SegmentBuildTimeLeaseExtender.initExecutor();
    new File(settings.getInstanceSegmentTarDir()).mkdirs();
    // What was being built or consumed when the process before this one ended is of no use.
    File[] left = new File(settings.getInstanceDataDir()).listFiles();
    for (File table : left == null ? new File[0] : left) {
      FileUtils.deleteQuietly(new File(table, RealtimeSegmentDataManager.RESOURCE_TEMP_DIR_NAME));
    }
  }

  /** The table's data manager, or null where nothing of it ever came here. */
  TableDataManager get(String table) {
    return _tables.get(table);
  }

  Set<String> names() {
    return _tables.keySet();
  }

  /** Folder of a segment that is loaded. */
  File folder(String table, String segment) {
    return Path.of(_settings.getInstanceDataDir(), table, segment).toFile();
  }

  /** A new file for a tar. */
  File tar(String segment) {
    return new File(_settings.getInstanceSegmentTarDir(), segment + "." + java.util.UUID.randomUUID() + ".tar.gz");
  }

  void consume(String table, String segment) throws Exception {
    made(table).addConsumingSegment(segment);
  }

  void load(String table, String segment) throws Exception {
    made(table).addOnlineSegment(segment);
  }

  void offload(String table, String segment) throws Exception {
    TableDataManager found = get(table);
    if (found != null) {
      found.offloadSegment(segment);
    }
  }

  void delete(String table, String segment) throws Exception {
    Lock lock = _locks.getLock(table, segment);
    lock.lock();
    try {
      TableDataManager found = get(table);
      if (found != null && found.hasSegment(segment)) {
        found.offloadSegment(segment);
      }
      FileUtils.deleteQuietly(folder(table, segment));
    } finally {
      lock.unlock();
    }
  }

  void drop(String table) {
    TableDataManager found = _tables.remove(table);
    if (found != null) {
      found.setDeleted(true);
      found.shutDown();
    }
  }

  /** Commit what is being consumed of these segments. */
  void forceCommit(String table, Set<String> segments) {
    TableDataManager found = get(table);
    for (String segment : found == null ? Set.<String>of() : segments) {
      SegmentDataManager one = found.acquireSegment(segment);
      if (one == null) {
        continue;
      }
      try {
        if (one instanceof RealtimeSegmentDataManager) {
          ((RealtimeSegmentDataManager) one).forceCommit();
        }
      } finally {
        found.releaseSegment(one);
      }
    }
  }

  private TableDataManager made(String table) {
    return _tables.computeIfAbsent(table, this::make);
  }

  private TableDataManager make(String name) {
    TableConfig table = ZKMetadataProvider.getTableConfig(_helix.getHelixPropertyStore(), name);
    Schema schema = ZKMetadataProvider.getTableSchema(_helix.getHelixPropertyStore(), name);
    TableDataManager made = _made.getTableDataManager(table, schema, new SegmentReloadSemaphore(1), _reloader, null,
        CacheBuilder.newBuilder().maximumSize(100).build(), _ready, false, _reloads);
    made.start();
    return made;
  }
}
