"""What a run or a rollback would do, for people and as JSON. Changes nothing."""
