"""The consistent-push machine: model, plan (pure), store (ZooKeeper), staging area, driver."""
