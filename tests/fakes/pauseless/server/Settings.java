package server;

import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.Map;
import org.apache.pinot.spi.config.instance.InstanceDataManagerConfig;
import org.apache.pinot.spi.env.PinotConfiguration;
import org.apache.pinot.spi.utils.ReadMode;

/** A server's settings as the data managers ask for them; what is not named here is off, none or no limit. */
final class Settings {
  private Settings() {
  }

  /**
   * @param set the settings below `pinot.server.instance`.
   */
  static InstanceDataManagerConfig of(PinotConfiguration set) {
    Map<String, Object> answers = new HashMap<>();
    answers.put("getConfig", set);
    answers.put("getInstanceId", set.getProperty("id"));
    answers.put("getInstanceDataDir", set.getProperty("dataDir"));
    answers.put("getInstanceSegmentTarDir", set.getProperty("segmentTarDir"));
    answers.put("getSegmentStoreUri", set.getProperty("segment.store.uri"));
    answers.put("getReadMode", ReadMode.mmap);
    answers.put("getSegmentDirectoryLoader", "default");
    answers.put("isRealtimeOffHeapAllocation", true);
    answers.put("shouldCheckCRCOnSegmentLoad", true);
    answers.put("getMaxParallelRefreshThreads", 1);
    answers.put("getDeletedSegmentsCacheSize", 10_000);
    answers.put("getDeletedSegmentsCacheTtlMinutes", 2);
    answers.put("getUpsertConfig", set.subset("upsert"));
    answers.put("getDedupConfig", set.subset("dedup"));
    answers.put("getAuthConfig", set.subset("auth"));
    answers.put("getTierConfigs", Map.of());
    return (InstanceDataManagerConfig) Proxy.newProxyInstance(Settings.class.getClassLoader(),
        new Class<?>[] {InstanceDataManagerConfig.class},
        (self, method, arguments) -> answers.getOrDefault(method.getName(), nothing(method.getReturnType())));
  }

  private static Object nothing(Class<?> type) {
    if (type == boolean.class) {
      return false;
    }
    if (type == int.class) {
      return 0;
    }
    return type == long.class ? 0L : null;
  }
}
