"""Packs on the worker: the rows of small files are kept as they are stored, and become segments later."""
