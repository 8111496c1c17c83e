"""The command line. In this package, only `__main__` imports it."""
