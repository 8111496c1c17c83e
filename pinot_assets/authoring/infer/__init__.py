"""Make a table spec from a sample of its files: `pinot-assets init` writes it.

`sample` chooses a few files and `draft` reads their first rows. Everything else is pure: `column` and
`csv_shape` say what was seen, `proposal` what the table could be, `yaml_text` writes it with the reasons.
"""
