"""Consumers of the simulated cluster, which read from leaders.

```
fetch from the leader ──> check the records against the committed ones ──> next offset
                     └──> an error, or a long time with one leader: request the leader again
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from engine.client.connection import Call, Response
from engine.client.settings import Address
from engine.host.promise import Promise
from engine.kafka_errors import NONE, OFFSET_OUT_OF_RANGE
from engine.model import TopicPartition
from engine.sim.bit_rot import whole_part
from engine.sim.clients import BACKOFF_MS, ClientEvents, ClusterRequests
from engine.wire import messages

_FETCH_WAIT_MS = 500
#: How long a consumer fetches from a leader before it requests the leader again.
_METADATA_AGE_MS = 10_000
#: The last Fetch version that has topic names instead of ids.
_BY_NAME_HIGHEST = 12


#: Called with a partition, the batches read, the fetch offset, and the aborted transactions in them
#: as producer ids with first offsets.
OnCommitted = Callable[[TopicPartition, bytes, int, Sequence[tuple[int, int]]], None]


class SimulatedConsumer:
    """Reads every partition from its leader, starting at offset 0."""

    def __init__(
        self,
        requests: ClusterRequests,
        partitions: Sequence[TopicPartition],
        random: Random,
        events: ClientEvents,
        *,
        pause_ms: int,
        on_committed: OnCommitted | None = None,
    ) -> None:
        """Create a consumer.

        With `on_committed` it reads up to the LSO and passes the batches there too.
        """
        self.name = requests.name
        self._on_committed = on_committed
        #: Next offset to fetch, by partition.
        self.positions = dict.fromkeys(partitions, 0)
        self._requests = requests
        self._random = random
        self._events = events
        self._pause_ms = pause_ms
        #: Time when each partition's leader was last requested.
        self._found_ms: dict[TopicPartition, int] = {}

    def start(self) -> None:
        """Request all leaders and start to fetch."""
        for partition in self.positions:
            self._find_leader(partition)

    def add(self, partition: TopicPartition) -> None:
        """Start to read one more partition, from offset 0."""
        if partition not in self.positions:
            self.positions[partition] = 0
            self._find_leader(partition)

    def _find_leader(self, partition: TopicPartition) -> None:
        """Request the leader of a partition, and fetch after the back-off."""
        self._found_ms[partition] = self._requests.timers.clock.monotonic_ms()
        self._requests.find_leaders(
            [partition.topic],
            lambda: self._requests.after(BACKOFF_MS, lambda: self._fetch(partition)),
        )

    def _fetch(self, partition: TopicPartition) -> None:
        """Fetch a partition at its position from the leader; up to the LSO if read_committed."""
        leader = self._requests.leaders.get(partition)
        if leader is None:
            self._find_leader(partition)
            return
        request = messages.FetchRequest
        row = request.FetchPartition(
            partition=partition.partition,
            current_leader_epoch=-1,
            fetch_offset=self.positions[partition],
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=1 << 20,
        )
        message = request(
            replica_id=-1,
            max_wait_ms=_FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=int(self._on_committed is not None),
            session_id=0,
            session_epoch=-1,
            topics=[request.FetchTopic(topic=partition.topic, partitions=[row])],
        )
        response = self._requests.send(leader, Call("Fetch", message, highest=_BY_NAME_HIGHEST))
        response.watch(lambda: self._on_fetch_response(partition, leader, response))

    def _on_fetch_response(
        self, partition: TopicPartition, leader: Address, promise: Promise[Response]
    ) -> None:
        """Check a Fetch response and advance the position, or request the leader again.

        OFFSET_OUT_OF_RANGE violates R14 unless records were deleted or lost by a known fault, or a
        follower responded.
        """
        if promise.error is not None:
            self._find_leader(partition)
            return
        response = promise.result().message
        if response.error_code != NONE or not response.responses:
            self._find_leader(partition)
            return
        (topic,) = response.responses
        (row,) = topic.partitions
        if row.error_code == NONE:
            position = self.positions[partition]
            content, damaged_offset = whole_part(bytes(row.records or b""))
            if self._on_committed is not None:
                aborted = [(a.producer_id, a.first_offset) for a in row.aborted_transactions or ()]
                self._on_committed(partition, content, position, aborted)
            next_position = self._events.read(self.name, partition, position, content)
            if next_position is not None:
                self.positions[partition] = max(position, next_position)
            if damaged_offset is not None:
                self._events.on_damaged_batch(self.name, leader.host, partition, damaged_offset)
                self._find_leader(partition)
                return
            now_ms = self._requests.timers.clock.monotonic_ms()
            if now_ms - self._found_ms[partition] > _METADATA_AGE_MS:
                # A broker that never received the order to stop its replica still acts as its
                # leader.
                self._find_leader(partition)
                return
            pause_ms = self._random.randrange(1, 2 * self._pause_ms)
            self._requests.after(pause_ms, lambda: self._fetch(partition))
            return
        start = self._events.start_of(partition)
        if row.error_code == OFFSET_OUT_OF_RANGE and self.positions[partition] < start:
            self.positions[partition] = start
        elif (
            row.error_code == OFFSET_OUT_OF_RANGE
            and (found := self._events.resume_at(partition, self.positions[partition])) is not None
        ):
            self.positions[partition] = found
        # A follower serves consumers too, and its log may be shorter.
        elif row.error_code == OFFSET_OUT_OF_RANGE and self._events.leads(leader.host, partition):
            position = self.positions[partition]
            self._events.broke(
                "R14", f"{self.name} has read {partition} to {position}: out of range", partition
            )
        self._find_leader(partition)
