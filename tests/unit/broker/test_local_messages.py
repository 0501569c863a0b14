"""Brokers of one process exchange messages, or the bytes that they stand for. Source: D12."""

from __future__ import annotations

import pytest

from engine.broker.host import BrokerHost
from tests.unit.broker.memory_cluster import MemoryCluster


class EncodedCluster(MemoryCluster):
    """A cluster of one process whose messages go through their bytes."""

    def host_of(self, broker_id: int) -> BrokerHost:
        """Return what a broker stands on, with the switch."""
        return super().host_of(broker_id)._replace(encodes_local_messages=True)


def played(kind: type[MemoryCluster]) -> list[object]:
    """Return what is seen of a cluster that is written to, loses its leader and gets it back."""
    cluster = kind(is_one_process=True)
    cluster.create_topic()
    cluster.pass_time(1_000)
    seen: list[object] = []
    for _ in range(3):
        assert 0 == cluster.produce(cluster.stored().leader, 5).code()
    cluster.stop(cluster.stored().leader)
    cluster.pass_time(2_000)
    assert 0 == cluster.produce(cluster.stored().leader, 5).code()
    seen.append((cluster.stored().leader, cluster.stored().isr, cluster.ends()))
    cluster.start(next(broker_id for broker_id in (1, 2, 3) if broker_id not in cluster.brokers))
    cluster.pass_time(3_000)
    seen.append((cluster.stored().leader, sorted(cluster.stored().isr), cluster.ends()))
    return [*seen, *(cluster.content(broker_id) for broker_id in (1, 2, 3))]


def test_messages_and_their_bytes_lead_to_the_same() -> None:
    assert played(MemoryCluster) == played(EncodedCluster)


def test_bytes_are_exchanged_only_where_that_is_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    exchanged = []
    from engine.broker import peers

    serve = peers.serve_encoded
    monkeypatch.setattr(
        peers, "serve_encoded", lambda *call: (exchanged.append(call[1]), serve(*call))[1]
    )
    played(MemoryCluster)
    assert [] == exchanged
    played(EncodedCluster)
    assert {"LeaderAndIsr", "Fetch", "AlterPartition"} <= set(exchanged)
