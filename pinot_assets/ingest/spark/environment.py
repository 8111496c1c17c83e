"""The Spark that the environment asks for: any master, properties as `spark-submit` takes them.

PINOT_ASSETS_SPARK_MASTER names the master, PINOT_ASSETS_SPARK_PROPERTIES a file in the style of
`spark-defaults.conf`. Both are read only when a session is made or its settings are checked.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pinot_assets.core.files import temporary_folder
from pinot_assets.errors import PinotAssetsError
from pinot_assets.settings.environment import Profile, load_profile

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

MASTER: Final = "PINOT_ASSETS_SPARK_MASTER"
PROPERTIES: Final = "PINOT_ASSETS_SPARK_PROPERTIES"

APP_NAME: Final = "pinot-assets"

# `key value`, `key=value` or `key: value`.
_PROPERTY: Final = re.compile(r"(spark\.[^\s=:]+)(?:\s*[=:]\s*|\s+)(.*)")


def environment_session(
    own: Mapping[str, str] | None = None,
    profile: Profile | None = None,
    environ: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> SparkSession:
    """Return the session of this process, started on first use.

    :param own: settings that override those of the environment.
    :param profile: with `local`, and without any setting, a small Spark starts in this process; default:
        PINOT_ASSETS_PROFILE.
    :param log: file for the standard error of a JVM that starts here; None shares this process's.
    :raises PinotAssetsError: no master is set, or the file of properties cannot be used.
    :raises LocalStackError: there is no Java for a Spark in this process, or it is too old.
    :raises BuildError: Spark does not start.
    """
    if (settings := _asked(own, profile, environ)) is None:
        from pinot_assets.ingest.spark.jvm import local_session

        return local_session(APP_NAME, os.cpu_count() or 1, log)

    from pyspark.sql import SparkSession

    with _jvm(settings, log):
        return SparkSession.builder.config(map={**settings}).getOrCreate()


def environment_context(
    own: Mapping[str, str] | None = None,
    profile: Profile | None = None,
    environ: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> SparkContext:
    """Return the context of this process; as `environment_session`, but without what SQL needs."""
    if (settings := _asked(own, profile, environ)) is None:
        from pinot_assets.ingest.spark.jvm import local_context

        return local_context(APP_NAME, os.cpu_count() or 1, log)

    from pyspark import SparkConf, SparkContext

    with _jvm(settings, log):
        return SparkContext.getOrCreate(SparkConf().setAll([*settings.items()]))


@contextmanager
def _jvm(settings: Mapping[str, str], log: Path | None) -> Iterator[None]:
    """Start this process's JVM if it has none; make the context inside of this block."""
    from pinot_assets.ingest.spark.jvm import (
        forget_what_is_gone,
        silent_on_pandas,
        start_jvm,
        temporary_files_in,
        told_if_not_started,
        usual_signals,
    )

    forget_what_is_gone()
    with told_if_not_started(log), silent_on_pandas(), usual_signals():
        with temporary_folder("spark") as folder, temporary_files_in(folder):
            start_jvm(settings, log)
        yield


def _asked(
    own: Mapping[str, str] | None, profile: Profile | None, environ: Mapping[str, str] | None
) -> dict[str, str] | None:
    """Return the settings for Spark; None if this process starts its own small Spark."""
    env = os.environ if environ is None else environ
    profile = profile or load_profile(env)
    settings = {**environment_settings(env), **(own or {})}
    if not settings and profile is Profile.LOCAL:
        return None
    master = _checked_master(settings.get("spark.master"), profile)
    # PySpark takes the workers' Python only from the environment. On this machine it is our own Python.
    python = settings.get("spark.pyspark.python") or (sys.executable if master.startswith("local") else None)
    if python:
        os.environ.setdefault("PYSPARK_PYTHON", python)
    # A worker must not import a copy of resources/ or sensors/ from its folder.
    named = {"spark.app.name": APP_NAME, "spark.executorEnv.PYTHONSAFEPATH": "1", **settings}
    # Always off: an expression must not contain variables of the environment.
    return named | {"spark.sql.variable.substitute": "false"}


def environment_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's settings from the file of properties; the master of the environment overrides it.

    :raises PinotAssetsError: the file cannot be read, or a line is no property; never shows a value.
    """
    path, master = environ.get(PROPERTIES), environ.get(MASTER)
    settings = _read(Path(path)) if path else {}
    return settings | ({"spark.master": master} if master else {})


def check_settings(environ: Mapping[str, str], profile: Profile) -> bool:
    """Whether the environment asks for a Spark; checks its settings without starting it.

    :raises PinotAssetsError: as `environment_session`, except errors that only a start can show.
    """
    settings = environment_settings(environ)
    if settings or profile is not Profile.LOCAL:
        _checked_master(settings.get("spark.master"), profile)
    return bool(settings)


def _read(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PinotAssetsError(
            f"Spark's properties cannot be read from {path}",
            why=str(error),
            hint=f"set {PROPERTIES} to a file like spark-defaults.conf",
        ) from None
    settings = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        if (match := _PROPERTY.fullmatch(line)) is None:
            raise PinotAssetsError(
                f"line {number} of {path} is not a property of Spark", hint="write `spark.key value`"
            )
        settings[match[1]] = match[2]
    return settings


def _checked_master(master: str | None, profile: Profile) -> str:
    if not master:
        raise PinotAssetsError(
            f"{MASTER} is not set",
            why="Spark is configured, except for its master"
            if profile is Profile.LOCAL
            else f"the profile {profile} does not start its own Spark",
            hint=f"set {MASTER} (k8s://…, spark://…, yarn, local[4]), or spark.master in the file that "
            f"{PROPERTIES} names",
        )
    if master.startswith("sc://"):
        raise PinotAssetsError(
            "Spark Connect is not supported",
            why="building files needs Spark's own scheduler, which Connect does not give access to",
            hint=f"set {MASTER} to the cluster itself: k8s://…, spark://… or yarn",
        )
    return master
