"""Opens the store that a URI names."""

from __future__ import annotations

from collections.abc import Mapping

from pinot_assets.core.installation_policy import Policy
from pinot_assets.source.allowed_places import require_place
from pinot_assets.source.object_store import ObjectStore
from pinot_assets.source.uris import parse_root


def open_store(uri: str, props: Mapping[str, str], policy: Policy) -> ObjectStore:
    """Open the store of a folder: `file:///dir`, `/dir`, `s3://bucket/prefix` (`s3a`, `s3n` are the same),
    `gs://bucket/prefix`, `abfss://container@account.dfs.core.windows.net/prefix`.

    :param props: the suffixes of `input.fs.prop.*` in StarTree's and Pinot's spelling (`region`,
        `endpoint`, `accessKey`, `secretKey`, …; `KNOWN` of `source/settings.py` has them all);
        values may refer to the environment (`${NAME}`). Without keys the cloud's standard chain finds them.
        Not used locally.
    :param policy: the table spec's; `UNLIMITED` for a place that no spec names.
    :raises SourceError: the URI or a setting cannot be used, or the policy refuses it.
    """
    root = parse_root(uri)
    if root.scheme == "file":
        require_place(root, props, policy)
        from pinot_assets.source.local_store import LocalObjectStore

        return LocalObjectStore(root)
    # Imported late: a local-only task does not pay for the client.
    from pinot_assets.source.bucket_store import BucketObjectStore

    store = BucketObjectStore(root, props, policy)
    assert store.settings is not None  # resolved at once, so that a wrong one is told here
    return store
