"""Fetch the records of given partitions, in order, without a group.

One fetch is in flight to each broker at any time, so that an idle broker does not delay a busy
one, and the next fetch is sent before the records of the last one are returned. A partition is
fetched from its leader, or from the replica that the leader names for the consumer's rack
(`ReadReplicas`).

| the response of a partition | then |
|---|---|
| records | its position advances, and it moves to the end of its broker's next request |
| another replica to read from | it is fetched from there |
| OFFSET_OUT_OF_RANGE from a follower | it is fetched from the leader |
| a retriable error, lost brokers | metadata is refreshed; given up after the client's timeout |
| UNKNOWN_TOPIC_OR_PARTITION | the same, but given up after UNKNOWN_TOPIC_ATTEMPTS_MAX |
| a later leader epoch in metadata | its position is validated first (`TruncationChecks`) |
| any other error, damaged records | the partition stops with it, and the others continue |

Each fetch has the leader epoch of the metadata (KIP-320), so that a broker that leads in another
epoch, or follows another leader, refuses it and metadata is refreshed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.broker_connections import CallResult
from engine.client.connection import Call
from engine.client.errors import TimedOut, Unreachable
from engine.client.fetched_records import aborted_of, visible_records
from engine.client.metadata import ClusterView, leader_of
from engine.client.read_replicas import ReadReplicas
from engine.client.truncation import TruncationChecks, leader_epoch_of
from engine.errors import ApiError, EngineError, api_error
from engine.kafka_errors import NONE, OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION, kafka_error
from engine.limits import FETCH_BYTES_MAX, FETCH_PARTITION_BYTES_MAX, UNKNOWN_TOPIC_ATTEMPTS_MAX
from engine.model import TopicPartition, by_topic
from engine.records.record import Record
from engine.records.record_run import RecordRun, records_of
from engine.wire import messages

#: Batches of magic 2 need Fetch 4; topic ids replace names from 13 on.
_LOWEST_VERSION: Final = 4
_HIGHEST_VERSION_BY_NAME: Final = 12
#: The session epoch of a full fetch without a fetch session. Source: KIP-227.
_NO_SESSION: Final = 0
_FULL_FETCH: Final = -1
_NOWHERE: Final = -1
INT64_MAX: Final = (1 << 63) - 1


class FetchOptions(NamedTuple):
    """Options of fetches: isolation, the broker's wait, the sizes of responses."""

    read_committed: bool = False
    max_wait_ms: int = 500
    max_bytes: int = FETCH_BYTES_MAX
    partition_max_bytes: int = FETCH_PARTITION_BYTES_MAX
    #: With a rack, leaders may name a replica in it to fetch from (`client.rack`).
    client_rack: str | None = None
    metadata_max_age_ms: int = 300_000


class ConsumedRecords(NamedTuple):
    """The records of one partition from one fetch, in runs.

    `next_offset` is the offset of the next fetch, `end_offset` (exclusive) how far a consumer
    may read now. With an error, the partition is no longer fetched.
    """

    partition: TopicPartition
    runs: list[RecordRun]
    next_offset: int
    end_offset: int
    error: EngineError | None = None

    @property
    def records(self) -> list[tuple[Record, int]]:
        """Return the records one by one, each with its leader epoch, in offset order."""
        return records_of(self.runs)


class _Fetch(NamedTuple):
    """A Fetch in flight: its partitions and offsets, and the metadata that it was made by."""

    positions: dict[TopicPartition, int]
    view: ClusterView
    topic_names: dict[bytes, str]


class _Token(NamedTuple):
    """The fetcher of a request, and the broker that it was sent to."""

    fetcher: Fetcher
    broker_id: int


class _FailedPartition(NamedTuple):
    """A partition whose last fetches failed and are retried."""

    since_ms: int
    attempts: int
    error: EngineError


