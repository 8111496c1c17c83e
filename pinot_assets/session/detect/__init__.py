"""What is there: listings, changes, what else stands in the way. Changes nothing of a table.

Only parts of a long listing are kept in the staging area (`listing`).
"""
