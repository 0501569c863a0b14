"""The requests by which an execution observes and changes a live cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from engine.client.blocking import KafkaClient
from engine.client.cluster_admin import describe_log_dirs
from engine.client.config_admin import (
    ConfigChange,
    ConfigOp,
    ConfigResourceType,
    ConfigSource,
    Resource,
    alter_configs,
    describe_configs,
)
from engine.client.connection import Call
from engine.client.leader_admin import Election, elect_leaders
from engine.client.metadata import ClusterView, PartitionView
from engine.client.reassignments import (
    OngoingReassignment,
    alter_log_dirs,
    alter_reassignments,
    list_reassignments,
)
from engine.errors import ApiError, EngineError
from engine.kafka_errors import REPLICA_NOT_AVAILABLE
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange
from engine.reassign.phases import ObservedReplica
from engine.reassign.throttles import ThrottleSetting
from engine.wire import messages

if TYPE_CHECKING:
    from engine.reassign.producer_latency import ProducerLatency

_MIN_ISR = "min.insync.replicas"
#: The sources of values that were set for one topic or one broker.
_OWN_SOURCES = (ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DYNAMIC_BROKER_CONFIG)


class ObservedCluster(NamedTuple):
    """The observed state of a cluster at one poll; partitions and replicas are those of the plan.

    `under_min_isr` is of the complete cluster. `silent` are live brokers that did not return their
    replicas.
    """

    cluster_id: str | None
    brokers: frozenset[int]
    partitions: Mapping[TopicPartition, PartitionView]
    ongoing: Mapping[TopicPartition, OngoingReassignment]
    replicas: Mapping[TopicPartition, Mapping[int, ObservedReplica]]
    under_min_isr: frozenset[TopicPartition]
    silent: frozenset[int] = frozenset()


class MovedCluster(Protocol):
    """The interface of an execution to its cluster; every method may raise EngineError."""

    def read(self) -> ObservedCluster:
        """Return the state of the plan's partitions and brokers, as far as brokers respond."""
        ...

    def submit(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> Mapping[TopicPartition, ApiError | None]:
        """Start the reassignments to the targets, and cancel those with the target None.

        Returns the error of each, None for success.
        """
        ...

    def move_log_dirs(
        self, paths: Mapping[int, Mapping[TopicPartition, str]]
    ) -> Mapping[tuple[TopicPartition, int], EngineError | None]:
        """Request log directories for replicas by broker; the replicas need not exist yet.

        Returns the error of each replica, None for success.
        """
        ...

    def elect_preferred(self, keys: Sequence[TopicPartition]) -> None:
        """Elect the preferred leaders of partitions."""
        ...

    def throttles(
        self, settings: Iterable[ThrottleSetting]
    ) -> dict[ThrottleSetting, str | EngineError | None]:
        """Return the values that are set for exactly these resources, or None, or the error."""
        ...

    def set_throttles(
        self, values: Mapping[ThrottleSetting, str | None]
    ) -> dict[ThrottleSetting, EngineError]:
        """Set values, or delete those with None; return the errors of those that failed."""
        ...

    def measure_response_ms(self) -> int:
        """Return the time of a produced record, or of the slowest broker's response, in ms."""
        ...

    def pause(self, duration_ms: int) -> None:
        """Wait for `duration_ms`, between two polls."""
        ...


class LiveCluster:
    """A cluster behind a client; implements `MovedCluster`."""

    def __init__(
        self,
        client: KafkaClient,
        changes: Iterable[PartitionChange],
        latency_topic: str | None = None,
    ) -> None:
        """Create the access to the cluster in which the replicas of `changes` move.

        With a `latency_topic`, the latency of records produced to that topic is measured too.
        Raises ApiError if the topic does not exist.
        """
        self._client = client
        #: Measures the produce latency for adaptive throttles. None without a latency topic.
        self._latency: ProducerLatency | None = None
        if latency_topic is not None:
            from engine.reassign.producer_latency import ProducerLatency

            self._latency = ProducerLatency(client, latency_topic)
        changes = list(changes)
        self._keys = [change.name for change in changes]
        self._topics = sorted({key.topic for key in self._keys})
        self._brokers = {b for c in changes for b in (*c.old_replicas, *c.new_replicas)}
        #: min.insync.replicas of the topics. None until the first `read`.
        self._min_isr: dict[str, int] | None = None

    def read(self) -> ObservedCluster:
        """Request the metadata, reassignments and log directories of the plan's partitions."""
        client = self._client
        # Reassignments are listed first: one that ends before the metadata request shows as ended
        # there.
        ongoing = list_reassignments(client)
        view = client.view(None)
        found = ((key, view.partition(key)) for key in self._keys)
        partitions = {key: partition for key, partition in found if partition is not None}
        replicas, silent = self._request_replicas(view)
        return ObservedCluster(
            view.cluster_id,
            frozenset(view.brokers),
            partitions,
            ongoing,
            replicas,
            self._find_under_min_isr(view),
            silent,
        )

    def _request_replicas(
        self, view: ClusterView
    ) -> tuple[dict[TopicPartition, dict[int, ObservedReplica]], frozenset[int]]:
        """Return the replicas by broker (DescribeLogDirs), and live brokers whose request failed.

        A future replica (KIP-113) is given as `future_bytes` and `future_path` of the current
        replica.
        """
        replicas: dict[TopicPartition, dict[int, ObservedReplica]] = {key: {} for key in self._keys}
        futures: dict[tuple[TopicPartition, int], tuple[int, str]] = {}
        silent = set()
        there = [topic for topic in self._topics if topic in view.topics]
        alive = self._brokers & set(view.brokers)
        for broker_id, dirs in describe_log_dirs(self._client, alive, there).items():
            if isinstance(dirs, EngineError):
                silent.add(broker_id)
                continue
            for log_dir in dirs:
                for replica in log_dir.replicas:
                    if replica.partition not in replicas:
                        continue
                    if replica.is_future:
                        place = replica.size_bytes, log_dir.path
                        futures[replica.partition, broker_id] = place
                    else:
                        now = ObservedReplica(replica.size_bytes, log_dir.path)
                        replicas[replica.partition][broker_id] = now
        for (key, broker_id), (size_bytes, path) in futures.items():
            known = replicas[key].get(broker_id)
            if known is not None:
                replicas[key][broker_id] = known._replace(future_bytes=size_bytes, future_path=path)
        return replicas, frozenset(silent)

    def _find_under_min_isr(self, view: ClusterView) -> frozenset[TopicPartition]:
        """Return the partitions whose ISR is smaller than `min.insync.replicas`.

        A partition with fewer replicas than that needs all of them. The setting is read once.
        """
        if self._min_isr is None:
            resources = [Resource(ConfigResourceType.TOPIC, name) for name in view.topics]
            described = describe_configs(self._client, resources, names=[_MIN_ISR])
            self._min_isr = {
                resource.name: int(entries[0].value or 1)
                for resource, entries in described.items()
                if not isinstance(entries, EngineError) and entries
            }
        min_isr = self._min_isr
        return frozenset(
            TopicPartition(topic.name, partition.partition)
            for topic in view.topics.values()
            for partition in topic.partitions
            if len(partition.isr) < min(min_isr.get(topic.name, 1), len(partition.replicas))
        )

    def submit(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> Mapping[TopicPartition, ApiError | None]:
        """Start or cancel reassignments in one request; return the error of each."""
        return alter_reassignments(self._client, targets)

    def move_log_dirs(
        self, paths: Mapping[int, Mapping[TopicPartition, str]]
    ) -> Mapping[tuple[TopicPartition, int], EngineError | None]:
        """Request log directories for replicas by broker; return the error of each replica.

        REPLICA_NOT_AVAILABLE is no error: the broker keeps the directory for the later replica.
        """
        results = alter_log_dirs(self._client, paths)
        return {
            key: None
            if isinstance(error, ApiError) and error.code == REPLICA_NOT_AVAILABLE
            else error
            for key, error in results.items()
        }

    def elect_preferred(self, keys: Sequence[TopicPartition]) -> None:
        """Elect the preferred leaders of partitions."""
        elect_leaders(self._client, Election.PREFERRED, keys)

    def throttles(
        self, settings: Iterable[ThrottleSetting]
    ) -> dict[ThrottleSetting, str | EngineError | None]:
        """Return the values that are set for exactly these resources, or None, or the error."""
        by_resource: dict[Resource, list[ThrottleSetting]] = {}
        for setting in settings:
            by_resource.setdefault(setting.resource, []).append(setting)
        values: dict[ThrottleSetting, str | EngineError | None] = {}
        for kind in (ConfigResourceType.TOPIC, ConfigResourceType.BROKER):
            requested = [resource for resource in by_resource if resource.kind is kind]
            if not requested:
                continue
            names = sorted({s.name for resource in requested for s in by_resource[resource]})
            described = describe_configs(self._client, requested, names=names)
            for resource in requested:
                entries = described[resource]
                for setting in by_resource[resource]:
                    if isinstance(entries, EngineError):
                        values[setting] = entries
                        continue
                    own = [e for e in entries if e.name == setting.name]
                    is_own = bool(own) and own[0].source in _OWN_SOURCES
                    values[setting] = own[0].value if is_own else None
        return values

    def set_throttles(
        self, values: Mapping[ThrottleSetting, str | None]
    ) -> dict[ThrottleSetting, EngineError]:
        """Set values, or delete those with None; return the errors of those that failed."""
        failures: dict[ThrottleSetting, EngineError] = {}
        by_resource: dict[Resource, list[ThrottleSetting]] = {}
        for setting in values:
            by_resource.setdefault(setting.resource, []).append(setting)
        for resource, settings in by_resource.items():
            changes = [_config_change(setting.name, values[setting]) for setting in settings]
            failure: EngineError | None
            try:
                failure = alter_configs(self._client, {resource: changes})[resource]
            except EngineError as error:
                failure = error
            if failure is not None:
                failures |= dict.fromkeys(settings, failure)
        return failures

    def measure_response_ms(self) -> int:
        """Return the time of a produced record, or else of the slowest broker's response, in ms.

        The adaptive throttle lowers its rate when this time rises.
        """
        if self._latency is not None:
            return self._latency.measure_ms()
        client = self._client
        call = Call("ListOffsets", messages.ListOffsetsRequest(replica_id=-1, topics=[]), 1)
        brokers = client.brokers_view().brokers
        requested = {id_: (brokers[id_].address, call) for id_ in self._brokers if id_ in brokers}
        began_ms = client.clock.monotonic_ms()
        client.exchange(requested, began_ms + client.timeout_ms)
        return client.clock.monotonic_ms() - began_ms

    def pause(self, duration_ms: int) -> None:
        """Wait for `duration_ms`, between two polls."""
        self._client.connections.pause(duration_ms)


def _config_change(name: str, value: str | None) -> ConfigChange:
    """Return the request's change of a setting; None deletes it, which restores its default."""
    if value is None:
        return ConfigChange(ConfigOp.DELETE, name)
    return ConfigChange(ConfigOp.SET, name, value)
