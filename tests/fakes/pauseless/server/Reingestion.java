package server;

import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;
import org.apache.pinot.common.metadata.segment.SegmentZKMetadata;
import org.apache.pinot.common.metrics.ServerMeter;
import org.apache.pinot.common.metrics.ServerMetrics;
import org.apache.pinot.common.utils.LLCSegmentName;
import org.apache.pinot.core.data.manager.realtime.RealtimeTableDataManager;
import org.apache.pinot.segment.local.realtime.writer.StatelessRealtimeSegmentWriter;
import org.apache.pinot.segment.local.segment.index.loader.IndexLoadingConfig;
import org.apache.pinot.server.realtime.ServerSegmentCompletionProtocolHandler;
import org.apache.pinot.spi.utils.builder.TableNameBuilder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads a COMMITTING segment from the stream again, with Pinot's own writer and protocol. */
final class Reingestion {
  private static final Logger LOGGER = LoggerFactory.getLogger(Reingestion.class);
  private static final long PATIENCE_MS = 120_000;
  private final Map<String, String> _running = new ConcurrentHashMap<>();
  private final ExecutorService _workers = Executors.newSingleThreadExecutor();
  private final Tables _tables;
  private final ServerMetrics _metrics;

  Reingestion(Tables tables, ServerMetrics metrics) {
    _tables = tables;
    _metrics = metrics;
  }

  List<Map<String, String>> jobs() {
    return _running.entrySet().stream().map(one -> Map.of("segmentName", one.getKey(), "jobId", one.getValue()))
        .collect(Collectors.toList());
  }

  /** Begin; answers the job. Refuses as a server of Pinot does. */
  Map<String, Object> begin(String segment) {
    if (!LLCSegmentName.isLLCSegment(segment)) {
      throw new Refusal(400, segment + " is not of a stream");
    }
    String name = TableNameBuilder.REALTIME.tableNameWithType(new LLCSegmentName(segment).getTableName());
    RealtimeTableDataManager table = (RealtimeTableDataManager) _tables.get(name);
    if (table == null) {
      throw new Refusal(404, "nothing of " + name + " is here");
    }
    SegmentZKMetadata node = table.fetchZKMetadata(segment);
    if (node.getDownloadUrl() != null) {
      throw new Refusal(400, segment + " has a download URL");
    }
    if (node.getStartOffset() == null || node.getEndOffset() == null) {
      throw new Refusal(500, segment + " lacks an offset");
    }
    String job = UUID.randomUUID().toString();
    if (_running.putIfAbsent(segment, job) != null) {
      throw new Refusal(409, segment + " is being read already");
    }
    _workers.submit(() -> {
      try {
        run(name, table, node);
      } catch (Exception error) {
        LOGGER.error("Could not re-ingest {}", segment, error);
        _metrics.addMeteredTableValue(name, ServerMeter.SEGMENT_REINGESTION_FAILURE, 1);
      } finally {
        _running.remove(segment);
      }
    });
    return Map.of("jobId", job, "segmentName", segment, "startTimeMs", System.currentTimeMillis());
  }

  private void run(String name, RealtimeTableDataManager table, SegmentZKMetadata node) throws Exception {
    IndexLoadingConfig loading = table.fetchIndexLoadingConfig();
    long end = System.currentTimeMillis() + PATIENCE_MS;
    try (StatelessRealtimeSegmentWriter writer =
        new StatelessRealtimeSegmentWriter(node, loading, table.getSegmentBuildSemaphore())) {
      writer.startConsumption();
      while (!writer.isDoneConsuming() && System.currentTimeMillis() < end) {
        Thread.sleep(200);
      }
      writer.stopConsumption();
      if (!writer.isSuccess()) {
        throw new IllegalStateException("the stream could not be read", writer.getConsumptionException());
      }
      new ServerSegmentCompletionProtocolHandler(_metrics, name)
          .uploadReingestedSegment(node.getSegmentName(), loading.getSegmentStoreURI(), writer.buildSegment());
    }
  }
}
