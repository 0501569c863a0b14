"""One replica fetcher: fetch cycles with one leader, one after the other, on the loop.

```
        ┌── nothing due: until the first back-off ends ──┐
_next ──┼── out of range: leader's end, leader's start ──┼─> a later turn: _next
        ├── an epoch behind a gap: end of the one before ┤
        └── Fetch, the leader waits for records ─────────┘
              └── no leader, connection lost: back-off of all requested, a new link with the next
```

A response is processed on a turn of its own: a local leader responds in the middle of its own work.
The fetch at a local leader may be parked, and return one partition's records after the other
(`ParkedFetch`). With a remote leader a fetch cycle continues by itself while the responses take the
fast path (`FastFetchCycle`).

Source: PART-9; Kafka's AbstractFetcherThread.doWork.
Differs: a cycle that finds no partition due, and none to forget, waits until one is due; Kafka's
thread sleeps and polls.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from engine.broker.fast_fetch_cycle import FastFetchCycle
from engine.broker.follower_session import (
    FollowerSession,
    epoch_ends_call,
    epoch_ends_of,
    leader_end_call,
    leader_start_call,
    offsets_of,
)
from engine.broker.peers import BrokerLink, LocalLink, Peers
from engine.errors import EngineError
from engine.host.ports import Clock, Timers
from engine.host.promise import Promise
from engine.kafka_errors import NONE, kafka_error
from engine.model import TopicPartition
from engine.replication.fetch_state import LeaderAnswer
from engine.replication.local_fetch import LocalFetched
from engine.replication.metadata_cache import MetadataCache
from engine.replication.parked_fetch import LocalParkedFetch
from engine.replication.partition_types import FetchSpec
from engine.replication.replica_fetcher import EpochQuestion, LeaderEnds, ReplicaFetcher
from engine.wire import messages

_log = logging.getLogger("kafka.server.ReplicaFetcherThread")


class FetcherPorts(NamedTuple):
    """What fetchers need of their broker; `epoch` is the broker's."""

    broker_id: int
    epoch: Callable[[], int]
    metadata_cache: MetadataCache
    peers: Peers
    timers: Timers
    clock: Clock


