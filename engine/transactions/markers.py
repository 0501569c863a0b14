"""Send the markers of a transaction to the leaders of its partitions, then write its completion.

```
 decided ── markers of a leader ──> queue ── one request in flight ──> leader
                                      ^                                 │ written, or deleted
              after a pause, to the   │                                 v
              leader of that time     └─── failed, lost, no leader     none left: completion
```

1. Partitions are grouped by their leaders; a deleted partition needs no marker.
2. A leader gets all its queued markers in one request, and no second request before the response.
3. A partition whose marker is written is removed from its transaction. A marker that failed with a
   retriable error is sent again after a pause, to the leader of that time. If producer or
   coordinator have a later epoch, the sending ends: another instance has taken over.
   All waiting markers are checked together: once for each partition, however many transactions wait
   for it. It waits on without a leader, and while the leader was not reached just now.
4. When no partition is left, the completion is written, again and again while too few replicas of
   the log are there.

Source: TransactionMarkerChannelManager, TransactionMarkerRequestCompletionHandler of 3.9.1;
TXN-5, T3.
Differs: a request has markers for at most MARKERS_PER_REQUEST_MAX partitions; Kafka's has all
waiting ones.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from engine.host.coroutine import drive
from engine.host.promise import Promise
from engine.kafka_errors import (
    COORDINATOR_NOT_AVAILABLE,
    INVALID_PRODUCER_EPOCH,
    KAFKA_STORAGE_ERROR,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    TRANSACTION_COORDINATOR_FENCED,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
    UNSUPPORTED_VERSION,
)
from engine.limits import MARKER_RETRY_MS, MARKER_RETRY_MS_MAX, MARKERS_PER_REQUEST_MAX
from engine.model import TopicPartition
from engine.transactions.ports import Marker, MarkerChannels, MarkerCodes, TransactionPorts
from engine.transactions.registry import TransactionRegistry
from engine.transactions.transaction import Transaction, Transition
from engine.transactions.transaction_store import TransactionStore

_log = logging.getLogger("kafka.coordinator.transaction.TransactionMarkerChannelManager")

_NO_LEADER = -1
#: Codes after which the marker is sent again, to the leader of that time.
_RETRIED = frozenset(
    (
        UNKNOWN_TOPIC_OR_PARTITION,
        NOT_LEADER_OR_FOLLOWER,
        NOT_ENOUGH_REPLICAS,
        NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        REQUEST_TIMED_OUT,
        KAFKA_STORAGE_ERROR,
    )
)
_FENCED = frozenset((INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED))
#: Codes after which the partition needs no marker: it refused the producer's records too.
_NOT_NEEDED = frozenset((UNSUPPORTED_FOR_MESSAGE_FORMAT, UNSUPPORTED_VERSION))


class _PendingCompleteTxn(NamedTuple):
    """A transaction in PrepareCommit or PrepareAbort.

    `completion` is the transition that is written once every partition has its marker. Source:
    PendingCompleteTxn of 3.9.1.
    """

    coordinator_epoch: int
    is_commit: bool
    transaction: Transaction
    completion: Transition

    def build_marker(self, partitions: Iterable[TopicPartition]) -> Marker:
        """Return the marker of this transaction for `partitions` of one leader."""
        return Marker(
            self.completion.producer_id,
            self.completion.producer_epoch,
            self.is_commit,
            self.coordinator_epoch,
            tuple(partitions),
        )


class _QueuedMarker(NamedTuple):
    """A marker for partitions of one leader, and its transaction."""

    pending: _PendingCompleteTxn
    marker: Marker


class _Unreached(NamedTuple):
    """The back-off of a broker that the last request did not reach; times are monotonic."""

    pause_ms: int
    until_ms: int


class TransactionMarkers:
    """Sends WriteTxnMarkers, and completes the transactions whose partitions all have a marker."""

    def __init__(
        self, registry: TransactionRegistry, store: TransactionStore, ports: TransactionPorts
    ) -> None:
        """Create the sender without queued markers.

        `ports.channels` finds leaders and sends to them.
        """
        self._registry = registry
        self._store = store
        self._channels: MarkerChannels = ports.channels
        self._clock, self._timers = ports.clock, ports.timers
        #: Transactions that wait for markers, by transactional id.
        self._pending_txns: dict[str, _PendingCompleteTxn] = {}
        #: Markers that wait for the next request to each broker.
        self._queues: dict[int, deque[_QueuedMarker]] = {}
        #: Brokers with a request in flight: each has at most one.
        self._busy: set[int] = set()
        #: Transactions that wait for the leader of a partition, which is unknown.
        self._waiting: dict[TopicPartition, list[_PendingCompleteTxn]] = {}
        #: Whether `_retry` is scheduled.
        self._is_retry_due = False
        #: Back-off of each broker that the last request did not reach.
        self._unreached: dict[int, _Unreached] = {}
        #: Cancels each scheduled timer, by its number.
        self._cancels: dict[int, Callable[[], None]] = {}
        self._timer_number = 0
        self._is_stopped = False

    @property
    def pending_ids(self) -> tuple[str, ...]:
        """The ids of the transactions of which at least one partition has no marker yet."""
        return tuple(self._pending_txns)

    def send_markers(
        self,
        coordinator_epoch: int,
        transaction: Transaction,
        completion: Transition,
        *,
        is_commit: bool,
    ) -> None:
        """Send the markers of a transaction in PrepareCommit or PrepareAbort.

        Once every partition has its marker, `completion` (CompleteCommit or CompleteAbort) is
        written to the log. Returns at once.
        """
        pending = _PendingCompleteTxn(coordinator_epoch, is_commit, transaction, completion)
        self._pending_txns[transaction.transactional_id] = pending
        self._enqueue(pending, tuple(transaction.partitions))
        self._complete_if_done(pending)

    def forget(self, transactional_ids: Iterable[str]) -> None:
        """Drop the unsent markers of ids that this broker does not coordinate any more."""
        for transactional_id in transactional_ids:
            self._pending_txns.pop(transactional_id, None)

    def stop(self) -> None:
        """Drop all unsent markers and cancel the timers; responses that come later are ignored."""
        self._is_stopped = True
        self._pending_txns.clear()
        self._queues.clear()
        self._waiting.clear()
        for cancel in self._cancels.values():
            cancel()
        self._cancels.clear()

    def _is_current(self, pending: _PendingCompleteTxn) -> bool:
        """Return True if `pending` was neither dropped nor replaced by a later end of its id."""
        return self._pending_txns.get(pending.transaction.transactional_id) is pending

    # 1
    def _enqueue(self, pending: _PendingCompleteTxn, partitions: Iterable[TopicPartition]) -> None:
        """Queue markers for the leaders of `partitions`, and send what can be sent now.

        A deleted partition is removed from the transaction; one without a reachable leader waits
        for
        `_retry`.
        """
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            leader_id = self._find_leader(partition)
            if leader_id is None:
                _log.info("%s is gone and gets no marker", partition)
                pending.transaction.partitions.pop(partition, None)
            else:
                by_leader.setdefault(leader_id, []).append(partition)
        for leader_id, led in by_leader.items():
            if leader_id == _NO_LEADER:
                self._retry_later(pending, led)
            else:
                self._queues.setdefault(leader_id, deque()).extend(
                    _QueuedMarker(
                        pending, pending.build_marker(led[start : start + MARKERS_PER_REQUEST_MAX])
                    )
                    for start in range(0, len(led), MARKERS_PER_REQUEST_MAX)
                )
        for leader_id in by_leader:
            self._send_next(leader_id)

    # 2
    def _send_next(self, broker_id: int) -> None:
        """Send a broker its queued markers in one request.

        At most one request is in flight to it.
        """
        if broker_id in self._busy or self._is_stopped:
            return
        entries = self._take_entries(broker_id)
        if not entries:
            return
        self._busy.add(broker_id)
        answered = self._channels.write(broker_id, [entry.marker for entry in entries])
        answered.watch(lambda: self._on_response(broker_id, entries, answered))

    def _take_entries(self, broker_id: int) -> list[_QueuedMarker]:
        """Remove the markers of the next request from a leader's queue and return them.

        Markers of transactions that are not current any more are dropped.
        """
        entries: list[_QueuedMarker] = []
        queue, count = self._queues.get(broker_id), 0
        while queue and count + len(queue[0].marker.partitions) <= MARKERS_PER_REQUEST_MAX:
            entry = queue.popleft()
            if self._is_current(entry.pending):
                entries.append(entry)
                count += len(entry.marker.partitions)
        if not queue:
            self._queues.pop(broker_id, None)
        return entries

    def _on_response(
        self, broker_id: int, entries: list[_QueuedMarker], answered: Promise[list[MarkerCodes]]
    ) -> None:
        """Apply a broker's response, then send it the next queued markers.

        If the request failed, all markers for the broker wait for a retry after a pause.
        """
        self._busy.discard(broker_id)
        if self._is_stopped:
            return
        if answered.error is not None:
            _log.info("markers for broker %d are sent again: %s", broker_id, answered.error)
            self._back_off(broker_id)
            for pending, marker in (*entries, *self._queues.pop(broker_id, ())):
                self._retry_later(pending, marker.partitions)
        else:
            self._unreached.pop(broker_id, None)
            for (pending, marker), codes in zip(entries, answered.result(), strict=True):
                self._apply_response(pending, marker, codes)
        if broker_id in self._queues:
            # In a separate turn: a leader in this process answers within the call.
            self._timers.call_soon(partial(self._send_next, broker_id))

    # 3
    def _apply_response(
        self, pending: _PendingCompleteTxn, marker: Marker, codes: MarkerCodes
    ) -> None:
        """Apply the error codes of one marker: remove the marked partitions, retry the failed ones.

        Drops the transaction if the producer's or the coordinator's epoch is fenced. Completes it
        if no partition is left.
        """
        if not self._is_current(pending):
            return
        failed = []
        for partition in marker.partitions:
            code = codes.get(partition, UNKNOWN_TOPIC_OR_PARTITION)
            if code in _FENCED:
                _log.info("%s: another epoch has gone on", pending.transaction.transactional_id)
                del self._pending_txns[pending.transaction.transactional_id]
                return
            if code in _RETRIED:
                failed.append(partition)
                continue
            if code and code not in _NOT_NEEDED:
                _log.error("the marker for %s failed with error %d", partition, code)
                failed.append(partition)
                continue
            pending.transaction.partitions.pop(partition, None)
        self._retry_later(pending, failed)
        self._complete_if_done(pending)

    def _back_off(self, broker_id: int) -> None:
        """Set the time until which a broker gets no markers, after it was not reached.

        The pause doubles with each failure in a row.
        """
        before = self._unreached.get(broker_id)
        pause_ms = MARKER_RETRY_MS if before is None else _next_pause(before.pause_ms)
        until_ms = self._clock.monotonic_ms() + pause_ms
        self._unreached[broker_id] = _Unreached(pause_ms, until_ms)

    def _find_leader(self, partition: TopicPartition) -> int | None:
        """Return the broker id of a partition's leader, None if the partition is deleted.

        −1 if it has no leader, or if the leader was not reached and its pause has not passed.
        """
        leader_id = self._channels.leader_of(partition)
        unreached = None if leader_id is None else self._unreached.get(leader_id)
        if unreached is not None and self._clock.monotonic_ms() < unreached.until_ms:
            return _NO_LEADER
        return leader_id

    def _retry_later(
        self, pending: _PendingCompleteTxn, partitions: Iterable[TopicPartition]
    ) -> None:
        """Let the markers of `partitions` wait for the next `_retry`, and schedule that."""
        for partition in partitions:
            self._waiting.setdefault(partition, []).append(pending)
        self._schedule_retry()

    def _schedule_retry(self) -> None:
        """Schedule `_retry` in MARKER_RETRY_MS, if a partition waits and no retry is scheduled."""
        if self._waiting and not self._is_retry_due:
            self._is_retry_due = True
            self._schedule(self._retry, MARKER_RETRY_MS)

    def _retry(self) -> None:
        """Queue the waiting markers again.

        Those of a partition without a reachable leader wait for the next retry.
        """
        self._is_retry_due = False
        waiting, self._waiting = self._waiting, {}
        ready: dict[str, tuple[_PendingCompleteTxn, list[TopicPartition]]] = {}
        for partition, waiting_txns in waiting.items():
            current = [pending for pending in waiting_txns if self._is_current(pending)]
            if current and self._find_leader(partition) == _NO_LEADER:
                self._waiting[partition] = current
                continue
            for pending in current:
                transactional_id = pending.transaction.transactional_id
                ready.setdefault(transactional_id, (pending, []))[1].append(partition)
        self._schedule_retry()
        for pending, partitions in ready.values():
            self._enqueue(pending, partitions)
            self._complete_if_done(pending)

    def _schedule(self, action: Callable[[], None], delay_ms: int) -> None:
        """Run `action` after `delay_ms`, unless the coordinator stops first."""
        self._timer_number += 1
        number = self._timer_number

        def run() -> None:
            """Run the action, which `stop` cannot cancel any more."""
            del self._cancels[number]
            action()

        due_ms = self._clock.monotonic_ms() + delay_ms
        self._cancels[number] = self._timers.call_at(due_ms, run)

    # 4
    def _complete_if_done(self, pending: _PendingCompleteTxn) -> None:
        """Write the completion of a transaction, if all its partitions have their marker."""
        if self._is_current(pending) and not pending.transaction.partitions:
            del self._pending_txns[pending.transaction.transactional_id]
            drive(self._write_completion(pending))

    async def _write_completion(self, pending: _PendingCompleteTxn) -> None:
        """Write CompleteCommit or CompleteAbort to the transaction log.

        Retries on COORDINATOR_NOT_AVAILABLE with a growing pause; any other error ends the attempt.
        """
        transactional_id, pause_ms = pending.transaction.transactional_id, MARKER_RETRY_MS
        while True:
            code = await self._store.write(
                transactional_id, pending.coordinator_epoch, pending.completion, is_retried=True
            )
            if code != COORDINATOR_NOT_AVAILABLE or self._is_stopped:
                return
            _log.info("the completion of %s is written again", transactional_id)
            waited: Promise[None] = Promise()
            self._schedule(partial(waited.keep, None), pause_ms)
            await waited
            # Many transactions may wait for the same replica.
            pause_ms = _next_pause(pause_ms)


def _next_pause(pause_ms: int) -> int:
    """Return the pause in ms after one of `pause_ms`.

    It is twice as long, at most MARKER_RETRY_MS_MAX.
    """
    return min(2 * pause_ms, MARKER_RETRY_MS_MAX)
