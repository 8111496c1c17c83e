"""Judge by the policy what a schema and a table config let Pinot reach.

For a table, Pinot's controllers, servers and minions open streams, files and other services, and load classes
by name, with their own credentials. So the policy decides about these as it does about the files of a table
spec. `validate` checks them, `apply` checks them again, and so does any code here that connects to a stream.

A setting is judged by the words of its key (`ssl.truststore.location`), as Pinot, its plugins and the clients
of Kafka and Pulsar name theirs. A value that is a URL or an absolute path is judged under any key. A value
that is one whole `${NAME}` is the installation's own choice of a file or a class, and allowed. An endpoint is
judged even then, if the variable is set.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from pinot_assets.core.installation_policy import Policy, PolicyRefusal
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.errors import SourceError
from pinot_assets.source.allowed_places import refused_place, refused_variables
from pinot_assets.source.settings import is_reference, referenced
from pinot_assets.source.uris import parse_root
from pinot_assets.table_spec.blocks.pinot_json import raw_table_name
from pinot_assets.table_spec.blocks.realtime import FORMER_STREAM, STREAMS, TABLE_PATHS
from pinot_assets.table_spec.yaml.document import KeyPath, walk
from pinot_assets.table_spec.yaml.values import is_secret_key, variable_for

Refused = tuple[KeyPath, PolicyRefusal]
"""The path of a setting, and why it is refused."""

_EXPRESSIONS: Final = {
    ("query",),
    *(
        ("ingestionConfig", key)
        for key in ("transformConfigs", "filterConfig", "aggregationConfigs", "enrichmentConfigs")
    ),
}
"""`pinot_code` and the segment writer judge these, each text as an expression."""
_BATCH: Final = ("ingestionConfig", "batchIngestionConfig", "batchConfigMaps")
_TASKS: Final = ("task",)
_FEEDS: Final = (STREAMS, FORMER_STREAM, _BATCH, _TASKS, ("tierConfigs",))
"""Settings of readers and plugins: here a relative path counts as a path, too."""
_PEER_SCHEME: Final = TABLE_PATHS["peerSegmentDownloadScheme"]

_CODE: Final = re.compile(
    r"class(?!ic)|factory|implementation|serializer|interceptor|reporter|provider|strateg|handler|jarfile"
    r"|plugin|valuetype$"
)
_BROKERS: Final = {
    ("brokerlist", "bootstrapserver", "bootstrapservers"): "kafka",
    ("zkbrokerurl", "zkconnectstring", "zookeeperconnect"): "zookeeper",
    ("proxyhost",): "http",
}
"""Endings of keys that name brokers, and the scheme of those brokers."""
_FILES: Final = ("location", "file", "path", "dir", "directory", "keytab", "uri")
_SELECT: Final = re.compile(r"\bselect\b.*\bfrom\b|^\W*(?:table|values|with)\s", re.IGNORECASE | re.DOTALL)
"""A query, with any comments in it."""
_VIEW: Final = "materializedview"
"""Part of the name of a task that fills its table with the result of a query."""

_KNOWN_CLASS: Final = re.compile(
    r"org\.apache\.pinot\.(?!shaded\.)[\w.$]+"
    r"|(?:org\.apache\.pinot\.shaded\.)?org\.apache\.kafka\.(?:common\.serialization\.\w+"
    r"|clients\.consumer\.\w+Assignor)"
    r"|io\.confluent\.kafka\.serializers\.subject\.\w+"
    r"|org\.apache\.lucene\.(?:analysis|queryparser)\.[\w.]+",
    re.ASCII,
)
"""Pinot's own classes, and those that only decide how bytes, partitions, names and words are read."""
_LOGIN: Final = re.compile(
    r"(?:org\.apache\.pinot\.shaded\.)?org\.apache\.kafka\.common\.security\."
    r"(?:plain\.Plain|scram\.Scram|oauthbearer\.OAuthBearer)LoginModule\s+required\b[^;]*;\s*"
)
_BROKER: Final = re.compile(r"(?:[A-Za-z_]+://)?((?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?)", re.ASCII)
_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.:-]*?):/")
_PATH: Final = re.compile(r"/+[\w.~%]")
"""A slash alone is no path: it may be a delimiter."""
_FILE_URI: Final = re.compile(r"file:(?:///+|/)(?!/)")
"""A file URI without a host; code that reads only the path would ignore a host."""
_TOPIC: Final = re.compile(r"(?:non-)?persistent://[\w./%+=:-]+", re.ASCII)
"""Pulsar's full name of a topic: tenant, namespace, name. It names no host."""
_KEYS: Final = ("accessKey", "secretKey")
_ENDPOINT: Final = "endpoint"
_STORE_ENDPOINT: Final = f".fs.prop.{_ENDPOINT}"
"""Ending of `input.fs.prop.endpoint` and its like: the endpoint of a bucket's file system (`S3Config`)."""


