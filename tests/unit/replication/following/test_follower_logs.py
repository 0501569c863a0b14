"""A follower's log as its fetcher changes it: who may, what is told, and who is woken."""

from __future__ import annotations

import logging

import pytest

from engine.host.memory import ManualClock
from engine.replication.delayed_fetch import FetchResults
from engine.replication.following.fetch_state import (
    AppendFetched,
    FetchFromEnd,
    LocalLogEnds,
    RestartAt,
    TruncateTo,
)
from engine.replication.following.follower_logs import FollowerLogs
from engine.replication.partition_types import FetchSpec
from engine.replication.replica_manager import ReplicaManager
from tests.unit.log.writing import PARTITION, fill, sent
from tests.unit.replication.replicas import CONSUMER, partition_of, ports_of, state, when_there

EPOCH = 5


class Follower:
    """Broker 1 follows broker 2, with six records of which four are committed."""

    def __init__(self) -> None:
        self.replicas = ReplicaManager(ManualClock(), ports_of())
        self.partition = partition_of()
        self.replicas.add(self.partition)
        fill(self.partition.log, [1] * 6)
        self.partition.high_watermark = 4
        self.partition.become_follower(state((2, 1), leader=2, epoch=EPOCH))
        self.logs = FollowerLogs(self.replicas)


@pytest.mark.parametrize(
    ("offset", "told"),
    [
        (3, [(logging.WARNING, f"Truncating {PARTITION} to offset 3 below high watermark 4")]),
        (4, [(logging.INFO, f"Truncating {PARTITION} from 6 to 4")]),
        (6, []),
    ],
)
def test_a_cut_of_committed_records_is_warned_of(
    offset: int, told: list[tuple[int, str]], caplog: pytest.LogCaptureFixture
) -> None:
    follower = Follower()
    caplog.set_level(logging.INFO, "kafka.server.ReplicaFetcherThread")
    assert LocalLogEnds(0, offset, 0) == follower.logs.perform_step(
        PARTITION, EPOCH, TruncateTo(offset)
    )
    assert told == [(line.levelno, line.getMessage()) for line in caplog.records]


def test_a_log_that_starts_again_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    follower = Follower()
    assert LocalLogEnds(9, 9, None) == follower.logs.perform_step(PARTITION, EPOCH, RestartAt(9))
    lines = [line for line in caplog.records if line.levelno == logging.WARNING]
    assert [f"{PARTITION} starts again at its leader's start 9"] == [
        line.getMessage() for line in lines
    ]


def test_the_leaders_watermark_wakes_who_reads_from_the_follower() -> None:
    follower = Follower()
    answers: list[FetchResults] = []
    params = CONSUMER._replace(is_leader_required=False)
    fetch = follower.replicas.fetch(params, [(PARTITION, FetchSpec(4, 1 << 20))])
    when_there(fetch, answers.append)
    assert [] == answers
    follower.logs.perform_step(PARTITION, EPOCH, AppendFetched(b"", 5, 0))
    ((_, result),) = answers[0]
    assert (len(sent()), 5) == (result.size_bytes, result.high_watermark)


def test_a_log_is_read_and_changed_as_a_follower_of_its_epoch_alone() -> None:
    follower, own = Follower(), LocalLogEnds(0, 6, 0)
    logs, partition = follower.logs, follower.partition

    def found(epoch: int) -> list[LocalLogEnds | None]:
        return [
            logs.local_replica_log(PARTITION, epoch),
            logs.begin_following(PARTITION, epoch),
            logs.perform_step(PARTITION, epoch, FetchFromEnd()),
        ]

    assert [own] * 3 == found(EPOCH)
    assert [None] * 3 == found(EPOCH - 1)
    partition.become_leader(state((1, 2), epoch=EPOCH + 1))
    assert [None] * 3 == found(EPOCH + 1)
    follower.replicas.remove(PARTITION)
    assert [None] * 3 == found(EPOCH + 1)


def test_a_step_that_is_none_stops_the_fetcher() -> None:
    with pytest.raises(AssertionError):
        Follower().logs.perform_step(PARTITION, EPOCH, "not a step")  # type: ignore[arg-type]
