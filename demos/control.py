"""The control of the demo: the same change pushed the plain way, file by file, without a lineage.

It shows that the query load would have seen mixed answers, had there been any.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pinot_assets.core.files import temporary_folder
from pinot_assets.pinot import HttpPinotClient, PushMode, wait_online
from pinot_assets.segment import rename_tar
from pinot_assets.session.stores.staging import Staging
from pinot_assets.snapshot.receipt import Output


def push_plainly(
    pinot: HttpPinotClient, table: str, staging: Staging, new: Sequence[Output], old: Sequence[str]
) -> None:
    """Push the new segments one by one, then delete the old ones one by one.

    The new ones get fresh names: those that a rollback took back are spent.
    """
    for number, output in enumerate(new):
        _push_one(pinot, table, staging, output, f"{table}_plain_{number}")
    for name in old:
        pinot.delete_segments(table, [name])


def _push_one(pinot: HttpPinotClient, table: str, staging: Staging, output: Output, name: str) -> None:
    with temporary_folder("demo") as folder:
        source, target = folder / "source", folder / "target"
        staging.fetch_tar(output, source)
        renamed = rename_tar(source, target, name=name)
        plain = replace(
            output,
            segment=name,
            crc=renamed.crc,
            tar_bytes=renamed.tar.bytes,
            tar_sha256=renamed.tar.sha256,
        )
        pinot.push(table, [plain], staged=_Files({plain.tar_uri: target}), mode=PushMode.TAR)
    wait_online(pinot, table, [name], seconds=60)


class _Files:
    """Objects that do not lie in the staging area: files by URI."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = paths

    def read(self, uri: str) -> bytes:
        return self._paths[uri].read_bytes()

    def fetch_tar(self, output: Output, path: Path) -> None:
        shutil.copyfile(self._paths[output.tar_uri], path)
