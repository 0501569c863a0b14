"""Elections that are asked for: of which partitions, in which version, with which errors."""

from __future__ import annotations

from typing import Any

import pytest

from engine.client.errors import NoCommonVersion
from engine.client.leader_admin import Election, elect_leaders
from engine.errors import ApiError
from engine.kafka_errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    ELECTION_NOT_NEEDED,
    NOT_CONTROLLER,
)
from engine.model import TopicPartition
from engine.wire.structs import message_class
from tests.unit.client.fake_broker import FakeCluster

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


class ElectingCluster(FakeCluster):
    """Elects leaders of all partitions but t-1; broker 2 may be the controller by now."""

    def __init__(self, highest: int = 2) -> None:
        super().__init__({"ElectLeaders": (0, highest)})
        self.code = 0
        self.asked: list[Any] = []
        self.moves_controller = False
        self.handlers["ElectLeaders"] = self.elect

    def elect(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        rows = body.topic_partitions
        asked = rows and [(row.topic, row.partitions) for row in rows]
        self.asked.append((address[1] - 9000, version, body.election_type, asked))
        response = message_class("ElectLeadersResponse")
        moved, self.moves_controller = self.moves_controller, False
        if moved:
            self.controller = 2
        results = [
            response.ReplicaElectionResult(
                topic=row.topic,
                partition_result=[
                    response.PartitionResult(
                        partition_id=p,
                        error_code=NOT_CONTROLLER
                        if moved
                        else ELECTION_NOT_NEEDED
                        if (row.topic, p) == ("t", 1)
                        else 0,
                        error_message="it leads",
                    )
                    for p in row.partitions
                ],
            )
            for row in rows or []
        ]
        return response(error_code=self.code, replica_election_results=results)


def test_each_partition_has_its_result() -> None:
    cluster = ElectingCluster()
    with cluster.client() as client:
        found = elect_leaders(client, Election.PREFERRED, [T0, T1, U0])
    assert [(1, 2, 0, [("t", [0, 1]), ("u", [0])])] == cluster.asked
    assert [T0, T1, U0] == list(found)
    assert found[T0] is found[U0] is None
    assert "ELECTION_NOT_NEEDED: it leads" == str(found[T1])


def test_none_stands_for_all_and_unclean_elections_are_named() -> None:
    cluster = ElectingCluster()
    with cluster.client() as client:
        assert {} == elect_leaders(client, Election.UNCLEAN, None)
    assert [(1, 2, 1, None)] == cluster.asked


def test_a_controller_that_moved_meanwhile_is_asked_where_it_is() -> None:
    cluster = ElectingCluster()
    cluster.moves_controller = True
    with cluster.client() as client:
        assert {T0: None} == elect_leaders(client, Election.PREFERRED, [T0])
    assert [1, 2] == [broker_id for broker_id, *_ in cluster.asked]


def test_a_broker_of_preferred_elections_alone_gets_no_request_for_unclean_ones() -> None:
    cluster = ElectingCluster(highest=0)
    with cluster.client() as client:
        assert {T0: None} == elect_leaders(client, Election.PREFERRED, [T0])
        with pytest.raises(NoCommonVersion):
            elect_leaders(client, Election.UNCLEAN, [T0])
    assert [(1, 0, 0, [("t", [0])])] == cluster.asked


def test_the_error_of_the_request_as_a_whole_is_raised() -> None:
    cluster = ElectingCluster()
    cluster.code = CLUSTER_AUTHORIZATION_FAILED
    with cluster.client() as client, pytest.raises(ApiError, match="CLUSTER_AUTHORIZATION_FAILED"):
        elect_leaders(client, Election.PREFERRED, [T0])