class LeaderFetcher:
    """Fetches what it is given from one leader, until it is closed (PART-9)."""

    def __init__(
        self, leader_id: int, fetcher: ReplicaFetcher, ports: FetcherPorts, number: int = 0
    ) -> None:
        """`number` is that among the fetchers of the leader."""
        self.leader_id = leader_id
        self.fetcher = fetcher
        self._ports = ports
        self._client_id = f"broker-{ports.broker_id}-fetcher-{number}"
        self._session = FollowerSession(ports.broker_id, ports.epoch, fetcher.config)
        self._fast = FastFetchCycle(self._client_id, fetcher, self._session, ports.clock)
        self._link: BrokerLink | None = None
        # What this round asks for; a leader that gives during it is asked for what follows.
        self._requested: dict[TopicPartition, FetchSpec] = {}
        self._is_busy = False
        self._is_closed = False
        self._cancel: Callable[[], None] | None = None
        self._logged_reason: str | None = None

    @property
    def session_place(self) -> tuple[int, int]:
        """Return the id of the fetch session and the epoch in it; 0, 0 without one."""
        return self._session.place

    def asks_for(self, topic_partition: TopicPartition) -> bool:
        """Return whether the session has a partition: one that rests is not asked for."""
        return self._session.holds(topic_partition)

    def add(self, topic_partition: TopicPartition, leader_epoch: int) -> None:
        """Fetch a partition too, with the next round."""
        self.fetcher.add(topic_partition, leader_epoch)
        self._next_soon()

    def close(self) -> None:
        """Fetch nothing more; an answer that is on its way is dropped."""
        self._is_closed = True
        self._rest_no_more()
        self._let_go()

    def _next_soon(self) -> None:
        if not self._is_busy:
            self._is_busy = True
            self._rest_no_more()
            self._ports.timers.call_soon(self._next)

    def _rest_no_more(self) -> None:
        cancel, self._cancel = self._cancel, None
        if cancel is not None:
            cancel()

    def _next(self) -> None:
        if self._is_closed:
            return
        requested_ends, requested_epoch_ends = (
            self.fetcher.requested_ends(),
            self.fetcher.requested_epoch_ends(),
        )
        specs = {} if requested_ends or requested_epoch_ends else self.fetcher.requested()
        requested = requested_ends or requested_epoch_ends or specs
        if not requested and not self._session.holds_partitions:
            self._rest()
            return
        link = self._link_to_leader()
        if link is None:
            self._session.reset()
            self._unreached(requested, "it is not known how to reach it")
        elif requested_ends:
            end = link.ask(leader_end_call(self._ports.broker_id, requested_ends))
            self._when_there(end, lambda: self._end_is_there(end, requested_ends))
        elif requested_epoch_ends:
            epochs = link.ask(epoch_ends_call(self._ports.broker_id, requested_epoch_ends))
            self._when_there(epochs, lambda: self._epochs_are_there(epochs, requested_epoch_ends))
        else:
            self._requested = specs
            self._fast.begin(specs)
            call = self._session.call(specs, self._topic_ids(specs), self._give, self._fast)
            response = link.ask(call)
            self._when_there(response, lambda: self._fetched(response, specs))

    def _topic_ids(self, specs: Mapping[TopicPartition, FetchSpec]) -> Mapping[str, bytes]:
        """Return the ids of topics; the order to follow comes before the metadata that tell it."""
        known = self._ports.metadata_cache.topic_ids
        missing = [
            topic_partition for topic_partition in specs if topic_partition.topic not in known
        ]
        return {**known, **self.fetcher.topic_ids(missing)} if missing else known

    def _rest(self) -> None:
        self._is_busy = False
        due_ms = self.fetcher.next_due_ms()
        if due_ms is not None:
            self._cancel = self._ports.timers.call_at(due_ms, self._next_soon)

    def _link_to_leader(self) -> BrokerLink | None:
        if self._link is None:
            leader = self._ports.metadata_cache.brokers.get(self.leader_id)
            self._link = (
                None if leader is None else self._ports.peers.replica_link(leader, self._client_id)
            )
        return self._link

    def _when_there(self, promise: Promise[Any], take: Callable[[], None]) -> None:
        def on_its_turn() -> None:
            if not self._is_closed:
                take()

        promise.watch(lambda: self._ports.timers.call_soon(on_its_turn))

    # Answers

    def _give(
        self,
        fetch: LocalParkedFetch,
        topic_partition: TopicPartition,
        spec: FetchSpec,
        answer: LeaderAnswer,
    ) -> None:
        def on_its_turn() -> None:
            link = self._link
            # Whoever is not the same any more is not told: its fetch went with it.
            if not self._is_closed and isinstance(link, LocalLink) and link.is_same:
                following = self.fetcher.take_given(topic_partition, spec, answer)
                if following is not None and not fetch.is_completed:
                    self._requested[topic_partition] = following
                fetch.took(topic_partition, following)

        self._ports.timers.call_soon(on_its_turn)

    def _fetched(
        self,
        promise: Promise[messages.FetchResponse | LocalFetched | None],
        specs: Mapping[TopicPartition, FetchSpec],
    ) -> None:
        if promise.error is not None:
            self._lost(specs, promise.error)
            return
        self._reached()
        response = promise.result()
        if response is None:
            # Fast fetch cycles took all records that came.
            self._next()
            return
        if isinstance(response, LocalFetched):
            self.fetcher.taken(specs, response.answers)
            self._next()
            return
        if response.error_code != NONE:
            _log.info(
                "the fetch session with broker %d begins again: %s",
                self.leader_id,
                kafka_error(response.error_code).name,
            )
            if self._session.is_first:
                self.fetcher.unreached(specs)
        if not self.fetcher.taken(specs, self._session.answers(response)):
            # A session tells a watermark once: what was not taken is only told to a new one.
            self._session.reset()
        self._next()

    def _end_is_there(
        self,
        promise: Promise[messages.ListOffsetsResponse],
        requested: Mapping[TopicPartition, int],
    ) -> None:
        link = self._link
        if promise.error is not None or link is None:
            self._lost(requested, promise.error)
            return
        ends = {
            key: LeaderEnds(error_code, end_offset=offset)
            for key, error_code, offset in offsets_of(promise.result())
        }
        start = link.ask(leader_start_call(self._ports.broker_id, requested))
        self._when_there(start, lambda: self._start_is_there(start, requested, ends))

    def _start_is_there(
        self,
        promise: Promise[messages.ListOffsetsResponse],
        requested: Mapping[TopicPartition, int],
        ends: dict[TopicPartition, LeaderEnds],
    ) -> None:
        if promise.error is not None:
            self._lost(requested, promise.error)
            return
        self._reached()
        for key, error_code, offset in offsets_of(promise.result()):
            end = ends.get(key)
            if end is not None:
                ends[key] = end._replace(
                    error_code=end.error_code or error_code, start_offset=offset
                )
        self.fetcher.ends_taken(requested, ends)
        self._next()

    def _epochs_are_there(
        self,
        promise: Promise[messages.OffsetForLeaderEpochResponse],
        requested: Mapping[TopicPartition, EpochQuestion],
    ) -> None:
        if promise.error is not None:
            self._lost(requested, promise.error)
            return
        self._reached()
        self.fetcher.epochs_taken(requested, epoch_ends_of(promise.result()))
        self._next()

    # A leader that is not reached

    def _reached(self) -> None:
        self._logged_reason = None

    def _lost(self, requested: Mapping[TopicPartition, object], error: EngineError | None) -> None:
        self._let_go()
        self._unreached(requested, str(error))

    def _unreached(self, requested: Mapping[TopicPartition, object], reason: str) -> None:
        if reason != self._logged_reason:
            self._logged_reason = reason
            _log.warning("broker %d is not fetched from: %s", self.leader_id, reason)
        self.fetcher.unreached(requested)
        self._next()

    def _let_go(self) -> None:
        link, self._link = self._link, None
        self._session.reset()
        if link is not None:
            link.close()
