package server;

import java.io.File;
import java.net.URI;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.helix.HelixManager;
import org.apache.pinot.common.metadata.ZKMetadataProvider;
import org.apache.pinot.common.metadata.segment.SegmentZKMetadata;
import org.apache.pinot.common.metadata.segment.SegmentZKMetadataUtils;
import org.apache.pinot.common.restlet.resources.SegmentConsumerInfo;
import org.apache.pinot.common.utils.LLCSegmentName;
import org.apache.pinot.common.utils.TarCompressionUtils;
import org.apache.pinot.core.data.manager.offline.ImmutableSegmentDataManager;
import org.apache.pinot.core.data.manager.realtime.RealtimeSegmentDataManager;
import org.apache.pinot.core.data.manager.realtime.SegmentUploader;
import org.apache.pinot.segment.local.data.manager.SegmentDataManager;
import org.apache.pinot.segment.local.data.manager.TableDataManager;
import org.apache.pinot.segment.spi.ImmutableSegment;

/** What a server's HTTP endpoint says and does about its segments. */
final class Segments {
  private final Tables _tables;
  private final HelixManager _helix;
  private final SegmentUploader _uploader;

  Segments(Tables tables, HelixManager helix, SegmentUploader uploader) {
    _tables = tables;
    _helix = helix;
    _uploader = uploader;
  }

  /** The tar of a loaded segment, as peers download it. */
  byte[] tar(String table, String segment) throws Exception {
    return with(table, segment, loaded -> tarred(table, segment, tar -> Files.readAllBytes(tar.toPath())));
  }

  /** Copy a segment to the segment store; answers where it is. */
  String upload(String table, String segment) throws Exception {
    return with(table, segment, loaded -> tarred(table, segment, tar -> stored(tar, segment)));
  }

  /** The same of a segment that is sealed; answers the node as it should then be. */
  String uploadCommitted(String table, String segment) throws Exception {
    return with(table, segment, loaded -> {
      if (!(loaded instanceof ImmutableSegmentDataManager)) {
        throw new Refusal(404, segment + " has not been sealed");
      }
      String url = tarred(table, segment, tar -> stored(tar, segment));
      SegmentZKMetadata node =
          ZKMetadataProvider.getSegmentZKMetadata(_helix.getHelixPropertyStore(), table, segment);
      ImmutableSegment sealed = ((ImmutableSegmentDataManager) loaded).getSegment();
      SegmentZKMetadataUtils.updateCommittingSegmentZKMetadata(table, node, sealed.getSegmentMetadata(), url,
          sealed.getSegmentSizeBytes(), node.getEndOffset());
      return node.toJsonString();
    });
  }

  /** How far each consuming segment is. */
  List<SegmentConsumerInfo> consuming(String table) {
    TableDataManager found = table(table);
    List<SegmentConsumerInfo> told = new ArrayList<>();
    List<SegmentDataManager> segments = found.acquireAllSegments();
    try {
      for (SegmentDataManager one : segments) {
        if (one instanceof RealtimeSegmentDataManager) {
          told.add(info((RealtimeSegmentDataManager) one));
        }
      }
      return told;
    } finally {
      segments.forEach(found::releaseSegment);
    }
  }

  private static SegmentConsumerInfo info(RealtimeSegmentDataManager segment) {
    Map<String, String> offsets = segment.getPartitionToCurrentOffset();
    Map<String, String> unknown = new HashMap<>();
    offsets.keySet().forEach(partition -> unknown.put(partition, "UNKNOWN"));
    return new SegmentConsumerInfo(segment.getSegmentName(), segment.getConsumerState().toString(),
        segment.getLastConsumedTimestamp(), offsets,
        new SegmentConsumerInfo.PartitionOffsetInfo(offsets, unknown, unknown, unknown));
  }

  private String stored(File tar, String segment) {
    URI url = _uploader.uploadSegment(tar, new LLCSegmentName(segment));
    if (url == null) {
      throw new Refusal(500, segment + " could not be stored");
    }
    return url.toString();
  }

  private TableDataManager table(String name) {
    TableDataManager found = _tables.get(name);
    if (found == null) {
      throw new Refusal(404, "nothing of " + name + " is here");
    }
    return found;
  }

  private <T> T with(String table, String segment, Use<SegmentDataManager, T> use) throws Exception {
    TableDataManager found = table(table);
    SegmentDataManager one = found.acquireSegment(segment);
    if (one == null) {
      throw new Refusal(404, segment + " is not here");
    }
    try {
      return use.of(one);
    } finally {
      found.releaseSegment(one);
    }
  }

  private <T> T tarred(String table, String segment, Use<File, T> use) throws Exception {
    File tar = _tables.tar(segment);
    try {
      TarCompressionUtils.createCompressedTarFile(_tables.folder(table, segment), tar);
      return use.of(tar);
    } finally {
      Files.deleteIfExists(tar.toPath());
    }
  }

  private interface Use<A, B> {
    B of(A what) throws Exception;
  }
}
