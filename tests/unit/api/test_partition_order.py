"""Orders in which a real 3.9.1 broker listed what requests named (`partition_order_3_9_1.json`).

Its topics had twelve partitions each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from engine.wire.structs import message_class
from tests.unit.broker.memory_broker import MemoryBroker, MemoryClient
from tests.unit.broker.test_broker import create_topic
from tests.unit.broker.test_groups import SETTINGS, coordinated

#: Topics with the numbers of their partitions.
Named: TypeAlias = list[tuple[str, list[int]]]

REAL: dict[str, list[tuple[Named | None, Named]]] = json.loads(
    (Path(__file__).parent / "partition_order_3_9_1.json").read_text()
)
TOPICS = {topic for rows in REAL.values() for _, listed in rows for topic, _ in listed}
CASES = [
    pytest.param(name, *row, id=f"{name}-{sum(len(indexes) for _, indexes in row[1])}")
    for name, rows in REAL.items()
    for row in rows
]


@pytest.fixture(scope="module")
def client() -> Iterator[MemoryClient]:
    stage = MemoryBroker(**SETTINGS).start()
    for topic in sorted(TOPICS):
        create_topic(stage.connect(), topic, 12)
    coordinated(stage)
    yield stage.connect()
    stage.stop()
    assert not stage.faults


def rows(path: str, topics: Named, **fields: Any) -> list[Any]:
    """Return the topics of a request; `path` has its name, and those of a topic and a partition."""
    name, topic_name, row_name = path.split(".")
    message = message_class(f"{name}Request")
    row = getattr(message, row_name)
    return [
        getattr(message, topic_name)(
            name=topic, partitions=[row(partition_index=index, **fields) for index in indexes]
        )
        for topic, indexes in topics
    ]


def listed(topics: list[Any], rows_name: str = "partitions") -> list[list[Any]]:
    """Return the topics of a response."""
    return [
        [topic.name, [row.partition_index for row in getattr(topic, rows_name)]] for topic in topics
    ]


def commit(client: MemoryClient, group_id: str, topics: Named) -> Any:
    path = "OffsetCommit.OffsetCommitRequestTopic.OffsetCommitRequestPartition"
    return client.ask("OffsetCommit", 7, group_id=group_id, topics=rows(path, topics))


def fetch(client: MemoryClient, group_id: str, topics: Named | None) -> Any:
    of = message_class("OffsetFetchRequest")
    named = [
        of.OffsetFetchRequestTopics(name=topic, partition_indexes=indexes)
        for topic, indexes in topics or ()
    ]
    group = of.OffsetFetchRequestGroup(group_id=group_id, topics=None if topics is None else named)
    return client.ask("OffsetFetch", 8, groups=[group]).groups[0]


def verify(client: MemoryClient, topics: Named) -> Any:
    of = message_class("AddPartitionsToTxnRequest")
    named = [
        of.AddPartitionsToTxnTopic(name=topic, partitions=indexes) for topic, indexes in topics
    ]
    transaction = of.AddPartitionsToTxnTransaction(
        transactional_id="x", producer_id=1, verify_only=True, topics=named
    )
    answer = client.ask("AddPartitionsToTxn", 4, transactions=[transaction])
    return answer.results_by_transaction[0].topic_results


def move(client: MemoryClient, topics: Named) -> list[list[Any]]:
    of = message_class("AlterReplicaLogDirsRequest")
    named = [
        of.AlterReplicaLogDirTopic(name=topic, partitions=indexes) for topic, indexes in topics
    ]
    directory = of.AlterReplicaLogDir(path="/elsewhere", topics=named)
    answer = client.ask("AlterReplicaLogDirs", 1, dirs=[directory])
    return [
        [topic.topic_name, [row.partition_index for row in topic.partitions]]
        for topic in answer.results
    ]


def elect(client: MemoryClient, topics: Named) -> list[list[Any]]:
    of = message_class("ElectLeadersRequest")
    named = [of.TopicPartitions(topic=topic, partitions=indexes) for topic, indexes in topics]
    answer = client.ask("ElectLeaders", 1, election_type=0, timeout_ms=0, topic_partitions=named)
    return [
        [topic.topic, [row.partition_id for row in topic.partition_result]]
        for topic in answer.replica_election_results
    ]


def delete_groups(client: MemoryClient, groups: Named) -> list[list[Any]]:
    answer = client.ask("DeleteGroups", 1, groups_names=[name for name, _ in groups])
    return [[result.group_id, []] for result in answer.results]


@pytest.mark.parametrize(("name", "requested", "expected"), CASES)
def test_partitions_come_in_the_order_of_a_real_broker(
    client: MemoryClient, name: str, requested: Named | None, expected: Named
) -> None:
    if requested is None:
        # A group that has committed these alone.
        group_id = f"of {expected}"
        commit(client, group_id, sorted(expected))
        found = listed(fetch(client, group_id, None).topics)
    elif name == "OffsetCommit":
        found = listed(commit(client, "g", requested).topics)
    elif name == "TxnOffsetCommit":
        path = f"{name}.{name}RequestTopic.{name}RequestPartition"
        fields = {"transactional_id": "x", "group_id": "g", "topics": rows(path, requested)}
        found = listed(client.ask(name, 3, **fields).topics)
    elif name == "OffsetFetch":
        found = listed(fetch(client, "g", requested).topics)
    elif name == "OffsetDelete":
        commit(client, "g", requested)
        path = f"{name}.{name}RequestTopic.{name}RequestPartition"
        found = listed(client.ask(name, 0, group_id="g", topics=rows(path, requested)).topics)
    elif name == "DeleteRecords":
        path = f"{name}.{name}Topic.{name}Partition"
        found = listed(client.ask(name, 1, timeout_ms=1000, topics=rows(path, requested)).topics)
    elif name == "AlterReplicaLogDirs":
        found = move(client, requested)
    elif name == "ElectLeaders":
        found = elect(client, requested)
    elif name == "DeleteGroups":
        found = delete_groups(client, requested)
    else:
        found = listed(verify(client, requested), "results_by_partition")
    assert expected == found
