"""Implementation of `kctl topics list` and `describe`: request, join, print rows."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.metadata import PartitionView, TopicView
from engine.client.reassignments import request_moves
from engine.errors import EngineError
from engine.kafka_errors import NONE, kafka_error
from engine.model import TopicPartition
from kctl import exits
from kctl.command_results import end_with
from kctl.commands.topics.rates import (
    PARTITION_RATE_COLUMNS,
    TOPIC_RATE_COLUMNS,
    partition_rate_row,
    topic_rate_row,
)
from kctl.connect import ClusterOptions, connect
from kctl.console import report_error
from kctl.render import Column, check_format, write_rows
from kctl.selection import name_matcher, select_topics

if TYPE_CHECKING:
    from engine.client.rates import PartitionRate

_NESTED = ("json", "ndjson", "yaml")
_MIN_ISR = "min.insync.replicas"

LIST_COLUMNS = (
    Column("name", "TOPIC"),
    Column("partitions", "PARTITIONS", right=True),
    Column("replication_factor", "REPLICAS", right=True),
    Column("under_replicated", "UNDER-REPLICATED", right=True),
    Column("unavailable", "UNAVAILABLE", right=True),
    Column("is_internal", "INTERNAL", wide=True, kind="boolean"),
    Column("topic_id", "ID", wide=True, kind="string?"),
)
SIZE_COLUMN = Column(
    "size_bytes", "SIZE", right=True, is_size=True, kind="integer?", is_optional=True
)

PARTITION_COLUMNS = (
    Column("topic", "TOPIC"),
    Column("partition", "PARTITION", right=True),
    Column("leader", "LEADER", right=True, kind="integer?"),
    Column("replicas", "REPLICAS", kind="integer[]"),
    Column("isr", "ISR", kind="integer[]"),
    Column("under_replicated", "UNDER-REPLICATED", kind="boolean"),
    Column("offline_replicas", "OFFLINE", wide=True, kind="integer[]"),
    Column("leader_epoch", "EPOCH", right=True, wide=True),
)
OFFSET_COLUMNS = (
    Column("start_offset", "START", right=True, kind="integer?", is_optional=True),
    Column("end_offset", "END", right=True, kind="integer?", is_optional=True),
)
TOPIC_COLUMNS = (
    Column("name", "NAME"),
    Column("topic_id", "ID", kind="string?"),
    Column("is_internal", "INTERNAL", kind="boolean"),
    Column("partition_count", "PARTITIONS", kind="integer"),
    Column("replication_factor", "REPLICAS", kind="integer"),
    Column("configs", "SETTINGS", kind="string?{}?"),
    Column(
        "partitions",
        "PARTITIONS",
        kind="object[]",
        fields=(
            *PARTITION_COLUMNS[1:],
            SIZE_COLUMN,
            *OFFSET_COLUMNS,
            *PARTITION_RATE_COLUMNS,
        ),
    ),
)


class RateChoice(NamedTuple):
    """The options `--rate` and `--rate-window`; the window implies rates."""

    is_requested: bool
    window_s: float | None

    @property
    def is_wanted(self) -> bool:
        """Return True if rates are to be sampled."""
        return self.is_requested or self.window_s is not None


class ListRequest(NamedTuple):
    """The options of `kctl topics list`."""

    names: list[str]
    match: str | None
    exclude_internal: bool
    under_replicated: bool
    unavailable: bool
    size: bool
    rates: RateChoice
    output: str


class DescribeRequest(NamedTuple):
    """The options of `kctl topics describe`."""

    names: list[str]
    match: str | None
    under_replicated: bool
    unavailable: bool
    under_min_isr: bool
    at_min_isr: bool
    check: bool
    size: bool
    offsets: bool
    rates: RateChoice
    output: str


def list_topics(options: ClusterOptions, request: ListRequest) -> int:
    """Print the topics that the filters accept, by name; returns the exit code.

    Sizes and rates are requested only if options ask for them.
    """
    check_format(request.output)
    matcher = None if request.match is None else name_matcher(request.match)
    failures = 0
    with connect(options) as client:
        view, _ = request_moves(client, client.view(request.names or None))
        topics = []
        for name in sorted(view.topics):
            topic = view.topics[name]
            if topic.error_code != NONE:
                report_error(_metadata_error(topic))
                failures += 1
            elif matcher is None or matcher.fullmatch(name):
                topics.append(topic)
        topics = [topic for topic in topics if _is_listed(topic, request)]
        sizes = None
        if request.size:
            sizes, lost = _request_topic_sizes(client, topics)
            failures += lost
        rates, lost = _sample_rates(client, topics, request.rates)
        failures += lost
    columns = (*LIST_COLUMNS, SIZE_COLUMN) if request.size else LIST_COLUMNS
    if rates is not None:
        columns = (*columns, *TOPIC_RATE_COLUMNS)
    rows = [_list_row(topic, sizes, rates) for topic in topics]
    return end_with(columns, rows, request.output, failures=failures)


def _sample_rates(
    client: KafkaClient, topics: Sequence[TopicView], choice: RateChoice
) -> tuple[dict[TopicPartition, PartitionRate] | None, int]:
    """Sample the partitions' write rates, if they are wanted.

    Returns the rates, None if they are not wanted, and the number of failures.
    """
    if not choice.is_wanted:
        return None, 0
    from kctl.options.rates import sample_rates_or_report

    return sample_rates_or_report(client, [topic.name for topic in topics], choice.window_s)


def _metadata_error(topic: TopicView) -> EngineError:
    """Return the error that a broker returned instead of a topic's metadata."""
    from engine.errors import api_error

    return api_error(topic.error_code, f"{topic.name}: {kafka_error(topic.error_code).meaning}")


