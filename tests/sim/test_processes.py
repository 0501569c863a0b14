"""Brokers that share a process: they end together, stop alone, and reach each other by calls."""

from __future__ import annotations

from collections import Counter

import pytest

from engine.sim.fault_kinds import FaultKind
from engine.sim.plan import Fault, Plan, plan_of
from engine.sim.simulation import Simulation, postpone_collection, run_plan

_ALL = (1, 2, 3)


def shared_plan(*faults: Fault, encodes: bool = False, **more: object) -> Plan:
    """Return a plan of three brokers in one process with these faults."""
    plan = plan_of(3, duration_ms=12_000)._replace(
        broker_count=3,
        processes=(_ALL,),
        encodes_local_messages=encodes,
        is_unclean_allowed=False,
        faults=faults,
    )
    return plan._replace(**more)


def test_a_third_of_the_seeds_each_has_a_network_calls_and_calls_through_bytes() -> None:
    counts = Counter(
        (any(len(ids) > 1 for ids in plan.processes), plan.encodes_local_messages)
        for plan in map(plan_of, range(600))
    )
    assert {(False, False), (True, False), (True, True)} == set(counts)
    assert all(150 < count < 250 for count in counts.values())


@pytest.mark.parametrize("encodes", [False, True])
def test_brokers_of_one_process_have_no_connection_between_them(encodes: bool) -> None:
    simulation = Simulation(shared_plan(encodes=encodes))
    with postpone_collection():
        result = simulation.run()
        peers = {
            connection.peer.partition(":")[0]
            for node in simulation.nodes.values()
            for connection in node.machine.connections
        }
    assert result.violation is None
    assert result.acknowledged_count
    assert not peers & {"b1", "b2", "b3"}


def test_brokers_of_one_process_are_killed_together_and_come_back() -> None:
    result = run_plan(shared_plan(Fault(4_000, FaultKind.KILL, "2", 500)), is_traced=True)
    assert result.violation is None
    starts = [line.split() for line in result.lines if line.endswith(" starts")]
    assert ["b1", "b2", "b3"] == [name for _, name, _ in starts[3:6]]
    # Until the sessions of before are over, the ids are in use.
    ups = [line.split()[1] for line in result.lines if " is up, epoch " in line]
    assert ["b1", "b1", "b2", "b2", "b3", "b3"] == sorted(ups)


def test_a_broker_that_stops_in_order_leaves_the_others_of_its_process_alone() -> None:
    result = run_plan(shared_plan(Fault(4_000, FaultKind.STOP, "2", 500)), is_traced=True)
    assert result.violation is None
    starts = [line for line in result.lines if line.endswith(" starts")]
    assert 4 == len(starts)


def test_the_power_of_a_process_with_all_brokers_is_spared_unless_all_is_synced() -> None:
    cut = Fault(4_000, FaultKind.POWER_CUT, "2", 500)
    lines = "\n".join(run_plan(shared_plan(cut, is_synced=False), is_traced=True).lines)
    assert "spared" in lines
