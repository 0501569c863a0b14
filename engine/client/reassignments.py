"""Begin, cancel and list reassignments.

Source: AlterPartitionReassignments, ListPartitionReassignments, KIP-455; AlterReplicaLogDirs,
KIP-113.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from engine.client.blocking import CONTROLLER, KafkaClient
from engine.client.connection import Call
from engine.client.metadata import ClusterView, TopicView
from engine.errors import ApiError, EngineError, api_error
from engine.kafka_errors import BROKER_NOT_AVAILABLE, NONE
from engine.model import TopicPartition, by_topic
from engine.wire import messages
from engine.wire.schema import ENGINE_RELEASE
from engine.wire.structs import message_class


class OngoingReassignment(NamedTuple):
    """An ongoing reassignment, by the controller's response (RSN-4)."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def original(self) -> tuple[int, ...]:
        """Return the replicas before the reassignment, which a cancellation restores."""
        return tuple(id_ for id_ in self.replicas if id_ not in self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        """Return the replicas that the partition has when the reassignment is complete."""
        return tuple(id_ for id_ in self.replicas if id_ not in self.removing)


def list_reassignments(
    client: KafkaClient, partitions: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, OngoingReassignment]:
    """Return the ongoing reassignments by partition; of all partitions if None. Raises ApiError."""
    call = listing_call(partitions, client.timeout_ms)
    found = listing_of(
        client.send(
            call.api_name,
            call.message,
            to=CONTROLLER,
            retriable_code=lambda response: response.error_code,
        ).message
    )
    if isinstance(found, EngineError):
        raise found
    return found


def listing_call(partitions: Iterable[TopicPartition] | None, timeout_ms: int) -> Call:
    """Return the request for ongoing reassignments; of all partitions if None.

    The request is for the controller.
    """
    request = messages.ListPartitionReassignmentsRequest
    topics = None
    if partitions is not None:
        topics = [
            request.ListPartitionReassignmentsTopics(
                name=name, partition_indexes=[key.partition for key in of_topic]
            )
            for name, of_topic in by_topic(partitions).items()
        ]
    return Call("ListPartitionReassignments", request(timeout_ms=timeout_ms, topics=topics))


def listing_of(
    response: messages.ListPartitionReassignmentsResponse,
) -> dict[TopicPartition, OngoingReassignment] | ApiError:
    """Return the ongoing reassignments in a response, by partition, or the response's error."""
    if response.error_code != NONE:
        return api_error(response.error_code, response.error_message)
    return {
        TopicPartition(topic.name, row.partition_index): OngoingReassignment(
            tuple(row.replicas), tuple(row.adding_replicas), tuple(row.removing_replicas)
        )
        for topic in response.topics
        for row in topic.partitions
    }


def alter_reassignments(
    client: KafkaClient,
    targets: Mapping[TopicPartition, tuple[int, ...] | None],
    *,
    may_change_replication_factor: bool = True,
) -> dict[TopicPartition, ApiError | None]:
    """Start to reassign partitions to their targets; a target of None cancels a reassignment.

    A target for a partition that is being reassigned replaces the earlier one (RSN-6). Returns an
    error or None for each partition; raises the error of the request as a whole. Without
    `may_change_replication_factor` brokers from 4.1 on refuse another replication factor (KIP-860);
    older brokers raise NoCommonVersion.
    """
    release = ENGINE_RELEASE if may_change_replication_factor else "4.3.0"
    request = message_class("AlterPartitionReassignmentsRequest", release)
    topics = []
    for name, keys in by_topic(targets).items():
        rows = []
        for key in keys:
            target = targets[key]
            row = request.ReassignablePartition(
                partition_index=key.partition, replicas=None if target is None else list(target)
            )
            rows.append(row)
        topics.append(request.ReassignableTopic(name=name, partitions=rows))
    message = request(timeout_ms=client.timeout_ms, topics=topics)
    if not may_change_replication_factor:
        message.allow_replication_factor_change = False
    response: messages.AlterPartitionReassignmentsResponse = client.send(
        "AlterPartitionReassignments",
        message,
        to=CONTROLLER,
        lowest=0 if may_change_replication_factor else 1,
        release=release,
        retriable_code=lambda response: response.error_code,
    ).message
    if response.error_code != NONE:
        raise api_error(response.error_code, response.error_message)
    return {
        TopicPartition(topic.name, row.partition_index): None
        if row.error_code == NONE
        else api_error(row.error_code, row.error_message)
        for topic in response.responses
        for row in topic.partitions
    }


def alter_log_dirs(
    client: KafkaClient, paths: Mapping[int, Mapping[TopicPartition, str]]
) -> dict[tuple[TopicPartition, int], EngineError | None]:
    """Move replicas to other log directories, given as paths by broker id and partition.

    Returns None or an error for each partition and broker. A broker without the replica responds
    REPLICA_NOT_AVAILABLE, and creates the replica in that directory later.
    """
    brokers = client.brokers_view().brokers
    results: dict[tuple[TopicPartition, int], EngineError | None] = {}
    calls = {}
    for broker_id, of_broker in paths.items():
        if broker_id in brokers:
            calls[broker_id] = (brokers[broker_id].address, _alter_log_dirs_call(of_broker))
        else:
            missing = api_error(BROKER_NOT_AVAILABLE, f"broker {broker_id} is not alive")
            results |= {(key, broker_id): missing for key in of_broker}
    answers = client.exchange(calls, client.clock.monotonic_ms() + client.timeout_ms)
    for broker_id, answer in answers.items():
        if isinstance(answer, EngineError):
            results |= {(key, broker_id): answer for key in paths[broker_id]}
            continue
        results |= {
            (TopicPartition(topic.topic_name, row.partition_index), broker_id): None
            if row.error_code == NONE
            else api_error(row.error_code)
            for topic in answer.message.results
            for row in topic.partitions
        }
    return results


def _alter_log_dirs_call(paths: Mapping[TopicPartition, str]) -> Call:
    """Build AlterReplicaLogDirs for one broker from the target directory of each partition."""
    request = messages.AlterReplicaLogDirsRequest
    dirs = []
    for path in sorted(set(paths.values())):
        keys = [key for key, wanted in paths.items() if wanted == path]
        topics = [
            request.AlterReplicaLogDirTopic(name=name, partitions=[k.partition for k in of_topic])
            for name, of_topic in by_topic(keys).items()
        ]
        dirs.append(request.AlterReplicaLogDir(path=path, topics=topics))
    return Call("AlterReplicaLogDirs", request(dirs=dirs))


def request_moves(
    client: KafkaClient, view: ClusterView
) -> tuple[ClusterView, dict[TopicPartition, OngoingReassignment]]:
    """Request the ongoing reassignments; return the metadata with their adding replicas, and them.

    Without adding replicas, a partition in reassignment seems under-replicated: only such
    partitions are requested. If the request fails the metadata stays unchanged.
    """
    lacking = [
        TopicPartition(topic.name, partition.partition)
        for topic in view.topics.values()
        for partition in topic.partitions
        if partition.is_under_replicated
    ]
    if not lacking:
        return view, {}
    try:
        ongoing = list_reassignments(client, lacking)
    except EngineError:
        return view, {}
    return with_adding(view, ongoing), ongoing


def with_adding(
    view: ClusterView, ongoing: Mapping[TopicPartition, OngoingReassignment]
) -> ClusterView:
    """Return the metadata with the replicas that ongoing reassignments add to each partition."""
    topics = {name: _with_adding(topic, ongoing) for name, topic in view.topics.items()}
    return view._replace(topics=topics)


def _with_adding(
    topic: TopicView, ongoing: Mapping[TopicPartition, OngoingReassignment]
) -> TopicView:
    """Return the topic with the adding replicas of its ongoing reassignments."""
    partitions = tuple(
        partition
        if (move := ongoing.get(TopicPartition(topic.name, partition.partition))) is None
        # The metadata may be older than the reassignment: keep only replicas that it has.
        else partition._replace(
            adding=tuple(id_ for id_ in move.adding if id_ in partition.replicas)
        )
        for partition in topic.partitions
    )
    return topic._replace(partitions=partitions)