def _is_listed(topic: TopicView, request: ListRequest) -> bool:
    """Return True if the filters of `topics list` accept the topic."""
    if request.exclude_internal and topic.is_internal:
        return False
    if not (request.under_replicated or request.unavailable):
        return True
    return any(
        (request.under_replicated and p.is_under_replicated)
        or (request.unavailable and not p.has_leader)
        for p in topic.partitions
    )


def _list_row(
    topic: TopicView,
    sizes: dict[str, int] | None,
    rates: dict[TopicPartition, PartitionRate] | None,
) -> dict[str, object]:
    """Return the row of a topic; `sizes` and `rates` are None unless they were requested."""
    numbers = [partition.partition for partition in topic.partitions]
    return {
        **({} if rates is None else topic_rate_row(topic.name, numbers, rates)),
        "name": topic.name,
        "partitions": len(topic.partitions),
        "replication_factor": topic.replication_factor,
        "under_replicated": sum(p.is_under_replicated for p in topic.partitions),
        "unavailable": sum(not p.has_leader for p in topic.partitions),
        "is_internal": topic.is_internal,
        "topic_id": topic_id_text(topic),
        "size_bytes": None if sizes is None else sizes.get(topic.name),
    }


def topic_id_text(topic: TopicView) -> str | None:
    """Return a topic's id as Kafka's tools print it, None if it has none."""
    if not topic.has_id:
        return None
    from engine.ids import uuid_text

    return uuid_text(topic.topic_id)


def _request_topic_sizes(
    client: KafkaClient, topics: Sequence[TopicView]
) -> tuple[dict[str, int], int]:
    """Return each topic's bytes over all replicas, and the number of brokers that failed."""
    sizes, failures = request_replica_sizes(client, [topic.name for topic in topics])
    topic_sizes: dict[str, int] = {topic.name: 0 for topic in topics}
    for (partition, _), size in sizes.items():
        if partition.topic in topic_sizes:
            topic_sizes[partition.topic] += size
    return topic_sizes, failures


def request_replica_sizes(
    client: KafkaClient, topics: Sequence[str]
) -> tuple[dict[tuple[TopicPartition, int], int], int]:
    """Request the size of each replica in bytes; return the sizes by partition and broker id.

    The second result is the number of brokers whose error was printed. Future replicas are left
    out.
    """
    from engine.client.cluster_admin import describe_log_dirs

    sizes: dict[tuple[TopicPartition, int], int] = {}
    failures = 0
    brokers = client.brokers_view().brokers
    for broker_id, dirs in describe_log_dirs(client, brokers, topics).items():
        if isinstance(dirs, EngineError):
            report_error(dirs, f"broker {broker_id}")
            failures += 1
            continue
        for log_dir in dirs:
            for replica in log_dir.replicas:
                if not replica.is_future:
                    sizes[replica.partition, broker_id] = replica.size_bytes
    return sizes, failures


