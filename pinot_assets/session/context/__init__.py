"""One driver at work: its clients, its lease, its notes."""
