"""The object stores that a build works with: source, staging area, and the segments there."""

from __future__ import annotations

from functools import cached_property, lru_cache

from pinot_assets.ingest.contract.build_spec import BuildSpec
from pinot_assets.source.factory import open_store
from pinot_assets.source.object_store import ObjectStore


class BuildStores:
    """The stores of one build spec, each opened when it is first used."""

    def __init__(self, build_spec: BuildSpec) -> None:
        self._build_spec = build_spec

    @cached_property
    def source(self) -> ObjectStore:
        """The store of the input directory."""
        build_spec = self._build_spec
        return open_store(build_spec.source_uri, build_spec.source_props, build_spec.policy)

    @cached_property
    def staging(self) -> ObjectStore:
        """The store of the session's own folder."""
        return self._staged(self._build_spec.staging_uri)

    @cached_property
    def segments(self) -> ObjectStore:
        """The store of the tars."""
        return self._staged(self._build_spec.segments_uri)

    @cached_property
    def of_packs(self) -> ObjectStore:
        """The store of member lists and rows objects: the table's folder in the staging area."""
        packs = self._build_spec.packs
        assert packs is not None  # only tables with packs have small files
        return self._staged(packs.staging_uri)

    def _staged(self, uri: str) -> ObjectStore:
        return open_store(uri, self._build_spec.staging_props, self._build_spec.policy)


def stores_of(build_spec: BuildSpec) -> BuildStores:
    """Return the stores of a build spec. All files of a batch share them, and so their connections.

    :raises SourceError: when one is used: its URI or a setting cannot be used, or the policy refuses it.
    """
    return _stores_of(_ThisOne(build_spec))


class _ThisOne:
    """A build spec that equals only itself, so that a cache need not compare all that it says."""

    def __init__(self, build_spec: BuildSpec) -> None:
        self.build_spec = build_spec

    def __hash__(self) -> int:
        return id(self.build_spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ThisOne) and other.build_spec is self.build_spec


@lru_cache(maxsize=1)
def _stores_of(one: _ThisOne) -> BuildStores:
    return BuildStores(one.build_spec)
