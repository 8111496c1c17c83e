"""What goes on after a death: find out what became of a switch and finish or undo it, abandon, rebuild.

It decides by what `session/lineage` reads in Pinot, and writes the pointer and the session in ZooKeeper.
"""
