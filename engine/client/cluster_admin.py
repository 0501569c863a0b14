"""Requests about brokers: supported API versions and log directories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.connection import Call, VersionRange
from engine.errors import EngineError, api_error
from engine.kafka_errors import BROKER_NOT_AVAILABLE, NONE
from engine.model import TopicPartition
from engine.wire import messages


class BrokerApis(NamedTuple):
    """A broker's supported versions by API key, and finalized features by name."""

    versions: dict[int, VersionRange]
    features: dict[str, VersionRange]


class ReplicaSize(NamedTuple):
    """One replica in a log directory; `is_future` is the target of a move between directories."""

    partition: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool


class LogDirView(NamedTuple):
    """One log directory of a broker; sizes of its disk are None before DescribeLogDirs 4 (3.3)."""

    path: str
    error: EngineError | None
    replicas: tuple[ReplicaSize, ...]
    total_bytes: int | None
    usable_bytes: int | None


def api_versions(client: KafkaClient, broker_id: int) -> BrokerApis:
    """Return the API version ranges by API key, and finalized feature levels by name, of a broker.

    Raises ApiError of the response, and the errors of the request.
    """
    request = messages.ApiVersionsRequest(client_software_name="kctl", client_software_version="0")
    response: messages.ApiVersionsResponse
    response = client.send("ApiVersions", request, to=broker_id).message
    if response.error_code != NONE:
        raise api_error(response.error_code)
    return BrokerApis(
        {row.api_key: VersionRange(row.min_version, row.max_version) for row in response.api_keys},
        {
            row.name: VersionRange(row.min_version_level, row.max_version_level)
            for row in response.finalized_features
        },
    )


def unregister_broker(client: KafkaClient, broker_id: int) -> None:
    """Remove a broker's registration from a KRaft cluster.

    Raises NoCommonVersion of brokers with ZooKeeper, ApiError (BROKER_ID_NOT_REGISTERED).
    """
    request = messages.UnregisterBrokerRequest(broker_id=broker_id)
    response: messages.UnregisterBrokerResponse
    response = client.send("UnregisterBroker", request).message
    if response.error_code != NONE:
        raise api_error(response.error_code, response.error_message)


def describe_log_dirs(
    client: KafkaClient,
    broker_ids: Iterable[int],
    topics: Sequence[str] | None = None,
    *,
    is_sorted: bool = True,
) -> dict[int, list[LogDirView] | EngineError]:
    """Return the log directories of brokers, with all replicas or those of some topics.

    All brokers are requested at once; the result of a broker that does not respond is its error, of
    one that has left the cluster BROKER_NOT_AVAILABLE (8). Unless `is_sorted`, replicas have the
    order of the response.
    """
    request = messages.DescribeLogDirsRequest
    wanted = None
    if topics is not None:
        view = client.view(topics)
        wanted = [
            request.DescribableLogDirTopic(
                topic=topic.name, partitions=[p.partition for p in topic.partitions]
            )
            for topic in view.topics.values()
        ]
    brokers = client.brokers_view().brokers
    call = Call("DescribeLogDirs", request(topics=wanted))
    found: dict[int, list[LogDirView] | EngineError] = {}
    calls = {}
    for broker_id in broker_ids:
        if broker_id in brokers:
            calls[broker_id] = (brokers[broker_id].address, call)
        else:
            message = f"broker {broker_id} is not alive"
            found[broker_id] = api_error(BROKER_NOT_AVAILABLE, message)
    results = client.exchange(calls, client.clock.monotonic_ms() + client.timeout_ms)
    for broker_id, result in results.items():
        if isinstance(result, EngineError):
            found[broker_id] = result
        else:
            found[broker_id] = log_dirs_of(result.message, is_sorted=is_sorted)
    return dict(sorted(found.items()))


def log_dirs_call() -> Call:
    """Return the request for all log directories of a broker, with all replicas."""
    return Call("DescribeLogDirs", messages.DescribeLogDirsRequest(topics=None))


def log_dirs_of(
    response: messages.DescribeLogDirsResponse, *, is_sorted: bool = True
) -> list[LogDirView] | EngineError:
    """Return the log directories of a response, sorted by path, or the response's error.

    Unless `is_sorted`, the replicas in each directory have the order of the response.
    """
    if response.error_code != NONE:
        return api_error(response.error_code)
    return [
        _log_dir(row, is_sorted) for row in sorted(response.results, key=lambda row: row.log_dir)
    ]


def _log_dir(
    row: messages.DescribeLogDirsResponse.DescribeLogDirsResult, is_sorted: bool
) -> LogDirView:
    """Convert a row of DescribeLogDirs; sizes of the volume are None where it has none."""
    replicas = [
        ReplicaSize(
            TopicPartition(topic.name, p.partition_index),
            p.partition_size,
            p.offset_lag,
            p.is_future_key,
        )
        for topic in row.topics
        for p in topic.partitions
    ]
    if is_sorted:
        replicas.sort(key=lambda replica: replica.partition)
    return LogDirView(
        row.log_dir,
        None if row.error_code == NONE else api_error(row.error_code),
        tuple(replicas),
        row.total_bytes if row.total_bytes >= 0 else None,
        row.usable_bytes if row.usable_bytes >= 0 else None,
    )
