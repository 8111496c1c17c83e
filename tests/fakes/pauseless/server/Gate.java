package server;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * What Pinot's data managers ask before they build a segment. A pauseless segment is COMMITTING by then and nothing
 * of it is written yet, so a test that shuts the gate holds it there for as long as it likes.
 *
 * While the folder holds `hold-builds` nobody builds; while it holds `hold-commits` only those wait that build to
 * commit. Whoever builds to commit and waits says so in `committing.<segment>`. While it holds `fail-builds` every
 * build fails, and so does what is re-ingested.
 */
final class Gate extends Semaphore {
  private final Path _folder;

  Gate(Path folder) {
    super(Integer.MAX_VALUE);
    _folder = folder;
  }

  @Override
  public boolean tryAcquire(long timeout, TimeUnit unit) throws InterruptedException {
    boolean commits = StackWalker.getInstance()
        .walk(frames -> frames.anyMatch(frame -> frame.getMethodName().equals("buildSegmentForCommit")));
    if (holds("fail-builds")) {
      throw new InterruptedException("no build is to succeed");
    }
    long end = System.nanoTime() + unit.toNanos(timeout);
    while (holds("hold-builds") || commits && holds("hold-commits")) {
      if (commits) {
        tell("committing." + Thread.currentThread().getName());
      }
      if (System.nanoTime() > end) {
        return false;
      }
      Thread.sleep(50);
    }
    return super.tryAcquire(timeout, unit);
  }

  private boolean holds(String name) {
    return Files.exists(_folder.resolve(name));
  }

  private void tell(String name) {
    try {
      Files.write(_folder.resolve(name), new byte[0]);
    } catch (IOException error) {
      throw new IllegalStateException(error);
    }
  }
}
