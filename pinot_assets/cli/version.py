"""What `pinot-assets --version` prints; imports neither typer nor a command."""

from __future__ import annotations

from importlib.metadata import version


def version_line() -> str:
    """Return the program's name and the installed release."""
    return f"pinot-assets {version('pinot-assets')}"
