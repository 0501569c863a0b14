"""Create, grow and delete topics; delete records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from engine.client.blocking import CONTROLLER, KafkaClient
from engine.client.connection import Call, RequestMessage
from engine.client.metadata import ClusterView
from engine.errors import ApiError, EngineError, api_error
from engine.kafka_errors import NONE, NOT_CONTROLLER
from engine.model import TopicPartition, by_topic
from engine.wire import messages
from engine.wire.layout import NO_UUID

R = TypeVar("R")

#: Leaves a count to the broker's own default; needs CreateTopics 4 (Kafka 2.4).
BROKER_DEFAULT = -1


class NewTopic(NamedTuple):
    """A topic to create: counts, or the replicas of each partition (the first is preferred)."""

    name: str
    partition_count: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    assignment: tuple[tuple[int, ...], ...] = ()
    configs: Mapping[str, str] = {}


class CreatedTopic(NamedTuple):
    """A topic as created or validated; −1 and None where an old broker does not return them."""

    name: str
    topic_id: bytes = NO_UUID
    partition_count: int = -1
    replication_factor: int = -1


class NewPartitions(NamedTuple):
    """The new partition count of a topic.

    `assignment` has the replicas of each added partition; None lets the brokers choose.
    """

    total_count: int
    assignment: tuple[tuple[int, ...], ...] | None = None


def create_topics(
    client: KafkaClient, topics: Sequence[NewTopic], *, validate_only: bool = False
) -> dict[str, CreatedTopic | ApiError]:
    """Create topics; return by name the created topic or its error.

    With `validate_only` nothing is created. Raises the errors of the request as a whole.
    """
    request = messages.CreateTopicsRequest
    message = request(
        topics=[_creatable_topic(topic) for topic in topics],
        timeout_ms=client.timeout_ms,
        validate_only=validate_only,
    )
    response: messages.CreateTopicsResponse = _send_to_controller(
        client, "CreateTopics", message, lambda response: response.topics
    )
    return {row.name: _creation_result(row) for row in response.topics}


def _creatable_topic(topic: NewTopic) -> messages.CreateTopicsRequest.CreatableTopic:
    """Build a topic of CreateTopics; with a manual assignment both counts are -1."""
    request = messages.CreateTopicsRequest
    assignments = [
        request.CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
        for index, replicas in enumerate(topic.assignment)
    ]
    return request.CreatableTopic(
        name=topic.name,
        num_partitions=BROKER_DEFAULT if assignments else topic.partition_count,
        replication_factor=BROKER_DEFAULT if assignments else topic.replication_factor,
        assignments=assignments,
        configs=[
            request.CreatableTopicConfig(name=key, value=value)
            for key, value in topic.configs.items()
        ],
    )


def _creation_result(
    row: messages.CreateTopicsResponse.CreatableTopicResult,
) -> CreatedTopic | ApiError:
    """Convert one result of CreateTopics: the created topic, or its error."""
    if row.error_code != NONE:
        return api_error(row.error_code, row.error_message)
    return CreatedTopic(row.name, row.topic_id, row.num_partitions, row.replication_factor)


def delete_topics(client: KafkaClient, names: Sequence[str]) -> dict[str, ApiError | None]:
    """Delete topics by name; return the error of each, None if it is deleted."""
    request = messages.DeleteTopicsRequest

    def message(version: int) -> messages.DeleteTopicsRequest:
        """Return the request of a version; versions before 6 have names in place of rows."""
        if version < 6:
            return request(topic_names=list(names), timeout_ms=client.timeout_ms)
        rows = [request.DeleteTopicState(name=name) for name in names]
        return request(topics=rows, timeout_ms=client.timeout_ms)

    response: messages.DeleteTopicsResponse = _send_to_controller(
        client, "DeleteTopics", message, lambda response: response.responses
    )
    return {
        row.name: _error_of(row.error_code, row.error_message)
        for row in response.responses
        if row.name is not None
    }


def create_partitions(
    client: KafkaClient, topics: Mapping[str, NewPartitions], *, validate_only: bool = False
) -> dict[str, ApiError | None]:
    """Add partitions to topics; return the error of each topic, None if they were added.

    With `validate_only` nothing changes.
    """
    request = messages.CreatePartitionsRequest
    rows = []
    for name, wanted in topics.items():
        added = None
        if wanted.assignment is not None:
            added = [
                request.CreatePartitionsAssignment(broker_ids=list(replicas))
                for replicas in wanted.assignment
            ]
        rows.append(
            request.CreatePartitionsTopic(name=name, count=wanted.total_count, assignments=added)
        )
    message = request(topics=rows, timeout_ms=client.timeout_ms, validate_only=validate_only)
    response: messages.CreatePartitionsResponse = _send_to_controller(
        client, "CreatePartitions", message, lambda response: response.results
    )
    return {row.name: _error_of(row.error_code, row.error_message) for row in response.results}


class _Row(Protocol):
    error_code: int


def _send_to_controller(
    client: KafkaClient, api_name: str, message: RequestMessage, rows: Callable[[R], Iterable[_Row]]
) -> R:
    """Send a request to the controller; return its response.

    If the controller has moved, send it to the next one, as a row with NOT_CONTROLLER shows.
    """

    def moved(response: R) -> int:
        """Return NOT_CONTROLLER if any row has it, else NONE.

        With the former the request is repeated.
        """
        return next(
            (NOT_CONTROLLER for r in rows(response) if r.error_code == NOT_CONTROLLER), NONE
        )

    response: R = client.send(
        api_name, message, to=CONTROLLER, retriable_code=moved, lowest=1, is_repeatable=False
    ).message
    return response


def _error_of(code: int, detail: str | None) -> ApiError | None:
    """Return the error for a code with its detail, None for 0."""
    return None if code == NONE else api_error(code, detail)


def delete_records(
    client: KafkaClient, before: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | EngineError]:
    """Delete the records before an offset (exclusive; −1: all) of each partition.

    Returns by partition its error, or its new low watermark: the lowest log start offset of its
    replicas.
    """
    request = messages.DeleteRecordsRequest

    def make_call(partitions: list[TopicPartition], view: ClusterView) -> Call:
        """Return the DeleteRecords call of one leader for its partitions."""
        topics = {
            topic: [
                request.DeleteRecordsPartition(partition_index=p.partition, offset=before[p])
                for p in of_topic
            ]
            for topic, of_topic in by_topic(partitions).items()
        }
        rows = [request.DeleteRecordsTopic(name=t, partitions=p) for t, p in topics.items()]
        return Call("DeleteRecords", request(topics=rows, timeout_ms=client.timeout_ms))

    def read(
        response: messages.DeleteRecordsResponse, version: int
    ) -> dict[TopicPartition, int | EngineError]:
        """Return the new log start offset of each partition, or its error."""
        return {
            TopicPartition(topic.name, row.partition_index): _error_of(row.error_code, None)
            or row.low_watermark
            for topic in response.topics
            for row in topic.partitions
        }

    return client.send_to_leaders(before, make_call, read)
