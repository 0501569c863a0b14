"""Directories, partitions and space as DescribeLogDirs tells them."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from engine.api.describe_log_dirs import DescribeLogDirs
from engine.host.memory_network import MemoryTimers
from engine.host.ports import LogDirOffline
from engine.host.promise import Promise
from engine.host.turns import LoopTurns
from engine.limits import SHARE_MS_MAX
from engine.log.directory.log_manager import LogManager
from engine.replication.partition import Partition
from engine.replication.partition_types import PartitionState
from engine.replication.replica_manager import ReplicaManager
from engine.wire.structs import message_class
from tests.unit.api.asking import LookedAt, ask, exchange_of
from tests.unit.log.managing import T0, T1, U0, A, B, Host
from tests.unit.log.writing import sent
from tests.unit.replication.replicas import ports_of

REQUEST = message_class("DescribeLogDirsRequest")


class Stage:
    """A broker with two directories: t-0 in the first, t-1 and u-0 in the second."""

    def __init__(self) -> None:
        self.host = Host()
        self.host.files.total_bytes = 1 << 30
        self.logs: LogManager = self.host.started()
        self.replicas = ReplicaManager(self.host.clock, ports_of())
        for key, directory in ((T0, A), (T1, B), (U0, B)):
            log = self.logs.get_or_create(key, is_new=True, directory=directory)
            if key is not U0:
                partition = Partition(1, log, self.host.clock, is_alive=lambda _broker_id: True)
                partition.become_leader(PartitionState(1, 0, (1,), 0, (1,)))
                self.replicas.add(partition)
        self.clock = LookedAt()
        self.timers = MemoryTimers(self.clock)
        turns = LoopTurns(self.timers, self.clock)
        self.handler = DescribeLogDirs(self.host.files, self.logs, self.replicas, turns)

    def append(self, count: int) -> None:
        self.replicas.find(T0).append(sent(count), 1)

    def begin(self) -> Promise[Any]:
        """Ask for all, a partition in each turn."""
        self.clock.step_ms = SHARE_MS_MAX
        return self.handler.handle(REQUEST(topics=None), exchange_of("DescribeLogDirs", 4))

    def ask(self, version: int = 4, **fields: Any) -> Any:
        fields.setdefault("topics", None)
        return ask(self.handler, "DescribeLogDirs", version, **fields)


def told(reply: Any) -> dict[str, list[tuple[str, int, int, bool]]]:
    return {
        each.log_dir: [
            (topic.name, p.partition_index, p.offset_lag, p.is_future_key)
            for topic in each.topics
            for p in topic.partitions
        ]
        for each in reply.results
    }


@pytest.mark.parametrize("version", range(5))
def test_null_asks_for_all(version: int) -> None:
    reply = Stage().ask(version)
    expected = {
        A: [("t", 0, 0, False)],
        B: [("t", 1, 0, False), ("u", 0, -1, False)],
    }
    assert expected == told(reply)
    assert 0 == reply.error_code


def test_only_requested_partitions_that_are_here_are_described() -> None:
    topics = [REQUEST.DescribableLogDirTopic(topic="t", partitions=[1, 7])]
    topics.append(REQUEST.DescribableLogDirTopic(topic="ghost", partitions=[0]))
    assert {A: [], B: [("t", 1, 0, False)]} == told(Stage().ask(topics=topics))
    assert {A: [], B: []} == told(Stage().ask(topics=[]))


def test_sizes_and_space_are_reported() -> None:
    stage = Stage()
    stage.append(3)
    first, second = stage.ask().results
    size = first.topics[0].partitions[0].partition_size
    assert size == stage.logs.logs[T0].size_bytes > 0
    assert 1 << 30 == first.total_bytes == second.total_bytes
    assert stage.host.files.disk_space(A).usable_bytes == first.usable_bytes


def test_a_log_that_is_being_moved_lags_behind_the_one_it_copies() -> None:
    stage = Stage()
    stage.append(3)
    stage.logs.get_or_create(T0, is_new=True, is_future=True, directory=B)
    reply = told(stage.ask())
    assert [("t", 0, 0, False)] == reply[A]
    assert ("t", 0, 3, True) in reply[B]


def test_an_offline_directory_says_only_that() -> None:
    stage = Stage()
    stage.logs.take_offline(B, LogDirOffline(B, "write", "gone", errno.EIO))
    first, second = stage.ask().results
    assert (0, 56) == (first.error_code, second.error_code)
    assert (B, [], -1, -1) == (
        second.log_dir,
        second.topics,
        second.total_bytes,
        second.usable_bytes,
    )


def test_a_directory_of_unknown_space_is_in_error() -> None:
    stage = Stage()
    stage.host.files.fail("stat", errno.EIO, path_end=A)
    assert [56, 0] == [each.error_code for each in stage.ask().results]


def test_each_share_leaves_others_their_turns() -> None:
    stage = Stage()
    reply = stage.begin()
    turns: list[bool] = []

    def look() -> None:
        turns.append(reply.is_kept)
        if not reply.is_kept:
            stage.timers.call_soon(look)

    look()
    stage.timers.run_until_idle()
    assert [False, False, False, True] == turns
    assert 3 == sum(map(len, told(reply.result()).values()))


def test_logs_that_are_gone_when_their_turn_comes_are_left_out() -> None:
    stage = Stage()
    reply = stage.begin()
    stage.logs.delete([T1])
    stage.logs.take_offline(A, LogDirOffline(A, "write", "gone", errno.EIO))
    stage.timers.run_until_idle()
    assert {A: [], B: [("u", 0, -1, False)]} == told(reply.result())
