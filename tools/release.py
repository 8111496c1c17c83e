"""`make release`: the files of a release in dist/, its notes, and its tag. Uploads nothing, pushes nothing.

`check` refuses what cannot be released; `build TOOLS`, with the folder of the programs `python` and `twine`,
builds, checks, writes the notes and tags. Two builds of one commit have the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

ROOT: Final = Path(__file__).parents[1]
DIST: Final = ROOT / "dist"

_TARGET: Final = re.compile(r"""(!?\[[^\]]*\]\(|<img\b[^>]*?\bsrc=["']|<a\b[^>]*?\bhref=["'])([^)"'\s]+)""")
"""What Markdown and HTML put before the target of a picture or a link, and the target."""

_PICTURES: Final = (".gif", ".jpg", ".jpeg", ".png", ".svg", ".webp")


class NotReleasable(Exception):
    """What keeps a release from being made: what, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Release:
    """The release that pyproject.toml names.

    :ivar repository: its address, without a slash at the end.
    """

    version: str
    repository: str

    @classmethod
    def of_project(cls, root: Path) -> Self:
        """Read pyproject.toml."""
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return cls(project["version"], project["urls"]["Repository"].rstrip("/"))

    @property
    def tag(self) -> str:
        """The tag of git."""
        return f"v{self.version}"

    @property
    def has_placeholder(self) -> bool:
        """Whether the repository's address is one that cannot exist (RFC 2606)."""
        host = urlsplit(self.repository).hostname or ""
        return re.search(r"(^|\.)example(\.(com|net|org))?$", host) is not None


def notes_of(changelog: str, version: str) -> str:
    """Return the section of one version, without its heading.

    :raises NotReleasable: there is none, it has no date, or it is empty.
    """
    heading = rf"^## \[{re.escape(version)}\](?: - (?P<date>.*))?$"
    if (found := re.search(heading, changelog, re.MULTILINE)) is None:
        raise NotReleasable(f"CHANGELOG.md has no section [{version}]: write what users see of it")
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", found["date"] or ""):
        raise NotReleasable(
            f"CHANGELOG.md has no date for [{version}]: write ## [{version}] - YYYY-MM-DD, and commit"
        )
    rest = changelog[found.end() :]
    following = re.search(r"^## \[|^\[[^\]]+\]: ", rest, re.MULTILINE)
    notes = rest[: following.start()] if following else rest
    if not notes.strip():
        raise NotReleasable(f"the section [{version}] of CHANGELOG.md is empty: write what users see of it")
    return notes.strip() + "\n"


def absolute_targets(markdown: str, release: Release) -> str:
    """Return a page of the repository's root whose pictures and links also lead somewhere on another site."""

    def absolute(found: re.Match[str]) -> str:
        before, target = found.groups()
        if target.startswith(("#", "/")) or urlsplit(target).scheme:
            return found[0]
        kind = "raw" if target.lower().endswith(_PICTURES) else "blob"
        return f"{before}{release.repository}/{kind}/{release.tag}/{target.removeprefix('./')}"

    return _TARGET.sub(absolute, markdown)


def repacked(sdist: bytes, moment: int) -> bytes:
    """Return a tar.gz with the same files, whose bytes depend on nothing but those files.

    :param moment: the time of all files, in seconds since 1970.
    """
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(sdist)) as source,
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=moment) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        for member in sorted(source.getmembers(), key=lambda one: one.name):
            content = source.extractfile(member) if member.isfile() else None
            member.mtime, member.uid, member.gid, member.uname, member.gname = moment, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            target.addfile(member, content)
    return packed.getvalue()


def require_releasable(root: Path) -> Release:
    """Return the release that can be made of the folder's commit.

    :raises NotReleasable: something is not committed, the tag exists, or the version is described nowhere.
    """
    release = Release.of_project(root)
    if changed := _git(root, "status", "--porcelain"):
        raise NotReleasable(f"not all is committed:\n{changed}")
    if _git(root, "tag", "--list", release.tag):
        raise NotReleasable(
            f"the tag {release.tag} is there already: write the next version in pyproject.toml"
        )
    notes_of((root / "CHANGELOG.md").read_text(encoding="utf-8"), release.version)
    surface = f"tests/surface/released/{release.version}.json"
    if not (root / surface).is_file():
        raise NotReleasable(f"there is no {surface}: cp tests/public_surface.json {surface}, and commit")
    return release


def build(root: Path, release: Release, tools: Path, dist: Path) -> list[Path]:
    """Build sdist and wheel of the commit, the wheel from the sdist, and return them checked.

    :param tools: folder of a `python` that has `build` and the build's requirements, and of `twine`.
    :raises subprocess.CalledProcessError: a program refuses.
    """
    moment = int(_git(root, "log", "-1", "--format=%ct"))
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(moment)}
    dist.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="release-") as top:
        archive, source, made = Path(top, "source.tar"), Path(top, "source"), Path(top, "made")
        _git(root, "archive", "--format=tar", f"--output={archive}", "HEAD")
        with tarfile.open(archive) as tar:
            tar.extractall(source, filter="tar")
        readme = source / "README.md"
        readme.write_text(absolute_targets(readme.read_text(encoding="utf-8"), release), encoding="utf-8")
        command = ["-m", "build", "--no-isolation", "--outdir", str(made), str(source)]
        subprocess.run(
            [str(tools / "python"), *command], env=environment, check=True, stdout=subprocess.DEVNULL
        )
        for sdist in made.glob("*.tar.gz"):
            sdist.write_bytes(repacked(sdist.read_bytes(), moment))
        files = [dist / path.name for path in sorted(made.iterdir())]
        subprocess.run([tools / "twine", "check", "--strict", *sorted(made.iterdir())], check=True)
        for path in files:
            shutil.copyfile(made / path.name, path)
    return files


def main(words: Sequence[str]) -> int:
    """Run `check` or `build TOOLS`; return the exit code."""
    try:
        release = require_releasable(ROOT)
    except NotReleasable as refusal:
        sys.stderr.write(f"nothing is released: {refusal}\n")
        return 1
    if [*words] == ["check"]:
        return 0
    _, tools = words
    files = build(ROOT, release, ROOT / tools, DIST)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    notes = DIST / f"notes-{release.version}.md"
    notes.write_text(absolute_targets(notes_of(changelog, release.version), release), encoding="utf-8")
    _git(ROOT, "tag", "--annotate", release.tag, f"--message=pinot-assets {release.version}")
    sys.stdout.write("\n".join(_report(release, [*files, notes])) + "\n")
    return 0


def _report(release: Release, files: Sequence[Path]) -> list[str]:
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  dist/{path.name}" for path in files]
    if release.has_placeholder:
        lines.append(
            f"The project's address is a placeholder ({release.repository}), so README's pictures will not "
            "show on PyPI. Before publishing, write the real one in project.urls of pyproject.toml."
        )
    uploads = " ".join(f"dist/{path.name}" for path in files if path.suffix != ".md")
    return [
        *lines,
        f"{release.tag} is tagged here. To publish it:",
        f"  git push origin {release.tag}",
        f"  twine upload {uploads}",
        f"To take it back: git tag --delete {release.tag}",
    ]


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
