"""`kafka-topics --list` and `--describe`.

Source: TopicCommand.TopicService.listTopics, describeTopic, TopicFilter.IncludeList of 3.9.1
and 4.3.0.
Differs: a regular expression is Python's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple, TextIO

from engine.client.blocking import KafkaClient
from engine.client.config_admin import (
    ConfigEntry,
    ConfigResourceType,
    Resource,
    describe_configs,
)
from engine.client.eligible_replicas import EligibleReplicas, describe_eligible_replicas
from engine.client.metadata import PartitionView, TopicView
from engine.client.reassignments import OngoingReassignment, list_reassignments
from engine.errors import ApiError, EngineError
from engine.ids import uuid_text
from engine.kafka_errors import CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION
from engine.model import TopicPartition
from kctl.compat.java_admin import ILLEGAL_ARGUMENT, admin_call, admin_failure
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_options import GivenOptions
from kctl.compat.java_order import names_in_sized_java_order
from kctl.compat.java_patterns import is_java_pattern
from kctl.compat.java_uuids import java_uuid

_RUNTIME: Final = "java.lang.RuntimeException"
_INTERNAL: Final = ("__consumer_offsets", "__transaction_state")
_INTERNAL_4: Final = (*_INTERNAL, "__share_group_state")
_NOT_KNOWN: Final = EligibleReplicas(None, None)
_MIN_ISR: Final = "min.insync.replicas"
_PER_RESPONSE: Final = "partition-size-limit-per-response"
_QUIET: Final = (CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION)


class _Shown(NamedTuple):
    """The data of one partition's line."""

    topic: str
    partition: PartitionView
    min_isr: int
    move: OngoingReassignment | None
    eligible: EligibleReplicas


# Selection of topics


def compile_topic_pattern(text: str) -> re.Pattern[str]:
    """Compile the value of --topic, names or regular expressions; raises ToolFailure.

    Commas separate alternatives; blanks and outer quotes are dropped, as in Kafka's IncludeList.
    """
    cleaned = text.strip().replace(",", "|").replace(" ", "")
    cleaned = re.sub(r"^[\"']+", "", cleaned)
    cleaned = re.sub(r"[\"']+$", "", cleaned)
    if not is_java_pattern(cleaned):
        raise ToolFailure(_RUNTIME, f"{cleaned} is an invalid regex.")
    return re.compile(cleaned)


def request_selected_topics(client: KafkaClient, given: GivenOptions) -> list[TopicView]:
    """Return the topics that --topic and --exclude-internal select, by name.

    Errors: ToolFailure.
    """
    text = given.text("topic") if given.has("topic") else None
    is_without_internal = given.has("exclude-internal")
    topics = _request_topics(client, is_without_internal)
    pattern = None if text is None else compile_topic_pattern(text)
    internal = _INTERNAL_4 if given.is_four else _INTERNAL
    return [
        topic
        for topic in topics
        if (pattern is None or pattern.fullmatch(topic.name))
        and not (is_without_internal and topic.name in internal)
    ]


def _request_topics(client: KafkaClient, is_without_internal: bool) -> list[TopicView]:
    """Request all topics, sorted by name, optionally without internal ones."""
    with admin_call("listTopics"):
        view = client.view(None)
    return [
        topic
        for _, topic in sorted(view.topics.items())
        if not (is_without_internal and topic.is_internal)
    ]


def need_topics(found: Collection[TopicView], given: GivenOptions) -> None:
    """Raise ToolFailure if --topic selects no existing topic, unless --if-exists is given."""
    named = given.text("topic") if given.has("topic") else None
    if named and not found and not given.has("if-exists"):
        shown = f"'{named}'" if given.is_four else f"'Optional[{named}]'"
        message = f"Topic {shown} does not exist as expected"
        raise ToolFailure(ILLEGAL_ARGUMENT, message)


