"""Dagster resources: Pinot, ZooKeeper, Spark and the table specs."""
