import java.io.File;
import java.io.IOException;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.hadoop.ParquetReader;
import org.apache.parquet.hadoop.example.GroupReadSupport;
import org.apache.parquet.schema.Type;
import org.apache.pinot.spi.data.readers.GenericRow;
import org.apache.pinot.spi.data.readers.RecordReader;
import org.apache.pinot.spi.data.readers.RecordReaderConfig;

/** Rows of a flat Parquet file by parquet-mr's groups, as Pinot's native Parquet reader gets them. */
public final class ParquetRows implements RecordReader {
  private transient Path _path;
  private transient ParquetReader<Group> _reader;
  private transient Group _next;

  public ParquetRows() {
  }

  public ParquetRows(File file)
      throws IOException {
    init(file, null, null);
  }

  @Override
  public void init(File file, Set<String> fields, RecordReaderConfig config)
      throws IOException {
    _path = new Path(file.toURI());
    rewind();
  }

  @Override
  public boolean hasNext() {
    return _next != null;
  }

  @Override
  public GenericRow next(GenericRow row)
      throws IOException {
    int column = 0;
    for (Type type : _next.getType().getFields()) {
      row.putValue(type.getName(), _next.getFieldRepetitionCount(column) == 0 ? null : value(type, column));
      column++;
    }
    _next = _reader.read();
    return row;
  }

  private Object value(Type type, int column) {
    switch (type.asPrimitiveType().getPrimitiveTypeName()) {
      case INT32:
        return _next.getInteger(column, 0);
      case INT64:
        return _next.getLong(column, 0);
      case FLOAT:
        return _next.getFloat(column, 0);
      case DOUBLE:
        return _next.getDouble(column, 0);
      case BOOLEAN:
        return _next.getBoolean(column, 0);
      default:
        return _next.getString(column, 0);
    }
  }

  @Override
  public void rewind()
      throws IOException {
    close();
    _reader = ParquetReader.builder(new GroupReadSupport(), _path).build();
    _next = _reader.read();
  }

  @Override
  public void close()
      throws IOException {
    if (_reader != null) {
      _reader.close();
    }
  }
}
