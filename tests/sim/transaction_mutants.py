"""Planted faults of transactions: in the coordinator, its markers, and the logs that take them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.api.transaction_verifier import TransactionVerifier, Verified
from engine.host.promise import Promise
from engine.kafka_errors import PRODUCER_FENCED
from engine.log import log_reader
from engine.log.local_log import LocalLog
from engine.log.producer_state import ProducerState
from engine.transactions import registry
from engine.transactions.coordinator import TransactionCoordinator
from engine.transactions.markers import TransactionMarkers
from engine.transactions.registry import Found
from engine.transactions.transaction_ends import TransactionEnds
from engine.transactions.transaction_partitions import TransactionPartitions


def aborts_commit(patch: pytest.MonkeyPatch) -> None:
    """Commit each transaction that ends."""
    end = TransactionEnds.end_transaction

    def committing(self: TransactionEnds, *producer: Any, is_commit: bool) -> Any:
        return end(self, *producer, is_commit=True)

    patch.setattr(TransactionEnds, "end_transaction", committing)


def failed_markers_are_given_up(patch: pytest.MonkeyPatch) -> None:
    """Send the markers that a leader did not write to nobody again."""
    patch.setattr(TransactionMarkers, "_retry_later", lambda *_: None)


def failed_markers_count_as_written(patch: pytest.MonkeyPatch) -> None:
    """Complete a transaction whose markers a leader did not write."""

    def forgetting(self: TransactionMarkers, ending: Any, partitions: Any) -> None:
        for partition in partitions:
            ending.transaction.partitions.pop(partition, None)
        self._complete_if_done(ending)

    patch.setattr(TransactionMarkers, "_retry_later", forgetting)


def decided_ends_are_not_resumed(patch: pytest.MonkeyPatch) -> None:
    """Leave an end that the coordinator before has decided as it is."""
    patch.setattr(TransactionCoordinator, "_send_markers", lambda *_: None)


def transactions_have_all_time(patch: pytest.MonkeyPatch) -> None:
    """Abort no transaction for its age."""

    def nothing(_: TransactionEnds) -> Iterator[None]:
        yield

    patch.setattr(TransactionEnds, "abort_timed_out", nothing)


def open_transactions_are_stable(patch: pytest.MonkeyPatch) -> None:
    """Give readers of committed records what is not decided yet."""
    patch.setattr(LocalLog, "last_stable_offset", lambda _, high_watermark: high_watermark)


def aborted_transactions_are_not_listed(patch: pytest.MonkeyPatch) -> None:
    """Let readers of committed records have what is aborted."""
    patch.setattr(log_reader, "collect_aborted", lambda *_: ())


def earlier_epochs_are_written(patch: pytest.MonkeyPatch) -> None:
    """Take batches and markers of instances that are fenced."""
    check = ProducerState.find_duplicate

    def lenient(self: ProducerState, producer_id: int, epoch: int, *rest: Any, **more: Any) -> Any:
        known = self._producers.get(producer_id)
        if known is not None and epoch < known.epoch:
            return None
        return check(self, producer_id, epoch, *rest, **more)

    patch.setattr(ProducerState, "find_duplicate", lenient)
    patch.setattr(ProducerState, "check_verified", lambda *_: None)


def nothing_is_verified(patch: pytest.MonkeyPatch) -> None:
    """Take batches of transactions that their coordinator does not know."""
    nothing = Verified({}, {})
    patch.setattr(TransactionVerifier, "verify", lambda *_, **_more: Promise.of(nothing))


def verifications_outlive_their_transactions(patch: pytest.MonkeyPatch) -> None:
    """Take a batch that its coordinator knew as it was asked, though a marker has come since."""
    patch.setattr(ProducerState, "check_verified", lambda *_: None)


def fenced_instances_add_partitions(patch: pytest.MonkeyPatch) -> None:
    """Serve an instance of a transactional id whose epoch is over."""
    find = TransactionPartitions._find_current

    def lenient(self: TransactionPartitions, transactional_id: str, *producer: int) -> Found:
        found = find(self, transactional_id, *producer)
        if found.error_code == PRODUCER_FENCED:
            return self._registry.find(transactional_id)
        return found

    patch.setattr(TransactionPartitions, "_find_current", lenient)


def first_states_are_loaded(patch: pytest.MonkeyPatch) -> None:
    """Take the first record of a transactional id in place of the last, as another loads it."""
    apply_record = registry._apply_record

    def first_alone(loaded: dict[str, Any], entry: Any) -> None:
        before = dict(loaded)
        apply_record(loaded, entry)
        loaded.update(before)

    patch.setattr(registry, "_apply_record", first_alone)
