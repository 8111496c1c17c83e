"""Find the jars of the local stack's parts: in a Pinot distribution, or fetched by Maven once per user.

A pom with pinned versions lists the jars. The user's cache has a folder for each pom, named by the pom's
hash, so a changed pom gets a new folder and a complete folder never changes. A rename creates the folder when
it has all jars. A file lock makes a second process wait for the first one instead of fetching the same again.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from pinot_assets.core.files import temporary_folder
from pinot_assets.core.this_machine import child, find_java, run_child
from pinot_assets.errors import LocalStackError
from pinot_assets.local import apache
from pinot_assets.local.cache import fill_once, require_room
from pinot_assets.local.pinot_build import PinotBuild, jars_of, read_build
from pinot_assets.settings.local_stack import default_cache

MINIMUM_FREE_BYTES = 1_000_000_000
"""An empty cache grows to about 300 MB here, and Maven's own repository by the same amount."""

MAVENS_PINOT = "0.11.0"
"""The newest Pinot whose server and broker are on Maven Central: the one of `pinot.xml`."""

_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath"
_TIME_OUTS = (  # in ms; the first two are read by Maven 3.8 and older, the others by 3.9 and newer
    "-Dmaven.wagon.http.connectionTimeout=20000",
    "-Dmaven.wagon.rto=60000",
    "-Daether.connector.connectTimeout=20000",
    "-Daether.connector.requestTimeout=60000",
)


def pom(jars: str) -> Path:
    """Return the path of the pinned pom of `pinot`, `kafka` or `s3`."""
    return Path(__file__).with_name(f"{jars}.xml")


def class_path(
    jars: str, *, cache: Path | None = None, progress: Callable[[str], None] | None = None
) -> list[Path]:
    """Return the jars of `pinot`, `kafka` or `s3`; Maven fetches them if they are not in the cache.

    :raises LocalStackError: they cannot be resolved, or `PINOT_HOME` is not a Pinot distribution.
    """
    if jars == "pinot":
        return [*find_pinot(cache=cache, progress=progress).jars]
    return resolve_jars(pom(jars), cache=cache, progress=progress)


def find_pinot(
    release: str = "",
    *,
    cache: Path | None = None,
    progress: Callable[[str], None] | None = None,
    sites: Sequence[str] = apache.SITES,
) -> PinotBuild:
    """Return the Pinot to start: the one that `PINOT_HOME` names, else the release, else Maven's.

    :param release: a release of Apache's sites, empty for Maven's `MAVENS_PINOT`.
    :param sites: where to fetch the release.
    :raises LocalStackError: it cannot be fetched, or it is no Pinot.
    """
    if home := os.environ.get("PINOT_HOME"):
        return _build_of(
            jars_of(Path(home)),
            f"PINOT_HOME is {home}, which has no Apache Pinot",
            "set PINOT_HOME to an unpacked Pinot distribution, or unset it to use Maven's",
        )
    if release:
        folder = apache.distribution(release, cache=cache, progress=progress or (lambda _: None), sites=sites)
        jars = jars_of(folder)
    else:
        jars = resolve_jars(pom("pinot"), cache=cache, progress=progress)
        folder = jars[0].parent if jars else _folder(pom("pinot"), cache)
    return _build_of(
        jars, f"{folder} has no Apache Pinot", "delete that folder, then try again: it is fetched once more"
    )


def _build_of(jars: Sequence[Path], otherwise: str, hint: str) -> PinotBuild:
    try:
        return read_build(jars)
    except (ValueError, OSError) as error:
        raise LocalStackError(otherwise, why=str(error), hint=hint) from error


def is_at_hand(jars: str, release: str = "", *, cache: Path | None = None) -> bool:
    """Whether nothing has to be fetched for `pinot` (see `find_pinot`), `kafka` or `s3`."""
    if jars == "pinot" and os.environ.get("PINOT_HOME"):
        return True
    if jars == "pinot" and release:
        return apache.is_fetched(release, cache=cache)
    return is_resolved(pom(jars), cache=cache)


def resolve_jars(
    pom: Path, *, cache: Path | None = None, progress: Callable[[str], None] | None = None
) -> list[Path]:
    """Return the jars that `pom` needs at run time, in class path order; Maven fetches them the first time.

    :param pom: a pom file with pinned versions; its file name and hash name the folder in the cache.
    :param cache: the user's cache, `default_cache()` if None.
    :param progress: called with one short line whenever there is something new to show.
    :raises LocalStackError: no Maven, no usable Java, a failed download, a full disk; names Maven's log.
    """
    jars, show = _folder(pom, cache), progress or (lambda _: None)
    fill_once(
        jars,
        lambda: _fetch(pom, jars, show),
        lambda: show(f"{pom.stem}: another process fetches the jars; waiting for it"),
    )
    return sorted(jars.iterdir())


def is_resolved(pom: Path, *, cache: Path | None = None) -> bool:
    """Whether `resolve_jars` works without Maven."""
    return _folder(pom, cache).is_dir()


