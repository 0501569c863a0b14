"""Implementation of `kctl export`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.errors import NoCommonVersion
from engine.declared.resources import ClusterTopic, CurrentState, ResourceKind
from engine.declared.state_reading import (
    read_brokers,
    read_quotas,
    read_rules,
    read_topics,
    read_users,
)
from engine.errors import ApiError, EngineError
from engine.host.real import RealFiles
from engine.kafka_errors import SECURITY_DISABLED
from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.commands.acls.rule_texts import rule_text
from kctl.connect import ClusterOptions, connect
from kctl.console import notify
from kctl.declared.state_writing import idle_rules, state_text, unreadable_settings
from kctl.selection import name_matcher

_READERS: Final[Mapping[ResourceKind, tuple[str, Callable[[KafkaClient], object]]]] = {
    ResourceKind.BROKERS: ("brokers", read_brokers),
    ResourceKind.TOPICS: ("topics", read_topics),
    ResourceKind.USERS: ("users", read_users),
    ResourceKind.QUOTAS: ("quotas", read_quotas),
    ResourceKind.ACLS: ("acls", read_rules),
}


class ExportRequest(NamedTuple):
    """The options of `kctl export`."""

    kinds: Sequence[str]
    match: str | None
    placement: bool
    out: str | None


def export_state(options: ClusterOptions, request: ExportRequest) -> int:
    """Write the state of a cluster as YAML that `kctl apply` reads; returns the exit code.

    Settings that cannot be read and rules without effect are left out, with a note.
    """
    wanted = [_parse_kind(name) for name in dict.fromkeys(request.kinds)]
    with connect(options) as client:
        state, kinds = _read_state(client, wanted)
    if request.match is not None:
        state = state._replace(topics=_matching_topics(state.topics, request.match))
    for broker, name in unreadable_settings(state):
        notify(
            f"note: broker {broker}: {name} is left out: it is set, and nobody can read its value"
        )
    for rule in idle_rules(state):
        notify(f"note: left out, for its host is none that brokers see: {rule_text(rule)}")
    _write_files(state, kinds, request)
    return exits.OK


def _parse_kind(name: str) -> ResourceKind:
    """Return the kind of resource of a singular or plural name; raises UnreadableArgument."""
    for kind in ResourceKind:
        if name.lower() in (kind.value, kind.value.removesuffix("s")):
            return kind
    expected = ", ".join(kind.value for kind in ResourceKind)
    raise UnreadableArgument("a kind", name, f"one of {expected}")


def _read_state(
    client: KafkaClient, wanted: Sequence[ResourceKind]
) -> tuple[CurrentState, list[ResourceKind]]:
    """Read the cluster's state; return it with the kinds of resources that were read.

    A kind that the cluster does not support is left out, unless `wanted` names it: then its error
    is raised.
    """
    found: dict[str, Any] = {}
    kinds = []
    for kind, (field, read) in _READERS.items():
        if wanted and kind not in wanted:
            continue
        try:
            found[field] = read(client)
        except (ApiError, NoCommonVersion) as error:
            if wanted or not _is_unsupported(error):
                raise
            notify(f"note: {kind.value} are left out: {error}")
            continue
        kinds.append(kind)
    return CurrentState(**found), kinds


def _is_unsupported(error: EngineError) -> bool:
    """Return True if the error means that the cluster lacks an authorizer or the API.

    Then `export` leaves the kind out, unless it was requested.
    """
    return isinstance(error, NoCommonVersion) or (
        isinstance(error, ApiError) and error.code == SECURITY_DISABLED
    )


def _matching_topics(topics: Mapping[str, ClusterTopic], pattern: str) -> dict[str, ClusterTopic]:
    """Return the topics whose complete name matches the pattern of --match."""
    compiled = name_matcher(pattern)
    return {name: topic for name, topic in topics.items() if compiled.fullmatch(name)}


def _write_files(
    state: CurrentState, kinds: Sequence[ResourceKind], request: ExportRequest
) -> None:
    """Write the state to stdout, to one file, or to one file per kind in a directory."""

    def text(of: Sequence[ResourceKind]) -> str:
        """Return the YAML of these kinds of resources."""
        return state_text(state, of, with_placement=request.placement)

    if request.out is None:
        sys.stdout.write(text(kinds))
        return
    files = RealFiles()
    if not (request.out.endswith("/") or files.is_dir(request.out)):
        files.replace_file(request.out, text(kinds).encode())
        notify(f"written to {request.out}")
        return
    folder = request.out.rstrip("/") or "/"
    files.make_dir(folder)
    for kind in kinds:
        files.replace_file(f"{folder}/{kind.value}.yaml", text([kind]).encode())
    notify(f"written to {folder}: {', '.join(f'{kind.value}.yaml' for kind in kinds)}")
