"""Settings of object stores, as table specs and variables spell them."""
