"""What the rules of transactions find in logs, and what they do not ask for."""

from __future__ import annotations

import pytest

from engine.model import TopicPartition
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.control import ControlType, EndTransactionMarker, build_marker
from engine.sim.histories import History, Loss
from engine.sim.sent_transactions import SentOutcome, SentTransaction
from engine.sim.transaction_rules import TRANSACTION_TOPIC, MarkedLog, TransactionRules

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
OF_COORDINATOR = TopicPartition(TRANSACTION_TOPIC, 0)
COMMIT, ABORT = ControlType.COMMIT, ControlType.ABORT


def data(*numbers: int, base: int, epoch: int = 0) -> bytes:
    """Return a batch of producer id 7 with these numbers of `tx`."""
    builder = BatchBuilder(
        BatchSettings(
            base_offset=base,
            producer_id=7,
            producer_epoch=epoch,
            base_sequence=0,
            is_transactional=True,
        )
    )
    for number in numbers:
        builder.append(0, None, f"tx:{number}".encode())
    return bytes(builder.build())


def marker(kind: ControlType, *, base: int, epoch: int = 0) -> bytes:
    """Return a marker for producer id 7."""
    end = EndTransactionMarker(kind, coordinator_epoch=0)
    return bytes(
        build_marker(end, producer_id=7, producer_epoch=epoch, timestamp_ms=0, base_offset=base)
    )


class Run:
    """The rules of a run with transactions in two partitions."""

    def __init__(self) -> None:
        self.histories = {key: History(f"{key}") for key in (T0, T1, OF_COORDINATOR)}
        self.broken: list[str] = []
        self.rules = TransactionRules(
            self.histories, lambda rule, _text, _partition: self.broken.append(rule)
        )

    def sent(self, outcome: SentOutcome, **numbers: set[int]) -> None:
        """Have a producer send numbers to t0 and t1, all accepted, with an outcome."""
        transaction = SentTransaction("tx@0", 7, 0)
        transaction.outcome = outcome
        transaction.sent = {TopicPartition("t", int(key[1])): n for key, n in numbers.items()}
        transaction.accepted = transaction.sent
        self.rules.record_begin(transaction)

    def check(self, t0: bytes = b"", t1: bytes = b"") -> list[str]:
        """Return the rules that the logs at rest break."""
        self.rules.check_end({T0: t0, T1: t1})
        return self.broken


def test_a_log_says_of_each_record_how_its_transaction_ended() -> None:
    log = MarkedLog(
        data(0, 1, base=0)
        + marker(COMMIT, base=2)
        + data(2, base=3)
        + data(3, base=4)
        + marker(ABORT, base=5)
        + data(4, base=6)
    )
    ended = {("tx", 0): True, ("tx", 1): True, ("tx", 2): False, ("tx", 3): False}
    assert ended == log.ended
    assert {7: [("tx", 4)]} == log.open
    assert [] == log.faults


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (data(0, base=0, epoch=1) + data(1, base=1, epoch=0), "T4"),
        (marker(ABORT, base=0, epoch=1) + data(1, base=1, epoch=0), "T4"),
        (data(0, base=0) + data(0, base=1), "T5"),
        (data(0, base=0) + marker(COMMIT, base=1) + data(0, base=2), "T5"),
    ],
)
def test_a_log_breaks_a_rule_by_itself(content: bytes, rule: str) -> None:
    assert [rule] == [fault.rule for fault in MarkedLog(content).faults]


@pytest.mark.parametrize(
    ("outcome", "kinds", "broken"),
    [
        (SentOutcome.COMMITTED, (COMMIT, COMMIT), []),
        (SentOutcome.ABORTED, (ABORT, ABORT), []),
        (SentOutcome.UNKNOWN, (COMMIT, COMMIT), []),
        (SentOutcome.UNKNOWN, (ABORT, ABORT), []),
        (SentOutcome.UNKNOWN, (ABORT, COMMIT), ["T1"]),
        (SentOutcome.COMMITTED, (ABORT, ABORT), ["T2"]),
        (SentOutcome.ABORTED, (COMMIT, COMMIT), ["T2"]),
        (SentOutcome.COMMITTED, (COMMIT, ABORT), ["T1", "T2"]),
    ],
)
def test_a_transaction_ends_in_every_partition_as_its_producer_was_answered(
    outcome: SentOutcome, kinds: tuple[ControlType, ControlType], broken: list[str]
) -> None:
    run = Run()
    run.sent(outcome, t0={0}, t1={1})
    t0, t1 = kinds
    assert broken == run.check(
        data(0, base=0) + marker(t0, base=1), data(1, base=0) + marker(t1, base=1)
    )


def test_accepted_records_are_owed() -> None:
    run = Run()
    run.sent(SentOutcome.COMMITTED, t0={0}, t1={1})
    assert ["R2"] == run.check(data(0, base=0) + marker(COMMIT, base=1))


def test_records_whose_age_may_have_deleted_them_are_not_owed() -> None:
    run = Run()
    run.sent(SentOutcome.COMMITTED, t0={0}, t1={1})
    run.histories[T1].start = 2
    assert [] == run.check(data(0, base=0) + marker(COMMIT, base=1))


def test_a_transaction_without_an_end_hangs() -> None:
    run = Run()
    assert ["T3"] == run.check(data(0, base=0))


@pytest.mark.parametrize("lost", [T0, OF_COORDINATOR])
def test_nothing_is_asked_where_kafka_loses_records_too(lost: TopicPartition) -> None:
    run = Run()
    run.sent(SentOutcome.COMMITTED, t0={0})
    run.histories[lost].losses.append(Loss(0, 1, "an unclean election", 0))
    assert [] == run.check(data(0, base=0) + marker(ABORT, base=1))


_TWO = data(0, base=0) + marker(ABORT, base=1) + data(1, base=2) + marker(COMMIT, base=3)


@pytest.mark.parametrize(
    ("aborted", "broken"),
    [([(7, 0)], []), ([], ["T1"]), ([(7, 0), (7, 2)], ["T1"]), ([(8, 0)], ["T1"])],
)
def test_a_reader_of_committed_records_gets_those_alone(
    aborted: list[tuple[int, int]], broken: list[str]
) -> None:
    run = Run()
    run.rules.read(T0, _TWO, 0, aborted)
    assert broken == run.check(_TWO)


def test_a_reader_may_have_got_what_is_deleted_by_now() -> None:
    run = Run()
    run.rules.read(T0, _TWO, 0, [(7, 0)])
    run.histories[T0].start = 4
    assert [] == run.check()


def test_records_before_the_position_are_not_read() -> None:
    run = Run()
    run.rules.read(T0, data(5, base=0) + _TWO, 3, [(7, 0)])
    assert run.check(_TWO) == ["T1"]
