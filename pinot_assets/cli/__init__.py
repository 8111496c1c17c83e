"""The command line. Nothing imports it but `__main__`."""