class Fetcher:
    """Fetches partitions from offsets on; `poll` returns records that have arrived."""

    def __init__(
        self,
        client: KafkaClient,
        starts: Mapping[TopicPartition, int],
        options: FetchOptions | None = None,
    ) -> None:
        """Create a fetcher of the partitions in `starts`, from these offsets (inclusive) on."""
        self._client = client
        self._options = options or FetchOptions()
        #: Next offset of each partition, in the order in which they are requested.
        self._positions = dict(starts)
        #: Partitions that `pause` stopped. They keep their positions.
        self._paused: set[TopicPartition] = set()
        #: Partitions whose last fetch failed: the last error, and how often and since when they
        #: fail.
        self._troubles: dict[TopicPartition, _FailedPartition] = {}
        #: The Fetch in flight to each broker, by broker id.
        self._in_flight: dict[int, _Fetch] = {}
        #: Follower replicas that leaders have named to read from (KIP-392).
        self._read_replicas = ReadReplicas(client.clock, self._options.metadata_max_age_ms)
        #: Detects positions above the end of a leader's log after a leader change.
        self._truncations = TruncationChecks(client)
        self._view: ClusterView | None = None
        #: Failed attempts, for the back-off before the next metadata request. 0 after a success.
        self._attempt = 0
        #: Topic ids of the last metadata: a changed id means that the topic was recreated.
        self.topic_ids: dict[str, bytes] = {}

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Return the partitions that are still being fetched."""
        return tuple(self._positions)

    @property
    def trouble(self) -> EngineError | None:
        """Return an error for which some partition cannot be fetched now.

        It is None if all can be fetched.
        """
        return next((trouble.error for trouble in self._troubles.values()), None)

    @property
    def is_waiting(self) -> bool:
        """True if a Fetch has no response yet, even of partitions stopped meanwhile."""
        return bool(self._in_flight)

    def prepare(self) -> None:
        """Request metadata if needed, so that the next `poll` begins with fetches.

        Raises its errors.
        """
        self._ensure_view()

    def position(self, partition: TopicPartition) -> int:
        """Return the next offset to fetch; INT64_MAX for a partition that is not fetched."""
        return self._positions.get(partition, INT64_MAX)

    def stop(self, partition: TopicPartition) -> None:
        """Stop fetching a partition; a response in flight for it is dropped."""
        self._give_up(partition)
        self._paused.discard(partition)
        self._truncations.forget(partition)

    def _give_up(self, partition: TopicPartition) -> None:
        """Stop fetching a partition until `seek` or `try_again` gives it a position."""
        self._positions.pop(partition, None)
        self._troubles.pop(partition, None)
        self._read_replicas.forget(partition)

    def pause(self, partition: TopicPartition) -> None:
        """Stop fetching a partition until `resume`; it keeps its position."""
        self._paused.add(partition)

    def resume(self, partition: TopicPartition) -> None:
        """Fetch a partition again from its position on."""
        self._paused.discard(partition)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """Return the partitions that `pause` has stopped."""
        return frozenset(self._paused)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Fetch a partition from an offset on, even if it was stopped."""
        self._positions[partition] = offset
        self._troubles.pop(partition, None)
        self._truncations.forget(partition)
        if self._view is not None and self._view.partition(partition) is None:
            # The metadata was requested without its topic, or before the partition was created.
            self._view = None

    def try_again(self, partition: TopicPartition, position: int) -> None:
        """Fetch a partition again, from `position` on, after an error has stopped it.

        Unlike `seek`, this keeps a pending check for truncation. The partition stays paused if it
        was.
        """
        self._positions[partition] = position

    def poll(self, timeout_ms: int) -> list[ConsumedRecords]:
        """Return fetched records of each partition that has some, after about `timeout_ms` at most.

        Sends the next Fetch to each broker without one. A partition that has failed for good is in
        the result with its error, and is fetched no more.
        """
        fetched = self._send_fetches()
        if not self._in_flight:
            if not fetched and self._paused.issuperset(self._positions):
                self._client.connections.pause(timeout_ms, may_be_interrupted=True)
            return fetched
        for token, result in self._client.wait_any(0 if fetched else timeout_ms):
            # A response to an earlier fetcher of the same client is dropped.
            if isinstance(token, _Token) and token.fetcher is self:
                fetched += self._read_response(self._in_flight.pop(token.broker_id), result)
        if self._view is not None:
            fetched += self._send_fetches()
        return fetched

    # -- asking

    def _send_fetches(self) -> list[ConsumedRecords]:
        """Send a Fetch to each broker that has none in flight.

        Returns the partitions that have failed for good meanwhile, each with its error.
        """
        if not self._positions:
            return []
        busy = {p for fetch in self._in_flight.values() for p in fetch.positions} | self._paused
        try:
            view = self._ensure_view()
            idle = {p: offset for p, offset in self._positions.items() if p not in busy}
            failures = self._truncations.validate(idle, view)
        except (Unreachable, TimedOut) as error:
            return [gone for p in tuple(self._positions) for gone in self._fail(p, error)]
        by_broker: dict[int, list[TopicPartition]] = {}
        given_up = [gone for p, error in failures.items() for gone in self._fail(p, error)]
        for partition in [p for p in idle if p not in failures]:
            leader = leader_of(view, partition)
            if isinstance(leader, int):
                broker_id = self._read_from(partition, leader, view)
                by_broker.setdefault(broker_id, []).append(partition)
            else:
                given_up += self._fail(partition, leader)
        for broker_id, partitions in by_broker.items():
            if broker_id not in self._in_flight:
                self._send_fetch(broker_id, partitions, view)
        return given_up

    def _read_from(self, partition: TopicPartition, leader: int, view: ClusterView) -> int:
        """Return the id of the broker to fetch a partition from: the leader, or a closer follower.

        If the chosen follower is not in the metadata, it is the leader, and metadata is requested
        again.
        """
        broker_id = self._read_replicas.choose(partition, leader, view)
        if broker_id is not None:
            return broker_id
        self._view = None
        self._attempt = max(self._attempt, 1)
        return leader

    def _ensure_view(self) -> ClusterView:
        """Return the metadata; if it was dropped, request it, with a back-off after a failure.

        It is dropped when a partition has failed, since its leader may have moved.
        """
        if self._view is None:
            if self._attempt:
                self._client.back_off(self._attempt - 1)
            self._view = self._client.view({p.topic for p in self._positions})
            self.topic_ids |= {n: topic.topic_id for n, topic in self._view.topics.items()}
        return self._view

    def _send_fetch(
        self, broker_id: int, partitions: list[TopicPartition], view: ClusterView
    ) -> None:
        """Send a broker one Fetch for all its partitions, without waiting for the response.

        Topic names are sent up to version 12; a topic without an id needs such a version.
        """
        positions = {p: self._positions[p] for p in partitions}
        topics = {p.topic: view.topics[p.topic] for p in partitions}
        have_ids = all(topic.has_id for topic in topics.values())
        fetch = _Fetch(positions, view, {topic.topic_id: name for name, topic in topics.items()})

        def message(version: int) -> messages.FetchRequest:
            """Build the Fetch request: from version 13 on, topics are named by id."""
            return self._fetch_request(fetch, by_name=version <= _HIGHEST_VERSION_BY_NAME)

        highest = None if have_ids else _HIGHEST_VERSION_BY_NAME
        call = Call("Fetch", message, _LOWEST_VERSION, highest)
        timeout_ms = self._options.max_wait_ms + self._client.settings.request_timeout_ms
        address = view.brokers[broker_id].address
        self._client.connections.submit(address, call, _Token(self, broker_id), timeout_ms)
        self._in_flight[broker_id] = fetch

    def _fetch_request(self, fetch: _Fetch, *, by_name: bool) -> messages.FetchRequest:
        """Build a full fetch without a session, partitions in the order of their positions."""
        request = messages.FetchRequest
        options = self._options
        topics = []
        for name, partitions in by_topic(fetch.positions).items():
            rows = [
                request.FetchPartition(
                    partition=p.partition,
                    current_leader_epoch=leader_epoch_of(fetch.view, p),
                    fetch_offset=fetch.positions[p],
                    partition_max_bytes=options.partition_max_bytes,
                )
                for p in partitions
            ]
            topic = request.FetchTopic(partitions=rows)
            if by_name:
                topic.topic = name
            else:
                topic.topic_id = fetch.view.topics[name].topic_id
            topics.append(topic)
        return request(
            max_wait_ms=options.max_wait_ms,
            min_bytes=1,
            max_bytes=options.max_bytes,
            isolation_level=int(options.read_committed),
            session_id=_NO_SESSION,
            session_epoch=_FULL_FETCH,
            topics=topics,
            rack_id=options.client_rack or "",
        )

    # -- taking

    def _read_response(self, fetch: _Fetch, result: CallResult) -> list[ConsumedRecords]:
        """Return the records of a Fetch response.

        If it has an error, returns the partitions that fail for good. Partitions that were paused,
        stopped or sought since the request are left out.
        """
        if isinstance(result, EngineError):
            return self._fail_all(fetch, result)
        response: messages.FetchResponse = result.message
        if response.error_code != NONE:
            return self._fail_all(fetch, api_error(response.error_code))
        fetched = []
        for topic in response.responses:
            by_name = result.version <= _HIGHEST_VERSION_BY_NAME
            name = topic.topic if by_name else fetch.topic_names.get(topic.topic_id, "")
            for row in topic.partitions:
                partition = TopicPartition(name, row.partition_index)
                # After a seek, records fetched from the earlier position are dropped.
                position = self._positions.get(partition)
                is_wanted = fetch.positions.get(partition, _NOWHERE) == position
                if is_wanted and partition not in self._paused:
                    fetched += self._read_partition(partition, row, fetch.view)
        return fetched

    def _read_partition(
        self,
        partition: TopicPartition,
        row: messages.FetchResponse.PartitionData,
        view: ClusterView,
    ) -> list[ConsumedRecords]:
        """Advance a partition's position by the fetched records, and return the records.

        `view` is the metadata of the request. The records end at the LSO for read_committed, else
        at the high watermark. Damaged bytes stop the partition after the records before them.
        """
        if row.error_code != NONE:
            was_elsewhere = self._read_replicas.forget(partition)
            if row.error_code == OFFSET_OUT_OF_RANGE and was_elsewhere:
                return []
            return self._fail(partition, api_error(row.error_code))
        self._troubles.pop(partition, None)
        if not self._read_replicas.note(partition, row.preferred_read_replica, view):
            self._attempt = 0
        is_committed = self._options.read_committed
        position = self._positions[partition]
        seen = visible_records(
            row.records or b"", position, aborted_of(row) if is_committed else None
        )
        if seen.next_offset > position:
            # Move it to the end, so that each partition gets its turn when a response is full.
            del self._positions[partition]
            self._positions[partition] = seen.next_offset
            self._truncations.read(partition, seen.leader_epoch, view)
        end_offset = row.last_stable_offset if is_committed else row.high_watermark
        consumed = ConsumedRecords(partition, seen.runs, seen.next_offset, end_offset, seen.damage)
        if seen.damage is not None:
            self._give_up(partition)
        return [consumed]

    # -- failing

    def _fail_all(self, fetch: _Fetch, error: EngineError) -> list[ConsumedRecords]:
        """Note a failed fetch for each partition of the request.

        Returns those that have failed for good.
        """
        given_up = []
        for partition in fetch.positions:
            if partition in self._positions:
                given_up += self._fail(partition, error)
        return given_up

    def _fail(self, partition: TopicPartition, error: EngineError) -> list[ConsumedRecords]:
        """Note a failed fetch of a partition; return the partition with its error if that is final.

        An empty list means that it is fetched again, with fresh metadata after a back-off.
        """
        self._read_replicas.forget(partition)
        now_ms = self._client.clock.monotonic_ms()
        since_ms, attempts, _ = self._troubles.get(partition, _FailedPartition(now_ms, 0, error))
        if self._may_recover(error, now_ms - since_ms, attempts + 1):
            self._troubles[partition] = _FailedPartition(since_ms, attempts + 1, error)
            self._view = None
            self._attempt = max(self._attempt, attempts + 1)
            return []
        position = self._positions[partition]
        self._give_up(partition)
        return [ConsumedRecords(partition, [], position, position, error)]

    def _may_recover(self, error: EngineError, elapsed_ms: int, attempts: int) -> bool:
        """True if a failed partition is fetched again.

        The error is retriable, and lasts not too long. `elapsed_ms` since its first failure is
        bounded by the client's timeout; `attempts` bounds UNKNOWN_TOPIC_OR_PARTITION.
        """
        if isinstance(error, ApiError):
            if error.code == UNKNOWN_TOPIC_OR_PARTITION:
                return attempts < UNKNOWN_TOPIC_ATTEMPTS_MAX
            if not kafka_error(error.code).is_retriable:
                return False
        elif not isinstance(error, Unreachable | TimedOut):
            return False
        return elapsed_ms < self._client.timeout_ms
