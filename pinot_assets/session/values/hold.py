"""What a rollback holds back (rule R23): versions of files that it took back, and removals that it undid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pinot_assets.core.stored_format import Stored, since
from pinot_assets.core.untrusted import whole_number
from pinot_assets.session.values.plan import Changes
from pinot_assets.snapshot.manifest import PublishedFile, Snapshot
from pinot_assets.snapshot.receipt import SourceFile

SIZES_END: Final = 10**18
"""From here on a number is no size of a file."""


@dataclass(frozen=True, slots=True)
class HeldVersion:
    """A version of a file that a rollback took back.

    :ivar size: bytes; of no meaning where the content is not known.
    :ivar sha256: of its content, "" where nobody knows it: a hold of format 1 and a ledger that was made anew
        say nothing of it.
    """

    token: str
    size: int = 0
    sha256: str = ""

    @classmethod
    def read(cls, text: str) -> HeldVersion:
        """Inverse of `text`; of a text of another shape the token alone is taken, which then counts alone."""
        token, *rest = text.split(" ")
        size = whole_number(rest[0]) if len(rest) == 2 else None
        return cls(token) if size is None or size >= SIZES_END else cls(token, size, rest[1])

    @property
    def text(self) -> str:
        """As it is stored: one text, since a hold may have a million of them and JSON is read up to a limit
        of values."""
        return f"{self.token} {self.size} {self.sha256}" if self.sha256 else self.token


@dataclass(frozen=True, slots=True)
class Hold(Stored):
    """What a rollback took back and the next trigger must not bring back (R23).

    :ivar files: held version tokens by URI: of each file the version that the source has, as far as known.
        It alone says which files are held, and there is nothing else in format 1.
    :ivar removals: deletions that the rollback undid.
    :ivar versions: what more is known of held files, as `HeldVersion` writes it: their content, and further
        versions. Not stored where nothing is.
    """

    files: Mapping[str, str]
    removals: tuple[str, ...]
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict, metadata=since(2))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is held."""
        return not (self.files or self.removals)

    def holds(self, file: SourceFile) -> bool:
        """Whether this version of the file is to stay out, by its token alone: content decides when a run
        looks at it (`hold.as_listed`)."""
        return any(version.token == file.fingerprint.token for version in self.versions_of(file.uri))

    def versions_of(self, uri: str) -> tuple[HeldVersion, ...]:
        """The held versions of a file, the one of `files` first."""
        if uri not in self.files:
            return ()
        first = HeldVersion(self.files[uri])
        known = [HeldVersion.read(text) for text in self.versions.get(uri, ())]
        first = next((version for version in known if version.token == first.token), first)
        return first, *(version for version in known if version.token != first.token)

    def with_versions(self, versions: Mapping[str, Sequence[HeldVersion]]) -> Hold:
        """The same removals, and these versions; a file without any is not held."""
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
    """What must not come back by itself while the table is at a former snapshot.

    :param source: the newest snapshot that was made from the source, not by a rollback. Of a file that was
        held when it was made, it does not show what the source has.
    :param left: what queries see now. Its version of a file that the source has is taken back as well.
    :param before: what former rollbacks hold back.
    """
    made, back = source.ledger, target.ledger
    versions = {uri: before.versions_of(uri) for uri in before.files}
    shown = {uri: file for uri, file in left.ledger.items() if uri in made}
    for uri, file in (*made.items(), *shown.items()):
        size = file.fingerprint.size if file.sha256 else 0
        version = HeldVersion(file.fingerprint.token, size, file.sha256)
        if uri not in back or not _is_version(version, back[uri]):
            # Behind those that are held: what the source has is the one that was held first.
            held = versions.get(uri, ())
            versions[uri] = held if any(v.token == version.token for v in held) else (*held, version)
    # One that is missing because it was held may have been removed since. The next listing tells.
    removals = tuple(sorted((set(back) - set(made)) | set(before.removals)))
    return replace(before.with_versions(versions), removals=removals)


def still_held(hold: Hold, now: Snapshot) -> Hold:
    """The hold less what a snapshot settles: versions that it shows, removals of files that it lacks.

    A file of which it shows what the source has is not held at all.
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
    """The hold less the files of which a session has published what the source has: they were repaired,
    restored, or put back.

    :param before: what was published before.
    :param now: what the session has made of it.
    """
    if hold.is_empty:
        return hold
    then, ledger = before.ledger if before is not None else {}, now.ledger

    def came(uri: str) -> bool:
        return uri in ledger and (uri not in then or then[uri].fingerprint != ledger[uri].fingerprint)

    rest = hold.with_versions({uri: hold.versions_of(uri) for uri in hold.files if not came(uri)})
    return still_held(replace(rest, removals=tuple(u for u in hold.removals if not came(u))), now)


def as_listed(hold: Hold, changes: Changes, sha256_of: Callable[[SourceFile], str]) -> Hold:
    """The hold beside a listing.

    A held version that was only touched, or delivered once more, is known by its content (edge case E3) and
    goes on under its new token. What source and table agree on again is not held any more: it needs no
    session that would publish it, and its next change is another one.

    :param sha256_of: reads a file; asked where size is equal and the token is not. What it raises goes
        through.
    """
    changed = {file.uri: file for file in (*changes.new, *changes.rewritten)}
    versions: dict[str, _Versions] = {}
    for uri in hold.files:
        held = hold.versions_of(uri)
        if uri in changed:
            versions[uri] = _renewed(held, changed[uri], sha256_of)
        elif uri not in changes.listed or uri in changes.touched:  # touched: until that is published
            versions[uri] = held
    removals = tuple(uri for uri in hold.removals if uri not in changes.listed)
    return replace(hold.with_versions(versions), removals=removals)


def without_held(changes: Changes, hold: Hold) -> Changes:
    """The changes less the file versions and removals that a rollback holds back."""
    return replace(
        changes,
        new=tuple(f for f in changes.new if not hold.holds(f)),
        rewritten=tuple(f for f in changes.rewritten if not hold.holds(f)),
        deleted=tuple(u for u in changes.deleted if u not in hold.removals),
    )


def _renewed(held: _Versions, file: SourceFile, sha256_of: Callable[[SourceFile], str]) -> _Versions:
    """The held versions of a file, with the listed one first if it is one of them."""
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
