"""Records of transactional ids are those that a coordinator of Kafka writes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.records.view import batches_in
from engine.transactions.records import (
    TransactionRecord,
    UnknownTransactionRecord,
    build_record,
    decode_transaction_record,
    transaction_tombstone,
)
from engine.transactions.states import TransactionState
from engine.transactions.transaction import Transition
from tests.golden_cases import GOLDEN
from tests.unit.transactions.stage import T0, T1, U0

LOGS = sorted((GOLDEN / "txn" / "data").glob("__transaction_state-*/*.log"))
OPEN = Transition(TransactionState.ONGOING, 5, 1, 0, 60_000, (T0, U0, T1), 11, 12)


def records() -> Iterator[TransactionRecord]:
    """Yield what a broker of 3.9.1 wrote."""
    for path in LOGS:
        for batch in batches_in(memoryview(path.read_bytes()), allow_partial_tail=False):
            for record in batch.records():
                assert record.key is not None
                yield TransactionRecord(bytes(record.key), record.value and bytes(record.value))


def test_the_records_of_a_broker_are_written_again_byte_for_byte() -> None:
    count = 0
    for record in records():
        id_, known = decode_transaction_record(record)
        assert known is not None
        transition = Transition(
            known.state,
            known.producer_id,
            known.producer_epoch,
            known.last_producer_epoch,
            known.timeout_ms,
            tuple(known.partitions),
            known.start_ms,
            known.last_update_ms,
        )
        assert record == build_record(id_, transition)
        count += 1
    assert count > 50


#: An id in one of them could not be served: every request would break an invariant.
NEVER_WRITTEN = {TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE}


@pytest.mark.parametrize("state", NEVER_WRITTEN)
def test_a_state_that_is_never_written_is_not_read(state: TransactionState) -> None:
    with pytest.raises(UnknownTransactionRecord, match="record of __transaction_state cannot be"):
        decode_transaction_record(build_record("x", OPEN._replace(state=state)))


def test_all_states_are_read_as_they_were_written() -> None:
    for state in set(TransactionState) - NEVER_WRITTEN:
        partitions = () if state is TransactionState.EMPTY else (T0, T1, U0)
        written = OPEN._replace(state=state, partitions=partitions)
        id_, known = decode_transaction_record(build_record("ïd", written))
        assert known is not None
        assert ("ïd", state, partitions) == (id_, known.state, tuple(known.partitions))
        assert (5, 1, -1, 60_000, 11, 12) == (
            known.producer_id,
            known.producer_epoch,
            known.last_producer_epoch,
            known.timeout_ms,
            known.start_ms,
            known.last_update_ms,
        )


def test_a_tombstone_says_its_id() -> None:
    assert ("x", None) == decode_transaction_record(transaction_tombstone("x"))


@pytest.mark.parametrize(
    "record",
    [
        TransactionRecord(b"", b""),
        TransactionRecord(b"\0\1\0\1x", None),
        TransactionRecord(b"\0\0\0\1x", b"\0\7"),
        TransactionRecord(b"\0\0\0\1x", b"\0\0\0"),
        TransactionRecord(
            transaction_tombstone("x").key,
            # Status 9 is no state.
            (build_record("x", OPEN).value or b"")[:16]
            + b"\x09"
            + (build_record("x", OPEN).value or b"")[17:],
        ),
    ],
)
def test_what_cannot_be_read_says_so(record: TransactionRecord) -> None:
    with pytest.raises(UnknownTransactionRecord):
        decode_transaction_record(record)
