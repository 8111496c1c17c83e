"""Settings from outside: variables, profiles, and the values from which clients are made.

Imports `core` only.
"""