def refused_table(config: JsonMapping, policy: Policy) -> Iterator[Refused]:
    """Yield every setting of a table config that the policy refuses, with the reason.

    :param config: the table config as it is applied, with the `realtime:` block merged in.
    """
    table = raw_table_name(str(config.get("tableName", "")))
    for path, text in _texts(config):
        if any(path[: len(part)] == part for part in _EXPRESSIONS):
            continue
        # People write notes into the metadata of a table; Pinot opens nothing that they name.
        judge = _in_notes if path[:1] == ("metadata",) else _in_feed if _is_feed(path) else _in_table
        refusal = judge(str(path[-1]), text, policy)
        is_peer_scheme = path == _PEER_SCHEME and not is_reference(text)
        if refusal is None and is_peer_scheme and text.lower() not in ("http", "https"):
            refusal = PolicyRefusal(
                "is not one of the schemes by which servers load segments from each other",
                "write http or https",
            )
        if refusal is None and path[:1] == _TASKS:
            refusal = _in_task(path, text, table, policy)
        if refusal is not None:
            yield path, refusal
    yield from _ambient(config, policy)


def refused_schema(schema: JsonMapping, policy: Policy) -> Iterator[Refused]:
    """Yield every setting of a schema that the policy refuses: variables, and classes that fill columns."""
    for path, text in _texts(schema):
        if "transformFunction" in path:
            continue
        key = str(path[-1])
        refusal = _in_notes(key, text, policy)
        if refusal is None and not is_reference(text) and _is_code(key, text):
            refusal = policy.refuses_code()
        if refusal is not None:
            yield path, refusal


def require_stream(stream: Mapping[str, str], policy: Policy) -> None:
    """Refuse a stream if the policy refuses its variables, its brokers or its files.

    Its classes are not judged: Pinot loads them, and nothing here does.

    :param stream: a stream config as Pinot shows it.
    :raises SettingError: the policy refuses something; the hint names the policy line that would allow it.
    """
    for key, text in stream.items():
        for refusal in refused_variables(text, policy):
            raise refusal.error(f"{key} of the stream")
        if (reach := _refused_reach(key, text, policy)) is not None:
            raise reach.error(f"{key} of the stream")


def _in_notes(key: str, text: str, policy: Policy) -> PolicyRefusal | None:
    """Why a `${…}` in a value is refused: Pinot replaces it by a variable of its environment. Else None."""
    if "${" not in text:
        return None
    if not is_reference(text):
        return PolicyRefusal(
            "refers to the environment inside a text, with a default, or in a form of its own",
            f"write the value, or make all of it one ${{{variable_for(key)}}}",
        )
    return next(refused_variables(text, policy), None)


def _in_table(key: str, text: str, policy: Policy) -> PolicyRefusal | None:
    """Judge a setting outside of feeds: its key may be a column's name, so a plain word names nothing."""
    if (refusal := _in_notes(key, text, policy)) or is_reference(text):
        return refusal
    if _is_code(key, text) and (refusal := policy.refuses_code()):
        return _or_variable(refusal, key)
    if _PATH.match(text.strip()) or _URL.match(text.strip()):
        return _refused_places(key, text, policy)
    return None


def _in_feed(key: str, text: str, policy: Policy) -> PolicyRefusal | None:
    if refusal := _in_notes(key, text, policy):
        return refusal
    if not is_reference(text) and _is_code(key, text) and (refusal := policy.refuses_code()):
        return _or_variable(refusal, key)
    return _refused_reach(key, text, policy)


