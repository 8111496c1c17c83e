import java.io.File;
import org.apache.commons.configuration2.PropertiesConfiguration;
import org.apache.pinot.controller.ControllerStarter;
import org.apache.pinot.spi.env.CommonsConfigurationUtils;
import org.apache.pinot.spi.env.PinotConfiguration;

/** Starts a controller from a properties file, as PinotAdministrator does, whose module is not on Maven Central. */
public class ControllerMain {
  public static void main(String[] args) throws Exception {
    ControllerStarter starter = new ControllerStarter();
    starter.init(new PinotConfiguration(CommonsConfigurationUtils.fromFile(new File(args[0]))));
    starter.start();
  }
}
