"""References to environment variables, and the values that must be one.

A spec keeps `${NAME}` as it is written; the value is looked up where it is used and never stored, so that
neither a log nor Pinot nor the fingerprint of a session can show a secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from pinot_assets.errors import SpecError

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}")
_PURE_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

_SECRET_KEY: Final = re.compile(
    r"secret|passw|passphrase|credential|private_?-?key|(access|account|api|shared|signing|encryption)[._-]?key"
    r"|connection[._-]?string|(^|[._-]|auth|sas|session|bearer|access|api|security)token$|auth[._-]?header",
    re.IGNORECASE,
)
_SECRET_VALUE: Final = re.compile(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|-----BEGIN [A-Z ]*PRIVATE KEY|AccountKey=|[?&](?:sig|X-Amz-Signature)="
    r"|^[a-z][a-z0-9+.-]*://[^/?#@]*:[^/?#@]*@",
    re.IGNORECASE,
)

_VARIABLE_FOR: Final = {
    "accesskey": "AWS_ACCESS_KEY_ID",
    "secretkey": "AWS_SECRET_ACCESS_KEY",
    "sessiontoken": "AWS_SESSION_TOKEN",
}


def is_reference(text: str) -> bool:
    """Whether the text is one `${NAME}` and nothing else; a default would be a literal again."""
    return _PURE_REFERENCE.fullmatch(text) is not None


def has_reference(text: str) -> bool:
    """Whether any `${NAME}` or `${NAME:-default}` occurs in the text."""
    return _REFERENCE.search(text) is not None


def is_secret_key(key: str) -> bool:
    """Whether a value at this key is to be kept out of files (`input.fs.prop.secretKey`, `authToken`, …)."""
    return _SECRET_KEY.search(key) is not None


def is_secret_value(text: str) -> bool:
    """Whether the text itself looks like a credential, whatever its key."""
    return _SECRET_VALUE.search(text) is not None


def variable_for(key: str) -> str:
    """The environment variable to suggest for a secret at `key`."""
    last = key.rsplit(".", 1)[-1]
    known = _VARIABLE_FOR.get(last.lower())
    return known or re.sub(r"\W", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last)).upper()


def malformed_reference(text: str) -> bool:
    """Whether the text has a `${` that does not begin a whole reference."""
    return "${" in _REFERENCE.sub("", text)


def missing_variables(text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    """Names that the text refers to, without a default, and that are not set (or set to nothing)."""
    found = os.environ if environ is None else environ
    return [name for name, default in _REFERENCE.findall(text) if not found.get(name) and not default]


def resolve_env(value: str, environ: Mapping[str, str] | None = None) -> str:
    """Replace `${NAME}` and `${NAME:-default}`; as in a shell, an empty variable counts as not set.

    :param environ: the variables; those of the process if None.
    :raises SpecError: a variable is not set; names the variable, never a value.
    """
    found = os.environ if environ is None else environ

    def look_up(match: re.Match[str]) -> str:
        name, default = match.group(1), match.group(2)
        text = found.get(name) or default
        if not text:
            raise SpecError(
                f"the environment variable {name} is not set",
                why="a table spec refers to it",
                hint=f"export {name}=… where this process starts",
            )
        return text

    return _REFERENCE.sub(look_up, value)


def resolve_props(props: Mapping[str, str], environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """`resolve_env` for every value; keep the result in memory only.

    :raises SpecError: a variable is not set.
    """
    return {key: resolve_env(value, environ) for key, value in props.items()}
