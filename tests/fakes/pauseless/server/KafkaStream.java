package server;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.pinot.spi.stream.BytesStreamMessage;
import org.apache.pinot.spi.stream.LongMsgOffset;
import org.apache.pinot.spi.stream.MessageBatch;
import org.apache.pinot.spi.stream.OffsetCriteria;
import org.apache.pinot.spi.stream.PartitionGroupConsumer;
import org.apache.pinot.spi.stream.PartitionGroupConsumptionStatus;
import org.apache.pinot.spi.stream.StreamConsumerFactory;
import org.apache.pinot.spi.stream.StreamMessageMetadata;
import org.apache.pinot.spi.stream.StreamMetadataProvider;
import org.apache.pinot.spi.stream.StreamPartitionMsgOffset;

/** Kafka as a stream: Pinot's own plug-in for it is not on Maven Central, its client is. */
public class KafkaStream extends StreamConsumerFactory {
  @Override
  public StreamMetadataProvider createPartitionMetadataProvider(String clientId, int partition) {
    return new Metadata(partition);
  }

  @Override
  public StreamMetadataProvider createStreamMetadataProvider(String clientId) {
    return new Metadata(0);
  }

  @Override
  public PartitionGroupConsumer createPartitionGroupConsumer(String clientId, PartitionGroupConsumptionStatus status) {
    return new Reader(status.getStreamPartitionGroupId());
  }

  private KafkaConsumer<byte[], byte[]> consumer() {
    Map<String, String> stream = _streamConfig.getStreamConfigsMap();
    return new KafkaConsumer<>(
        Map.of("bootstrap.servers", stream.get("stream.kafka.broker.list")), new ByteArrayDeserializer(),
        new ByteArrayDeserializer());
  }

  private TopicPartition partition(int number) {
    return new TopicPartition(_streamConfig.getTopicName(), number);
  }

  private final class Reader implements PartitionGroupConsumer {
    private final TopicPartition _partition;
    private final KafkaConsumer<byte[], byte[]> _consumer = consumer();

    Reader(int number) {
      _partition = partition(number);
      _consumer.assign(List.of(_partition));
    }

    @Override
    public synchronized MessageBatch<byte[]> fetchMessages(StreamPartitionMsgOffset start, int timeoutMs) {
      long offset = ((LongMsgOffset) start).getOffset();
      if (_consumer.position(_partition) != offset) {
        _consumer.seek(_partition, offset);
      }
      return new Batch(_consumer.poll(Duration.ofMillis(timeoutMs)).records(_partition), offset);
    }

    @Override
    public synchronized void close() {
      _consumer.close();
    }
  }

  private static final class Batch implements MessageBatch<byte[]> {
    private final List<BytesStreamMessage> _messages = new ArrayList<>();
    private final long _first;
    private final long _next;
    private final boolean _lost;
    private final long _bytes;

    Batch(List<ConsumerRecord<byte[], byte[]>> records, long asked) {
      for (ConsumerRecord<byte[], byte[]> record : records) {
        LongMsgOffset offset = new LongMsgOffset(record.offset());
        _messages.add(new BytesStreamMessage(record.key(), record.value(),
            new StreamMessageMetadata.Builder().setRecordIngestionTimeMs(record.timestamp())
                .setOffset(offset, new LongMsgOffset(record.offset() + 1))
                .setSerializedValueSize(record.serializedValueSize()).build()));
      }
      _first = records.isEmpty() ? asked : records.get(0).offset();
      _next = records.isEmpty() ? asked : records.get(records.size() - 1).offset() + 1;
      _lost = _first > asked;
      _bytes = records.stream().mapToLong(ConsumerRecord::serializedValueSize).sum();
    }

    @Override
    public int getMessageCount() {
      return _messages.size();
    }

    @Override
    public BytesStreamMessage getStreamMessage(int index) {
      return _messages.get(index);
    }

    @Override
    public StreamPartitionMsgOffset getOffsetOfNextBatch() {
      return new LongMsgOffset(_next);
    }

    @Override
    public boolean hasDataLoss() {
      return _lost;
    }

    @Override
    public long getSizeInBytes() {
      return _bytes;
    }
  }

  /** Pinot shares one between threads, which Kafka's consumer does not bear by itself. */
  private final class Metadata implements StreamMetadataProvider {
    private final TopicPartition _partition;
    private final KafkaConsumer<byte[], byte[]> _consumer = consumer();

    Metadata(int number) {
      _partition = partition(number);
    }

    @Override
    public synchronized Set<Integer> fetchPartitionIds(long timeoutMs) {
      return _consumer.partitionsFor(_partition.topic(), Duration.ofMillis(timeoutMs)).stream()
          .map(one -> one.partition()).collect(Collectors.toSet());
    }

    @Override
    public int fetchPartitionCount(long timeoutMs) {
      return fetchPartitionIds(timeoutMs).size();
    }

    @Override
    public synchronized Map<Integer, StreamPartitionMsgOffset> fetchLatestStreamOffset(
        Set<Integer> numbers, long timeoutMs) {
      List<TopicPartition> asked = numbers.stream().map(KafkaStream.this::partition).collect(Collectors.toList());
      return _consumer.endOffsets(asked, Duration.ofMillis(timeoutMs)).entrySet().stream()
          .collect(Collectors.toMap(one -> one.getKey().partition(), one -> new LongMsgOffset(one.getValue())));
    }

    @Override
    public synchronized StreamPartitionMsgOffset fetchStreamPartitionOffset(OffsetCriteria where, long timeoutMs) {
      List<TopicPartition> asked = List.of(_partition);
      Duration patience = Duration.ofMillis(timeoutMs);
      Map<TopicPartition, Long> found =
          where.isLargest() ? _consumer.endOffsets(asked, patience) : _consumer.beginningOffsets(asked, patience);
      return new LongMsgOffset(found.get(_partition));
    }

    @Override
    public boolean supportsOffsetLag() {
      return true;
    }

    @Override
    public synchronized void close() {
      _consumer.close();
    }
  }
}