def find_maven() -> Path:
    """Return the path of `mvn`, from `PATH`.

    :raises LocalStackError: there is none.
    """
    if (maven := shutil.which("mvn")) is None:
        raise LocalStackError(
            "no Maven was found",
            why="no mvn is on PATH",
            hint="install Maven 3.6 or newer; it is needed once, to fetch the jars of the local stack",
        )
    return Path(maven)


def check_reachable() -> None:
    """Let Maven fetch one small file, through the mirror or proxy of its settings.

    :raises LocalStackError: it failed; says why.
    """
    with temporary_folder("maven") as scratch:
        # Maven fetches the parent pom first, and nothing else, because there is no module to build.
        pom = scratch / "reachable.xml"
        pom.write_text(
            "<project><modelVersion>4.0.0</modelVersion><artifactId>reachable</artifactId>"
            "<packaging>pom</packaging><parent><groupId>org.apache</groupId><artifactId>apache</artifactId>"
            "<version>29</version><relativePath/></parent></project>"
        )
        log = scratch / "log"
        empty = f"-Dmaven.repo.local={scratch / 'repository'}"
        command = [str(find_maven()), "--batch-mode", "--file", str(pom), *_TIME_OUTS, empty, "validate"]
        with log.open("w") as lines:
            answer = run_child(command, cwd=scratch, stdout=lines, stderr=lines)
        if answer.returncode != 0:
            why, way_out = _reason(log)
            raise LocalStackError("Maven cannot fetch from its repository", why=why, hint=way_out)


def _folder(pom: Path, cache: Path | None) -> Path:
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:16]
    return (cache or default_cache()) / "jars" / f"{pom.stem}-{digest}"


def _fetch(pom: Path, jars: Path, progress: Callable[[str], None]) -> None:
    require_room(jars.parent, MINIMUM_FREE_BYTES, f"to fetch the jars of {pom.name}", "PINOT_ASSETS_CACHE")
    find_java()  # Maven's own message about a wrong Java does not say what to do
    log = jars.with_name(f"{jars.name}.log")
    # Next to its target, so that the rename is atomic. It is temporary: no jars stay behind after a kill.
    with temporary_folder("jars", jars.parent) as scratch:
        class_path = scratch / "class-path"
        _run_maven(pom, class_path, log, progress)
        filling = scratch / "jars"
        filling.mkdir()
        for number, jar in enumerate(class_path.read_text().strip().split(os.pathsep)):
            # The number keeps the order of the class path, and distinguishes jars with the same name.
            _link_or_copy(Path(jar), filling / f"{number:03d}-{Path(jar).name}")
        filling.rename(jars)


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)  # no second copy if Maven's repository is on the same disk
    except OSError:
        shutil.copy2(source, target)


def _run_maven(pom: Path, class_path: Path, log: Path, progress: Callable[[str], None]) -> None:
    command = [
        str(find_maven()), "--batch-mode", "--strict-checksums",
        # -U: retry artifacts whose earlier download failed, for example without network.
        "--update-snapshots",
        "--file", str(pom.resolve()), *_TIME_OUTS,
        _GOAL, f"-Dmdep.outputFile={class_path}", "-DincludeScope=runtime",
    ]  # fmt: skip
    progress(f"{pom.stem}: Maven resolves the jars (once per user)")
    fetched = 0
    with (
        log.open("w") as lines,
        child(
            command,
            cwd=class_path.parent,  # no project's .mvn folder may change what is resolved
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as maven,
    ):
        assert maven.stdout is not None
        for line in maven.stdout:
            lines.write(line)
            if "Downloaded from" in line:
                fetched += 1
                progress(f"{pom.stem}: Maven has fetched {fetched} files")
    if maven.returncode != 0 or not class_path.is_file():
        why, way_out = _reason(log)
        hint = f"{way_out} (Maven's log: {log})"
        raise LocalStackError(f"Maven could not resolve the jars of {pom.name}", why=why, hint=hint)


_REASONS = (
    (
        "No space left on device",
        "the disk is full",
        "free some disk space, or move Maven's repository with -Dmaven.repo.local in MAVEN_OPTS",
    ),
    (
        "checksum",
        "a download arrived damaged",
        "try again; if it fails again, delete the named artifact from Maven's local repository",
    ),
    (
        "Could not transfer|Connect(ion)? (refused|reset)|Unknown ?host|timed out|timeout",
        "a download died",
        "check the network and the mirror or proxy in Maven's settings.xml, then try again",
    ),
    (
        "Could not find artifact",
        "an artifact is not in the repositories that Maven uses",
        "check the mirror in Maven's settings.xml: it has to have the artifacts of Maven Central",
    ),
)


def _reason(log: Path) -> tuple[str, str]:
    """Return why Maven failed and what to do, as far as its log shows."""
    text = log.read_text(errors="replace")
    errors = [
        line.removeprefix("[ERROR]").strip() for line in text.splitlines() if line.startswith("[ERROR]")
    ]
    said = "\n".join(errors) or text
    for pattern, why, way_out in _REASONS:
        if re.search(pattern, said, re.IGNORECASE):
            return why, way_out
    return said.strip().split("\n")[0][:300] or "it gave no reason", "read its output"
