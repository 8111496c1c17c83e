"""What a driver does for one that died before it, and for a pointer that was lost or is behind."""
