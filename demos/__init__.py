"""What `make demo` is made of: real sample files and the query load that watches the switch.

Nothing is imported here, so that `python -m pinot_assets.local.sample_data` runs its module once.
"""
