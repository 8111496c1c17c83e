"""Opens the object store of a URI."""

from __future__ import annotations

from collections.abc import Mapping

from pinot_assets.core.installation_policy import Policy
from pinot_assets.source.allowed_places import require_place
from pinot_assets.source.object_store import ObjectStore
from pinot_assets.source.uris import parse_root


def open_store(uri: str, props: Mapping[str, str], policy: Policy) -> ObjectStore:
    """Open the store of a folder: `file:///dir`, `/dir`, `s3://bucket/prefix` (`s3a`, `s3n` are the same),
    `gs://bucket/prefix`, `abfss://container@account.dfs.core.windows.net/prefix`.

    :param props: the suffixes of `input.fs.prop.*` as StarTree and Pinot spell them (`region`,
        `endpoint`, `accessKey`, `secretKey`, …; `KNOWN` of `source/settings.py` has them all);
        values may refer to the environment (`${NAME}`). If keys are missing, the cloud's standard chain
        finds them. Not used for local folders.
    :param policy: the table spec's; `UNLIMITED` for a place that no spec names.
    :raises SourceError: the URI or a setting cannot be used, or the policy refuses it.
    """
    root = parse_root(uri)
    if root.scheme == "file":
        require_place(root, props, policy)
        from pinot_assets.source.local_store import LocalObjectStore

        return LocalObjectStore(root)
    # Imported late, so that a task with local files need not load the client.
    from pinot_assets.source.bucket_store import BucketObjectStore

    store = BucketObjectStore(root, props, policy)
    assert store.settings is not None  # resolve them now, so that a wrong setting fails here
    return store
