"""The policy: what table specs may reach, as the operator of the installation decides.

The author of a table spec may write anything into it. So a spec may not use the environment, the disks or the
credentials of the machines that read it, unless a policy allows that. A policy has layers, and all of them
must allow something. The installation's layer comes first; the layer of a folder of tables comes after it, so
it can only narrow.

Values only: `pinot_assets.table_spec.yaml.policy_file` reads policies, and
`pinot_assets.source.allowed_places` applies them. A policy is picklable; it goes to Spark's executors.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Final
from urllib.parse import urlsplit

from pinot_assets.core.connections import is_loopback, service_of
from pinot_assets.errors import SettingError

POLICY: Final = "PINOT_ASSETS_POLICY"
"""The variable that names the installation's policy file."""

LOOPBACK: Final = "loopback"
"""As an endpoint: this machine."""
PROJECT: Final = "project"
"""As a root: the folder that holds the folder of tables, and the folders of the local stack."""
PROVIDER: Final = "provider"
"""For credentials: the cloud's own service, or the one that the installation's environment names."""

FOR_SPECS: Final = ("PINOT_ASSETS_DATA", "PINOT_ASSETS_STAGING")
"""Variables of this project that table specs may refer to; both name folders."""
_OURS: Final = ("PINOT_*", "DAGSTER_*", "OPENLINEAGE_*")
"""Variables of this project and of the programs around it: passwords, tokens, database URLs."""

DEFAULT_VARIABLES: Final = ("TABLE_*", *FOR_SPECS)
DEFAULT_ROOTS: Final = (PROJECT,)
DEFAULT_CREDENTIALS: Final = (PROVIDER,)

NEVER_READ: Final = ("/proc", "/sys", "/dev", "/etc", "/run/secrets", "/var/run/secrets")
"""Folders of the system and of secrets; no policy can allow them."""
_SHARED_MEMORY: Final = "/dev/shm"
"""It holds ordinary files, although it is below /dev."""

PROJECTS_OWN: Final = (
    r"(?i)(?:^|/)\.[^/]|\.(?:ya?ml|toml|ini|cfg|conf|env|properties|pem|key|jks|p12|pfx|db)$"
)
"""Matches paths below the root `project` that are no data, in RE2 and in Python: dot-files and dot-folders
(`.env`, `.git`); and by their ending settings (dagster.yaml, table specs, policies), keys, databases."""

