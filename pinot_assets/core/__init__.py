"""What every layer may use: texts, limits, polling, exit codes, results of checks.

Imports nothing of the package but `pinot_assets.errors`.
"""
