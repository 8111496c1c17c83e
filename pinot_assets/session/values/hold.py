"""The hold of a rollback (rule R23): versions of files that it took back, and removals that it undid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pinot_assets.core.stored_format import WITH_PACKS, Stored, added, since
from pinot_assets.core.untrusted import whole_number
from pinot_assets.session.values.plan import Changes
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import SourceFile

SIZES_END: Final = 10**18
"""Numbers from here on cannot be the size of a file."""


@dataclass(frozen=True, slots=True)
class HeldVersion:
    """A version of a file that a rollback took back.

    :ivar size: bytes; meaningless if `sha256` is "".
    :ivar sha256: of its content; "" if unknown. A hold of format 1 and a rebuilt ledger do not have it.
    """

    token: str
    size: int = 0
    sha256: str = ""

    @classmethod
    def read(cls, text: str) -> HeldVersion:
        """Inverse of `text`; from a text of another shape, take the token alone, without size and hash."""
        token, *rest = text.split(" ")
        size = whole_number(rest[0]) if len(rest) == 2 else None
        return cls(token) if size is None or size >= SIZES_END else cls(token, size, rest[1])

    @property
    def text(self) -> str:
        """The stored form. It is one text because a hold may have a million of them, and our JSON reader
        limits the number of values."""
        return f"{self.token} {self.size} {self.sha256}" if self.sha256 else self.token


@dataclass(frozen=True, slots=True)
class Hold(Stored):
    """File versions and removals that a rollback took back and no trigger may bring back (R23).

    :ivar files: held version token by URI: the version that the source has, as far as known. Only files
        named here are held. Format 1 has no other data about them.
    :ivar removals: URIs of files whose deletion the rollback undid.
    :ivar versions: more about held files, each as `HeldVersion.text`: their content, and further versions.
        A file without such data has no item here.
    :ivar rebuilds: whether the rollback took back files that were built again under another recipe; then none
        is built again, until `resume` or until no file is outdated.
    :ivar merges: whether it took back packs that were merged; then none is merged, until `resume`.
    """

    files: Mapping[str, str]
    removals: tuple[str, ...]
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict, metadata=since(2))
    rebuilds: bool = field(default=False, metadata=added(2))
    merges: bool = field(default=False, metadata=added(WITH_PACKS))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is held."""
        return not (self.files or self.removals or self.rebuilds or self.merges)

    def holds(self, file: SourceFile) -> bool:
        """Whether this version of the file is held, by its token alone. A run also compares the content
        (`hold.as_listed`)."""
        return any(version.token == file.fingerprint.token for version in self.versions_of(file.uri))

    def versions_of(self, uri: str) -> tuple[HeldVersion, ...]:
        """Return the held versions of a file, the one in `files` first."""
        if uri not in self.files:
            return ()
        first = HeldVersion(self.files[uri])
        known = [HeldVersion.read(text) for text in self.versions.get(uri, ())]
        first = next((version for version in known if version.token == first.token), first)
        return first, *(version for version in known if version.token != first.token)

    def with_versions(self, versions: Mapping[str, Sequence[HeldVersion]]) -> Hold:
        """Return the hold with the same removals and these versions; a file without a version is not held."""
        there = {uri: held for uri, held in versions.items() if held}
        return replace(
            self,
            files={uri: held[0].token for uri, held in there.items()},
            versions={
                uri: tuple(version.text for version in held)
                for uri, held in there.items()
                if len(held) > 1 or held[0].sha256
            },
        )


NO_HOLD = Hold(files={}, removals=())


_Versions = tuple[HeldVersion, ...]


def hold_of(source: Snapshot, left: Snapshot, target: Snapshot, before: Hold = NO_HOLD) -> Hold:
    """Return what no trigger may bring back while the table is at the snapshot `target`.

    :param source: the newest snapshot that was made from the source, not by a rollback. It lacks the
        source's version of files that were held when it was made.
    :param left: the snapshot that queries see now. Its versions of files in `source` are held as well.
    :param before: the hold of former rollbacks.
    """
    made, back = source.ledger, target.ledger
    versions = {uri: before.versions_of(uri) for uri in before.files}
    shown = {uri: file for uri, file in left.ledger.items() if uri in made}
    for uri, file in (*made.items(), *shown.items()):
        size = file.fingerprint.size if file.sha256 else 0
        version = HeldVersion(file.fingerprint.token, size, file.sha256)
        if uri not in back or not _is_version(version, back[uri]):
            # Append it to the held versions: the first one is the version that the source has.
            held = versions.get(uri, ())
            versions[uri] = held if any(v.token == version.token for v in held) else (*held, version)
    # `source` may lack a file only because it was held. The next listing shows whether it was removed.
    removals = tuple(sorted((set(back) - set(made)) | set(before.removals)))
    rebuilds = before.rebuilds or took_back_rebuilds(left, target)
    merges = before.merges or took_back_merges(left, target)
    return replace(before.with_versions(versions), removals=removals, rebuilds=rebuilds, merges=merges)


