package server;

import java.util.Map;
import org.apache.helix.NotificationContext;
import org.apache.helix.messaging.handling.HelixTaskResult;
import org.apache.helix.messaging.handling.MessageHandler;
import org.apache.helix.messaging.handling.MessageHandlerFactory;
import org.apache.helix.model.Message;
import org.apache.pinot.common.messages.ForceCommitMessage;
import org.apache.pinot.common.messages.SegmentRefreshMessage;
import org.apache.pinot.common.messages.TableConfigSchemaRefreshMessage;
import org.apache.pinot.common.messages.TableDeletionMessage;
import org.apache.pinot.segment.local.data.manager.TableDataManager;

/** What the controller tells a server beside state transitions. */
final class Messages implements MessageHandlerFactory {
  private final Map<String, Effect> _effects;

  Messages(Tables tables) {
    _effects = Map.of(
        ForceCommitMessage.FORCE_COMMIT_MSG_SUB_TYPE, message -> {
          ForceCommitMessage told = new ForceCommitMessage(message);
          tables.forceCommit(told.getTableName(), told.getSegmentNames());
        },
        TableDeletionMessage.DELETE_TABLE_MSG_SUB_TYPE, message -> tables.drop(message.getResourceName()),
        SegmentRefreshMessage.REFRESH_SEGMENT_MSG_SUB_TYPE, message -> {
          TableDataManager table = tables.get(message.getResourceName());
          if (table != null) {
            table.replaceSegment(message.getPartitionName());
          }
        },
        TableConfigSchemaRefreshMessage.REFRESH_TABLE_CONFIG_AND_SCHEMA, message -> {
          TableDataManager table = tables.get(message.getResourceName());
          if (table != null) {
            table.fetchIndexLoadingConfig();
          }
        });
  }

  @Override
  public MessageHandler createHandler(Message message, NotificationContext context) {
    return new MessageHandler(message, context) {
      @Override
      public HelixTaskResult handleMessage() {
        try {
          _effects.getOrDefault(message.getMsgSubType(), other -> { }).of(message);
        } catch (Exception error) {
          throw new IllegalStateException(error);
        }
        HelixTaskResult done = new HelixTaskResult();
        done.setSuccess(true);
        return done;
      }

      @Override
      public void onError(Exception error, ErrorCode code, ErrorType type) {
        error.printStackTrace();
      }
    };
  }

  @Override
  public String getMessageType() {
    return Message.MessageType.USER_DEFINE_MSG.toString();
  }

  @Override
  public void reset() {
  }

  private interface Effect {
    void of(Message message) throws Exception;
  }
}