def _refused_reach(key: str, text: str, policy: Policy) -> PolicyRefusal | None:
    """Why a reader's setting may not name a service or a file; None if it may, or names neither."""
    plain = _plain(key)
    is_own = is_reference(text)
    text = _value_of(text) if is_own else text.strip()
    if scheme := next((scheme for ends, scheme in _BROKERS.items() if plain.endswith(ends)), None):
        return _first(lambda one: policy.refuses_endpoint(_broker(one, scheme)), text)
    if plain.endswith("topicname") and _TOPIC.fullmatch(text):
        return None
    if is_secret_key(key) or plain.endswith("pattern"):
        return None  # a password may begin with a slash, and a pattern opens nothing
    if plain.endswith(("url", "endpoint")) or (is_own and _URL.match(text)):
        return _first(lambda one: _refused_service(one, policy), text)
    if is_own:
        return None
    if text and (plain.endswith(_FILES) or _PATH.match(text) or _URL.match(text)):
        return _refused_places(key, text, policy)
    return None


def _refused_service(url: str, policy: Policy) -> PolicyRefusal | None:
    scheme = _URL.match(url)
    if scheme and scheme[1].lower() in ("s3", "s3a", "s3n", "gs", "abfs", "abfss"):
        return _refused_store(url, policy)
    return policy.refuses_endpoint(url)


def _refused_places(key: str, text: str, policy: Policy) -> PolicyRefusal | None:
    return _first(lambda one: _refused_location(key, one, policy), text)


def _refused_location(key: str, text: str, policy: Policy) -> PolicyRefusal | None:
    """Why a file of Pinot's machines, or the service of a URL, is refused; None if it is allowed."""
    if _URL.match(text) and not _FILE_URI.match(text.lower()):
        return _refused_service(text, policy)
    path = text.partition(":")[2] if _URL.match(text) else text
    if not path.startswith("/"):
        if not policy.layers:
            return None
        what = "names a file on Pinot's machines without its whole path"
        return _or_variable(PolicyRefusal(what, "write its whole path"), key)
    refuses = (
        policy.refuses_data if _plain(key).endswith(("inputdiruri", "outputdiruri")) else policy.refuses_path
    )
    # Pinot reads some paths as URIs, where an escape means another character, and others as they are written.
    for one in (unquote(path), path):
        if refusal := refuses(re.sub("^/+", "/", one)):
            return _or_variable(refusal, key)
    return None


def _refused_store(url: str, policy: Policy) -> PolicyRefusal | None:
    """Why a bucket is refused that Pinot opens with its own credentials; None if it is allowed."""
    try:
        root = parse_root(url)
    except SourceError as error:
        return PolicyRefusal(
            f"names a place that cannot exist: {error.why or error.what}", error.hint or "correct it"
        )
    return next((refusal for _, refusal in refused_place(root, {}, policy)), None)


def literal_secrets(config: JsonMapping) -> Iterator[Refused]:
    """Yield literal secrets of a spec that was not read from a file; `secret_problems` judges files."""
    for path, text in _texts(config):
        key = str(path[-1])
        if text and _is_feed(path) and is_secret_key(key) and not is_reference(text):
            yield path, PolicyRefusal("contains a literal secret", f"write {key}: ${{{variable_for(key)}}}")


def _ambient(config: JsonMapping, policy: Policy) -> Iterator[Refused]:
    """Yield Kinesis streams, and buckets at an endpoint, that have no keys of their own.

    The keys must have exactly the names that Pinot's plugins know: the plugins ignore a key with another name
    or without a value, and use the machine's credentials.
    """
    for path, settings in walk(config):
        if not isinstance(settings, dict) or not _is_feed(path):
            continue
        places = {"": str(settings.get(_ENDPOINT) or "")} if _is_kinesis(settings) else {}
        places |= {
            key.removesuffix(_ENDPOINT): text
            for key, text in settings.items()
            if isinstance(text, str) and text and key.endswith(_STORE_ENDPOINT)
        }
        for prefix, text in places.items():
            if all(str(settings.get(prefix + key) or "").strip() for key in _KEYS):
                continue
            url = _value_of(text) if is_reference(text) else text
            if refusal := policy.refuses_credentials(url or None):
                yield (*path, f"{prefix}{_ENDPOINT}" if text else "streamType"), refusal