def list_topics_of(client: KafkaClient, given: GivenOptions, out: TextIO) -> None:
    """Print the names of topics, or an empty line without any; raises ToolFailure."""
    out.write("\n".join(topic.name for topic in request_selected_topics(client, given)) + "\n")


# Description


def print_topics_and_partitions(client: KafkaClient, given: GivenOptions, out: TextIO) -> None:
    """Print topics and partitions (--describe), those that the filters select.

    Errors: ToolFailure.
    """
    topics = _request_topics_to_describe(client, given)
    given.number(_PER_RESPONSE, 0, 32)
    if not topics:
        return
    configs = _configs(client, topics)
    with admin_call("describeCluster"):
        live = client.view([]).brokers
    moves = _request_moves(client, topics)
    # Topics requested by id are described by Metadata, which has no eligible replicas.
    is_by_id = given.has("topic-id") and any(java_uuid(given.needed("topic-id")))
    names = [] if is_by_id else [topic.name for topic in topics]
    eligible = describe_eligible_replicas(client, names)
    for topic in topics:
        entries = configs[topic.name]
        if isinstance(entries, EngineError):
            raise admin_failure(entries, "describeConfigs")
        _print_topic(topic, entries, moves, given, out)
        if given.has("topics-with-overrides"):
            continue
        min_isr = next(int(e.value or 0) for e in entries if e.name == _MIN_ISR)
        for partition in topic.partitions:
            key = TopicPartition(topic.name, partition.partition)
            replicas = eligible.get(key, _NOT_KNOWN)
            shown = _Shown(topic.name, partition, min_isr, moves.get(key), replicas)
            if _is_wanted(shown, given, live):
                out.write(_partition_line(shown))


def _request_topics_to_describe(client: KafkaClient, given: GivenOptions) -> list[TopicView]:
    """Return the topics to describe, in the order of Java's HashMap."""
    if given.has("topic-id"):
        topic_id = java_uuid(given.needed("topic-id"))
        if any(topic_id):
            found = [
                topic
                for topic in _request_topics(client, given.has("exclude-internal"))
                if topic.topic_id == topic_id
            ]
            if not found and not given.has("if-exists"):
                message = f"TopicId '{uuid_text(topic_id)}' does not exist as expected"
                raise ToolFailure(ILLEGAL_ARGUMENT, message)
            return found
    topics = request_selected_topics(client, given)
    need_topics(topics, given)
    by_name = {topic.name: topic for topic in topics}
    return [by_name[name] for name in names_in_sized_java_order(by_name)]


def _configs(
    client: KafkaClient, topics: Sequence[TopicView]
) -> dict[str, list[ConfigEntry] | EngineError]:
    """Return the settings of each topic, in the broker's order, or its error."""
    resources = [Resource(ConfigResourceType.TOPIC, topic.name) for topic in topics]
    with admin_call("describeConfigs"):
        found = describe_configs(client, resources, is_sorted=False)
    return {resource.name: entries for resource, entries in found.items()}


def _request_moves(
    client: KafkaClient, topics: Sequence[TopicView]
) -> Mapping[TopicPartition, OngoingReassignment]:
    """Return the reassignments in progress of the topics' partitions.

    Empty if the broker denies or does not support the request, as in Kafka's tool.
    """
    keys = [TopicPartition(t.name, p.partition) for t in topics for p in t.partitions]
    try:
        return list_reassignments(client, keys)
    except ApiError as error:
        if error.code in _QUIET:
            return {}
        failure = admin_failure(error, "listPartitionReassignments")
        raise ToolFailure(_RUNTIME, f"java.util.concurrent.ExecutionException: {failure}") from None


def _replica_count(partition: PartitionView, move: OngoingReassignment | None) -> int:
    """Return a partition's replication factor, without the replicas that a reassignment adds."""
    replicas = partition.replicas
    if move is None or not {*replicas} & {*move.adding, *move.removing}:
        return len(replicas)
    return len(move.replicas) - len(move.adding)


