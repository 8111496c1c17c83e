"""Make the bytes of each index. Knows no files and no table config."""