_OWN: Final = re.compile(PROJECTS_OWN)
_USER: Final = re.compile(r"//[^/?#]*@")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./](?:[\w./:@%+*-]*[\w./*-])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class PolicyRefusal:
    """Why something is refused, and how it can be allowed.

    :ivar reason: continues the sentence after the name of what is refused, without a full stop.
    :ivar fix: what to do: the line of the policy that would allow it, and where to write it.
    :ivar line: that line; empty if no policy can allow it.
    """

    reason: str
    fix: str
    line: str = ""

    def error(self, what: str) -> SettingError:
        """Return the refusal as an error, for a place that is opened although the policy refuses it."""
        return SettingError(f"{what} {self.reason}", hint=self.fix)


@dataclass(frozen=True, slots=True)
class Layer:
    """The content of one policy file; None for a subject that the file does not mention.

    :ivar variables: names of environment variables; `*` matches any text.
    :ivar endpoints: `http(s)://host[:port]`, `kafka://host[:port]` and similar, or `loopback`.
    :ivar roots: absolute paths, or `project`.
    :ivar credentials: where this machine's own credentials may be sent: endpoints, or `provider`.
    :ivar allow_code: whether a table config may hold code that Pinot's servers run.
    :ivar file: the policy file; empty for the defaults.
    """

    variables: tuple[str, ...] | None = None
    endpoints: tuple[str, ...] | None = None
    roots: tuple[str, ...] | None = None
    credentials: tuple[str, ...] | None = None
    allow_code: bool | None = None
    file: str = ""

    def with_defaults(self, endpoints: tuple[str, ...]) -> Layer:
        """Return this layer as an installation's: every subject that it does not mention has its default.

        :param endpoints: the default of `endpoints`.
        """
        return replace(
            self,
            variables=DEFAULT_VARIABLES if self.variables is None else self.variables,
            endpoints=endpoints if self.endpoints is None else self.endpoints,
            roots=DEFAULT_ROOTS if self.roots is None else self.roots,
            credentials=DEFAULT_CREDENTIALS if self.credentials is None else self.credentials,
            allow_code=bool(self.allow_code),
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """What table specs may reach.

    :ivar layers: all must allow it; without a layer everything is allowed except what is never allowed.
    :ivar project: the folders that the root `project` means.
    :ivar own_variables: variables that resources of the code location may refer to, besides the spec's.
    :ivar own_endpoints: endpoints that these resources name, as written; this machine's credentials
        may be sent there.
    """

    layers: tuple[Layer, ...] = ()
    project: tuple[str, ...] = ()
    own_variables: tuple[str, ...] = ()
    own_endpoints: tuple[str, ...] = ()

    def narrowed(self, layer: Layer) -> Policy:
        """Return this policy with one more layer."""
        return replace(self, layers=(*self.layers, layer))

    def with_resource(self, variables: Iterable[str], endpoints: Iterable[str]) -> Policy:
        """Return this policy for settings that a resource of the code location has instead of the spec.

        :param endpoints: as written; one may be a reference to one of the variables.
        """
        return replace(
            self,
            own_variables=(*self.own_variables, *variables),
            own_endpoints=(*self.own_endpoints, *endpoints),
        )

    def refuses_variable(self, name: str) -> PolicyRefusal | None:
        """Return why a spec may not refer to an environment variable; None if it may."""
        if name in self.own_variables:
            return None
        if name not in FOR_SPECS and is_own_variable(name):
            own = name.partition("_")[2] or name
            return PolicyRefusal(
                f"refers to {name}, which belongs to this installation and which no table spec may read",
                f"set what the table needs in its own variable, for example TABLE_{own}",
            )
        return self._refusal(
            "variables",
            lambda layer: layer.variables,
            lambda allowed: _matches(name, allowed),
            name,
            f"refers to {name}, an environment variable that table specs may not read here",
            f"call the variable TABLE_{name}, or ",
        )

    def refuses_endpoint(self, url: str) -> PolicyRefusal | None:
        """Return why a spec may not name an endpoint other than the cloud's own; None if it may."""
        shown = _shown(url)
        if service_of(url) is None and any(layer.endpoints is not None for layer in self.layers):
            return PolicyRefusal(
                f"names {shown} in a way that clients may read differently",
                "write https://host[:port] (host:port of a broker), without a user, blanks or backslashes "
                "before its path",
            )
        return self._refusal(
            "endpoints",
            lambda layer: layer.endpoints,
            lambda allowed: _among(url, allowed),
            shown,
            f"names {shown}, an endpoint that table specs may not reach here",
        )

    def refuses_credentials(self, url: str | None) -> PolicyRefusal | None:
        """Return why this machine's own credentials may not be used; None if they may.

        :param url: the endpoint that a spec names; None means the cloud's own.
        """
        shown = PROVIDER if url is None else _shown(url)
        where = "" if url is None else f" to {shown}, which a table spec names"
        return self._refusal(
            "ambientCredentials",
            lambda layer: layer.credentials,
            lambda allowed: PROVIDER in allowed if url is None else _among(url, allowed),
            shown,
            f"would send this machine's own credentials{where}",
            "give the table its own keys (TABLE_… variables), or ",
        )

    def refuses_path(self, path: str) -> PolicyRefusal | None:
        """Return why a spec may not name a file or folder of this machine; None if it may.

        :param path: absolute. Symbolic links are followed.
        """
        real = os.path.realpath(path)
        if _touches_never_read(os.path.normpath(path)) or _touches_never_read(real):
            return PolicyRefusal(
                "is in, or contains, a folder of the system that is never read as data", "move the files"
            )
        return self._refusal(
            "roots",
            lambda layer: layer.roots,
            lambda allowed: any(_within(real, root) for root in self._folders(allowed)),
            real,
            "is outside the folders that table specs may use here",
        )

    def refuses_data(self, path: str) -> PolicyRefusal | None:
        """Return why a file or folder may not be read as data, nor hold a staging area; None if it may.

        This allows less than `refuses_path`: a project also holds files that are not data, and the root
        `project` does not include them. A root that the policy writes out includes everything below it.

        :param path: absolute.
        """
        real = os.path.realpath(path)
        holding = [folder for folder in self._folders((PROJECT,)) if _within(real, folder)]
        is_data = any(not _OWN.search(os.path.relpath(real, folder)) for folder in holding)
        return self.refuses_path(path) or self._refusal(
            "roots",
            lambda layer: layer.roots,
            lambda allowed: (
                is_data or any(_within(real, os.path.realpath(root)) for root in allowed if root != PROJECT)
            ),
            real,
            "belongs to the project and is not data (a dot-file or dot-folder, settings, keys, a database)",
            "keep data elsewhere, or ",
        )

    def refuses_code(self) -> PolicyRefusal | None:
        """Return why a table config may not hold code for Pinot's servers to run; None if it may."""
        for layer in self.layers:
            if layer.allow_code is False:
                line = "allowCode: true"
                return PolicyRefusal("is code that Pinot's servers would run", self._allow(line, layer), line)
        return None

    def _refusal(
        self,
        key: str,
        said: Callable[[Layer], tuple[str, ...] | None],
        allows: Callable[[tuple[str, ...]], bool],
        added: str,
        reason: str,
        otherwise: str = "",
    ) -> PolicyRefusal | None:
        """Return the refusal of the first layer that mentions a subject and does not allow this; else None.

        :param said: returns what a layer allows; None if it does not mention the subject.
        :param added: what its line `key` would have to allow, too.
        :param otherwise: another fix, to be named before that line.
        """
        for layer in self.layers:
            allowed = said(layer)
            if allowed is not None and not allows(allowed):
                line = _line(key, allowed, added)
                return PolicyRefusal(reason, f"{otherwise}{self._allow(line, layer)}", line)
        return None

    def _allow(self, line: str, layer: Layer) -> str:
        """Return how to allow it: which line to write into which file."""
        if layer.file:
            said = f"allow it with the line `{line}` in {layer.file}"
        else:
            said = (
                f"allow it: write the line `{line}` into a file, for example pinot-policy.yaml, then "
                f"`export {POLICY}=$PWD/pinot-policy.yaml` wherever table specs are read"
            )
        after = self.layers[self.layers.index(layer) + 1 :]
        folders = "".join(
            f" ({later.file} cannot allow it: the policy of a folder of tables only narrows)"
            for later in after
            if later.file
        )
        return said + folders

    def _folders(self, roots: tuple[str, ...]) -> Iterator[str]:
        for root in roots:
            yield from map(os.path.realpath, self.project if root == PROJECT else (root,))


UNLIMITED: Final = Policy()
"""For places that no table spec names, but the installation itself or the person who typed a command."""


def is_own_variable(name: str) -> bool:
    """Whether a variable belongs to this project or to the programs around it."""
    return _matches(name, _OURS)


def is_never_read(path: str) -> bool:
    """Whether a path is in a folder of `NEVER_READ`.

    :param path: absolute, without `..`.
    """
    return not _within(path, _SHARED_MEMORY) and any(_within(path, folder) for folder in NEVER_READ)


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _among(url: str, allowed: Iterable[str]) -> bool:
    if (origin := service_of(url)) is None:
        return False
    host = urlsplit(url).hostname or ""
    return any(is_loopback(host) if one == LOOPBACK else service_of(one) == origin for one in allowed)


def _shown(url: str) -> str:
    """Return the endpoint without possible secrets: only scheme, host and port."""
    return service_of(_USER.sub("//", url)) or "an address that is not http(s)://host[:port]"


def _touches_never_read(path: str) -> bool:
    """Whether a path is in a folder of `NEVER_READ`, or holds one."""
    if _within(path, _SHARED_MEMORY):
        return False
    return any(_within(path, folder) or _within(folder, path) for folder in _never_read())


@cache
def _never_read() -> frozenset[str]:
    """Return `NEVER_READ` with what these names lead to. It is asked for each file, and the names are the
    system's own."""
    return frozenset((*NEVER_READ, *map(os.path.realpath, NEVER_READ)))


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _line(key: str, present: Iterable[str], added: str) -> str:
    """Return the whole line of the policy: what it allows now, and what it would allow, too."""
    items = (
        text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False) for text in (*present, added)
    )
    return f"{key}: [{', '.join(items)}]"
