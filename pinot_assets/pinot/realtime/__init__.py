"""What a controller and servers answer about a REALTIME table, and what can be asked of them."""
