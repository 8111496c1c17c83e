"""A table spec from a sample of its files: what `pinot-assets init` writes.

`sample` reads the first rows of a few files; everything else is pure: `column` and `csv_shape` say what was
seen, `proposal` what the table could be, `yaml_text` writes it down with the reasons.
"""
