package server;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.function.BooleanSupplier;
import org.apache.pinot.spi.utils.JsonUtils;

/** A server's HTTP endpoint: of Pinot's own what controllers, peers and pinot-assets ask for; and queries. */
final class Admin {
  private final Map<String, ?> _settings;
  private final Segments _segments;
  private final Reingestion _reingestion;
  private final Query _query;
  private final BooleanSupplier _ready;

  Admin(Map<String, ?> settings, Segments segments, Reingestion reingestion, Query query, BooleanSupplier ready) {
    _settings = settings;
    _segments = segments;
    _reingestion = reingestion;
    _query = query;
    _ready = ready;
  }

  void start(int port) throws IOException {
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    server.setExecutor(Executors.newCachedThreadPool());
    server.createContext("/", this::handle);
    server.start();
  }

  private void handle(HttpExchange exchange) throws IOException {
    int status = 200;
    byte[] answer;
    try {
      Object told = answer(exchange);
      answer = told instanceof byte[] ? (byte[]) told
          : (told instanceof String ? (String) told : JsonUtils.objectToString(told)).getBytes(StandardCharsets.UTF_8);
    } catch (Exception error) {
      status = error instanceof Refusal ? ((Refusal) error)._status : 500;
      answer = String.valueOf(error.getMessage()).getBytes(StandardCharsets.UTF_8);
    }
    try (exchange) {
      exchange.sendResponseHeaders(status, answer.length == 0 ? -1 : answer.length);
      exchange.getResponseBody().write(answer);
    }
  }

  private Object answer(HttpExchange asked) throws Exception {
    List<String> path = List.of(asked.getRequestURI().getPath().substring(1).split("/"));
    String end = path.get(path.size() - 1);
    switch (asked.getRequestMethod() + " " + path.get(0)) {
      case "GET health":
        return health(end);
      case "GET appconfigs":
        return Map.of("pinotConfig", _settings);
      case "GET tables":
        return _segments.consuming(path.get(1));
      case "GET segments":
        return _segments.tar(path.get(1), path.get(2));
      case "POST segments":
        return end.equals("upload") ? _segments.upload(path.get(1), path.get(2))
            : _segments.uploadCommitted(path.get(1), path.get(2));
      case "GET reingestSegment":
        return _reingestion.jobs();
      case "POST reingestSegment":
        return _reingestion.begin(end);
      case "POST query":
        return _query.answer(JsonUtils.inputStreamToJsonNode(asked.getRequestBody()).get("sql").asText());
      default:
        throw new Refusal(404, "there is no " + asked.getRequestURI());
    }
  }

  private String health(String kind) {
    if (!kind.equals("liveness") && !_ready.getAsBoolean()) {
      throw new Refusal(503, "not ready");
    }
    return "OK";
  }
}
