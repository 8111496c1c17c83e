"""Reads what the model needs: from Pinot, the stream and the deep store."""
