"""Assets, jobs and operations of REALTIME tables."""