def _is_kinesis(settings: JsonMapping) -> bool:
    """Whether the settings are of a Kinesis stream, by its type or by the class that reads it."""
    return str(settings.get("streamType")).lower() == "kinesis" or any(
        key.endswith("factory.class.name") and ".stream.kinesis." in text
        for key, text in settings.items()
        if isinstance(text, str)
    )


def _value_of(reference: str) -> str:
    """The value that the variable has here; "" if it is not set."""
    return "".join(os.environ.get(name, "") for name in referenced(reference))


def _is_feed(path: KeyPath) -> bool:
    return any(path[: len(part)] == part for part in _FEEDS)


def _is_code(key: str, text: str) -> bool:
    """Whether a value names a class that is not on our list, a place to load classes from, or a command."""
    plain = _plain(key)
    if plain.endswith(("cmd", "command", "script")):
        return bool(text)  # Kafka's `sasl.kerberos.kinit.cmd` is run as it is
    if plain.endswith("jaasconfig"):
        return not re.fullmatch(f"(?:{_LOGIN.pattern})+", text)
    # A protoClassName names a message in a descriptor file; if it is in a jar, the jar is refused.
    if not _CODE.search(plain) or plain.endswith("protoclassname"):
        return False
    names = (name.strip() for name in text.split(","))
    return any(("." in name or "/" in name) and not _KNOWN_CLASS.fullmatch(name) for name in names)


def _broker(text: str, scheme: str) -> str:
    """Return a broker as a URL; a text that is no broker becomes a URL without a host: no endpoint."""
    url = _URL.match(text)
    if url and url[1].lower().startswith("pulsar"):
        return text
    host = _BROKER.fullmatch(text if url or scheme == "kafka" else text.partition("/")[0])
    return f"{scheme}://{host[1] if host else '@'}"


def _in_task(path: KeyPath, text: str, table: str, policy: Policy) -> PolicyRefusal | None:
    """Why a task's setting is refused: another table, or a query, which reads any table as a minion."""
    key = _plain(path[-1])
    if re.search("tables?$|tablenames?(?:withtype)?$", key):
        names = filter(None, map(str.strip, text.split(",")))
        if all(raw_table_name(name) == table for name in names):
            return None
        return PolicyRefusal("names another table than its own", f"write {table}, or remove it")
    is_query = (
        key.endswith(("sql", "query")) or _SELECT.search(text) or any(_VIEW in _plain(step) for step in path)
    )
    if not is_query or is_reference(text):
        return None
    if (refusal := policy.refuses_code()) is None:
        return None
    reason = "is, or is part of, a query that Pinot's minions would run, and that may read any table"
    return _or_variable(PolicyRefusal(reason, refusal.fix, refusal.line), str(path[-1]))


def _or_variable(refusal: PolicyRefusal, key: str) -> PolicyRefusal:
    name = variable_for(key)
    fix = f"use a variable of Pinot's own machines ({key}: ${{{name}}}), or {refusal.fix}"
    return PolicyRefusal(refusal.reason, fix, refusal.line)


def _first(judge: Callable[[str], PolicyRefusal | None], text: str) -> PolicyRefusal | None:
    """Return the first refusal of the items of a list with commas."""
    items = (item.strip() for item in text.split(","))
    return next(filter(None, map(judge, filter(None, items))), None)


def _plain(key: object) -> str:
    """A key as it is compared: without a newline, which must not hide how the key ends."""
    return re.sub(r"[._\n-]", "", str(key)).lower()


def _texts(config: JsonMapping) -> Iterator[tuple[KeyPath, str]]:
    """Yield every text with the path of its nearest key; items of a list have the path of the list."""
    for path, value in walk(config):
        if isinstance(value, str):
            yield path if isinstance(path[-1], str) else path[:-1], value
