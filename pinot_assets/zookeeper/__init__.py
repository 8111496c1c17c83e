"""The door to ZooKeeper: clients, and the instances of a cluster.

What a session keeps there is in `session.stores`.
"""
