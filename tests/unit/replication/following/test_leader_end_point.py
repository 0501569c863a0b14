"""A leader as a fetcher asks it: by which ids partitions go."""

from __future__ import annotations

from typing import Any

import pytest

from engine.client.connection import Call
from engine.host.memory_network import MemoryTimers
from engine.host.promise import Promise
from engine.ids import uuid_text
from engine.model import TopicPartition
from engine.replication.following.followed_partitions import FollowedPartitions
from engine.replication.following.follower_logs import FollowerLogs
from engine.replication.following.leader_end_point import FetcherPorts, LeaderEndPoint
from engine.replication.metadata_cache import BrokerNode, MetadataCache, PartitionMetadata
from tests.unit.log.writing import PARTITION
from tests.unit.replication.replicas import Broker, state

LEADER = 2
OWN, KNOWN = b"o" * 16, b"k" * 16


class FakeChannel:
    """A way to the leader on which requests are written when a test says so."""

    is_same = False

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def send(self, call: Call) -> Promise[Any]:
        self.calls.append(call)
        return Promise()

    def close(self) -> None:
        self.calls.clear()


class Asking:
    """Broker 1 follows one partition of broker 2, whose topic the metadata have with an id."""

    def __init__(self, own_id: bytes | None) -> None:
        broker = Broker()
        broker.partition.become_follower(state((1, LEADER), leader=LEADER, epoch=1))
        broker.partition.log.topic_id = None if own_id is None else uuid_text(own_id)
        self.metadata, self.channel = MetadataCache(1, "cluster"), FakeChannel()
        self.tell(PartitionMetadata(LEADER, 1, (1, LEADER), 0, (1, LEADER)), {"t": KNOWN})
        self.followed = FollowedPartitions(FollowerLogs(broker.manager), broker.clock, broker.quota)
        self.followed.follow(PARTITION, 1)
        timers = MemoryTimers(broker.clock)
        ports = FetcherPorts(
            1, lambda: 0, self.metadata, lambda *_: self.channel, timers, broker.clock
        )
        self.leader = LeaderEndPoint(LEADER, self.followed, ports, 0)

    def tell(self, partition: PartitionMetadata | None, topic_ids: dict[str, bytes]) -> None:
        """Let the metadata say something else of the partition."""
        self.metadata.update(1, [BrokerNode(LEADER, ())], {PARTITION: partition}, topic_ids)

    def fetch(self) -> Call:
        """Ask for all that is followed; the request is not written yet."""
        assert self.leader.ensure_connected()
        self.leader.fetch(self.followed.start_cycle(), lambda *_: None)
        return self.channel.calls[-1]


def ids_in(call: Call) -> dict[bytes, list[int]]:
    assert callable(call.message)
    request: Any = call.message(17)
    return {topic.topic_id: [it.partition for it in topic.partitions] for topic in request.topics}


@pytest.mark.parametrize(("own_id", "asked_by"), [(OWN, OWN), (None, KNOWN)])
def test_a_partition_goes_by_the_id_of_its_log_or_by_that_of_the_metadata(
    own_id: bytes | None, asked_by: bytes
) -> None:
    call = Asking(own_id).fetch()
    assert {asked_by: [PARTITION.partition]} == ids_in(call)
    assert {PARTITION: asked_by} == getattr(call.local, "topic_ids", None)


def test_a_topic_may_go_before_its_request_is_written() -> None:
    asking = Asking(None)
    call = asking.fetch()
    # A follower that is not connected yet writes its request later.
    asking.tell(None, {})
    assert asking.metadata.partition(TopicPartition("t", 0)) is None
    assert {KNOWN: [PARTITION.partition]} == ids_in(call)
