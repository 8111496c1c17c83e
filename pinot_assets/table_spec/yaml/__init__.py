"""How a table spec is written: YAML, environment references, values, problems with their lines."""
