"""Requests for hundreds of partitions, which brokers serve in several turns of their loop."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from engine.wire.codec import message_codec
from engine.wire.structs import message_class
from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.raw_client import RawClient
from tests.unit.log.writing import sent

_COUNT = 300
_TOPIC = "large"
_TIMEOUT_MS = 60_000


@pytest.fixture(scope="module", params=[1, 3])
def client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RawClient]:
    """Return a client of broker 1, which leads all partitions of a topic with all its replicas."""
    cluster = EmbeddedCluster(tmp_path_factory.mktemp("large") / "cluster", brokers=request.param)
    cluster.start("--one-process")
    made = message_class("CreateTopicsRequest")
    row = made.CreatableReplicaAssignment
    assignments = [
        row(partition_index=index, broker_ids=cluster.broker_ids) for index in range(_COUNT)
    ]
    topic = made.CreatableTopic(
        name=_TOPIC, num_partitions=-1, replication_factor=-1, assignments=assignments
    )
    try:
        with RawClient(cluster.address.split(",")[0], timeout_s=_TIMEOUT_MS / 1000) as client:
            reply = client.ask("CreateTopics", 7, topics=[topic], timeout_ms=_TIMEOUT_MS)
            assert [0] == [each.error_code for each in reply.topics]
            yield client
    finally:
        cluster.destroy()


def _produce(client: RawClient, acks: int) -> list[Any]:
    made, records = message_class("ProduceRequest"), sent(at_ms=time.time_ns() // 1_000_000)
    rows = [made.PartitionProduceData(index=index, records=records) for index in range(_COUNT)]
    data = [made.TopicProduceData(name=_TOPIC, partition_data=rows)]
    reply = client.ask("Produce", 9, acks=acks, timeout_ms=_TIMEOUT_MS, topic_data=data)
    found: list[Any] = reply.responses[0].partition_responses
    return found


def _fetch_fields(offsets: list[int], **more: Any) -> dict[str, Any]:
    made = message_class("FetchRequest")
    rows = [
        made.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index, offset in enumerate(offsets)
    ]
    return {
        "max_wait_ms": _TIMEOUT_MS,
        "min_bytes": 1,
        "max_bytes": 50 << 20,
        "topics": [made.FetchTopic(topic=_TOPIC, partitions=rows)],
        **more,
    }


@pytest.mark.slow
@pytest.mark.parametrize("acks", [1, -1])
def test_what_is_produced_to_all_is_fetched_from_all(client: RawClient, acks: int) -> None:
    offsets = [row.base_offset for row in _produce(client, acks)]
    assert [index for index, offset in enumerate(offsets) if offset >= 0] == list(range(_COUNT))
    _produce(client, -1)
    reply = client.ask("Fetch", 12, **_fetch_fields(offsets))
    rows = reply.responses[0].partitions
    assert {(0, 2 * len(sent()))} == {(row.error_code, len(row.records)) for row in rows}
    assert list(range(_COUNT)) == [row.partition_index for row in rows]


@pytest.mark.slow
def test_a_fetch_of_all_waits_for_a_record_of_the_last(client: RawClient) -> None:
    ends = [row.base_offset + 1 for row in _produce(client, -1)]
    body = message_class("FetchRequest")(**_fetch_fields(ends))
    client.send("Fetch", 12, message_codec("FetchRequest", 12).encode(body))
    made, records = message_class("ProduceRequest"), sent(at_ms=time.time_ns() // 1_000_000)
    row = made.PartitionProduceData(index=_COUNT - 1, records=records)
    request = made(
        acks=1,
        timeout_ms=_TIMEOUT_MS,
        topic_data=[made.TopicProduceData(name=_TOPIC, partition_data=[row])],
    )
    # Behind it on the same connection: what waits for bytes holds nobody.
    client.send("Produce", 9, message_codec("ProduceRequest", 9).encode(request))
    frame = client.frame()
    assert frame is not None
    reply = message_codec("FetchResponse", 12).decode(frame[5:])
    rows = reply.responses[0].partitions
    assert [_COUNT - 1] == [row.partition_index for row in rows if row.records]
    assert client.frame() is not None