class _Facts(NamedTuple):
    """Data requested in addition to the metadata; None if an option does not request it."""

    configs: dict[str, dict[str, str | None]]
    min_isr: dict[str, int]
    sizes: dict[tuple[TopicPartition, int], int] | None
    starts: dict[TopicPartition, int] | None
    ends: dict[TopicPartition, int] | None
    rates: dict[TopicPartition, PartitionRate] | None


def describe_topics(options: ClusterOptions, request: DescribeRequest) -> int:
    """Print topics with their partitions (`kctl topics describe`); returns the exit code.

    With --check it is PROBLEMS_FOUND if a partition is under-replicated, has no leader, or matches
    a filter for problems.
    """
    check_format(request.output)
    is_filtered = (
        request.under_replicated
        or request.unavailable
        or request.under_min_isr
        or request.at_min_isr
    )
    with connect(options) as client:
        # With a filter for problems all topics are selected by default.
        _, topics, errors = select_topics(
            client, request.names, request.match, else_all=is_filtered or request.check
        )
        topics = _known_moves(client, topics)
        facts, failures = _request_facts(client, topics, request)
    for error in errors:
        report_error(error)
    rows = {topic.name: _partition_rows(topic, request, facts) for topic in topics}
    shown = [topic for topic in topics if rows[topic.name] or not is_filtered]
    _print_topics(shown, rows, facts, request)
    if errors or failures:
        return exits.FAILED
    has_problems = any(
        is_filtered or row["under_replicated"] or row["leader"] is None
        for of_topic in rows.values()
        for row in of_topic
    )
    return exits.PROBLEMS_FOUND if request.check and has_problems else exits.OK


def _known_moves(client: KafkaClient, topics: list[TopicView]) -> list[TopicView]:
    """Return the topics with replicas that reassignments are adding and removing."""
    view = client.brokers_view()._replace(topics={topic.name: topic for topic in topics})
    known, _ = request_moves(client, view)
    return list(known.topics.values())


def _request_facts(
    client: KafkaClient, topics: list[TopicView], request: DescribeRequest
) -> tuple[_Facts, int]:
    """Request settings of topics, and if wanted sizes, offsets and rates; return them.

    The second result is the number of failures, whose errors are printed.
    """
    from engine.client.config_admin import (
        ConfigResourceType,
        ConfigSource,
        Resource,
        describe_configs,
    )

    configs: dict[str, dict[str, str | None]] = {}
    min_isr: dict[str, int] = {}
    failures = 0
    resources = [Resource(ConfigResourceType.TOPIC, topic.name) for topic in topics]
    for resource, entries in describe_configs(client, resources).items():
        if isinstance(entries, EngineError):
            report_error(entries, resource.name)
            failures += 1
            continue
        configs[resource.name] = {
            e.name: e.value for e in entries if e.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
        }
        value = next((e.value for e in entries if e.name == _MIN_ISR), None)
        min_isr[resource.name] = int(value or 1)
    sizes, starts, ends = None, None, None
    if request.size:
        sizes, lost = request_replica_sizes(client, [topic.name for topic in topics])
        failures += lost
    if request.offsets:
        starts, ends, lost = _request_offsets(client, topics)
        failures += lost
    rates, lost = _sample_rates(client, topics, request.rates)
    return _Facts(configs, min_isr, sizes, starts, ends, rates), failures + lost


def _request_offsets(
    client: KafkaClient, topics: Iterable[TopicView]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int], int]:
    """Request start and end offsets; return them and the number of errors, which are printed."""
    from engine.client.offsets import EARLIEST, LATEST, list_offsets

    partitions = [TopicPartition(t.name, p.partition) for t in topics for p in t.partitions]
    failures = 0
    columns: list[dict[TopicPartition, int]] = []
    for timestamp in (EARLIEST, LATEST):
        offsets = {}
        for partition, result in list_offsets(client, dict.fromkeys(partitions, timestamp)).items():
            if isinstance(result, EngineError):
                report_error(result, str(partition))
                failures += 1
            else:
                offsets[partition] = result.offset
        columns.append(offsets)
    starts, ends = columns
    return starts, ends, failures


