"""Batches that a disk returns damaged: nobody takes them, and a replica may lack what follows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from engine.host.memory import MemoryFiles
from engine.model import TopicPartition
from engine.sim.bit_rot import BitRot, BitRotRules, whole_part
from engine.sim.fault_kinds import FaultKind
from engine.sim.histories import History
from engine.sim.node import SimulatedBroker
from engine.sim.plan import Fault, Plan, plan_of
from engine.sim.records import Sender, build
from engine.sim.simulation import run_plan
from engine.znode.values import PartitionStateNode
from tests.sim.mutants import Fault as Planted
from tests.sim.rot_mutants import followers_take_damaged_batches, recovery_goes_past_damage
from tests.sim.test_operator import traced

#: Its records are not synced, compacted or deleted.
_SEED = 24


def rot_plan(*others: Fault, whom: str = "leader", lasting_ms: int = 9_000) -> Plan:
    """Return a plan of three brokers with batches that are damaged all the time, and others."""
    rots = [
        Fault(2_000 + 900 * n, FaultKind.BIT_ROT, whom, lasting_ms, 7919 * n) for n in range(18)
    ]
    return plan_of(_SEED, duration_ms=20_000)._replace(
        broker_count=3,
        topics=(1,),
        processes=((1,), (2,), (3,)),
        is_unclean_allowed=False,
        consumer_count=1,
        faults=tuple(sorted((*rots, *others), key=lambda fault: fault.at_ms)),
    )


def _batches(*counts: int) -> list[bytes]:
    return [build(Sender("p"), 10 * place, count, 5) for place, count in enumerate(counts)]


@pytest.mark.parametrize("at", [8, 17, 23, 61, 70])
def test_the_part_before_a_damaged_batch_is_whole(at: int) -> None:
    first, second, third = _batches(2, 1, 3)
    damaged = bytearray(second)
    damaged[at] ^= 1
    assert (first + second + third, None) == whole_part(first + second + third)
    whole, offset = whole_part(first + damaged + third)
    # A damaged length may name more bytes than there are.
    assert whole == first
    assert offset in (0, None)


def test_consumers_are_given_damaged_batches_and_go_on_when_the_disk_is_put_right() -> None:
    # Many that do not last: most are damaged after the consumer has read them.
    lines = traced(rot_plan(lasting_ms=800)).lines
    assert sum(" is damaged on b" in line for line in lines) > 10
    assert any(": wrong checksum" in line for line in lines)


def test_a_follower_that_comes_back_refuses_what_its_leader_has_damaged() -> None:
    assert any("is refused: CORRUPT_MESSAGE" in line for line in traced(plan_of(60)).lines)


def test_a_log_is_truncated_before_a_damaged_batch_that_was_not_flushed() -> None:
    kills = [Fault(at_ms, FaultKind.KILL, "2", 1_000) for at_ms in range(4_000, 18_000, 2_500)]
    plan = rot_plan(*kills, whom="2")
    assert any("Corruption found in segment" in line for line in traced(plan).lines)


@pytest.mark.parametrize(
    ("plant", "rule"),
    [(followers_take_damaged_batches, "R1"), (recovery_goes_past_damage, "L2")],
)
def test_checksums_that_nobody_checks_are_noticed(
    monkeypatch: pytest.MonkeyPatch, plant: Planted, rule: str
) -> None:
    kills = [
        Fault(4_000 + 1_500 * n, FaultKind.KILL if n % 2 else FaultKind.POWER_CUT, "2", 500, 1)
        for n in range(10)
    ]
    plan = rot_plan(*kills, whom="2" if rule == "L2" else "leader")
    assert run_plan(plan).violation is None
    plant(monkeypatch)
    violation = run_plan(plan).violation
    assert violation is not None
    assert violation.rule == rule


def damaged_disk(key: TopicPartition, history: History) -> tuple[MemoryFiles, BitRotRules]:
    """Return the disk of broker 2, on which a batch of a replica at offset 5 is damaged."""
    files = MemoryFiles()
    files.make_dir(f"/data/{key}")
    files.replace_file(f"/data/{key}/{0:020}.log", b"abc")
    files.flip(f"/data/{key}/{0:020}.log", 1, 1)
    node = SimpleNamespace(name="b2", disk=SimpleNamespace(files=files))
    history.state = PartitionStateNode(1, 1, 3, (1,))
    rots = BitRotRules({key: history}, {2: cast(SimulatedBroker, node)})
    rots._rots[2] = BitRot(2, key, 5)
    return files, rots


def test_a_new_replica_does_not_have_the_damage_of_a_deleted_one() -> None:
    key = TopicPartition("t", 0)
    files, rots = damaged_disk(key, History("t-0"))
    assert rots.is_damaged(2, key)
    files.rename(f"/data/{key}", f"/data/{key}.{'0' * 32}-delete")
    files.make_dir(f"/data/{key}")
    files.replace_file(f"/data/{key}/{0:020}.log", b"abc")
    rots.now_ms = 1_000
    # A response of the deleted log may be on its way, later ones are of the new log.
    assert rots.explains("b2", key, 5)
    assert not rots.is_damaged(2, key)
    assert rots.damage_of(2) is None
    rots.now_ms = 20_000
    assert not rots.explains("b2", key, 5)
    rots.end(BitRot(2, key, 5))
    assert not rots.explains("b2", key, 5)
    assert not rots.may_have_failed_at_damage(2, key)


def test_a_follower_that_failed_at_damage_may_stay_behind_until_the_next_leader_epoch() -> None:
    key, history = TopicPartition("t", 0), History("t-0")
    files, rots = damaged_disk(key, history)
    assert rots.may_have_failed_at_damage(2, key)
    files.flip_back()
    assert rots.may_have_failed_at_damage(2, key)
    assert not rots.may_have_failed_at_damage(2, TopicPartition("t", 1))
    history.state = history.state._replace(leader_epoch=4)
    assert not rots.may_have_failed_at_damage(2, key)


def test_bits_rot_in_some_seeds_and_in_none_that_compacts() -> None:
    plans = [plan_of(seed) for seed in range(100)]
    rotten = [plan for plan in plans if any(f.kind is FaultKind.BIT_ROT for f in plan.faults)]
    assert 3 <= len(rotten) <= 25
    assert not any(plan.is_compacted for plan in rotten)
