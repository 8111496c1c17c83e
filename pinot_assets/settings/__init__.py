"""What is set from outside: variables, profiles, and the values that clients are made of.

Imports `core` only.
"""
