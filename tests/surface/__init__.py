"""What users hold on to, read from the code: names, options, keys, codes, paths.

`listing.surface()` makes the list, `tests/public_surface.json` is the one that is promised, and
`tests/unit/test_public_surface.py` compares the two. `PYTHONPATH=tests python -m surface` adds what is new.
"""
