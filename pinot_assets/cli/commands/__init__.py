"""One file for commands of a kind."""
