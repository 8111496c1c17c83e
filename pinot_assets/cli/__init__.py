"""The command line. Nothing of the package imports it but `__main__`."""
