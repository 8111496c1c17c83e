"""What an ingestion block reaches, judged by the policy: variables, directories, endpoints, the queue.

`pinot_assets.source` asks the same questions again where a place is opened.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from pinot_assets.core.policy import Policy, PolicyRefusal
from pinot_assets.errors import SourceError
from pinot_assets.source import resolve_env
from pinot_assets.source.policy import refused_by_spark, refused_place, refused_queue, refused_variables
from pinot_assets.source.uris import Root, parse_root
from pinot_assets.table_spec.blocks.ingestion import INPUT_PROP, OUTPUT_PROP
from pinot_assets.table_spec.blocks.ingestion_rules import Case, RuleFinding, reads_by_spark
from pinot_assets.table_spec.yaml.location import normalise_location

_QUEUE: Final = "notificationQueue"


def policy_findings(case: Case, broken: Collection[str]) -> Iterator[RuleFinding]:
    """Everything that the policy refuses of a block.

    :param broken: keys that something else is wrong with, which are not judged.
    """
    spec = case.spec
    yield from _of_place(case, broken, "inputDirURI", spec.input_dir_uri, INPUT_PROP, spec.input_props)
    yield from _of_place(
        case, broken, "output.segment.dir.uri", spec.staging_uri, OUTPUT_PROP, spec.output_props
    )
    if spec.notification_queue is not None and _QUEUE not in broken:
        yield from _of_queue(case.around.policy, spec.notification_queue, spec.input_props)


def _of_place(
    case: Case, broken: Collection[str], key: str, text: str, family: str, props: Mapping[str, str]
) -> Iterator[RuleFinding]:
    if key in broken:
        return
    policy = case.around.policy
    refused = [_finding(key, refusal) for refusal in refused_variables(text, policy)]
    yield from refused
    root = None if refused else _root(case, text)
    if root is None:  # where it lies is not known here; what the settings name is
        for name, value in props.items():
            for refusal in refused_variables(value, policy):
                yield _finding(f"{family}.{name}", refusal)
        return
    of_place = [*refused_place(root, props, policy)]
    for name, refusal in of_place:
        yield _finding(f"{family}.{name}" if name else key, refusal)
    if family == INPUT_PROP and not of_place and reads_by_spark(case):
        for refusal in refused_by_spark(root, props, policy):
            yield _finding(key, refusal)


def _of_queue(policy: Policy, url: str, props: Mapping[str, str]) -> Iterator[RuleFinding]:
    refused = [_finding(_QUEUE, refusal) for refusal in refused_variables(url, policy)]
    yield from refused
    try:
        resolved = resolve_env(url, policy)
    except SourceError:
        return
    for refusal in refused_queue(resolved, props, policy):
        yield _finding(_QUEUE, refusal)


def _root(case: Case, text: str) -> Root | None:
    try:
        return parse_root(normalise_location(resolve_env(text, case.around.policy), case.around.base))
    except SourceError:
        return None  # a variable is not set here, or the place is none, which another rule says


def _finding(key: str, refusal: PolicyRefusal) -> RuleFinding:
    return RuleFinding(key, refusal.reason, refusal.fix)
