"""The local stack: a real ZooKeeper and Apache Pinot, with Kafka and S3 on request, on this machine."""
