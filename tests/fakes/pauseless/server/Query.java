package server;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.pinot.common.datatable.DataTable;
import org.apache.pinot.common.datatable.DataTableFactory;
import org.apache.pinot.common.metrics.BrokerMetrics;
import org.apache.pinot.common.request.BrokerRequest;
import org.apache.pinot.common.response.broker.BrokerResponseNative;
import org.apache.pinot.core.plan.maker.InstancePlanMakerImplV2;
import org.apache.pinot.core.query.reduce.BrokerReduceService;
import org.apache.pinot.core.query.request.context.QueryContext;
import org.apache.pinot.core.query.request.context.utils.QueryContextConverterUtils;
import org.apache.pinot.core.transport.ServerRoutingInstance;
import org.apache.pinot.segment.local.data.manager.SegmentDataManager;
import org.apache.pinot.segment.local.data.manager.TableDataManager;
import org.apache.pinot.segment.spi.SegmentContext;
import org.apache.pinot.spi.config.table.TableType;
import org.apache.pinot.spi.env.PinotConfiguration;
import org.apache.pinot.spi.query.QueryThreadContext;
import org.apache.pinot.sql.parsers.CalciteSqlCompiler;

/** Answers SQL from all segments that this server has, with Pinot's own query engine, as a broker would tell it. */
final class Query {
  private static final long PATIENCE_MS = 30_000;
  private final Tables _tables;
  private final InstancePlanMakerImplV2 _plans = new InstancePlanMakerImplV2();
  private final ExecutorService _workers =
      QueryThreadContext.contextAwareExecutorService(Executors.newFixedThreadPool(2));
  private final BrokerReduceService _reducer = new BrokerReduceService(new PinotConfiguration());
  private final BrokerMetrics _metrics;

  Query(Tables tables, BrokerMetrics metrics) {
    _tables = tables;
    _metrics = metrics;
  }

  String answer(String sql) throws Exception {
    BrokerRequest request = CalciteSqlCompiler.compileToBrokerRequest(sql);
    String name = request.getPinotQuery().getDataSource().getTableName();
    TableDataManager table = _tables.get(name);
    List<SegmentDataManager> segments = table == null ? List.of() : table.acquireAllSegments();
    if (segments.isEmpty()) {
      return "{\"exceptions\": [{\"errorCode\": 410, \"message\": \"nothing of " + name + " is here\"}]}";
    }
    try (QueryThreadContext context = QueryThreadContext.openForSseTest()) {
      DataTable found = DataTableFactory.getDataTable(run(request, segments));
      BrokerResponseNative answer = _reducer.reduceOnDataTable(request, request,
          Map.of(new ServerRoutingInstance("localhost", 1, TableType.REALTIME), found), PATIENCE_MS, _metrics);
      answer.setNumServersQueried(1);
      answer.setNumServersResponded(1);
      return answer.toJsonString();
    } finally {
      segments.forEach(table::releaseSegment);
    }
  }

  private byte[] run(BrokerRequest request, List<SegmentDataManager> segments) throws Exception {
    QueryContext query = QueryContextConverterUtils.getQueryContext(request.getPinotQuery());
    query.setEndTimeMs(System.currentTimeMillis() + PATIENCE_MS);
    List<SegmentContext> read = new ArrayList<>();
    for (SegmentDataManager one : segments) {
      // As a server of Pinot does: an empty segment lacks what a query reads.
      if (one.getSegment().getSegmentMetadata().getTotalDocs() > 0) {
        read.add(new SegmentContext(one.getSegment()));
      }
    }
    return _plans.makeInstancePlan(read, query, _workers).execute().toDataTable().toBytes();
  }
}
