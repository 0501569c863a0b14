"""A name server that is away for a while stops nothing for good."""

from __future__ import annotations

import pytest

from engine.host.memory_network import LookupFault
from tests.unit.broker.memory_cluster import MemoryCluster

_AWAY_MS = 20_000


def _cluster(fault: LookupFault) -> MemoryCluster:
    """Return a cluster that has lost its connections, and cannot make others for now."""
    cluster = MemoryCluster(is_one_process=False)
    cluster.create_topic(replicas=[(1, 2, 3)])
    cluster.pass_time(2000)
    cluster.network.lookup_faults["here"] = fault
    for listener in cluster.network.listeners:
        while listener.close_least_recently_used("connection reset by peer"):
            pass
    return cluster


@pytest.mark.parametrize("fault", [LookupFault(0, fails=True), LookupFault(5000, fails=True)])
def test_brokers_go_on_when_their_names_are_found_again(fault: LookupFault) -> None:
    cluster = _cluster(fault)
    cluster.pass_time(_AWAY_MS)
    cluster.network.lookup_faults.clear()
    cluster.pass_time(15_000)
    # Followers fetch, and the leader's larger set is granted by the controller.
    assert 0 == cluster.produce(1, 3).code()
    cluster.pass_time(2000)
    assert (1, (1, 2, 3)) == (cluster.stored().leader, tuple(sorted(cluster.stored().isr)))
    assert [(3, 3)] * 3 == list(cluster.ends().values())
    # The controller's orders arrive, and its answer to one that stops.
    stopping = cluster.begin_stop(1)
    cluster.pass_time(2000)
    stopping.result()
    assert 1 != cluster.stored().leader


def test_a_slow_look_up_delays_and_ends_nothing() -> None:
    cluster = _cluster(LookupFault(3000, fails=False))
    cluster.pass_time(10_000)
    # The client of the test has no look-up to wait for.
    cluster.network.lookup_faults.clear()
    assert 0 == cluster.produce(1, 3).code()
    assert (1, 2, 3) == tuple(sorted(cluster.stored().isr))
