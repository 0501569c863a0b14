"""`kctl produce --transactional-id`: which records go in which transaction, and what counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from engine.client.batch_sender import BatchResult
from engine.client.outgoing_batch import OutgoingBatch
from engine.client.producing import OutgoingRecord, OutgoingValues
from engine.client.transactional_producer import (
    TRANSACTION_TIMEOUT_MS,
    TransactionalProducer,
    TransactionPhase,
)
from engine.model import TopicPartition
from engine.records.builder import BatchSettings
from kctl.arguments import UnreadableArgument
from kctl.commands.produce.request import ProduceRequest, transaction_timeout_ms
from kctl.commands.produce.transactions import (
    TransactionalInput,
    TransactionOptions,
    transaction_options,
)

READY, OPEN = TransactionPhase.READY, TransactionPhase.OPEN


class Noting:
    """A transactional producer that notes what it is asked for; each flush has one result."""

    def __init__(self) -> None:
        self.phase = TransactionPhase.NOT_READY
        self.log: list[str] = []
        self.is_idle = True

    def begin(self) -> None:
        self.phase = OPEN
        self.log.append("begin")

    def add(self, record: OutgoingRecord, place: int) -> None:
        self.log.append(f"{record.value!r}@{place}")

    def add_fast(self, records: OutgoingValues, places: Sequence[int]) -> None:
        keys = records.keys or [b""] * len(records.values)
        for key, value, place in zip(keys, records.values, places, strict=True):
            self.log.append(f"{(key + value).decode()}@{place}")

    def poll(self, wait_ms: int = 0) -> list[BatchResult]:
        return [result()]

    def flush(self) -> list[BatchResult]:
        self.log.append("flush")
        return [result()]

    def due_in_ms(self) -> int:
        return 7

    def commit(self) -> list[BatchResult]:
        self.phase = READY
        self.log.append("commit")
        return [result()]

    def abort(self) -> list[BatchResult]:
        self.phase = READY
        self.log.append("abort")
        return []


def result() -> BatchResult:
    """Return what became of an empty batch."""
    return BatchResult(OutgoingBatch(TopicPartition("t", 0), BatchSettings(), 0, (1,)), 5)


def taking(per_transaction: int | None, abort_every: int | None = None) -> TransactionalInput:
    """Return an input over a noting producer."""
    producer = cast(TransactionalProducer, Noting())
    return TransactionalInput(producer, TransactionOptions("x", per_transaction, abort_every))


def log_of(records: TransactionalInput) -> list[str]:
    """Return what the producer was asked for."""
    return cast(Noting, records._producer).log


def values(text: str, keys: str | None = None) -> OutgoingValues:
    """Return a record for each letter."""
    return OutgoingValues(
        "t",
        [letter.encode() for letter in text],
        None if keys is None else [key.encode() for key in keys],
    )


def test_a_transaction_is_committed_after_so_many_records() -> None:
    records = taking(2)
    records.add_fast(values("abc", keys="xyz"), range(1, 4))
    records.add_fast(values("de"), range(4, 6))
    assert [
        "begin",
        "xa@1",
        "yb@2",
        "commit",
        "begin",
        "zc@3",
        "d@4",
        "commit",
        "begin",
        "e@5",
    ] == (log_of(records))
    assert 5 == records.first_open_place
    assert 2 == len(records.poll())
    records.finish()
    assert "commit" == log_of(records)[-1]
    assert "3 transactions committed" == records.summary()


def test_all_of_the_input_is_one_transaction_by_default() -> None:
    records = taking(None)
    records.add(OutgoingRecord("t", None, b"a"), 1)
    records.add_fast(values("bc"), range(2, 4))
    assert [] == records.flush()
    assert 7 == records.due_in_ms()
    assert records.is_idle
    # What was stored before counts with its transaction.
    assert 2 == len(records.finish())
    assert ["begin", "b'a'@1", "b@2", "c@3", "commit"] == log_of(records)
    assert "1 transaction committed" == records.summary()


def test_every_so_many_th_transaction_is_aborted_once_its_records_are_stored() -> None:
    records = taking(1, abort_every=2)
    records.add_fast(values("abcd"), range(4))
    ends = [entry for entry in log_of(records) if entry in ("commit", "abort", "flush")]
    assert ["commit", "flush", "abort", "commit", "flush", "abort"] == ends
    assert 2 == len(records.finish())
    assert "2 transactions committed, 2 aborted with 2 records" == records.summary()


def test_what_is_open_is_aborted_and_does_not_count() -> None:
    records = taking(None)
    records.add_fast(values("ab"), range(2))
    records.poll()
    records.give_up()
    records.give_up()
    assert ["abort"] == [entry for entry in log_of(records) if entry == "abort"]
    assert [] == records.finish()
    assert "0 transactions committed, 1 aborted with 2 records" == records.summary()


def test_a_commit_that_nobody_answers_is_not_given_up_as_aborted() -> None:
    records = taking(None)
    records.add_fast(values("ab"), range(2))
    assert not records.may_be_committed
    cast(Noting, records._producer).phase = TransactionPhase.COMMITTING
    records.give_up()
    assert records.may_be_committed
    assert "abort" not in log_of(records)
    assert "0 transactions committed" == records.summary()


def test_an_input_without_records_has_no_transaction() -> None:
    records = taking(None)
    assert [] == records.finish()
    assert [] == log_of(records)


def options(**fields: object) -> TransactionOptions | None:
    """Return what options of the command ask for."""
    return transaction_options(ProduceRequest("t")._replace(**fields))  # type: ignore[arg-type]


def test_options_go_before_settings() -> None:
    assert None is options()
    assert TransactionOptions("x", None, None) == options(settings={"transactional.id": "x"})
    assert TransactionOptions("y", 5, 2) == options(
        transactional_id="y", per_transaction=5, abort_every=2, settings={"transactional.id": "x"}
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"per_transaction": 1},
        {"abort_every": 1},
        {"transaction_timeout_ms": 1},
        {"transactional_id": ""},
        {"transactional_id": "x", "acks": "1"},
        {"transactional_id": "x", "no_idempotence": True},
        {"transactional_id": "x", "settings": {"enable.idempotence": "false"}},
    ],
)
def test_options_that_cannot_go_together_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(UnreadableArgument):
        options(**fields)


def test_the_timeout_is_that_of_the_option_or_the_setting() -> None:
    request = ProduceRequest("t", settings={"transaction.timeout.ms": "9"})
    assert 9 == transaction_timeout_ms(request)
    assert 8 == transaction_timeout_ms(request._replace(transaction_timeout_ms=8))
    assert TRANSACTION_TIMEOUT_MS == transaction_timeout_ms(ProduceRequest("t"))
