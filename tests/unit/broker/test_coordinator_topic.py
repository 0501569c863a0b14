"""Appends of coordinators: their state follows the log, also where the client is gone."""

from __future__ import annotations

from engine.broker.coordinator_topic import CoordinatorTopic, Waiting
from engine.records.builder import BatchSettings
from engine.replication.delayed_produce import ProduceResult
from engine.replication.metadata_cache import MetadataCache
from engine.replication.partition import ACKS_ALL
from tests.unit.log.writing import PARTITION
from tests.unit.replication.replicas import Broker


def test_an_append_is_waited_for_though_its_client_is_gone() -> None:
    broker = Broker((1, 2))
    topic = CoordinatorTopic(
        PARTITION.topic, broker.manager, MetadataCache(1, "cluster"), broker.clock
    )
    waiting = Waiting(ACKS_ALL, 1_000)
    taken: list[ProduceResult] = []
    appended = topic.append(PARTITION.partition, [(b"k", b"v")], BatchSettings(), waiting)
    appended.then(taken.append).abandon()
    assert 1 == broker.manager.delayed_produce_count
    broker.pass_time(1_000)
    assert [7] == [result.error.code for result in taken if result.error is not None]
