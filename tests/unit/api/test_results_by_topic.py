"""How topics that a request names twice, or without partitions, stand in its response.

What Kafka 3.9.1 answers to the same requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.wire.structs import message_class
from tests.unit.broker.memory_broker import MemoryBroker
from tests.unit.broker.test_broker import create_topic
from tests.unit.broker.test_groups import SETTINGS, commit, coordinated

#: Topics of a request with their partitions: t has partition 0 alone, others do not exist.
ASKED = [("t", []), ("nope", []), ("t", [0, 0]), ("nope", [1]), ("t", [7]), ("none", [])]
MERGED = [("nope", [(1, 3)]), ("t", [(7, 3), (0, 0)]), ("none", [])]


@pytest.fixture(scope="module")
def stage() -> Iterator[MemoryBroker]:
    stage = MemoryBroker(**SETTINGS)
    stage.start()
    create_topic(stage.connect(), "t")
    coordinated(stage)
    yield stage
    stage.stop()


def topics(api: str, kind: str, asked: list[tuple[str, list[int]]], row: str | None) -> list[Any]:
    """Return topics of a request; `row` is the type of partitions, None for bare numbers."""
    of = message_class(f"{api}Request")

    def partitions(indexes: list[int]) -> list[Any]:
        return indexes if row is None else [getattr(of, row)(partition_index=n) for n in indexes]

    return [getattr(of, kind)(name=name, partitions=partitions(found)) for name, found in asked]


def listed(response: Any) -> list[tuple[str, list[tuple[int, int]]]]:
    return [
        (topic.name, [(row.partition_index, row.error_code) for row in topic.partitions])
        for topic in response.topics
    ]


def commit_of(stage: MemoryBroker, asked: list[tuple[str, list[int]]], **fields: Any) -> Any:
    rows = topics("OffsetCommit", "OffsetCommitRequestTopic", asked, "OffsetCommitRequestPartition")
    owner = {"generation_id_or_member_epoch": -1, **fields}
    return stage.connect().ask("OffsetCommit", 8, group_id="g", topics=rows, **owner)


def test_a_commit_lists_each_topic_once_and_what_does_not_exist_first(stage: MemoryBroker) -> None:
    assert MERGED == listed(commit_of(stage, ASKED))
    assert [] == listed(commit_of(stage, [("t", []), ("t", [])]))
    assert [("nope", [(2, 3), (0, 3), (2, 3)])] == listed(
        commit_of(stage, [("nope", [2, 0]), ("nope", [2])])
    )


def test_so_does_a_deletion_of_offsets(stage: MemoryBroker) -> None:
    assert 0 == commit(stage, 1)
    rows = topics("OffsetDelete", "OffsetDeleteRequestTopic", ASKED, "OffsetDeleteRequestPartition")
    response = stage.connect().ask("OffsetDelete", 0, group_id="g", topics=rows)
    assert MERGED == listed(response)


def test_so_does_a_commit_within_a_transaction(stage: MemoryBroker) -> None:
    kind, row = "TxnOffsetCommitRequestTopic", "TxnOffsetCommitRequestPartition"
    asked = [("t", []), ("nope", [1]), ("nope", [1]), ("none", []), ("t", [7])]
    response = stage.connect().ask(
        "TxnOffsetCommit",
        3,
        transactional_id="x",
        group_id="g",
        topics=topics("TxnOffsetCommit", kind, asked, row),
    )
    assert [("nope", [(1, 3), (1, 3)]), ("none", []), ("t", [(7, 3)])] == listed(response)


def test_a_commit_that_is_not_verified_leaves_the_group_that_it_was_for(
    stage: MemoryBroker,
) -> None:
    asked = topics(
        "TxnOffsetCommit",
        "TxnOffsetCommitRequestTopic",
        [("t", [0])],
        "TxnOffsetCommitRequestPartition",
    )
    client = stage.connect()
    client.ask("TxnOffsetCommit", 3, transactional_id="x", group_id="made", topics=asked)
    stage.pass_time(1_000)
    listed_groups = stage.connect().ask("ListGroups", 4, states_filter=[]).groups
    assert ("made", "Empty", "") in [
        (group.group_id, group.group_state, group.protocol_type) for group in listed_groups
    ]


def test_states_that_do_not_exist_are_listed_once(stage: MemoryBroker) -> None:
    response = stage.connect().ask("ListTransactions", 0, state_filters=["a", "b", "a"])
    assert ["a", "b"] == response.unknown_state_filters


def test_partitions_that_are_added_stand_as_they_were_requested(stage: MemoryBroker) -> None:
    rows = topics("AddPartitionsToTxn", "AddPartitionsToTxnTopic", ASKED[:3], None)
    response = stage.connect().ask(
        "AddPartitionsToTxn",
        3,
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=1,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=rows,
    )
    results = response.results_by_topic_v3_and_below
    assert [("t", []), ("nope", []), ("t", [0, 0])] == [
        (topic.name, [row.partition_index for row in topic.results_by_partition])
        for topic in results
    ]


def test_a_user_without_a_path_fails_all_changes_of_credentials(stage: MemoryBroker) -> None:
    of = message_class("AlterUserScramCredentialsRequest")

    def alter(*deletions: tuple[str, int]) -> list[tuple[str, int, str | None]]:
        rows = [of.ScramCredentialDeletion(name=name, mechanism=kind) for name, kind in deletions]
        response = stage.connect().ask("AlterUserScramCredentials", 0, deletions=rows)
        return [(row.user, row.error_code, row.error_message) for row in response.results]

    assert [("a", -1, None), (".", -1, None)] == alter(("a", 0), (".", 1), (".", 2))
    # One that is refused before is not looked up.
    assert [33] == [code for _, code, _ in alter((".", 0))]


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_topic_without_a_path_fails_all_that_are_to_grow(stage: MemoryBroker, name: str) -> None:
    of = message_class("CreatePartitionsRequest")
    asked = ["t", "nope", name, "t"]
    rows = [of.CreatePartitionsTopic(name=one, count=2) for one in asked]
    response = stage.connect().ask("CreatePartitions", 3, topics=rows, timeout_ms=1000)
    assert [(one, -1, None) for one in asked] == [
        (row.name, row.error_code, row.error_message) for row in response.results
    ]


def test_an_edit_that_cannot_be_applied_is_refused_before_a_topic_that_does_not_exist(
    stage: MemoryBroker,
) -> None:
    of = message_class("IncrementalAlterConfigsRequest")

    def append(topic: str, key: str) -> tuple[int, str | None]:
        change = of.AlterableConfig(name=key, config_operation=2, value="compact")
        row = of.AlterConfigsResource(resource_type=2, resource_name=topic, configs=[change])
        (result,) = stage.connect().ask("IncrementalAlterConfigs", 1, resources=[row]).responses
        return result.error_code, result.error_message

    throttled = "follower.replication.throttled.rate"
    assert append("t", throttled) == append("nope", throttled) == (-1, None)
    assert (3, "The topic 'nope' does not exist.") == append("nope", "cleanup.policy")
