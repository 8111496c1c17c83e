"""What must hold for the staged, still hidden segments before they may be switched to (W4).

Each check is one pure function of what was built and what Pinot shows now.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pinot_assets.core.check_result import CheckResult, Severity, base_name, some
from pinot_assets.core.text import plural
from pinot_assets.errors import PinotError
from pinot_assets.pinot.lineage import Replicas
from pinot_assets.snapshot.receipt import Failure, Output, Receipt


@dataclass(frozen=True, slots=True)
class Finding(CheckResult):
    """The answer of one check of the gate. Where a failure is only to be seen, it is a warning.

    :ivar at_fault: segments that are not what was built. A finding that fails and names neither segments nor
        files waits for something: servers that still load, a segment that is to be pushed again (rules
        R10, R14).
    :ivar files: URIs of files that were not built as they should be, whatever became of their segments.
    :ivar of_data: other rows in the files could pass it: one that was rewritten since is read again.
    """

    severity: Severity = Severity.ERROR
    at_fault: tuple[str, ...] = ()
    of_data: bool = False
    files: tuple[str, ...] = ()

    @property
    def blames(self) -> bool:
        """Whether it names what is to be built again."""
        return bool(self.at_fault or self.files)

    @property
    def warns(self) -> bool:
        """Whether a failure keeps nothing back."""
        return self.severity is Severity.WARN


def files_built(planned: int, failures: Sequence[Failure]) -> Finding:
    """Every file of the session is built: all or none (I1)."""
    bad = [f"{base_name(f.uri)}: {f.code}: {f.reason}" for f in failures]
    return finding_of("files_built", planned, bad, "files are built")


def rows_kept(receipts: Collection[Receipt]) -> Finding:
    """No row of a file was put aside as bad; where the table spec allows that, it keeps nothing back."""
    bad = [f"{base_name(r.uri)}: {r.bad_rows} in {r.bad_rows_uri}" for r in receipts if r.bad_rows]
    rows = sum(receipt.rows for receipt in receipts)
    every = rows + sum(receipt.bad_rows for receipt in receipts)
    finding = finding_of("rows_kept", every, bad, "rows of the files are in the segments", found=rows)
    return replace(finding, severity=Severity.WARN)


def tars_in_place(outputs: Sequence[Output], sizes: Mapping[str, int | None]) -> Finding:
    """Every tar that is to be pushed lies where it was staged, in its size.

    :param sizes: size by tar URI, None for one that is not there.
    """
    bad = [
        f"{o.segment} has {sizes.get(o.tar_uri)} bytes staged, built {o.tar_bytes}"
        for o in outputs
        if sizes.get(o.tar_uri) != o.tar_bytes
    ]
    return finding_of("tars_in_place", len(outputs), bad, "tars are in place")


def replicas_online(outputs: Sequence[Output], replicas: Replicas) -> Finding:
    """Every replica of every segment is ONLINE (Pinot's own end waits for one only)."""
    states = [
        (o.segment, server, state)
        for o in outputs
        for server, state in (replicas.get(o.segment) or {"no server": "MISSING"}).items()
    ]
    states.sort(key=lambda found: found[2] != "ERROR")  # what is named first is what is at fault
    bad = [f"{segment} is {state} on {server}" for segment, server, state in states if state != "ONLINE"]
    broken = [segment for segment, _, state in states if state == "ERROR"]
    return finding_of("replicas_online", len(states), bad, "replicas are ONLINE", broken)


def one_replica_online(outputs: Sequence[Output], replicas: Replicas, away: Collection[str]) -> Finding:
    """Of every segment a replica is ONLINE on a server that answers, and none is in ERROR.

    :param away: servers that do not answer.
    """
    bad, broken = [], []
    for output in outputs:
        states = replicas.get(output.segment) or {}
        if wrong := sorted(server for server, state in states.items() if state == "ERROR"):
            bad.append(f"{output.segment} is ERROR on {', '.join(wrong)}")
            broken.append(output.segment)
        elif not any(state == "ONLINE" and server not in away for server, state in states.items()):
            bad.append(f"{output.segment} is ONLINE on no server that answers")
    good = "segments have a replica that is ONLINE"
    return finding_of("one_replica_online", len(outputs), bad, good, broken)


def servers_answered(servers: Collection[str], away: Mapping[str, PinotError]) -> Finding:
    """Every server that is to have a segment says what it has loaded.

    :param away: why some did not.
    """
    bad = [f"{server} did not answer: {error.reason}" for server, error in sorted(away.items())]
    return finding_of("servers_answered", len(servers), bad, "servers say what they have loaded")


def crc_on_servers(
    outputs: Sequence[Output], replicas: Replicas, crcs: Mapping[str, Mapping[str, int]]
) -> Finding:
    """Every replica that is ONLINE has the CRC that was built: a server loads what it fetched, whatever
    Pinot's metadata say.

    :param crcs: server → segment → CRC as loaded, of servers that answer.
    """
    loaded = [
        (o, server, crcs[server].get(o.segment))
        for o in outputs
        for server, state in replicas.get(o.segment, {}).items()
        if state == "ONLINE" and server in crcs
    ]
    bad = [
        f"{o.segment} is not loaded on {server}"
        if crc is None
        else f"{o.segment} has CRC {crc} on {server}, built {o.crc}"
        for o, server, crc in loaded
        if crc != o.crc
    ]
    other = [o.segment for o, _, crc in loaded if crc not in (None, o.crc)]
    return finding_of("crc_on_servers", len(loaded), bad, "replicas have the built CRC", other)


def crc_as_built(outputs: Sequence[Output], crcs: Mapping[str, int]) -> Finding:
    """Pinot holds exactly the segments that were built."""
    bad = [
        f"{o.segment} has CRC {crcs.get(o.segment)}, built {o.crc}"
        for o in outputs
        if crcs.get(o.segment) != o.crc
    ]
    other = [o.segment for o in outputs if crcs.get(o.segment, o.crc) != o.crc]
    return finding_of("crc_as_built", len(outputs), bad, "segments have the built CRC", other)


def rows_as_built(outputs: Sequence[Output], rows: Mapping[str, Mapping[str, int]]) -> Finding:
    """Every server that answers loaded as many documents as the task wrote."""
    expected = sum(o.rows * max(1, len(rows.get(o.segment, {}))) for o in outputs)
    found = sum(n for o in outputs for n in rows.get(o.segment, {}).values())
    bad = [f"{o.segment} is loaded on no server" for o in outputs if not rows.get(o.segment)]
    bad += [
        f"{o.segment} has {plural(n, 'row')} on {server}, built {o.rows:,}"
        for o in outputs
        for server, n in rows.get(o.segment, {}).items()
        if n != o.rows
    ]
    other = [o.segment for o in outputs if any(n != o.rows for n in rows.get(o.segment, {}).values())]
    good = "rows over all replicas are as built"
    return finding_of("rows_as_built", expected, bad, good, other, found)


def sources_unchanged(segments_from: Sequence[str], visible: frozenset[str]) -> Finding:
    """Every segment that will be replaced is still there and visible (rules R5, R8)."""
    bad = [f"{name} is gone or hidden" for name in segments_from if name not in visible]
    return finding_of("sources_unchanged", len(segments_from), bad, "segments to be replaced are in place")


def finding_of(
    name: str,
    expected: int,
    bad: Sequence[str],
    good: str,
    at_fault: Sequence[str] = (),
    found: int | None = None,
) -> Finding:
    """A finding with its sentence.

    :param bad: what is wrong, one text each; none: it passed. The first three are told.
    :param good: what the numbers count.
    :param found: how many are good; all but the bad ones where not given.
    """
    found = expected - len(bad) if found is None else found
    if not bad:
        return Finding(name, True, expected, found, f"{found} of {expected} {good}")
    message = f"{found} of {expected} {good}: {some(bad, between='; ')}"
    return Finding(name, False, expected, found, message, at_fault=tuple(dict.fromkeys(at_fault)))
