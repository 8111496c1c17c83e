"""`pinot-assets doctor`: what is wrong with the installation."""
