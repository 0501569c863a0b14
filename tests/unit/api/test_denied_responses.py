"""What a denied client gets is Kafka's, byte for byte, and says nothing of what is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from engine.api.admission import AclResource, NoQuotas
from engine.kafka_errors import (
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
)
from engine.wire.structs import message_class
from tests.unit.api.authorizers import AllowEach, DenyAll
from tests.unit.api.test_admission import fields_of
from tests.unit.broker.memory_broker import MemoryBroker, MemoryClient
from tests.unit.broker.test_broker import create_topic
from tests.unit.broker.test_groups import SETTINGS, commit, coordinated

#: Two that are there, two that are not; those of `no-` are denied.
NAMES = ("no-there", "ok-there", "no-such", "ok-such")
DENIED_LAST = ["ok-there", "ok-such", "no-there", "no-such"]


@pytest.fixture
def stages() -> Iterator[list[MemoryBroker]]:
    stages = [MemoryBroker(**SETTINGS).start() for _ in range(2)]
    yield stages
    for stage in stages:
        stage.stop()
        assert not stage.faults


def deny(stage: MemoryBroker) -> MemoryClient:
    """Return a client of a broker that denies what begins with `no-`, and all of the cluster."""
    for topic in NAMES[:2]:
        create_topic(stage.connect(), topic)
    coordinated(stage)
    authorizer = AllowEach(
        lambda requested: requested[2].startswith("no-") or requested[1] is AclResource.CLUSTER
    )
    stage.broker.table.admission.change(authorizer, NoQuotas())
    return stage.connect()


def test_a_denied_client_cannot_see_what_is_there(stages: list[MemoryBroker]) -> None:
    there = stages[0]
    create_topic(there.connect(), "t")
    coordinated(there)
    assert commit(there, 1) == 0
    topic_id = there.broker.metadata_cache.topic_ids["t"]
    for stage in stages:
        stage.broker.table.admission.change(DenyAll(), NoQuotas())
    clients = [stage.connect() for stage in stages]
    for row in there.broker.table.rows():
        for version in range(row.lowest, row.highest + 1):
            if row.name == "Fetch" and version >= 13:
                # By an id that nobody can guess: Kafka says of an unknown one that it is.
                continue
            fields = fields_of(row.name, version, topic_id)
            answers = [client.ask(row.name, version, **fields) for client in clients]
            texts = [re.sub(r"<memory at \w+>", "", repr(answer)) for answer in answers]
            assert texts[0] == texts[1], (row.name, version)


def rows(name: str, /, **fields: Any) -> list[Any]:
    """Return a row of a request for each name; `name` has its class and the field of the names."""
    request_name, class_name, key = name.split(".")
    of = getattr(message_class(f"{request_name}Request"), class_name)
    return [of(**{key: each}, **fields) for each in NAMES]


def row(name: str, /, **fields: Any) -> Any:
    """Return one row of a request."""
    request_name, class_name = name.split(".")
    return getattr(message_class(f"{request_name}Request"), class_name)(**fields)


def partition(name: str, /, **fields: Any) -> list[Any]:
    """Return partition 0 in a list."""
    return [row(name, **{"partition_index": 0} | fields)]


def names_in(answer: Any) -> list[str]:
    """Return what the rows of an answer are about, in their order."""
    (listed,) = [
        value
        for value in map(partial(getattr, answer), type(answer).__slots__)
        if isinstance(value, list) and value
    ]
    if hasattr(listed[0], "topics"):
        return names_in(listed[0])
    keys = ("name", "topic", "group_id", "resource_name")
    key = next(key for key in keys if hasattr(listed[0], key))
    return [getattr(each, key) for each in listed]


def ordered_cases() -> dict[tuple[str, int, int], tuple[dict[str, Any], list[str]]]:
    """Return requests about all names, by API and versions, and in what order they are answered."""
    of_group = {"group_id": "ok-group"}
    committed = {"committed_offset": 0}
    group = row(
        "OffsetFetch.OffsetFetchRequestGroup",
        group_id="ok-group",
        topics=rows("OffsetFetch.OffsetFetchRequestTopics.name", partition_indexes=[0]),
    )
    owner = {"transactional_id": "ok", "producer_id": 1, "producer_epoch": 0}
    refused_first = ["no-there", "no-such", "ok-such", "ok-there"]
    return {
        ("ListOffsets", 1, 9): (
            {
                "replica_id": -1,
                "topics": rows(
                    "ListOffsets.ListOffsetsTopic.name",
                    partitions=partition("ListOffsets.ListOffsetsPartition", timestamp=-1),
                ),
            },
            DENIED_LAST,
        ),
        ("OffsetForLeaderEpoch", 3, 4): (
            {
                "replica_id": -1,
                "topics": rows(
                    "OffsetForLeaderEpoch.OffsetForLeaderTopic.topic",
                    partitions=[
                        row(
                            "OffsetForLeaderEpoch.OffsetForLeaderPartition",
                            partition=0,
                            leader_epoch=0,
                        )
                    ],
                ),
            },
            DENIED_LAST,
        ),
        ("OffsetFetch", 8, 9): ({"groups": [group]}, DENIED_LAST),
        ("DescribeGroups", 0, 5): (
            {"groups": NAMES},
            ["no-there", "no-such", "ok-there", "ok-such"],
        ),
        # Those that may be deleted come in the order of hashes.
        ("DeleteGroups", 0, 2): (
            {"groups_names": NAMES},
            ["ok-such", "ok-there", "no-there", "no-such"],
        ),
        ("DescribeConfigs", 0, 4): (
            {
                "resources": rows(
                    "DescribeConfigs.DescribeConfigsResource.resource_name",
                    resource_type=2,
                    configuration_keys=None,
                )
            },
            DENIED_LAST,
        ),
        ("OffsetCommit", 2, 9): (
            of_group
            | {
                "topics": rows(
                    "OffsetCommit.OffsetCommitRequestTopic.name",
                    partitions=partition("OffsetCommit.OffsetCommitRequestPartition", **committed),
                )
            },
            refused_first,
        ),
        ("TxnOffsetCommit", 0, 4): (
            owner
            | of_group
            | {
                "topics": rows(
                    "TxnOffsetCommit.TxnOffsetCommitRequestTopic.name",
                    partitions=partition(
                        "TxnOffsetCommit.TxnOffsetCommitRequestPartition", **committed
                    ),
                )
            },
            refused_first,
        ),
    }


@pytest.mark.parametrize("case", ordered_cases(), ids=str)
def test_what_is_denied_has_its_place(
    stages: list[MemoryBroker], case: tuple[str, int, int]
) -> None:
    stage, (name, lowest, highest) = stages[0], case
    client = deny(stage)
    fields, expected = ordered_cases()[case]
    for version in range(lowest, highest + 1):
        assert expected == names_in(client.ask(name, version, **fields)), version


def test_a_fetch_says_first_which_ids_are_unknown(stages: list[MemoryBroker]) -> None:
    stage = stages[0]
    client = deny(stage)
    ids = stage.broker.metadata_cache.topic_ids
    requested = [ids["no-there"], b"n" * 16, ids["ok-there"], b"o" * 16]
    asked = row("Fetch.FetchPartition", partition=0, partition_max_bytes=100)
    topics = [
        row("Fetch.FetchTopic", topic_id=topic_id, partitions=[asked]) for topic_id in requested
    ]
    answer = client.ask("Fetch", 13, max_wait_ms=0, topics=topics)
    expected = [ids["ok-there"], b"n" * 16, b"o" * 16, ids["no-there"]]
    assert expected == [bytes(topic.topic_id) for topic in answer.responses]
    codes = [topic.partitions[0].error_code for topic in answer.responses]
    assert codes == [0, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED]


def test_topics_of_a_transaction_that_is_denied_keep_their_order(
    stages: list[MemoryBroker],
) -> None:
    fields = {
        "v3_and_below_transactional_id": "no-transaction",
        "v3_and_below_topics": rows(
            "AddPartitionsToTxn.AddPartitionsToTxnTopic.name", partitions=[0]
        ),
    }
    answer = deny(stages[0]).ask("AddPartitionsToTxn", 3, **fields)
    assert list(NAMES) == [topic.name for topic in answer.results_by_topic_v3_and_below]


def test_a_group_that_is_denied_has_no_members_and_no_partitions(
    stages: list[MemoryBroker],
) -> None:
    client = deny(stages[0])
    joined = client.ask("JoinGroup", 5, group_id="no-group", member_id="m", protocol_type="c")
    assert (joined.error_code, joined.member_id) == (GROUP_AUTHORIZATION_FAILED, "")
    topics = rows("OffsetFetch.OffsetFetchRequestTopic.name", partition_indexes=[0])
    assert client.ask("OffsetFetch", 1, group_id="no-group", topics=topics).topics == []


def test_refusals_for_the_cluster_name_what_was_requested(stages: list[MemoryBroker]) -> None:
    client = deny(stages[0])
    topics = [
        row(
            "ListPartitionReassignments.ListPartitionReassignmentsTopics",
            name="t",
            partition_indexes=[3],
        )
    ]
    (listed,) = client.ask("ListPartitionReassignments", 0, timeout_ms=9, topics=topics).topics
    assert (listed.name, listed.partitions[0].partition_index) == ("t", 3)
    assert listed.partitions[0].replicas == []
    users = [row("DescribeUserScramCredentials.UserName", name=name) for name in "ab"]
    described = client.ask("DescribeUserScramCredentials", 0, users=users)
    assert [(one.user, one.error_code) for one in described.results] == [("", 31), ("", 31)]
    assert (described.error_code, described.error_message) == (31, None)
    assert client.ask("DescribeClientQuotas", 0, components=[]).error_message is None
    features = client.ask("UpdateFeatures", 1, timeout_ms=9)
    assert (features.error_code, features.error_message) == (31, "Cluster authorization failed.")
