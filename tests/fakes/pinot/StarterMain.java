import java.io.File;
import org.apache.pinot.spi.env.CommonsConfigurationUtils;
import org.apache.pinot.spi.env.PinotConfiguration;
import org.apache.pinot.spi.services.ServiceStartable;

/**
 * Starts a controller, broker or server, named by its class, from a properties file, as PinotAdministrator does,
 * whose module is not on Maven Central.
 */
public class StarterMain {
  public static void main(String[] args) throws Exception {
    try {
      ServiceStartable starter = (ServiceStartable) Class.forName(args[0]).getDeclaredConstructor().newInstance();
      starter.init(new PinotConfiguration(CommonsConfigurationUtils.fromFile(new File(args[1]))));
      starter.start();
    } catch (Throwable failed) {
      failed.printStackTrace();
      System.exit(1); // its other threads would keep the process, and who waits for it, waiting
    }
  }
}
