"""A replica fetcher: runs fetch cycles with one leader, one at a time, on the loop.

```
        ┌── nothing due: until the first back-off ends ──┐
_next ──┼── out of range: leader's end, leader's start ──┼─> a later turn: _next
        ├── epoch after a gap: end of the epoch before ──┤
        └── Fetch, the leader waits for records ─────────┘
              └── no leader, connection lost: back-off of all requested, then a new connection
```

A response is processed on a separate turn, since a local leader responds within its own work. A
fetch at a local leader may be parked, and sends records partition by partition (`ParkedFetch`).
With a remote leader the cycle repeats in the connection while responses are on the fast path
(`FastFetchCycle`).

Source: PART-9; Kafka's AbstractFetcherThread.doWork.
Differs: without a due partition, and without one to forget, the fetcher waits until one is due;
Kafka's thread sleeps and polls.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

from engine.errors import EngineError
from engine.host.promise import Promise
from engine.kafka_errors import NONE, kafka_error
from engine.model import TopicPartition
from engine.replication.follower_encoders import LocalEncoder
from engine.replication.following.fetch_state import PartitionResponse
from engine.replication.following.followed_partitions import (
    EpochRequest,
    FollowedPartitions,
    LeaderEnds,
)
from engine.replication.following.leader_end_point import (
    FetcherPorts,
    LeaderEndPoint,
    offsets_of,
    parse_epoch_ends,
)
from engine.replication.following.local_fetch import LocalFetched
from engine.replication.partition_types import FetchSpec
from engine.wire import messages

T = TypeVar("T")

_log = logging.getLogger("kafka.server.ReplicaFetcherThread")


class ReplicaFetcher:
    """Fetches its partitions from one leader until it is closed (PART-9)."""

    def __init__(
        self, leader_id: int, followed: FollowedPartitions, ports: FetcherPorts, number: int = 0
    ) -> None:
        """Create an idle fetcher; `number` is its number among the fetchers of the leader."""
        self.leader_id = leader_id
        self.followed = followed
        self._timers = ports.timers
        #: Sends the requests, and keeps the fetch session.
        self._leader = LeaderEndPoint(leader_id, followed, ports, number)
        #: Whether a fetch cycle runs or is scheduled.
        self._is_busy = False
        self._is_closed = False
        #: Cancels the timer of the next cycle during a back-off. None without a timer.
        self._cancel: Callable[[], None] | None = None
        #: The last failure that was logged; the same reason is not logged again. None after a
        #: success.
        self._logged_reason: str | None = None

    @property
    def session_place(self) -> tuple[int, int]:
        """Return the id of the fetch session and its epoch; 0, 0 without a session."""
        return self._leader.session.place

    def is_in_session(self, topic_partition: TopicPartition) -> bool:
        """True if the leader's fetch session has the partition."""
        return self._leader.session.holds(topic_partition)

    def add(self, topic_partition: TopicPartition, leader_epoch: int) -> None:
        """Follow a partition from the next fetch cycle on."""
        self.followed.follow(topic_partition, leader_epoch)
        self._schedule_cycle()

    def close(self) -> None:
        """Stop fetching; the response of a request in flight is dropped."""
        self._is_closed = True
        self._cancel_back_off()
        self._leader.disconnect()

    def _schedule_cycle(self) -> None:
        """Schedule the next fetch cycle for a later turn, unless one runs or is scheduled."""
        if not self._is_busy:
            self._is_busy = True
            self._cancel_back_off()
            self._timers.call_soon(self._start_cycle)

    def _cancel_back_off(self) -> None:
        """Cancel the timer of the next cycle, if one is set."""
        cancel, self._cancel = self._cancel, None
        if cancel is not None:
            cancel()

    def _start_cycle(self) -> None:
        """Send the next request of the fetcher to its leader.

        It asks for log ends where a log is out of range, then for epoch ends at gaps, else it
        fetches.
        """
        if self._is_closed:
            return
        followed, leader = self.followed, self._leader
        requested_ends, requested_epoch_ends = (
            followed.requested_ends(),
            followed.requested_epoch_ends(),
        )
        specs = {} if requested_ends or requested_epoch_ends else followed.start_cycle()
        requested = requested_ends or requested_epoch_ends or specs
        if not requested and not leader.session.holds_partitions:
            self._await_back_off()
        elif not leader.ensure_connected():
            self._back_off(requested, "it is not known how to reach it")
        elif requested_ends:
            end = leader.log_ends(requested_ends)
            self._watch_response(end, lambda: self._on_end_offsets(end, requested_ends))
        elif requested_epoch_ends:
            epochs = leader.epoch_ends(requested_epoch_ends)
            self._watch_response(epochs, lambda: self._on_epoch_ends(epochs, requested_epoch_ends))
        else:
            response = leader.fetch(specs, self._apply_local_response)
            self._watch_response(response, lambda: self._on_fetched(response, specs))

    def _await_back_off(self) -> None:
        """Become idle until the first back-off is over; without a back-off, until `add`."""
        self._is_busy = False
        due_ms = self.followed.next_due_ms()
        if due_ms is not None:
            self._cancel = self._timers.call_at(due_ms, self._schedule_cycle)

    def _watch_response(self, promise: Promise[T], action: Callable[[], None]) -> None:
        """Run `action` in a separate turn after the promise is kept.

        Does nothing if the fetcher is closed by then.
        """

        def on_its_turn() -> None:
            """Run the action, unless the fetcher is closed."""
            if not self._is_closed:
                action()

        promise.watch(lambda: self._timers.call_soon(on_its_turn))

    # Answers

    def _apply_local_response(
        self,
        leader: LocalEncoder,
        topic_partition: TopicPartition,
        spec: FetchSpec,
        answer: PartitionResponse,
    ) -> None:
        """Append records from a local leader's parked fetch, in a separate turn."""

        def on_its_turn() -> None:
            """Append the records, then pass the partition's next fetch, or None, to the leader."""
            # A closed fetcher, or one of a restarted leader, has no fetch at the leader any more.
            if self._is_closed or not self._leader.is_same:
                return
            followed, following = self.followed, None
            goes_on = followed.append_given(topic_partition, answer, spec)
            if goes_on and not leader.is_over:
                following = followed.request_on(topic_partition)
            leader.on_appended(topic_partition, following)

        self._timers.call_soon(on_its_turn)

    def _on_fetched(
        self,
        promise: Promise[messages.FetchResponse | LocalFetched | None],
        specs: Mapping[TopicPartition, FetchSpec],
    ) -> None:
        """Apply the response of a fetch and start the next fetch cycle."""
        if promise.error is not None:
            self._lost(specs, promise.error)
            return
        self._allow_failure_log()
        response = promise.result()
        if response is None:
            # The fast fetch cycles have appended all records.
            self._start_cycle()
            return
        session = self._leader.session
        if isinstance(response, LocalFetched):
            answers = session.process_local_response(response)
        else:
            if response.error_code != NONE:
                _log.info(
                    "the fetch session with broker %d begins again: %s",
                    self.leader_id,
                    kafka_error(response.error_code).name,
                )
                if session.is_first:
                    self.followed.unreached(specs)
            answers = session.process_response(response)
        if not self.followed.apply_responses(answers):
            # A session sends each watermark once: only a new session repeats one that was not
            # applied.
            session.reset()
        self._start_cycle()

    def _on_end_offsets(
        self,
        promise: Promise[messages.ListOffsetsResponse],
        requested: Mapping[TopicPartition, int],
    ) -> None:
        """Keep the leader's log end offsets of a response, and request its log start offsets."""
        if promise.error is not None:
            self._lost(requested, promise.error)
            return
        ends = {
            key: LeaderEnds(error_code, end_offset=offset)
            for key, error_code, offset in offsets_of(promise.result())
        }
        start = self._leader.log_starts(requested)
        self._watch_response(start, lambda: self._on_log_starts(start, requested, ends))

    def _on_log_starts(
        self,
        promise: Promise[messages.ListOffsetsResponse],
        requested: Mapping[TopicPartition, int],
        ends: dict[TopicPartition, LeaderEnds],
    ) -> None:
        """Apply the leader's log start and log end offsets, and start the next fetch cycle."""
        if promise.error is not None:
            self._lost(requested, promise.error)
            return
        self._allow_failure_log()
        for key, error_code, offset in offsets_of(promise.result()):
            end = ends.get(key)
            if end is not None:
                ends[key] = end._replace(
                    error_code=end.error_code or error_code, start_offset=offset
                )
        self.followed.apply_leader_ends(requested, ends)
        self._start_cycle()

    def _on_epoch_ends(
        self,
        promise: Promise[messages.OffsetForLeaderEpochResponse],
        requested: Mapping[TopicPartition, EpochRequest],
    ) -> None:
        """Apply the leader's ends of epochs, which close gaps, and start the next fetch cycle."""
        if promise.error is not None:
            self._lost(requested, promise.error)
            return
        self._allow_failure_log()
        self.followed.apply_epoch_ends(requested, parse_epoch_ends(promise.result()))
        self._start_cycle()

    # A leader that is not reached

    def _allow_failure_log(self) -> None:
        """Allow the next failure to be logged: the leader has responded."""
        self._logged_reason = None

    def _lost(self, requested: Mapping[TopicPartition, object], error: EngineError) -> None:
        """Close the channel to the leader, and set a back-off for the requested partitions."""
        self._leader.disconnect()
        self._back_off(requested, str(error))

    def _back_off(self, requested: Mapping[TopicPartition, object], reason: str) -> None:
        """Set a back-off for the partitions, log a new reason, and start the next cycle."""
        if reason != self._logged_reason:
            self._logged_reason = reason
            _log.warning("broker %d is not fetched from: %s", self.leader_id, reason)
        self.followed.unreached(requested)
        self._start_cycle()
