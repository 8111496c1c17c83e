"""What is there: listings, changes, what else stands in the way. Changes nothing."""
