"""Check the SQL of a table spec before Pinot or Spark see it.

The author of a table spec writes SQL that runs on Pinot's servers (`audit:`) and in Spark (`filter`,
`transforms`). Both would run code for it, read files and other tables, and put variables of the environment
into it. So an expression is read here first: it may only call functions from a list, in forms that this
package, Pinot and Spark read alike. `spark` and `pinot` have the lists and the checks. The commands that
check a spec call them, and so does the code that compiles or sends an expression.

Pinot's `transformConfigs` and `filterConfig` need no list here:
`pinot_assets.segment.config.transforms` translates them and refuses what it does not know.
"""
