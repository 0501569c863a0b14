"""Clients that consume, transform and produce in transactions, in a run without faults."""

from __future__ import annotations

from engine.sim.plan import plan_of
from engine.sim.simulation import Simulation, postpone_collection


def test_copiers_copy_while_members_come_and_go() -> None:
    plan = next(plan for plan in map(plan_of, range(200)) if plan.copier_count > 1)
    plan = plan._replace(faults=(), duration_ms=8_000)
    with postpone_collection():
        simulation = Simulation(plan)
        result = simulation.run()
        copies = simulation.ledger.copies.committed_count
        compared = simulation.coordinated.coordinators.compared_count
    assert result.violation is None
    assert copies > 0
    assert compared > 0
