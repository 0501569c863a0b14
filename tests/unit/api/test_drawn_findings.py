"""What brokers answer to requests that name things twice, not at all, or in vain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.wire import messages
from tests.unit.broker.memory_broker import MemoryBroker, MemoryClient
from tests.unit.broker.test_broker import create_topic
from tests.unit.broker.test_groups import SETTINGS, coordinated


@pytest.fixture
def stage() -> Iterator[MemoryBroker]:
    stage = MemoryBroker(**SETTINGS).start()
    create_topic(stage.connect(), "t")
    coordinated(stage)
    yield stage
    stage.stop()
    assert not stage.faults


def _group_state(client: MemoryClient) -> str:
    answer: Any = client.ask("DescribeGroups", 5, groups=["g"])
    return str(answer.groups[0].group_state)


def _commit_in_transaction(client: MemoryClient) -> int:
    topic = messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    row = messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    rows = [row(partition_index=0, committed_offset=1)]
    asked = [topic(name="t", partitions=rows)]
    fields = {"transactional_id": "x", "group_id": "g", "producer_id": 1, "producer_epoch": 0}
    answer: Any = client.ask("TxnOffsetCommit", 3, topics=asked, **fields)
    return int(answer.topics[0].partitions[0].error_code)


def test_a_group_is_there_once_a_transaction_meant_to_commit_for_it(stage: MemoryBroker) -> None:
    client = stage.connect()
    assert "Dead" == _group_state(client)
    assert _commit_in_transaction(client) != 0
    assert "Empty" == _group_state(client)


def test_deleting_offsets_of_no_partition_ends_no_group(stage: MemoryBroker) -> None:
    client = stage.connect()
    _commit_in_transaction(client)
    topic = messages.OffsetDeleteRequest.OffsetDeleteRequestTopic
    row = messages.OffsetDeleteRequest.OffsetDeleteRequestPartition
    asked = [topic(name="gone", partitions=[row(partition_index=0)]), topic(name="t")]
    answer: Any = client.ask("OffsetDelete", 0, group_id="g", topics=asked)
    assert ["gone"] == [one.name for one in answer.topics]
    assert "Empty" == _group_state(client)


def test_states_that_there_are_not_are_named_once(stage: MemoryBroker) -> None:
    answer: Any = stage.connect().ask("ListTransactions", 0, state_filters=["no", "Ongoing", "no"])
    assert ["no"] == answer.unknown_state_filters


def test_topics_of_a_transaction_that_is_refused_are_those_of_the_request(
    stage: MemoryBroker,
) -> None:
    topic = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    asked = [topic(name="t", partitions=[]), topic(name="t", partitions=[0])]
    answer: Any = stage.connect().ask(
        "AddPartitionsToTxn",
        1,
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=1,
        v3_and_below_topics=asked,
    )
    found = [len(one.results_by_partition) for one in answer.results_by_topic_v3_and_below]
    assert [0, 1] == found


def test_replicas_are_checked_before_the_count_is(stage: MemoryBroker) -> None:
    topic = messages.CreatePartitionsRequest.CreatePartitionsTopic
    replicas = messages.CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=[7])
    asked = [topic(name="t", count=2**31 - 1, assignments=[replicas])]
    answer: Any = stage.connect().ask("CreatePartitions", 3, topics=asked, timeout_ms=1000)
    assert 39 == answer.results[0].error_code


@pytest.mark.parametrize(("key", "code"), [("no.such.key", 40), ("retention.ms", -1)])
def test_settings_are_checked_before_partition_0_is_missed(
    stage: MemoryBroker, key: str, code: int
) -> None:
    request = messages.CreateTopicsRequest
    topic = request.CreatableTopic(
        name="new",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[request.CreatableReplicaAssignment(partition_index=-1, broker_ids=[1])],
        configs=[request.CreatableTopicConfig(name=key, value="1")],
    )
    answer: Any = stage.connect().ask("CreateTopics", 7, topics=[topic], timeout_ms=1000)
    assert code == answer.topics[0].error_code


def test_a_token_has_no_owner_without_a_type(stage: MemoryBroker) -> None:
    owner = {"owner_principal_type": None, "owner_principal_name": "a"}
    answer: Any = stage.connect().ask("CreateDelegationToken", 3, **owner)
    found = (answer.error_code, answer.principal_type, answer.principal_name)
    assert (-1, "User", "ANONYMOUS") == found


@pytest.mark.parametrize(
    ("key", "operation", "expected"),
    [
        ("log.cleaner.threads", 4, (42, "Unknown operations type 4")),
        ("no.such.key", -1, (42, "Unknown operations type -1")),
        ("leader.replication.throttled.rate", 3, (-1, None)),
    ],
)
def test_operations_on_a_brokers_settings_are_known_before_their_keys_are(
    stage: MemoryBroker, key: str, operation: int, expected: tuple[int, str | None]
) -> None:
    request = messages.IncrementalAlterConfigsRequest
    config = request.AlterableConfig(name=key, config_operation=operation, value="1")
    resource = request.AlterConfigsResource(resource_type=4, resource_name="", configs=[config])
    answer: Any = stage.connect().ask("IncrementalAlterConfigs", 1, resources=[resource])
    (found,) = answer.responses
    assert expected == (found.error_code, found.error_message)


def test_an_election_of_an_unknown_kind_lists_the_topics_of_its_request(
    stage: MemoryBroker,
) -> None:
    topic = messages.ElectLeadersRequest.TopicPartitions
    asked = [topic(topic="t", partitions=[0]), topic(topic="t", partitions=[0, 2])]
    answer: Any = stage.connect().ask(
        "ElectLeaders", 2, election_type=2, topic_partitions=asked, timeout_ms=1000
    )
    found = [
        [row.partition_id for row in one.partition_result]
        for one in answer.replica_election_results
    ]
    assert [[0], [0, 2]] == found


def test_a_protocol_without_a_name_is_none_for_members_that_know_null(stage: MemoryBroker) -> None:
    protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol(name="")
    fields: dict[str, Any] = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000}
    client = stage.connect()
    fields |= {"group_id": "g", "group_instance_id": "i", "protocols": [protocol]}
    assert client.ask("JoinGroup", 7, **fields, protocol_type="consumer") is None
    stage.pass_time(4_000)
    answer: Any = client.answer("JoinGroup", 7)
    assert (0, None) == (answer.error_code, answer.protocol_name)


def test_an_empty_password_is_refused_to_all_whose_changes_were_legal(stage: MemoryBroker) -> None:
    request = messages.AlterUserScramCredentialsRequest
    creation = {"mechanism": 1, "iterations": 8192, "salt": b"s"}
    client = stage.connect()

    def altered(deletions: dict[str, int], **passwords: bytes) -> list[tuple[str, int]]:
        answer: Any = client.ask(
            "AlterUserScramCredentials",
            0,
            deletions=[
                request.ScramCredentialDeletion(name=name, mechanism=mechanism)
                for name, mechanism in deletions.items()
            ],
            upsertions=[
                request.ScramCredentialUpsertion(name=name, salted_password=password, **creation)
                for name, password in passwords.items()
            ],
        )
        return [(one.user, one.error_code) for one in answer.results]

    assert [("gone", 91), ("a", -1), ("b", -1)] == altered({"gone": 1}, a=b"", b=b"p")
    assert [("a", 91), ("b", 0)] == altered({"a": 2}, a=b"", b=b"p")
    described: Any = client.ask("DescribeUserScramCredentials", 0, users=None)
    assert ["b"] == [one.user for one in described.results]
