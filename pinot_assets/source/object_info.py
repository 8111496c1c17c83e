"""What a listing says of one object."""

from __future__ import annotations

from dataclasses import dataclass

from pinot_assets.snapshot.fingerprint import Fingerprint


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One listed object: key relative to the store's root, full URI, version."""

    key: str
    uri: str
    fingerprint: Fingerprint
