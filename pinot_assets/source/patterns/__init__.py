"""Which files a pattern means: Java's globs and regular expressions, on RE2."""
