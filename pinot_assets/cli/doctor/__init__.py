"""`pinot-assets doctor`: find what is wrong with the installation."""
