"""A fetcher with a remote leader: fast fetch cycles, and when the next one is whole.

Source: REPL-5, PART-9.
"""

from __future__ import annotations

from typing import Any

import pytest

from engine.api.fetch import Fetch
from engine.log.validation import CorruptMessage
from engine.model import TopicPartition
from engine.replication.following.fetch_session_handler import FetchSessionHandler
from engine.replication.following.replica_fetcher import ReplicaFetcher
from tests.unit.broker.memory_cluster import T0, MemoryCluster

T1 = TopicPartition("t", 1)


class Rounds:
    """Brokers in processes of their own; 2 and 3 follow 1. Whole requests and reads are counted."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.cluster = MemoryCluster(is_one_process=False, min_insync_replicas="2")
        self.cluster.create_topic(replicas=[(1, 2, 3), (1, 2, 3)])
        self.cluster.pass_time(2000)
        self.requested_count = self.read_count = 0
        # The first record of an epoch comes with a whole round, and its watermark with another.
        for key in (T0, T1, T0):
            self.produce(key)
        self.cluster.pass_time(600)
        self.produce()
        message, answer = FetchSessionHandler._build_message, Fetch.answer

        def asking(session: FetchSessionHandler, *arguments: Any) -> Any:
            self.requested_count += 1
            return message(session, *arguments)

        def reading(fetch: Fetch, *arguments: Any) -> Any:
            self.read_count += 1
            return answer(fetch, *arguments)

        patch.setattr(FetchSessionHandler, "_build_message", asking)
        patch.setattr(Fetch, "answer", reading)

    def produce(self, key: TopicPartition = T0, count: int = 1) -> None:
        assert 0 == self.cluster.produce(1, count, key=key).code()

    @property
    def counts(self) -> tuple[int, int]:
        return self.requested_count, self.read_count

    def fetcher(self, broker_id: int = 2) -> ReplicaFetcher:
        return self.cluster.brokers[broker_id].storage.fetchers.fetchers[1, 0]


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> Rounds:
    return Rounds(monkeypatch)


def same_content(rounds: Rounds, key: TopicPartition = T0) -> bool:
    return len({rounds.cluster.content(broker_id, key) for broker_id in (1, 2, 3)}) == 1


def test_records_of_one_partition_come_by_fast_fetch_cycles_alone(rounds: Rounds) -> None:
    for _ in range(5):
        rounds.produce()
    assert (0, 0) == rounds.counts
    assert same_content(rounds)
    assert {1: (8, 8), 2: (8, 7), 3: (8, 7)} == rounds.cluster.ends()


def test_a_whole_round_comes_when_the_wait_of_the_last_is_over(rounds: Rounds) -> None:
    for _ in range(10):
        rounds.cluster.pass_time(100)
        rounds.produce()
    requested, read = rounds.counts
    assert 4 <= requested <= 8
    assert 4 <= read <= 8
    assert same_content(rounds)


def test_watermarks_of_an_idle_leader_come_with_a_full_fetch_cycle(rounds: Rounds) -> None:
    rounds.produce()
    rounds.cluster.pass_time(600)
    assert {1: (4, 4), 2: (4, 4), 3: (4, 4)} == rounds.cluster.ends()


def test_a_partition_that_comes_during_fast_fetch_cycles_is_requested_with_the_next(
    rounds: Rounds,
) -> None:
    rounds.cluster.create_topic("u", replicas=[(1, 2, 3)])
    rounds.produce()
    key = TopicPartition("u", 0)
    rounds.produce(key)
    assert rounds.requested_count >= 2
    assert same_content(rounds, key)


def test_a_partition_that_is_followed_no_more_is_forgotten_with_the_next(rounds: Rounds) -> None:
    rounds.fetcher().followed.remove(T1)
    rounds.produce()
    assert 1 == rounds.requested_count
    rounds.produce()
    assert 1 == rounds.requested_count
    assert same_content(rounds)


def test_records_that_the_local_log_refuses_rest_and_come_again(rounds: Rounds) -> None:
    partition = rounds.cluster.partition(2)

    def refusing(*_arguments: Any) -> Any:
        del partition.append_as_follower  # type: ignore[method-assign]
        raise CorruptMessage("damaged on its way")

    partition.append_as_follower = refusing  # type: ignore[method-assign]
    requested = rounds.cluster.produce(1, 1)
    assert requested.code() is None
    rounds.cluster.pass_time(2000)
    assert 0 == requested.code()
    assert same_content(rounds)


def test_a_lost_connection_begins_a_new_session(rounds: Rounds) -> None:
    rounds.produce()
    rounds.cluster.stop(1)
    rounds.cluster.start(1)
    rounds.cluster.pass_time(3000)
    leader = rounds.cluster.stored().leader
    assert 0 == rounds.cluster.produce(leader, 3).code()
    rounds.cluster.pass_time(600)
    assert same_content(rounds)


def test_a_large_batch_comes_by_a_fast_fetch_cycle_too(rounds: Rounds) -> None:
    rounds.produce(count=4000)
    assert (0, 0) == rounds.counts
    assert same_content(rounds)
