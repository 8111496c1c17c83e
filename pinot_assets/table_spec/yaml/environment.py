"""References to environment variables, and the values that must be one.

A spec keeps `${NAME}` as it is written; `pinot_assets.source.resolve_env` looks the value up where it is used
and it is never stored, so that no log, plan or fingerprint can show a secret.

Secrets that stand in a spec are refused with the line to write instead; the value is never repeated.
"""

from __future__ import annotations

import os
import re
from typing import Final

from pinot_assets.source.settings.references import is_reference
from pinot_assets.table_spec.yaml.document import DocumentNode, KeyPath, Problem, nearest_key, walk

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}")

_SECRET_KEY: Final = re.compile(
    r"secret|passw|passphrase|credential(?!s?[._-]?source$)|(access|account|api|gcp|private|shared|signing|encryption)[._-]?key"
    r"|connection[._-]?string|auth[._-]?header"
    r"|(^|[._-]|auth|authentication|sas|session|bearer|access|api|security|refresh|id)token$"
    r"|jaas[._-]?config|auth[._-]?user[._-]?info",  # a stream's: both hold a password beside other text
    re.IGNORECASE,
)
_SECRET_VALUE: Final = re.compile(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|-----BEGIN [A-Z ]*PRIVATE KEY|AccountKey=|[?&](?:sig|X-Amz-Signature)="
    r"|^[a-z][a-z0-9+.-]*://[^/?#@\s]*:[^?#@\s]*@",
    re.IGNORECASE,
)
_VARIABLE_FOR: Final = {
    "sasl.jaas.config": "KAFKA_JAAS_CONFIG",
    "accesskey": "AWS_ACCESS_KEY_ID",
    "secretkey": "AWS_SECRET_ACCESS_KEY",
    "sessiontoken": "AWS_SESSION_TOKEN",
}


def has_reference(text: str) -> bool:
    """Whether any `${NAME}` or `${NAME:-default}` occurs in the text."""
    return _REFERENCE.search(text) is not None


def malformed_reference(text: str) -> bool:
    """Whether the text has a `${` that does not begin a whole reference."""
    return "${" in _REFERENCE.sub("", text)


def missing_variables(text: str) -> list[str]:
    """Names that the text refers to without a default and that are not set here."""
    return [name for name, default in _REFERENCE.findall(text) if not default and name not in os.environ]


def is_secret_key(key: str) -> bool:
    """Whether a value at this key is to be kept out of files (`input.fs.prop.secretKey`, `authToken`, …)."""
    return _SECRET_KEY.search(key) is not None


def is_secret_value(text: str) -> bool:
    """Whether the text itself looks like a credential, whatever its key."""
    return _SECRET_VALUE.search(text) is not None


def variable_for(key: str) -> str:
    """The environment variable to suggest for a secret at `key`: one that table specs may read by default."""
    last = key.rsplit(".", 1)[-1]
    known = _VARIABLE_FOR.get(key.lower()) or _VARIABLE_FOR.get(last.lower())
    return "TABLE_" + (known or re.sub(r"\W", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last)).upper())


def secret_problems(part: DocumentNode) -> tuple[list[Problem], set[KeyPath]]:
    """Every literal secret at or below a place.

    :returns: the problems, and the paths whose values must not be looked at any further.
    """
    problems, paths = [], set()
    for path, value in walk(part.value, part.path):
        key, place = nearest_key(path), DocumentNode(part.document, path)
        text = place.text()
        if not text or isinstance(value, bool) or is_reference(text):
            continue
        if is_secret_key(key) or is_secret_value(text):
            what = "a literal secret" if is_secret_key(key) else "what looks like a credential"
            fix = f"write {key}: ${{{variable_for(key)}}}" if key else "keep it in the environment"
            problems.append(place.problem(f"holds {what}", fix))
            paths.add(path)
    return problems, paths