def _partition_rows(
    topic: TopicView, request: DescribeRequest, facts: _Facts
) -> list[dict[str, object]]:
    """Return the rows of a topic's partitions that are in a requested state."""
    return [
        _partition_row(topic.name, partition, facts)
        for partition in topic.partitions
        if _is_described(partition, request, facts.min_isr.get(topic.name, 1))
    ]


def _is_described(partition: PartitionView, request: DescribeRequest, min_isr: int) -> bool:
    """Return True if the partition is in one of the requested states, or none is requested."""
    claims = (
        (request.under_replicated, partition.is_under_replicated),
        (request.unavailable, not partition.has_leader),
        (request.under_min_isr, len(partition.isr) < min_isr),
        (request.at_min_isr, len(partition.isr) == min_isr),
    )
    requested = [holds for is_requested, holds in claims if is_requested]
    return any(requested) or not requested


def _partition_row(topic: str, partition: PartitionView, facts: _Facts) -> dict[str, object]:
    """Return the row of a partition, with size, offsets and rates if requested."""
    key = TopicPartition(topic, partition.partition)
    row: dict[str, object] = {
        "topic": topic,
        "partition": partition.partition,
        "leader": partition.leader if partition.has_leader else None,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "under_replicated": partition.is_under_replicated,
        "offline_replicas": list(partition.offline_replicas),
        "leader_epoch": partition.leader_epoch,
    }
    if facts.sizes is not None:
        row["size_bytes"] = facts.sizes.get((key, partition.leader))
    if facts.starts is not None and facts.ends is not None:
        row["start_offset"] = facts.starts.get(key)
        row["end_offset"] = facts.ends.get(key)
    if facts.rates is not None:
        row |= partition_rate_row(facts.rates.get(key))
    return row


def _print_topics(
    topics: list[TopicView],
    rows: dict[str, list[dict[str, object]]],
    facts: _Facts,
    request: DescribeRequest,
) -> None:
    """Print topics in the output format.

    JSON and YAML nest partitions in topics; CSV is one table of partitions; tables have a heading
    and a table for each topic.
    """
    if request.output in _NESTED:
        write_rows(
            TOPIC_COLUMNS, [_topic_row(t, rows[t.name], facts) for t in topics], request.output
        )
        return
    if request.output == "name":
        write_rows(TOPIC_COLUMNS, [{"name": topic.name} for topic in topics], "name")
        return
    columns: tuple[Column, ...] = PARTITION_COLUMNS
    if request.size:
        columns = (*columns, SIZE_COLUMN)
    if request.offsets:
        columns = (*columns, *OFFSET_COLUMNS)
    if request.rates.is_wanted:
        columns = (*columns, *PARTITION_RATE_COLUMNS)
    if request.output == "csv":
        write_rows(columns, [row for t in topics for row in rows[t.name]], "csv")
        return
    for number, topic in enumerate(topics):
        sys.stdout.write(("\n" if number else "") + _heading(topic, facts) + "\n")
        write_rows(columns[1:], rows[topic.name], request.output)


def _heading(topic: TopicView, facts: _Facts) -> str:
    """Return the line above a topic's partitions: counts, id and non-default settings."""
    parts = [
        topic.name,
        f"partitions {len(topic.partitions)}",
        f"replicas {topic.replication_factor}",
    ]
    if topic.has_id:
        parts.append(f"id {topic_id_text(topic)}")
    if topic.is_internal:
        parts.append("internal")
    parts += [f"{key}={value}" for key, value in facts.configs.get(topic.name, {}).items()]
    return "  ".join(parts)


def _topic_row(topic: TopicView, rows: list[dict[str, object]], facts: _Facts) -> dict[str, object]:
    """Return the row of a topic with its partitions nested."""
    return {
        "name": topic.name,
        "topic_id": topic_id_text(topic),
        "is_internal": topic.is_internal,
        "partition_count": len(topic.partitions),
        "replication_factor": topic.replication_factor,
        "configs": facts.configs.get(topic.name),
        "partitions": [{k: v for k, v in row.items() if k != "topic"} for row in rows],
    }
