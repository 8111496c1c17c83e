"""Read the source and a table's state: listings, their changes, observations. No function changes a table.

Only `listing` writes: it keeps the parts of a long listing in the staging area.
"""