def took_back_rebuilds(left: Snapshot, target: Snapshot) -> bool:
    """Whether another recipe had built a file of `left` that `target` has in the same version."""
    if not left.recipes:
        return False
    back = target.ledger
    return any(
        file.revision != back[uri].revision and file.version == back[uri].version
        for uri, file in left.ledger.items()
        if uri in back
    )


def took_back_merges(left: Snapshot, target: Snapshot) -> bool:
    """Whether the rows of a version that both have are in other packs, which no change of a file explains.

    A pack of `target` changed because of a file if `left` lacks one of its files.
    """
    if not left.packs:
        return False
    now = {(file.uri, file.session): file.packs for file in left.files}
    changed = {n for file in target.files if (file.uri, file.session) not in now for n in file.packs}
    return any(
        name not in changed and name not in now[file.uri, file.session]
        for file in target.files
        if file.packs and (file.uri, file.session) in now
        for name in file.packs
    )


def still_held(hold: Hold, now: Snapshot) -> Hold:
    """Return the hold without the versions that the snapshot shows and the removals of files that it lacks.

    If the snapshot shows the source's version of a file, the file is not held at all.
    """
    ledger = now.ledger

    def left(uri: str) -> _Versions:
        held, shown = hold.versions_of(uri), ledger.get(uri)
        if shown is None:
            return held
        return () if _is_version(held[0], shown) else tuple(v for v in held if not _is_version(v, shown))

    removals = tuple(uri for uri in hold.removals if uri in ledger)
    return replace(hold.with_versions({uri: left(uri) for uri in hold.files}), removals=removals)


def after_publishing(hold: Hold, before: Snapshot | None, now: Snapshot) -> Hold:
    """Return the hold without the files that a session has just published from the source: somebody repaired,
    restored or put them back.

    :param before: the snapshot before the session, None if there was none.
    :param now: the session's snapshot.
    """
    if hold.is_empty:
        return hold
    then, ledger = before.ledger if before is not None else {}, now.ledger

    def came(uri: str) -> bool:
        return uri in ledger and (uri not in then or then[uri].fingerprint != ledger[uri].fingerprint)

    rest = hold.with_versions({uri: hold.versions_of(uri) for uri in hold.files if not came(uri)})
    return still_held(replace(rest, removals=tuple(u for u in hold.removals if not came(u))), now)


def as_listed(hold: Hold, changes: Changes, sha256_of: Callable[[SourceFile], str]) -> Hold:
    """Return the hold after a listing.

    A held version that was touched or delivered again has the same content (edge case E3), so it stays held
    under its new token. A file on which source and table agree again is not held any more: no session has to
    publish it, and its next change is a new one.

    :param sha256_of: reads a file and returns its hash; called only if the sizes are equal and the tokens are
        not. Its errors are raised unchanged.
    """
    changed = {file.uri: file for file in (*changes.new, *changes.rewritten)}
    versions: dict[str, _Versions] = {}
    for uri in hold.files:
        held = hold.versions_of(uri)
        if uri in changed:
            versions[uri] = _renewed(held, changed[uri], sha256_of)
        elif uri not in changes.listed or uri in changes.touched:  # touched: until a snapshot records it
            versions[uri] = held
    removals = tuple(uri for uri in hold.removals if uri not in changes.listed)
    return replace(hold.with_versions(versions), removals=removals)


def without_held(changes: Changes, hold: Hold) -> Changes:
    """Return the changes without the file versions and removals that a rollback holds back."""
    return replace(
        changes,
        new=tuple(f for f in changes.new if not hold.holds(f)),
        rewritten=tuple(f for f in changes.rewritten if not hold.holds(f)),
        deleted=tuple(u for u in changes.deleted if u not in hold.removals),
    )


def _renewed(held: _Versions, file: SourceFile, sha256_of: Callable[[SourceFile], str]) -> _Versions:
    """Return the held versions of a file; if the listed version is one of them, it comes first."""
    now = file.fingerprint
    if (first := next((version for version in held if version.token == now.token), None)) is None:
        contents = {version.sha256 for version in held if version.size == now.size} - {""}
        sha256 = sha256_of(file) if contents else ""
        if sha256 not in contents:
            return held
        first = HeldVersion(now.token, now.size, sha256)
        held = tuple(v for v in held if (v.size, v.sha256) != (now.size, sha256))
    return first, *(version for version in held if version.token != first.token)


def _is_version(version: HeldVersion, file: PublishedFile) -> bool:
    same = version.sha256 != "" and (version.size, version.sha256) == (file.fingerprint.size, file.sha256)
    return same or version.token == file.fingerprint.token
