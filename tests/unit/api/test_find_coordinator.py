"""FindCoordinator, in the form of every version."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from engine.api.find_coordinator import FindCoordinator
from engine.model import TopicPartition
from engine.naming import CONSUMER_OFFSETS, TRANSACTION_STATE
from engine.replication.metadata_cache import PartitionMetadata
from tests.unit.api.asking import INSIDE, OUTSIDE, ask, cluster


class Stage:
    """A handler, the partition that it finds for every group, and the topics that it created."""

    def __init__(self, partition: int = 0) -> None:
        self.cache = cluster()
        self.created: list[str] = []
        self.handler = FindCoordinator(
            self.cache, lambda _group: partition, lambda _id: 1, self._create
        )

    async def _create(self, topics: Iterable[str]) -> dict[str, int]:
        self.created += topics
        return {}

    def ask(self, version: int, **fields: Any) -> Any:
        return ask(self.handler, "FindCoordinator", version, **fields)


@pytest.mark.parametrize("version", range(4))
def test_one_key_is_answered_at_the_top(version: int) -> None:
    response = Stage().ask(version, key="g")
    found = (response.error_code, response.node_id, response.host, response.port)
    assert (0, 1, "one", 9092) == found
    assert [] == response.coordinators
    assert response.error_message == ("" if version == 0 else "NONE")


@pytest.mark.parametrize("version", range(4, 7))
def test_keys_are_answered_in_a_list_without_messages(version: int) -> None:
    response = Stage().ask(version, coordinator_keys=["a", "b"])
    assert [("a", 0, 1, 9092, ""), ("b", 0, 1, 9092, "")] == [
        (row.key, row.error_code, row.node_id, row.port, row.error_message)
        for row in response.coordinators
    ]


@pytest.mark.parametrize(("version", "key_type", "code"), [(5, 2, 42), (6, 2, 15), (6, 3, 42)])
def test_types_of_coordinators_belong_to_versions(version: int, key_type: int, code: int) -> None:
    response = Stage().ask(version, key_type=key_type, coordinator_keys=["a"])
    assert [(code, -1)] == [(row.error_code, row.node_id) for row in response.coordinators]
    # A type that some version has is refused without words.
    words = "This most likely occurs because of a request being malformed by the client library"
    for row in response.coordinators:
        assert row.error_message.startswith(words) if key_type == 3 else not row.error_message


def test_the_topic_is_created_when_it_is_first_needed() -> None:
    stage = Stage()
    stage.cache.update(1, [], {TopicPartition(CONSUMER_OFFSETS, 0): None}, {})
    assert stage.ask(3, key="g").error_code == 15
    assert [CONSUMER_OFFSETS] == stage.created


def test_a_transactional_id_has_the_leader_of_its_own_topic() -> None:
    stage = Stage()
    assert stage.ask(3, key="x", key_type=1).error_code == 15
    assert [TRANSACTION_STATE] == stage.created
    partition = PartitionMetadata(2, 3, (2,), 1, (2,))
    brokers = list(stage.cache.brokers.values())
    stage.cache.update(1, brokers, {TopicPartition(TRANSACTION_STATE, 1): partition}, {})
    for version in range(1, 7):
        named = {"coordinator_keys": ["x"]} if version >= 4 else {"key": "x"}
        found = stage.ask(version, key_type=1, **named)
        row = found.coordinators[0] if version >= 4 else found
        assert (0, 2) == (row.error_code, row.node_id)


@pytest.mark.parametrize(
    ("leader_id", "listener"),
    [(-1, INSIDE), (3, INSIDE), (2, OUTSIDE)],
    ids=["no leader", "a leader that is down", "a leader without the listener"],
)
def test_a_group_whose_partition_cannot_be_reached_has_no_coordinator(
    leader_id: int, listener: str
) -> None:
    stage = Stage()
    partition = PartitionMetadata(leader_id, 3, (1,), 1, (1,))
    brokers = list(stage.cache.brokers.values())
    stage.cache.update(1, brokers, {TopicPartition(CONSUMER_OFFSETS, 0): partition}, {})
    response = stage.ask(3, key="g", listener=listener)
    assert (15, -1, "") == (response.error_code, response.node_id, response.host)
    assert [] == stage.created


def test_a_group_of_a_partition_that_nobody_knows_has_no_coordinator() -> None:
    assert Stage(partition=7).ask(3, key="g").error_code == 15
