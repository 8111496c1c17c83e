"""Packs of a ledger that is made again from what queries see (rule R18)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pinot_assets.errors import PinotAssetsError, SessionError
from pinot_assets.pinot.lineage import SegmentMetadata
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.packs import Member, PublishedPack, members_key
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Output


def packs_in(
    snapshot: Snapshot, crcs: Mapping[str, int]
) -> Iterator[tuple[str, tuple[PublishedPack, Output]]]:
    """Yield name, pack and output of each segment of a pack that has the CRC that Pinot has."""
    for pack in snapshot.packs:
        for output in pack.outputs:
            if crcs.get(output.segment) == output.crc:
                yield output.segment, (pack, output)


def pack_read_back(metadata: SegmentMetadata) -> PublishedPack | None:
    """Return the pack of a segment from its custom map, without segments; None if it is not of a pack."""
    custom = metadata.custom
    if (digest := custom.get("pinotAssets.members")) is None:
        return None
    session, _, ordinal = custom.get("pinotAssets.pack", "").rpartition("_")
    return PublishedPack(session, int(ordinal) if ordinal.isdecimal() else 0, digest, 0, 0, ())


def joined_packs(parts: Iterable[tuple[PublishedPack, Output]]) -> tuple[PublishedPack, ...]:
    """Return each pack once, with its visible segments."""
    packs: dict[str, PublishedPack] = {}
    for pack, output in parts:
        there = packs.setdefault(pack.name, replace(pack, outputs=(), rows=0))
        packs[pack.name] = replace(there, outputs=(*there.outputs, output), rows=there.rows + output.rows)
    return tuple(packs.values())


def files_of_packs(
    context: TriggerContext, packs: Sequence[PublishedPack]
) -> tuple[list[PublishedFile], tuple[PublishedPack, ...]]:
    """Return the files of packs, from their member lists, and the packs with their number of files.

    :raises SessionError: a member list is lost, or queries see only a part of a pack.
    """
    files: dict[tuple[str, str], PublishedFile] = {}
    whole: list[PublishedPack] = []
    for pack in packs:
        try:
            members = context.staging.members(members_key(pack.members))
        except PinotAssetsError as error:
            raise _unknown(context, pack, f"its member list cannot be read: {error.reason}") from error
        if members.rows != pack.rows:
            raise _unknown(context, pack, f"queries see {pack.rows:,} of its {members.rows:,} rows")
        whole.append(replace(pack, files=members.files, cell=members.cell))
        for member in members.members:
            files[member.file] = _with_rows(files.get(member.file), member, pack)
    return [*files.values()], tuple(whole)


def _with_rows(file: PublishedFile | None, member: Member, pack: PublishedPack) -> PublishedFile:
    """Return a file with the rows that it has in one more place; the oldest recipe counts, for a file is as
    the table spec wants it only if all of its packs are."""
    before = file.packs if file is not None else ()
    return PublishedFile(
        uri=member.uri,
        fingerprint=member.fingerprint,
        sha256=member.sha256,
        rows=member.rows + (file.rows if file is not None else 0),
        bad_rows=member.bad_rows,
        session=member.session,
        outputs=(),
        version=member.fingerprint.token,
        revision=min(pack.revision, file.revision) if file is not None else pack.revision,
        packs=before if pack.name in before else (*before, pack.name),
    )


def _unknown(context: TriggerContext, pack: PublishedPack, why: str) -> SessionError:
    return SessionError(
        f"the files of the visible pack {pack.name} of {context.table} are not known",
        why=f"ZooKeeper remembers no snapshot, and {why}",
        hint=f"restore {context.clients.store.path} or the object, or delete this project's segments and "
        "ingest again",
    )
