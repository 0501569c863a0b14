"""Moves between log directories, as a broker is asked for them."""

from __future__ import annotations

from typing import Any

from engine.api.alter_replica_log_dirs import AlterReplicaLogDirs
from engine.errors import api_error
from engine.host.memory_network import MemoryTimers
from engine.host.turns import LoopTurns
from engine.kafka_errors import NOT_LEADER_OR_FOLLOWER, REPLICA_NOT_AVAILABLE
from engine.limits import SHARE_MS_MAX
from engine.model import TopicPartition
from engine.wire.structs import message_class
from tests.unit.api.asking import LookedAt, exchange_of

REQUEST = message_class("AlterReplicaLogDirsRequest")


def wanted(path: str, topic: str, *partitions: int) -> Any:
    row = REQUEST.AlterReplicaLogDirTopic(name=topic, partitions=list(partitions))
    return REQUEST.AlterReplicaLogDir(path=path, topics=[row])


def test_moves_of_many_partitions_begin_in_several_turns() -> None:
    clock = LookedAt()
    clock.step_ms = SHARE_MS_MAX
    timers = MemoryTimers(clock)
    moved: list[tuple[TopicPartition, str]] = []

    def move_to(topic_partition: TopicPartition, path: str) -> None:
        moved.append((topic_partition, path))
        if topic_partition.partition == 1:
            raise api_error(NOT_LEADER_OR_FOLLOWER)

    handler = AlterReplicaLogDirs(move_to, LoopTurns(timers, clock))
    request = REQUEST(dirs=[wanted("/a", "t", 0, 1, 2), wanted("/b", "t", 2)])
    reply = handler.handle(request, exchange_of("AlterReplicaLogDirs", 2))
    begun: list[int] = []

    def look() -> None:
        begun.append(len(moved))
        if not reply.is_kept:
            timers.call_soon(look)

    look()
    timers.run_until_idle()
    assert [0, 1, 2, 3] == begun
    expected = [(0, "/a"), (1, "/a"), (2, "/b")]
    assert expected == [(key.partition, path) for key, path in moved]
    (topic,) = reply.result().results
    assert [0, REPLICA_NOT_AVAILABLE, 0] == [row.error_code for row in topic.partitions]
