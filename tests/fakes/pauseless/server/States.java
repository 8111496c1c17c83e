package server;

import org.apache.helix.NotificationContext;
import org.apache.helix.model.Message;
import org.apache.helix.participant.statemachine.StateModel;
import org.apache.helix.participant.statemachine.StateModelFactory;
import org.apache.helix.participant.statemachine.StateModelInfo;
import org.apache.helix.participant.statemachine.Transition;

/** Helix's transitions of a segment, each handed to {@link Tables}. */
final class States extends StateModelFactory<StateModel> {
  static final String NAME = "SegmentOnlineOfflineStateModel";
  private final Tables _tables;

  States(Tables tables) {
    _tables = tables;
  }

  @Override
  public StateModel createNewStateModel(String table, String segment) {
    return new OfSegment(_tables, table, segment);
  }

  /** Of one segment. Helix finds the methods by their annotations. */
  @StateModelInfo(states = "{'OFFLINE','ONLINE','CONSUMING','DROPPED'}", initialState = "OFFLINE")
  public static final class OfSegment extends StateModel {
    private final Tables _tables;
    private final String _table;
    private final String _segment;

    OfSegment(Tables tables, String table, String segment) {
      _tables = tables;
      _table = table;
      _segment = segment;
    }

    @Transition(from = "OFFLINE", to = "CONSUMING")
    public void consume(Message message, NotificationContext context) throws Exception {
      _tables.consume(_table, _segment);
    }

    @Transition(from = "CONSUMING", to = "ONLINE")
    public void commit(Message message, NotificationContext context) throws Exception {
      _tables.load(_table, _segment);
    }

    @Transition(from = "OFFLINE", to = "ONLINE")
    public void load(Message message, NotificationContext context) throws Exception {
      _tables.load(_table, _segment);
    }

    @Transition(from = "CONSUMING", to = "OFFLINE")
    public void stop(Message message, NotificationContext context) throws Exception {
      _tables.offload(_table, _segment);
    }

    @Transition(from = "ONLINE", to = "OFFLINE")
    public void offload(Message message, NotificationContext context) throws Exception {
      _tables.offload(_table, _segment);
    }

    @Transition(from = "CONSUMING", to = "DROPPED")
    public void dropConsuming(Message message, NotificationContext context) throws Exception {
      _tables.delete(_table, _segment);
    }

    @Transition(from = "ONLINE", to = "DROPPED")
    public void dropOnline(Message message, NotificationContext context) throws Exception {
      _tables.delete(_table, _segment);
    }

    @Transition(from = "OFFLINE", to = "DROPPED")
    public void drop(Message message, NotificationContext context) throws Exception {
      _tables.delete(_table, _segment);
    }

    @Transition(from = "ERROR", to = "OFFLINE")
    public void reset(Message message, NotificationContext context) {
    }

    @Transition(from = "ERROR", to = "DROPPED")
    public void dropFailed(Message message, NotificationContext context) throws Exception {
      _tables.delete(_table, _segment);
    }
  }
}
