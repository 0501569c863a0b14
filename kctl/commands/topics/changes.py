"""Implementation of `kctl topics create`, `alter` and `delete`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.config_admin import (
    ConfigChange,
    ConfigOp,
    ConfigResourceType,
    Resource,
    alter_configs,
)
from engine.client.metadata import TopicView
from engine.client.topic_admin import (
    BROKER_DEFAULT,
    CreatedTopic,
    NewPartitions,
    NewTopic,
    create_partitions,
)
from engine.client.topic_admin import create_topics as send_create_topics
from engine.client.topic_admin import delete_topics as send_delete_topics
from engine.errors import ApiError, EngineError, api_error
from engine.kafka_errors import INVALID_PARTITIONS, TOPIC_ALREADY_EXISTS, UNKNOWN_TOPIC_OR_PARTITION
from kctl import exits
from kctl.arguments import UnreadableArgument, counted
from kctl.command_results import end_with
from kctl.commands.topics.listing import topic_id_text
from kctl.commands.topics.metadata_wait import await_created, await_deleted, await_partitions
from kctl.connect import ClusterOptions, cluster_named, connect
from kctl.console import confirm, notify, report_error
from kctl.numbers import INT32_MAX, read_whole
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow
from kctl.selection import select_topics
from kctl.setting_arguments import parse_setting, settings_of
from kctl.setting_checks import find_unset_errors, with_hint

# Placeholder in hints for a topic that does not exist yet.
_ANY_TOPIC = Resource(ConfigResourceType.TOPIC, "TOPIC")

_ONLY_GROWS = "partitions can be added and never taken away: give a larger number"

CREATE_COLUMNS = (
    Column("name", "TOPIC"),
    Column("result", "RESULT"),
    Column("partitions", "PARTITIONS", right=True, kind="integer?"),
    Column("replication_factor", "REPLICAS", right=True, kind="integer?"),
    Column("topic_id", "ID", wide=True, kind="string?"),
)
ALTER_COLUMNS = (
    Column("name", "TOPIC"),
    Column("change", "CHANGE"),
    Column("result", "RESULT"),
)
DELETE_COLUMNS = (
    Column("name", "TOPIC"),
    Column("result", "RESULT"),
    Column("partitions", "PARTITIONS", right=True),
)


class CreateRequest(NamedTuple):
    """The options of `kctl topics create`."""

    names: list[str]
    partitions: int | None
    replication_factor: int | None
    assignment: str | None
    configs: list[str]
    if_not_exists: bool
    dry_run: bool
    output: str


class AlterRequest(NamedTuple):
    """The options of `kctl topics alter`."""

    names: list[str]
    match: str | None
    partitions: int | None
    assignment: str | None
    configs: list[str]
    delete_configs: list[str]
    dry_run: bool
    yes: bool
    output: str


class DeleteRequest(NamedTuple):
    """The options of `kctl topics delete`."""

    names: list[str]
    match: str | None
    if_exists: bool
    dry_run: bool
    yes: bool
    output: str


class ContradictoryOptions(EngineError):
    """Options contradict each other, or no option requests a change."""

    exit_code = exits.USAGE

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


# -- create


def create_topics(options: ClusterOptions, request: CreateRequest) -> int:
    """Create topics and print a row for each; returns the exit code.

    With --if-not-exists an existing topic is no failure.
    """
    check_format(request.output)
    topics = [_new_topic(name, request) for name in dict.fromkeys(request.names)]
    with connect(options) as client:
        results = send_create_topics(client, topics, validate_only=request.dry_run)
        if not request.dry_run:
            await_created(client, [n for n, r in results.items() if isinstance(r, CreatedTopic)])
    rows = []
    failures = 0
    for name, result in results.items():
        if isinstance(result, CreatedTopic):
            rows.append(_created_row(result, dry_run=request.dry_run))
        elif result.code == TOPIC_ALREADY_EXISTS and request.if_not_exists:
            rows.append({"name": name, "result": "exists"})
        else:
            report_error(with_hint(result, _ANY_TOPIC, _settings(request.configs)), name)
            failures += 1
    return end_with(CREATE_COLUMNS, rows, request.output, failures=failures)


def _new_topic(name: str, request: CreateRequest) -> NewTopic:
    """Return the topic to create; counts that are not given are left to the broker.

    Errors: ContradictoryOptions for an assignment together with counts.
    """
    if request.assignment is not None and (request.partitions or request.replication_factor):
        raise ContradictoryOptions(
            "--replica-assignment sets the number of partitions and replicas: "
            "leave out --partitions and --replication-factor"
        )
    return NewTopic(
        name,
        request.partitions or BROKER_DEFAULT,
        request.replication_factor or BROKER_DEFAULT,
        parse_assignment(request.assignment),
        settings_of(request.configs),
    )


def _created_row(created: CreatedTopic, *, dry_run: bool) -> dict[str, object]:
    """Return the row of a created topic; None for counts that the broker does not return."""
    view = TopicView(created.name, created.topic_id, False, ())
    return {
        "name": created.name,
        "result": "would be created" if dry_run else "created",
        "partitions": created.partition_count if created.partition_count > 0 else None,
        "replication_factor": (
            created.replication_factor if created.replication_factor > 0 else None
        ),
        "topic_id": topic_id_text(view),
    }


def parse_assignment(text: str | None) -> tuple[tuple[int, ...], ...]:
    """Parse the brokers of each partition, `1:2,2:3`; empty for None.

    Errors: UnreadableArgument.
    """
    if text is None:
        return ()
    assigned = [[read_whole(id_) for id_ in part.split(":")] for part in text.split(",")]
    known = tuple(
        tuple(id_ for id_ in ids if id_ is not None and 0 <= id_ <= INT32_MAX) for ids in assigned
    )
    if list(map(len, known)) != list(map(len, assigned)):
        raise UnreadableArgument("an assignment", text, "broker ids such as 1:2,2:3")
    return known


def _settings(arguments: Sequence[str]) -> list[ConfigChange]:
    """Return a SET change for each KEY=VALUE; raises UnreadableArgument."""
    return [ConfigChange(ConfigOp.SET, *parse_setting(argument)) for argument in arguments]


# -- alter


def alter_topics(options: ClusterOptions, request: AlterRequest) -> int:
    """Add partitions to topics, or change their settings; print a row for each change.

    Returns the exit code. Errors: ContradictoryOptions if options contradict, or change nothing.
    """
    check_format(request.output)
    changes = _settings(request.configs)
    changes += [ConfigChange(ConfigOp.DELETE, key) for key in request.delete_configs]
    added = parse_assignment(request.assignment)
    if request.partitions is None and not changes:
        raise ContradictoryOptions(
            "nothing to change: give --partitions, --config or --delete-config"
        )
    if added and request.partitions is None:
        raise ContradictoryOptions("--replica-assignment needs --partitions")
    with connect(options) as client:
        _, topics, errors = select_topics(client, request.names, request.match)
        for error in errors:
            report_error(error)
        rows: list[dict[str, object]] = []
        failures = len(errors)
        if request.partitions is not None and topics:
            failures += _add_partitions(client, topics, request, added, rows)
        if changes and topics:
            failures += _change_settings(client, topics, changes, request, rows)
    return end_with(ALTER_COLUMNS, rows, request.output, failures=failures)


def _add_partitions(
    client: KafkaClient,
    topics: list[TopicView],
    request: AlterRequest,
    added: tuple[tuple[int, ...], ...],
    rows: list[dict[str, object]],
) -> int:
    """Add partitions to topics after confirmation; append a row for each to `rows`.

    `added` are the brokers of the new partitions, empty if the controller chooses. Returns the
    number of failures.
    """
    total = request.partitions or 0
    topics, failures = _growable_topics(topics, total)
    if not topics:
        return failures
    if not request.dry_run:
        names = _topic_names([topic.name for topic in topics])
        where = cluster_named(client)
        what = f"Grow {names} of {where} to {counted(total, 'partition')}, for good"
        confirm(what, yes=request.yes)
    wanted = {topic.name: NewPartitions(total, added or None) for topic in topics}
    results = create_partitions(client, wanted, validate_only=request.dry_run)
    if not request.dry_run:
        await_partitions(client, {n: total for n, error in results.items() if error is None})
    for error in results.values():
        if error is not None and error.code == INVALID_PARTITIONS:
            error.hint = _ONLY_GROWS
    changes = {t.name: f"partitions {len(t.partitions)} -> {total}" for t in topics}
    return failures + _add_rows_of_results(results, changes, rows, dry_run=request.dry_run)


def _growable_topics(topics: list[TopicView], total: int) -> tuple[list[TopicView], int]:
    """Return the topics with fewer than `total` partitions, and the number of the others.

    An error is printed for each of these: Kafka cannot remove partitions.
    """
    growing = []
    for topic in topics:
        count = len(topic.partitions)
        if count < total:
            growing.append(topic)
            continue
        has = "has so many already" if count == total else f"has {count} already"
        error = api_error(INVALID_PARTITIONS, f"{counted(total, 'partition')}: it {has}")
        error.hint = _ONLY_GROWS
        report_error(error, topic.name)
    return growing, len(topics) - len(growing)


def _change_settings(
    client: KafkaClient,
    topics: list[TopicView],
    changes: Sequence[ConfigChange],
    request: AlterRequest,
    rows: list[dict[str, object]],
) -> int:
    """Change settings of topics; append a row for each to `rows`, return the number of failures."""
    resources = [Resource(ConfigResourceType.TOPIC, topic.name) for topic in topics]
    refused, not_set = find_unset_errors(client, resources, request.delete_configs)
    wanted = {resource: changes for resource in resources if resource not in refused}
    if request.delete_configs and wanted and not request.dry_run:
        notify(f"unset {', '.join(request.delete_configs)} of {cluster_named(client)}")
    results: dict[Resource, EngineError | None] = dict(refused)
    results |= alter_configs(client, wanted, validate_only=request.dry_run)
    summary = ", ".join(
        f"{c.name}={c.value}" if c.op is ConfigOp.SET else f"{c.name} to its default"
        for c in changes
    )
    by_name = {
        resource.name: None if error is None else with_hint(error, resource, changes)
        for resource, error in results.items()
    }
    idle = [r.name for r, keys in not_set.items() if all(c.name in keys for c in changes)]
    changes_by_name = dict.fromkeys(by_name, summary)
    return _add_rows_of_results(by_name, changes_by_name, rows, dry_run=request.dry_run, idle=idle)


def _add_rows_of_results(
    results: Mapping[str, EngineError | None],
    changes: dict[str, str],
    rows: list[OutputRow],
    *,
    dry_run: bool,
    idle: Sequence[str] = (),
) -> int:
    """Append a row for each success, print each failure; returns the number of failures.

    `idle` are topics that had none of the settings to unset.
    """
    failures = 0
    for name, error in results.items():
        if error is not None:
            report_error(error, name)
            failures += 1
        else:
            result = "would be changed" if dry_run else "changed"
            row = {"name": name, "change": changes.get(name), "result": result}
            rows.append(row | {"result": "was not set"} if name in idle else row)
    return failures


def _topic_names(names: Sequence[str]) -> str:
    """Return `a, b` or `12 topics (a, b, c, …)`, for a prompt."""
    if len(names) <= 5:
        return ", ".join(names)
    return f"{len(names)} topics ({', '.join(names[:3])}, …)"


# -- delete


def delete_topics(options: ClusterOptions, request: DeleteRequest) -> int:
    """Delete topics after confirmation, print a row for each; returns the exit code."""
    check_format(request.output)
    with connect(options) as client:
        _, topics, errors = select_topics(client, request.names, request.match)
        failures = 0
        for error in errors:
            is_gone = isinstance(error, ApiError) and error.code == UNKNOWN_TOPIC_OR_PARTITION
            if not (is_gone and request.if_exists):
                report_error(error)
                failures += 1
        results: dict[str, ApiError | None] = {topic.name: None for topic in topics}
        if topics and not request.dry_run:
            count = sum(len(topic.partitions) for topic in topics)
            names = _topic_names([topic.name for topic in topics])
            what = f"Delete {names} with {counted(count, 'partition')} of {cluster_named(client)}"
            confirm(what, yes=request.yes)
            results = send_delete_topics(client, list(results))
            await_deleted(client, [n for n, error in results.items() if error is None])
    rows = []
    for topic in topics:
        error_of_one = results.get(topic.name)
        if error_of_one is not None:
            report_error(error_of_one, topic.name)
            failures += 1
            continue
        result = "would be deleted" if request.dry_run else "deleted"
        rows.append({"name": topic.name, "result": result, "partitions": len(topic.partitions)})
    if not topics and not failures:
        notify("nothing to delete")
    return end_with(DELETE_COLUMNS, rows, request.output, failures=failures)
