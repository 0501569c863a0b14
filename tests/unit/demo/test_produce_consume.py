"""The producer and consumer demo on brokers in memory."""

from __future__ import annotations

import pytest

from engine.client.blocking import KafkaClient
from engine.demo.produce_consume import ProduceConsume, SeenRecord, SendMode
from engine.errors import ApiError
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.reassign.memory_streams import MemoryStreams, client_of


class Stage:
    """Three brokers with topic t of two partitions."""

    def __init__(self, **settings: str) -> None:
        self.cluster = MemoryCluster(
            is_one_process=True,
            offsets_topic_num_partitions="1",
            group_initial_rebalance_delay_ms="0",
            **settings,
        )
        self.cluster.create_topic("t", ((1, 2), (2, 1)))
        self.cluster.pass_time(1_000)
        self.seen: list[SeenRecord] = []

    def demo(self, way: SendMode) -> ProduceConsume:
        def client() -> KafkaClient:
            return client_of(self.cluster, MemoryStreams(self.cluster))

        return ProduceConsume((client(), client()), "t", "g", way, self.seen.append)


@pytest.mark.parametrize("way", SendMode)
def test_every_record_is_reported_as_sent_and_as_received(way: SendMode) -> None:
    stage = Stage()
    demo = stage.demo(way)
    demo.run(250, lambda: None)
    demo.close()
    sent = {seen.key: seen for seen in stage.seen if seen.is_sent}
    received = {seen.key: seen for seen in stage.seen if not seen.is_sent}
    assert 500 == len(stage.seen)
    assert {b"%d" % number for number in range(250)} == sent.keys() == received.keys()
    for key, seen in sent.items():
        assert seen[2:5] == received[key][2:5]
        assert seen.took_ms is not None
    assert (250, 250) == (demo.sent_count, demo.received_count)


def test_sync_has_one_record_under_way() -> None:
    stage = Stage()
    stage.demo(SendMode.SYNC).run(20, lambda: None)
    assert list(range(20)) == [int(seen.key or b"") for seen in stage.seen if seen.is_sent]


def test_a_consumer_begins_behind_what_there_was() -> None:
    stage = Stage()
    stage.demo(SendMode.ASYNC).run(10, lambda: None)
    stage.seen.clear()
    stage.cluster.pass_time(60_000)
    stage.demo(SendMode.ASYNC).run(10, lambda: None)
    assert 10 == sum(not seen.is_sent for seen in stage.seen)


def test_a_run_without_an_end_is_ended_between_two_steps() -> None:
    stage = Stage()
    turns = iter(range(30))

    def on_turn() -> None:
        if next(turns, None) is None:
            raise KeyboardInterrupt

    demo = stage.demo(SendMode.SYNC)
    with pytest.raises(KeyboardInterrupt):
        demo.run(None, on_turn)
    assert 0 < demo.sent_count <= 30


def test_a_record_that_is_not_stored_ends_the_run() -> None:
    stage = Stage(message_max_bytes="60")
    with pytest.raises(ApiError):
        stage.demo(SendMode.SYNC).run(1, lambda: None)
