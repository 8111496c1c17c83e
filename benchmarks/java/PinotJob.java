import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import org.apache.commons.io.FileUtils;
import org.apache.pinot.common.utils.TarCompressionUtils;
import org.apache.pinot.segment.local.segment.creator.impl.SegmentIndexCreationDriverImpl;
import org.apache.pinot.segment.spi.creator.SegmentGeneratorConfig;
import org.apache.pinot.spi.config.table.TableConfig;
import org.apache.pinot.spi.data.Schema;
import org.apache.pinot.spi.utils.JsonUtils;
import org.apache.spark.api.java.JavaSparkContext;

/** A Spark job of the shape of Pinot's own: a task per file copies it, builds the segment, moves its tar.gz. */
public final class PinotJob {
  private PinotJob() {
  }

  public static void run(JavaSparkContext context, List<String> files, String schema, String tableConfig,
      String out) {
    context.parallelize(files, files.size()).foreach(file -> build(file, schema, tableConfig, out));
  }

  private static void build(String file, String schema, String tableConfig, String out)
      throws Exception {
    File scratch = Files.createTempDirectory("pinot-job-").toFile();
    try {
      Path source = Path.of(file);
      Path local = scratch.toPath().resolve(source.getFileName());
      Files.copy(source, local);
      SegmentGeneratorConfig config =
          new SegmentGeneratorConfig(JsonUtils.stringToObject(tableConfig, TableConfig.class),
              Schema.fromString(schema));
      String name = "bench_" + source.getFileName().toString().replaceAll("\\W", "_");
      config.setOutDir(scratch + "/segments");
      config.setSegmentName(name);
      SegmentIndexCreationDriverImpl driver = new SegmentIndexCreationDriverImpl();
      driver.init(config, new ParquetRows(local.toFile()));
      driver.build();
      File tar = new File(scratch, name + ".tar.gz");
      TarCompressionUtils.createCompressedTarFile(new File(scratch + "/segments", name), tar);
      Files.move(tar.toPath(), Path.of(out, tar.getName()), StandardCopyOption.REPLACE_EXISTING);
    } finally {
      FileUtils.deleteQuietly(scratch);
    }
  }
}
