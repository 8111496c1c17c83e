"""Upload of segments: batches, confirmation, and what a lost reply leaves behind."""
