import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.pinot.spi.data.readers.GenericRow;
import org.apache.pinot.spi.data.readers.RecordReader;
import org.apache.pinot.spi.data.readers.RecordReaderConfig;

/** Rows of another reader, read once and kept: a row then costs what putting its values into a map costs. */
public final class RowsInMemory implements RecordReader {
  private transient List<String> _names;
  private transient List<Object[]> _rows;
  private transient int _next;

  public RowsInMemory(RecordReader source, List<String> names)
      throws IOException {
    _names = names;
    _rows = new ArrayList<>();
    Map<Object, Object> once = new HashMap<>();
    GenericRow row = new GenericRow();
    while (source.hasNext()) {
      row.clear();
      source.next(row);
      Object[] values = new Object[names.size()];
      for (int i = 0; i < values.length; i++) {
        Object value = row.getValue(names.get(i));
        Object same = value == null ? null : once.putIfAbsent(value, value);
        values[i] = same == null ? value : same;
      }
      _rows.add(values);
    }
    source.close();
  }

  @Override
  public void init(File file, Set<String> fields, RecordReaderConfig config) {
  }

  @Override
  public boolean hasNext() {
    return _next < _rows.size();
  }

  @Override
  public GenericRow next(GenericRow row) {
    Object[] values = _rows.get(_next++);
    for (int i = 0; i < values.length; i++) {
      row.putValue(_names.get(i), values[i]);
    }
    return row;
  }

  @Override
  public void rewind() {
    _next = 0;
  }

  @Override
  public void close() {
  }
}
