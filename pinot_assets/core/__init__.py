"""Helpers that every layer may use: texts, limits, polling, exit codes, results of checks.

They import nothing of the package except `pinot_assets.errors`.
"""
