"""`python -m pinot_assets`."""

from pinot_assets.cli import main

main()
