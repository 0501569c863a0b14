"""Why records are gone: each deletion is held to settings, clock and size, and to a request."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from engine.log.local_log import LocalLog
from engine.log.log_config import LogConfig
from engine.model import TopicPartition
from engine.records.builder import BatchBuilder, BatchSettings
from engine.sim.deletions import DeletionRules, Moment
from engine.sim.histories import Fork, History, Loss
from engine.sim.ledger import Ledger
from engine.sim.records import batches

T0 = TopicPartition("t", 0)
#: One record each second, in a batch of its own, from the wall clock's 0 on.
COUNT = 10


def log_of(*offsets: int, key: bytes | None = None) -> bytes:
    """Return batches of one record at these offsets."""
    content = b""
    for offset in offsets:
        builder = BatchBuilder(BatchSettings(base_offset=offset))
        builder.append(offset * 1_000, key, b"p:%d" % offset)
        content += bytes(builder.build())
    return content


BATCH_BYTES = len(log_of(0))


def lost_and_written_again(history: History) -> None:
    """Lose all from offset 2 on, and commit other records there, in epoch 2."""
    history.lose(Loss(2, COUNT, "a reason", 0), leader_epoch=2)
    for batch in batches(log_of(*range(2, COUNT))):
        history.commit(batch, 0)


@pytest.fixture
def history() -> History:
    made = History("t-0")
    for batch in batches(log_of(*range(COUNT))):
        made.commit(batch, 0)
    return made


class Rules:
    """The rules under test, and what they say is broken."""

    def __init__(self, *, retention_ms: int = -1, retention_bytes: int = -1) -> None:
        self.broken: list[str] = []
        self.given = retention_ms, retention_bytes
        self.rules = DeletionRules(lambda rule, *_: self.broken.append(rule), self.given)

    def begins_at(
        self,
        history: History,
        start: int,
        *,
        wall_ms: int = 0,
        config: LogConfig | None = None,
        latest_epoch: int = -1,
        broker: str = "b1",
        is_leader: bool = False,
    ) -> list[str]:
        """Return what is broken once the log of a broker begins there."""
        if config is None:
            config = LogConfig(retention_ms=self.given[0], retention_bytes=self.given[1])
        size_bytes = (COUNT - start) * BATCH_BYTES
        log = SimpleNamespace(
            log_start_offset=start,
            log_end_offset=COUNT,
            config=config,
            size_bytes=size_bytes,
            epochs=SimpleNamespace(latest_epoch=latest_epoch),
            topic_id="an id",
        )
        moment = Moment(0, wall_ms)
        self.rules.check_start(
            history, T0, cast(LocalLog, log), broker, moment, is_leader=is_leader
        )
        return self.broken


@pytest.mark.parametrize(("wall_ms", "broken"), [(7_000, ["L6"]), (7_001, [])])
def test_records_go_by_time_when_their_time_is_over(
    history: History, wall_ms: int, broken: list[str]
) -> None:
    assert broken == Rules(retention_ms=5_000).begins_at(history, 3, wall_ms=wall_ms)


@pytest.mark.parametrize(("left", "broken"), [(4, []), (3, ["L6"])])
def test_records_go_by_size_while_enough_is_left(
    history: History, left: int, broken: list[str]
) -> None:
    rules = Rules(retention_bytes=4 * BATCH_BYTES)
    assert broken == rules.begins_at(history, COUNT - left)


def test_nothing_goes_without_a_reason(history: History) -> None:
    assert ["L6"] == Rules().begins_at(history, 1, wall_ms=1 << 40)


def test_what_another_replica_began_behind_may_be_gone(history: History) -> None:
    history.start = 3
    assert [] == Rules().begins_at(history, 3)
    assert ["L6"] == Rules().begins_at(history, 4)


def test_settings_that_nobody_gave_are_no_reason(history: History) -> None:
    config = LogConfig(retention_ms=1, retention_bytes=-1)
    rules = Rules()
    assert ["L6"] == rules.begins_at(history, 1, wall_ms=1 << 40, config=config)
    history.start = 0
    rules.broken.clear()
    rules.rules.record_configs("t", {"retention.ms": "1"})
    assert [] == rules.begins_at(history, 1, wall_ms=1 << 40, config=config, broker="b2")


def test_a_request_reaches_to_its_offset(history: History) -> None:
    rules = Rules()
    rules.rules.record_request(T0, 4)
    assert [] == rules.begins_at(history, 4)
    assert ["L6"] == rules.begins_at(history, 5)


def test_nothing_goes_that_is_not_committed(history: History) -> None:
    rules = Rules(retention_ms=0)
    assert ["L6"] == rules.begins_at(history, COUNT + 1, wall_ms=1 << 40)


@pytest.mark.parametrize(
    ("latest_epoch", "broken", "start"),
    [
        (1, [], 2),
        (2, ["L6"], 8),
        # A log without records begins where its leader told it to.
        (-1, ["L6"], 8),
    ],
)
def test_a_log_of_before_a_loss_deletes_other_records_than_those_committed_behind_it(
    history: History, latest_epoch: int, broken: list[str], start: int
) -> None:
    lost_and_written_again(history)
    rules = Rules(retention_ms=5_000)
    assert broken == rules.begins_at(history, 8, wall_ms=7_001, latest_epoch=latest_epoch)
    assert start == history.start


@pytest.mark.parametrize(
    ("latest_epoch", "start"),
    # One without records is given some by the next leader, or begins where that one tells it to.
    [(2, 8), (-1, 0)],
)
def test_a_log_that_begins_where_it_did_before_a_loss_has_deleted_nothing(
    history: History, latest_epoch: int, start: int
) -> None:
    rules = Rules(retention_ms=5_000)
    assert [] == rules.begins_at(history, 8, wall_ms=1 << 40, latest_epoch=1)
    lost_and_written_again(history)
    history.start = 0
    assert [] == rules.begins_at(history, 8, latest_epoch=latest_epoch)
    assert start == history.start


@pytest.mark.parametrize(("is_leader", "broken", "start"), [(False, [], 2), (True, ["L6"], 8)])
def test_records_of_a_fork_are_the_committed_ones_in_the_log_of_the_leader(
    history: History, is_leader: bool, broken: list[str], start: int
) -> None:
    lost_and_written_again(history)
    history.forks.append(Fork(2, COUNT))
    rules = Rules(retention_ms=5_000)
    found = rules.begins_at(history, 8, wall_ms=7_001, latest_epoch=1, is_leader=is_leader)
    assert (found, history.start) == (broken, start)


@pytest.mark.parametrize(("broker", "start"), [("b1", 9), ("b2", 8)])
def test_a_loss_is_no_reason_to_begin_later_than_before(
    history: History, broker: str, start: int
) -> None:
    rules = Rules(retention_ms=5_000)
    assert [] == rules.begins_at(history, 8, wall_ms=1 << 40, latest_epoch=1)
    lost_and_written_again(history)
    assert ["L6"] == rules.begins_at(history, start, latest_epoch=2, broker=broker)


@pytest.mark.parametrize(
    ("position", "offsets", "broken"),
    [
        (2, (2, 3, 4), []),
        # A batch is given whole, though only its end was asked for.
        (3, (2, 3), []),
        (2, (3, 4), ["R14"]),
        (2, (2, 4), ["R14"]),
    ],
)
def test_a_consumer_is_given_every_offset(
    history: History, position: int, offsets: tuple[int, ...], broken: list[str]
) -> None:
    told: list[str] = []
    invariants = SimpleNamespace(
        history=lambda _: history,
        is_unseen=lambda _: False,
        losses=SimpleNamespace(),
        histories={},
        rots=SimpleNamespace(hides=lambda *_: False),
        broke=lambda rule, *_: told.append(rule),
    )
    ledger = Ledger(invariants, SimpleNamespace())  # type: ignore[arg-type]
    assert offsets[-1] + 1 == ledger.read("c", T0, position, log_of(*offsets))
    assert broken == told
