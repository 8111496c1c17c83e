"""The demos of `make demo`: they use real sample files, and a query load that watches the switch.

This file imports nothing, so that `python -m pinot_assets.local.sample_data` runs its module only once.
"""
