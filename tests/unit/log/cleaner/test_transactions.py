"""Which batches belong to aborted transactions, and which markers may go."""

from __future__ import annotations

from engine.log.cleaner.transactions import CleanedTransactions
from engine.log.txn_index import AbortedTransaction
from engine.records.batch import BatchView
from engine.records.control import (
    ControlType,
    EndTransactionMarker,
    build_control_batch,
    build_marker,
)
from tests.unit.log.writing import NOW_MS, sent_by


def data(producer_id: int, offset: int) -> BatchView:
    return BatchView(sent_by(producer_id, 0, base_offset=offset, is_transactional=True))


def marker(producer_id: int, offset: int, kind: ControlType) -> BatchView:
    end = EndTransactionMarker(kind, 0)
    return BatchView(
        memoryview(
            build_marker(
                end, producer_id=producer_id, producer_epoch=0, timestamp_ms=NOW_MS,
                base_offset=offset,
            )
        )
    )  # fmt: skip


def test_batches_between_the_first_offset_and_the_marker_are_aborted() -> None:
    kept: list[AbortedTransaction] = []
    seen = CleanedTransactions(kept.append)
    aborted = AbortedTransaction(7, 1, 3, 4)
    seen.add_aborted([aborted])
    assert [False, True, False, False, False] == [
        seen.may_discard(batch)
        for batch in (
            data(7, 0),
            data(7, 1),
            data(8, 2),
            marker(7, 3, ControlType.ABORT),
            data(7, 4),
        )
    ]
    assert [aborted] == kept


def test_a_marker_without_records_before_it_may_go() -> None:
    seen = CleanedTransactions()
    seen.add_aborted([AbortedTransaction(7, 0, 3, 4)])
    assert seen.may_discard(marker(7, 3, ControlType.ABORT))
    assert seen.may_discard(marker(8, 4, ControlType.COMMIT))


def test_a_commit_with_records_before_it_stays() -> None:
    seen = CleanedTransactions()
    assert not seen.may_discard(data(7, 0))
    assert not seen.may_discard(marker(7, 1, ControlType.COMMIT))
    assert seen.may_discard(marker(7, 2, ControlType.COMMIT))


def test_records_outside_of_transactions_are_never_aborted() -> None:
    seen = CleanedTransactions()
    seen.add_aborted([AbortedTransaction(7, 0, 3, 4)])
    assert not seen.may_discard(BatchView(sent_by(7, 0, base_offset=1)))


def test_a_control_batch_of_another_kind_stays() -> None:
    batch = build_control_batch(ControlType.LEADER_CHANGE, b"", timestamp_ms=NOW_MS)
    assert not CleanedTransactions().may_discard(BatchView(memoryview(batch)))
