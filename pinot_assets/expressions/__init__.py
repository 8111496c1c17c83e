"""What the SQL of a table spec may say, before Pinot or Spark sees any of it.

Whoever writes a table spec writes SQL that runs on Pinot's servers (`audit:`) and in Spark (`filter`,
`transforms`). Both would run code for it, read files and other tables, and put variables of the environment
into it. So an expression is read here first: by names of functions from a list and in forms
that this package, Pinot and Spark read alike. `spark` and `pinot` have the lists and the checks. The commands
that look at a spec call them, and so do the places where an expression is compiled or sent.

Pinot's `transformConfigs` and `filterConfig` need no list here:
`pinot_assets.segment.config.transforms` translates them, and what it does not know it refuses.
"""
