"""Where it is stored: ZooKeeper and the staging area."""
