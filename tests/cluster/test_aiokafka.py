"""aiokafka against the embedded broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.cluster.embedded import EmbeddedCluster

_DEADLINE_MS = 30_000
Values = Callable[[int], list[bytes]]


async def _round_trip(
    address: str, topic: str, sent: list[bytes], codec: str | None, *, is_idempotent: bool
) -> list[bytes]:
    producer = AIOKafkaProducer(
        bootstrap_servers=address, compression_type=codec, enable_idempotence=is_idempotent
    )
    await producer.start()
    try:
        for value in sent:
            await producer.send_and_wait(topic, value, partition=0)
    finally:
        await producer.stop()
    consumer = AIOKafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
    await consumer.start()
    try:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        found: list[bytes] = []
        while len(found) < len(sent):
            polled = await consumer.getmany(partition, timeout_ms=_DEADLINE_MS)
            assert polled, f"{len(found)} of {len(sent)} came in time"
            found += [record.value for record in polled[partition]]
        return found
    finally:
        await consumer.stop()


@pytest.mark.parametrize("is_idempotent", [False, True])
@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_what_is_produced_is_consumed(
    cluster: EmbeddedCluster, topic: str, values: Values, codec: str | None, is_idempotent: bool
) -> None:
    sent = values(30)
    found = asyncio.run(
        _round_trip(cluster.address, topic, sent, codec, is_idempotent=is_idempotent)
    )
    assert found == sent
