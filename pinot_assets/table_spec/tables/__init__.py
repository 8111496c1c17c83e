"""Whole table specs: loading a folder, comparing with Pinot, applying."""