def _print_topic(
    topic: TopicView,
    entries: Sequence[ConfigEntry],
    moves: Mapping[TopicPartition, OngoingReassignment],
    given: GivenOptions,
    out: TextIO,
) -> None:
    """Print the line on a topic, above the lines on its partitions.

    Nothing is printed with a filter for partitions, and with --topics-with-overrides for a topic
    without overridden settings.
    """
    overrides = [entry for entry in entries if not entry.is_default]
    if any(given.has(name) for name in _REPORTS):
        return
    if given.has("topics-with-overrides") and not overrides:
        return
    first = topic.partitions[0]
    factor = _replica_count(first, moves.get(TopicPartition(topic.name, first.partition)))
    cells = [f"Topic: {topic.name}"]
    if topic.has_id:
        cells.append(f"TopicId: {uuid_text(topic.topic_id)}")
    cells.append(f"PartitionCount: {len(topic.partitions)}")
    cells.append(f"ReplicationFactor: {factor}")
    shown = ",".join(f"{e.name}={'null' if e.value is None else e.value}" for e in overrides)
    cells.append(f"Configs: {shown}")
    out.write("\t".join(cells) + "\n")


def _is_under_replicated(shown: _Shown, live: Collection[int]) -> bool:
    """Return True if fewer replicas are in sync than assigned, not counting those being added.

    `live` is unused: all filters have the same parameters.
    """
    del live
    return _replica_count(shown.partition, shown.move) > len(shown.partition.isr)


def _is_unavailable(shown: _Shown, live: Collection[int]) -> bool:
    """Return True if the partition's leader is not a live broker."""
    return shown.partition.leader not in live


def _is_under_min_isr(shown: _Shown, live: Collection[int]) -> bool:
    """Return True if acks=all would be refused: no leader, or an ISR below min.insync.replicas."""
    del live
    return not shown.partition.has_leader or len(shown.partition.isr) < shown.min_isr


def _is_at_min_isr(shown: _Shown, live: Collection[int]) -> bool:
    """Return True if as many replicas are in sync as min.insync.replicas requires."""
    del live
    return len(shown.partition.isr) == shown.min_isr


#: Filters for partitions by option.
_REPORTS: Final = {
    "under-replicated-partitions": _is_under_replicated,
    "unavailable-partitions": _is_unavailable,
    "under-min-isr-partitions": _is_under_min_isr,
    "at-min-isr-partitions": _is_at_min_isr,
}


def _is_wanted(shown: _Shown, given: GivenOptions, live: Collection[int]) -> bool:
    """Return True if a given filter accepts the partition, or no filter is given."""
    reports = [is_shown for name, is_shown in _REPORTS.items() if given.has(name)]
    return not reports or any(is_shown(shown, live) for is_shown in reports)


def _partition_line(shown: _Shown) -> str:
    """Return the line of a partition, with the replicas a reassignment adds and removes."""
    partition, move = shown.partition, shown.move
    cells = [
        f"\tTopic: {shown.topic}",
        f"Partition: {partition.partition}",
        f"Leader: {partition.leader if partition.has_leader else 'none'}",
        f"Replicas: {_joined(partition.replicas)}",
        f"Isr: {_joined(partition.isr)}",
    ]
    if move is not None:
        cells.append(f"Adding Replicas: {_joined(move.adding)}")
        cells.append(f"Removing Replicas: {_joined(move.removing)}")
    eligible, last_known = shown.eligible
    cells.append(f"Elr: {'N/A' if eligible is None else _joined(eligible)}")
    cells.append(f"LastKnownElr: {'N/A' if last_known is None else _joined(last_known)}")
    return "\t".join(cells) + "\n"


def _joined(broker_ids: Sequence[int]) -> str:
    """Return broker ids as text, such as `1,2,3`."""
    return ",".join(map(str, broker_ids))
