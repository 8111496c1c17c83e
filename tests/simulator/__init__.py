"""Segment completion as a discrete-event model: to prove repairs and to size clusters."""
