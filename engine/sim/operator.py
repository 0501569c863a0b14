"""An operator's requests during the faults: reassignments, elections, topics, configurations.

```
order ──> find the controller ──> send the request ──> trace its outcome
```

The broker, topic or partition of an order depends only on the state of the cluster at that time and
on the number drawn for its fault, so that earlier faults can be left out. A failed order is not
repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import TypeAlias

from engine.client.connection import Call
from engine.client.settings import Address
from engine.kafka_errors import NONE, kafka_error
from engine.model import TopicPartition
from engine.naming import INTERNAL_TOPICS
from engine.sim.clients import ClusterRequests
from engine.sim.fault_kinds import FaultKind
from engine.sim.invariants import Invariants
from engine.sim.plan import Fault
from engine.sim.trace import Trace
from engine.wire import messages
from engine.wire.structs import Message

_TIMEOUT_MS = 5_000
_AGAIN_MS = 500
_PARTITIONS_MAX = 4
#: How many topic names are created and deleted in addition to the plan's topics.
_PASSING_TOPICS = 3
_TOPIC, _BROKER = 2, 4
_SET, _DELETE = 0, 1
_RATES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
_THROTTLED_REPLICAS = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
_PREFERRED, _UNCLEAN = 0, 1
#: Clients whose quotas are set (None: the default client), and the rates in bytes per second.
_LIMITED_CLIENTS = (None, None, "p0", "p1")
_PRODUCED, _CONSUMED = "producer_byte_rate", "consumer_byte_rate"
_BYTE_RATES = (150.0, 500.0, 2_000.0)


#: A setting's key, the operation, and the value if it is set.
Change: TypeAlias = tuple[str, int, str | None]


class Operator:
    """A client that sends an operator's requests."""

    def __init__(
        self,
        requests: ClusterRequests,
        invariants: Invariants,
        trace: Trace,
        *,
        brokers: Mapping[int, Address],
        log_dirs: tuple[str, ...],
        min_isr: int,
    ) -> None:
        """Create it.

        `brokers` are the addresses by broker id, `log_dirs` the directories of each.
        """
        self._requests = requests
        self._invariants = invariants
        self._topics = invariants.topics
        self._trace = trace
        self._brokers = brokers
        self._log_dirs = log_dirs
        self._min_isr = min_isr
        #: Whether replication was ever throttled: then the throttles are removed at the end.
        self._has_throttled = False
        #: Whether replication throttles, and client quotas, were removed at the end: after a later
        #: response they are removed again.
        self._is_unthrottled = self._is_unlimited = False
        #: Clients that ever got a quota; None stands for the default client.
        self._limited: set[str | None] = set()
        self._orders: Mapping[FaultKind, Callable[[Random], None]] = {
            FaultKind.ELECT_PREFERRED: lambda _: self._elect(_PREFERRED, None),
            FaultKind.ELECT_UNCLEAN: lambda _: self._elect(_UNCLEAN, None),
            FaultKind.HAND_OVER: self._hand_over,
            FaultKind.MOVE: self._move,
            FaultKind.CANCEL_MOVE: self._cancel,
            FaultKind.CREATE_TOPIC: self._create_one,
            FaultKind.DELETE_TOPIC: self._delete_one,
            FaultKind.GROW_TOPIC: self._grow_one,
            FaultKind.CONFIGURE_TOPIC: self._configure_one,
            FaultKind.DELETE_RECORDS: self._delete_records,
            FaultKind.MOVE_DIRECTORY: self._move_directory,
            FaultKind.THROTTLE: self._throttle,
            FaultKind.LIMIT_CLIENTS: self._limit_clients,
        }

    # Requests to the cluster

    def _send_request(
        self, name: str, request: Message, done: Callable[[Message], None] | None = None
    ) -> None:
        """Send a request to the controller, which is looked up first.

        `done` is called with the response, or with None if there was none.
        """
        requests = self._requests

        def send() -> None:
            """Send the request to the controller; call `take` with None after an error."""
            if requests.controller is None:
                take(None)
                return
            response = requests.send(requests.controller, Call(name, request))
            response.watch(
                lambda: take(None if response.error is not None else response.result().message)
            )

        def take(message: Message) -> None:
            """Trace the outcome, and call `done` with the response, None if there was none."""
            self._trace.add("operator", f"{name}: {_outcome(message)}")
            if done is not None:
                done(message)

        requests.find_leaders([], send)

    def create(self, topics: Mapping[str, tuple[int, int]]) -> None:
        """Create topics, given their partition counts and replication factors.

        Retry until they exist.
        """
        row = messages.CreateTopicsRequest.CreatableTopic
        rows = [
            row(name=name, num_partitions=partitions, replication_factor=replicas)
            for name, (partitions, replicas) in topics.items()
        ]

        def done(message: Message) -> None:
            """Create the topics again later if one failed."""
            if message is None or any(topic.error_code != NONE for topic in message.topics):
                self._requests.after(_AGAIN_MS, lambda: self.create(topics))

        if not all(name in self._topics.by_name for name in topics):
            request = messages.CreateTopicsRequest(topics=rows, timeout_ms=_TIMEOUT_MS)
            self._send_request("CreateTopics", request, done)

    # Orders

    def perform(self, fault: Fault) -> None:
        """Send the requests of the kind that `fault` names, with choices drawn from its number."""
        self._orders[fault.kind](Random(f"{fault.other}/operator"))

    def _draw_partition(self, draw: Random) -> TopicPartition | None:
        """Draw a partition of a topic that is not to be deleted; None if there is none."""
        keys = sorted(key for key in self._topics.rows if not self._topics.is_doomed(key.topic))
        return draw.choice(keys) if keys else None

    def _elect(self, kind: int, partition: TopicPartition | None) -> None:
        """Request an election for one partition, or for all if it is None.

        `kind` is 0 for a preferred election, 1 for an unclean one.
        """
        row = messages.ElectLeadersRequest.TopicPartitions
        rows = None
        if partition is not None:
            rows = [row(topic=partition.topic, partitions=[partition.partition])]
        request = messages.ElectLeadersRequest(
            election_type=kind, topic_partitions=rows, timeout_ms=_TIMEOUT_MS
        )
        self._send_request("ElectLeaders", request)

    def _reassign(
        self,
        partition: TopicPartition,
        replicas: list[int] | None,
        done: Callable[[Message], None] | None = None,
    ) -> None:
        """Request a reassignment to `replicas`; None cancels the one in progress."""
        what = "its replicas of before" if replicas is None else replicas
        self._trace.add("operator", f"{partition} is to have {what}")
        request = messages.AlterPartitionReassignmentsRequest
        row = request.ReassignablePartition(partition_index=partition.partition, replicas=replicas)
        topic = request.ReassignableTopic(name=partition.topic, partitions=[row])
        self._send_request(
            "AlterPartitionReassignments",
            request(timeout_ms=_TIMEOUT_MS, topics=[topic]),
            done,
        )

    def _hand_over(self, draw: Random) -> None:
        """Make another ISR member the preferred leader by a reassignment, then elect it."""
        partition = self._draw_partition(draw)
        state = None if partition is None else self._invariants.history(partition).state
        if partition is None or state is None:
            return
        row = self._topics.rows[partition]
        others = [broker_id for broker_id in state.isr if broker_id != state.leader]
        if not others or row.adding_replicas or row.removing_replicas:
            return
        first = draw.choice(others)
        replicas = [first, *(broker_id for broker_id in row.replicas if broker_id != first)]
        self._reassign(partition, replicas, lambda _: self._elect(_PREFERRED, partition))

    def _move(self, draw: Random) -> None:
        """Reassign a partition to random brokers: 2 or 3, and at least min.insync.replicas."""
        partition = self._draw_partition(draw)
        if partition is not None:
            least = max(2, self._min_isr)
            count = draw.randint(least, min(len(self._brokers), 3))
            self._reassign(partition, draw.sample(tuple(self._brokers), count))

    def _cancel(self, draw: Random) -> None:
        """Cancel a reassignment in progress; without one, send a cancellation for any partition."""
        moving = sorted(
            key
            for key, row in self._topics.rows.items()
            if row.adding_replicas or row.removing_replicas
        )
        partition = draw.choice(moving) if moving else self._draw_partition(draw)
        if partition is not None:
            self._reassign(partition, None)

    def _create_one(self, draw: Random) -> None:
        """Create a topic with a random name, which may exist already."""
        name = f"x{draw.randrange(_PASSING_TOPICS)}"
        request = messages.CreateTopicsRequest
        row = request.CreatableTopic(
            name=name,
            num_partitions=draw.choice((1, 2)),
            replication_factor=draw.choice((2, 3)),
        )
        self._send_request("CreateTopics", request(topics=[row], timeout_ms=_TIMEOUT_MS))

    def _delete_one(self, draw: Random) -> None:
        """Delete one of the topics named `x…` whose deletion was not requested yet."""
        names = sorted(
            name
            for name in self._topics.by_name
            if name.startswith("x") and not self._topics.is_doomed(name)
        )
        if names:
            name = draw.choice(names)
            row = messages.DeleteTopicsRequest.DeleteTopicState(name=name)
            request = messages.DeleteTopicsRequest(topics=[row], timeout_ms=_TIMEOUT_MS)
            self._send_request("DeleteTopics", request)

    def _alterable_topics(self) -> list[str]:
        """Return the topics that may be altered: no internal topics, and none to be deleted."""
        return sorted(
            name
            for name in self._topics.by_name
            if not self._topics.is_doomed(name) and name not in INTERNAL_TOPICS
        )

    def _grow_one(self, draw: Random) -> None:
        """Add a partition to a random topic, up to _PARTITIONS_MAX."""
        names = self._alterable_topics()
        if not names:
            return
        name = draw.choice(names)
        count = len(self._topics.by_name[name].partitions) + 1
        if count <= _PARTITIONS_MAX:
            self._add_partitions(name, count)

    def _add_partitions(
        self, name: str, count: int, done: Callable[[Message], None] | None = None
    ) -> None:
        """Send CreatePartitions; `count` is the new total."""
        request = messages.CreatePartitionsRequest
        row = request.CreatePartitionsTopic(name=name, count=count, assignments=None)
        self._send_request("CreatePartitions", request(topics=[row], timeout_ms=_TIMEOUT_MS), done)

    def grow_again(self, name: str, count: int) -> None:
        """Request `count` partitions of a topic until it has them or is to be deleted."""
        topic = self._topics.by_name.get(name)
        if topic is None or self._topics.is_doomed(name) or len(topic.partitions) >= count:
            return
        again = partial(self.grow_again, name, count)
        self._add_partitions(name, count, lambda _: self._requests.after(_AGAIN_MS, again))

    def _configure_one(self, draw: Random) -> None:
        """Set one random topic config by IncrementalAlterConfigs."""
        names = self._alterable_topics()
        if not names:
            return
        key, values = draw.choice(
            (
                ("min.insync.replicas", ("1", "2")),
                ("segment.bytes", ("1024", "4096", "1048576")),
                # Never less often: in some plans only synced records may be committed.
                ("flush.messages", ("1",)),
                ("retention.bytes", ("2048", "-1")),
                ("retention.ms", ("3000", "-1")),
                ("compression.type", ("gzip", "uncompressed", "producer")),
            )
        )
        change = (key, _SET, draw.choice(values))
        self._alter_configs([(_TOPIC, draw.choice(names), [change])])

    def _delete_records(self, draw: Random) -> None:
        """Send DeleteRecords for half or all of a partition's committed records."""
        partition = self._draw_partition(draw)
        if partition is None:
            return
        history = self._invariants.history(partition)
        requests, end = self._requests, history.committed_end
        history.begins_inside_batches = True
        offset = end // draw.choice((1, 2))
        self._invariants.deletions.record_request(partition, offset)
        request = messages.DeleteRecordsRequest
        row = request.DeleteRecordsPartition(partition_index=partition.partition, offset=offset)
        topic = request.DeleteRecordsTopic(name=partition.topic, partitions=[row])
        message = request(topics=[topic], timeout_ms=_TIMEOUT_MS)

        def send() -> None:
            """Send DeleteRecords to the leader, if there is one, and trace the outcome."""
            leader = requests.leaders.get(partition)
            if leader is None:
                return
            response = requests.send(leader, Call("DeleteRecords", message))
            response.watch(
                lambda: self._trace.add(
                    "operator",
                    f"DeleteRecords {partition} below {offset}: "
                    + _outcome(None if response.error is not None else response.result().message),
                )
            )

        requests.find_leaders([partition.topic], send)

    def _move_directory(self, draw: Random) -> None:
        """Move one replica's log to a random log directory, which may be its present one."""
        partition = self._draw_partition(draw)
        if partition is None:
            return
        broker_id = draw.choice(self._topics.rows[partition].replicas)
        path = draw.choice(self._log_dirs)
        request = messages.AlterReplicaLogDirsRequest
        topic = request.AlterReplicaLogDirTopic(
            name=partition.topic, partitions=[partition.partition]
        )
        directory = request.AlterReplicaLogDir(path=path, topics=[topic])
        response = self._requests.send(
            self._brokers[broker_id], Call("AlterReplicaLogDirs", request(dirs=[directory]))
        )
        response.watch(
            lambda: self._trace.add(
                "operator",
                f"AlterReplicaLogDirs of b{broker_id}, {partition} to {path}: "
                + _outcome(None if response.error is not None else response.result().message),
            )
        )

    def _throttle(self, draw: Random) -> None:
        """Throttle replication and moves between directories to a random rate."""
        self._has_throttled = True
        rate = draw.choice(("1", "200", "2000", "20000"))
        replicas = [(key, _SET, "*") for key in _THROTTLED_REPLICAS]
        topics = [(_TOPIC, name, replicas) for name in sorted(self._topics.by_name)]
        rates = [(key, _SET, rate) for key in _RATES]
        self._alter_configs([*topics, (_BROKER, "", rates)], self._on_throttled)

    def _on_throttled(self, _message: Message) -> None:
        """Remove the throttles again if they were set by a response after `unthrottle`."""
        # A request from before the removal may be applied after it.
        if self._is_unthrottled:
            self.unthrottle(is_repeated=True)

    def unthrottle(self, *, is_repeated: bool) -> None:
        """Remove the replication throttles; with `is_repeated` retry until that succeeds."""
        self._is_unthrottled = self._is_unthrottled or is_repeated
        if not self._has_throttled:
            return

        def done(message: Message) -> None:
            """Remove the throttles again later if the request has failed."""
            if is_repeated and (message is None or any(_codes(message))):
                self._requests.after(_AGAIN_MS, lambda: self.unthrottle(is_repeated=True))

        rates = [(key, _DELETE, None) for key in _RATES]
        self._alter_configs([(_BROKER, "", rates)], done)

    def _limit_clients(self, draw: Random) -> None:
        """Set random quotas for a client, or for the default client."""
        client = draw.choice(_LIMITED_CLIENTS)
        self._limited.add(client)
        keys = draw.choice(((_PRODUCED,), (_PRODUCED, _CONSUMED), (_CONSUMED,)))

        def done(_message: Message) -> None:
            """Remove the quotas again if they were set after their removal."""
            # A request from before the removal may be applied after it.
            if self._is_unlimited:
                self.unlimit_clients(is_repeated=True)

        self._alter_quotas(client, dict.fromkeys(keys, draw.choice(_BYTE_RATES)), done)

    def unlimit_clients(self, *, is_repeated: bool) -> None:
        """Remove all client quotas; with `is_repeated` retry until that succeeds."""
        self._is_unlimited = self._is_unlimited or is_repeated

        def done(message: Message, client: str | None) -> None:
            """Remove the client's quotas again later if the request has failed."""
            if is_repeated and (message is None or any(_codes(message))):
                self._requests.after(_AGAIN_MS, lambda: remove(client))

        def remove(client: str | None) -> None:
            """Request the removal of one client's quotas."""
            self._alter_quotas(client, {}, lambda message: done(message, client))

        for client in sorted(self._limited, key=str):
            remove(client)

    def _alter_quotas(
        self,
        client: str | None,
        rates: Mapping[str, float],
        done: Callable[[Message], None] | None = None,
    ) -> None:
        """Set the quotas of a client (None: the default client); remove those not in `rates`."""
        request = messages.AlterClientQuotasRequest
        entry = request.EntryData(
            entity=[request.EntityData(entity_type="client-id", entity_name=client)],
            ops=[
                request.OpData(key=key, value=rates.get(key, 0.0), remove=key not in rates)
                for key in (_PRODUCED, _CONSUMED)
            ],
        )
        self._send_request("AlterClientQuotas", request(entries=[entry], validate_only=False), done)

    def _alter_configs(
        self,
        resources: Iterable[tuple[int, str, Sequence[Change]]],
        done: Callable[[Message], None] | None = None,
    ) -> None:
        """Send IncrementalAlterConfigs for resources, each given as type, name and changes.

        `done` is called with the response, or with None if there was none.
        """
        request = messages.IncrementalAlterConfigsRequest
        config = request.AlterableConfig
        rows = [
            request.AlterConfigsResource(
                resource_type=resource_type,
                resource_name=name,
                configs=[
                    config(name=key, config_operation=operation, value=value)
                    for key, operation, value in changes
                ],
            )
            for resource_type, name, changes in resources
        ]
        self._send_request("IncrementalAlterConfigs", request(resources=rows), done)


def _outcome(message: Message) -> str:
    """Return a response as text: `done`, or the names of its errors."""
    if message is None:
        return "no response"
    names = sorted({kafka_error(code).name for code in _codes(message) if code != NONE})
    return ", ".join(names) or "done"


def _codes(message: Message) -> list[int]:
    """Return every error code of a response, at any depth."""
    codes = []
    for name in message.__slots__:
        value = getattr(message, name)
        if name == "error_code":
            codes.append(value)
        elif isinstance(value, list):
            for element in value:
                if hasattr(element, "__slots__"):
                    codes += _codes(element)
    return codes
