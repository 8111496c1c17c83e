"""What the names of a bucket's settings tell by themselves: which it has, and which need one another.

Asked when a table spec is checked, without looking at a value. `S3Settings` and its like ask the same again
where the bucket is opened, of the values that the environment has there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from pinot_assets.source.settings import adls, gcs, s3

KNOWN: Final[Mapping[str, Mapping[str, str]]] = {
    "s3": s3.KNOWN_PROPS,
    "gs": gcs.KNOWN_PROPS,
    "abfss": adls.KNOWN_PROPS,
}
"""The settings of each scheme, and what they mean."""

NEEDS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "s3": {
        "accessKey": ("secretKey",),
        "secretKey": ("accessKey",),
        "sessionToken": ("accessKey", "secretKey"),
    },
    "gs": {},
    "abfss": {
        "tenantId": ("clientId", "clientSecret"),
        "clientId": ("tenantId", "clientSecret"),
        "clientSecret": ("tenantId", "clientId"),
    },
}
"""Settings that have no use without others."""

IN_NEED: Final = frozenset(name for needs in NEEDS.values() for name in needs)
"""All of those."""


def unknown_settings(scheme: str, names: Collection[str]) -> list[str]:
    """Those that the buckets of a scheme do not have."""
    return [name for name in names if name not in KNOWN[scheme]]


def incomplete_settings(scheme: str, names: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """A setting that is given, and those that it needs and that are not."""
    for name in names:
        lacking = [other for other in NEEDS[scheme].get(name, ()) if other not in names]
        if lacking:
            yield name, lacking
            return  # the others of a pair lack the same
