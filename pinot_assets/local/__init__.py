"""The local stack: a real ZooKeeper and Apache Pinot on this machine, and Kafka and S3 on request."""
