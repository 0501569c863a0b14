"""Reassignments asked for, taken back and listed; replicas moved between directories."""

from __future__ import annotations

from typing import Any

import pytest

from engine.client.errors import Unreachable
from engine.client.reassignments import (
    OngoingReassignment,
    alter_log_dirs,
    alter_reassignments,
    list_reassignments,
    request_moves,
)
from engine.errors import ApiError
from engine.kafka_errors import (
    BROKER_NOT_AVAILABLE,
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_REPLICA_ASSIGNMENT,
    LOG_DIR_NOT_FOUND,
)
from engine.model import TopicPartition
from engine.wire.structs import message_class
from tests.unit.client.fake_broker import FakeCluster

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


class MovingCluster(FakeCluster):
    """Keeps what it is asked for; t-0 moves from 1 and 2 to 2 and 3."""

    def __init__(self) -> None:
        super().__init__()
        self.code = 0
        self.refused = {1: INVALID_REPLICA_ASSIGNMENT}
        self.asked: list[Any] = []
        self.isr = [1, 2]
        for name in ("ListPartition", "AlterPartition"):
            self.handlers[f"{name}Reassignments"] = getattr(self, name)
        self.handlers["AlterReplicaLogDirs"] = self.log_dirs

    def metadata(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        answer = super().metadata(body, version, address)
        for topic in answer.topics:
            for row in topic.partitions:
                row.isr_nodes = list(self.isr)
                if row.partition_index == 0:
                    row.replica_nodes = [2, 3, 1]
        return answer

    def ListPartition(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        self.asked.append(body.topics and [(t.name, t.partition_indexes) for t in body.topics])
        response = message_class("ListPartitionReassignmentsResponse")
        row = response.OngoingPartitionReassignment(
            partition_index=0, replicas=[2, 3, 1], adding_replicas=[3], removing_replicas=[1]
        )
        topic = response.OngoingTopicReassignment(name="t", partitions=[row])
        return response(error_code=self.code, error_message="no", topics=[topic])

    def AlterPartition(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("AlterPartitionReassignmentsResponse")
        asked = {(t.name, p.partition_index): p.replicas for t in body.topics for p in t.partitions}
        self.asked.append(asked)
        rows = [
            response.ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    response.ReassignablePartitionResponse(
                        partition_index=p.partition_index,
                        error_code=self.refused.get(p.partition_index, 0),
                        error_message="one twice",
                    )
                    for p in topic.partitions
                ],
            )
            for topic in body.topics
        ]
        return response(error_code=self.code, error_message="not you", responses=rows)

    def log_dirs(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("AlterReplicaLogDirsResponse")
        number = address[1] - 9000
        paths = {d.path: [(t.name, t.partitions) for t in d.topics] for d in body.dirs}
        self.asked.append((number, paths))
        if number == 2:
            return None
        rows = [
            response.AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    response.AlterReplicaLogDirPartitionResult(
                        partition_index=p, error_code=0 if d.path == "/a" else LOG_DIR_NOT_FOUND
                    )
                    for p in topic.partitions
                ],
            )
            for d in body.dirs
            for topic in d.topics
        ]
        return response(results=rows)


@pytest.fixture
def cluster() -> MovingCluster:
    return MovingCluster()


def codes(results: Any) -> dict[Any, int]:
    return {key: 0 if error is None else error.code for key, error in results.items()}


MOVE = OngoingReassignment((2, 3, 1), (3,), (1,))


def test_a_reassignment_is_from_what_was_to_what_stays() -> None:
    assert ((2, 1), (2, 3)) == (MOVE.original, MOVE.target)


def test_reassignments_are_listed_of_all_or_of_some(cluster: MovingCluster) -> None:
    with cluster.client() as client:
        assert {T0: MOVE} == list_reassignments(client)
        assert {T0: MOVE} == list_reassignments(client, [T1, T0, U0])
        assert [None, [("t", [1, 0]), ("u", [0])]] == cluster.asked
        cluster.code = CLUSTER_AUTHORIZATION_FAILED
        with pytest.raises(ApiError, match="CLUSTER_AUTHORIZATION_FAILED: no"):
            list_reassignments(client)


def test_targets_are_requested_and_taken_back_each_with_its_error(cluster: MovingCluster) -> None:
    with cluster.client() as client:
        found = alter_reassignments(client, {T0: (2, 3), T1: (1, 1), U0: None})
        assert {T0: 0, T1: INVALID_REPLICA_ASSIGNMENT, U0: 0} == codes(found)
        assert "one twice" in str(found[T1])
        assert [{("t", 0): [2, 3], ("t", 1): [1, 1], ("u", 0): None}] == cluster.asked
        cluster.code = CLUSTER_AUTHORIZATION_FAILED
        with pytest.raises(ApiError, match="CLUSTER_AUTHORIZATION_FAILED: not you"):
            alter_reassignments(client, {T0: (2, 3)})


def test_each_broker_gets_its_directories_and_has_its_errors(cluster: MovingCluster) -> None:
    with cluster.client(request_timeout_ms=500) as client:
        paths = {1: {T0: "/a", T1: "/b", U0: "/a"}, 2: {T0: "/a"}, 7: {T1: "/a"}}
        found = alter_log_dirs(client, paths)
    assert (1, {"/a": [("t", [0]), ("u", [0])], "/b": [("t", [1])]}) in cluster.asked
    silent = found.pop((T0, 2))
    assert silent is not None
    assert not isinstance(silent, ApiError | Unreachable)
    assert "broker 7 is not alive" in str(found[T1, 7])
    assert {
        (T0, 1): 0,
        (U0, 1): 0,
        (T1, 1): LOG_DIR_NOT_FOUND,
        (T1, 7): BROKER_NOT_AVAILABLE,
    } == codes(found)


def test_the_controller_is_asked_only_where_replicas_lack_and_what_moves_is_no_lack(
    cluster: MovingCluster,
) -> None:
    cluster.isr = [1, 2, 3]
    with cluster.client() as client:
        view = client.view(["t"])
        assert (view, {}) == request_moves(client, view)
        assert [] == cluster.asked
        cluster.isr = [1, 2]
        view, moves = request_moves(client, client.view(["t"]))
    assert {T0: MOVE} == moves
    assert [[("t", [0])]] == cluster.asked
    first, second = view.topics["t"].partitions
    assert ((3,), False) == (first.adding, first.is_under_replicated)
    assert () == second.adding


def test_a_controller_that_does_not_answer_leaves_the_metadata(cluster: MovingCluster) -> None:
    cluster.code = CLUSTER_AUTHORIZATION_FAILED
    with cluster.client() as client:
        view = client.view(["t"])
        assert (view, {}) == request_moves(client, view)
    assert view.topics["t"].partitions[0].is_under_replicated
