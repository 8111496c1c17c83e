"""How to reach what is outside: addresses, credentials, how long to wait. Values only."""
