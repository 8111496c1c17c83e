"""Columns of values as Pinot stores them: types, order, dictionaries, truncation."""
