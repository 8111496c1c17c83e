"""What must hold before a switch; each check one small function."""
