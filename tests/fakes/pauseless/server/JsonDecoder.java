package server;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import java.util.Set;
import org.apache.pinot.spi.data.readers.GenericRow;
import org.apache.pinot.spi.stream.StreamMessageDecoder;
import org.apache.pinot.spi.utils.JsonUtils;

/** Rows of flat JSON objects: Pinot's own decoder is not on Maven Central. */
public class JsonDecoder implements StreamMessageDecoder<byte[]> {
  private Set<String> _fields;

  @Override
  public void init(Map<String, String> properties, Set<String> fields, String topic) {
    _fields = fields;
  }

  @Override
  public GenericRow decode(byte[] message, GenericRow row) {
    return decode(message, 0, message.length, row);
  }

  @Override
  public GenericRow decode(byte[] message, int offset, int length, GenericRow row) {
    try {
      JsonNode told = JsonUtils.bytesToJsonNode(java.util.Arrays.copyOfRange(message, offset, offset + length));
      for (String field : _fields) {
        JsonNode value = told.get(field);
        row.putValue(field, value == null ? null : value.isNumber() ? value.numberValue() : value.asText());
      }
      return row;
    } catch (java.io.IOException error) {
      throw new IllegalArgumentException(error);
    }
  }
}
