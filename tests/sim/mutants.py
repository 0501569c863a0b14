"""Planted faults, and how many seeds it takes until a simulation finds each.

```
python -m tests.sim.mutants                        every mutant, up to 2,000 seeds
python -m tests.sim.mutants NAME ... --seeds 100   some of them
```
"""

from __future__ import annotations

import argparse
import os.path
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

import pytest

from engine.broker.storage import Storage
from engine.controller import reassignment, replica_machine
from engine.controller.states import REPLICA_COMES_FROM, ReplicaPhase
from engine.controller.topic_deletion import TopicDeletion
from engine.host import memory
from engine.host.memory import MemoryFiles
from engine.host.ports import Files
from engine.host.replace import TEMPORARY_SUFFIX
from engine.log.epoch_cache import EpochCache
from engine.replication import partition as partitions
from engine.replication.following.followed_partitions import FollowedPartitions
from engine.replication.leadership import Leadership
from engine.replication.partition import Partition
from engine.sim import node
from engine.sim.invariants import Violation
from engine.sim.plan import Plan, plan_of
from engine.sim.simulation import run_plan
from engine.znode.kept_watches import KeptWatches
from engine.znode.tree import ZnodeTree
from tests.scripts import loss_faults
from tests.scripts import test_scripts as planted
from tests.sim import cleaner_mutants as cleaner
from tests.sim import disk_mutants as disks
from tests.sim import excuse_mutants as excused
from tests.sim import group_mutants as groups
from tests.sim import quota_mutants as quotas
from tests.sim import retention_mutants as retention
from tests.sim import rot_mutants as rot
from tests.sim import set_back_mutants as set_back
from tests.sim import transaction_mutants as transactions
from tests.sim import transport_mutants as transport

Fault = Callable[[pytest.MonkeyPatch], None]


def _any_seed(_plan: Plan) -> bool:
    return True


def _has_group(plan: Plan) -> bool:
    return bool(plan.member_count or plan.copier_count)


def _has_transactions(plan: Plan) -> bool:
    return bool(plan.transactional_ids or plan.copier_count)


def _has_copiers(plan: Plan) -> bool:
    return bool(plan.copier_count)


class Mutant(NamedTuple):
    """A fault, the story it belongs to, and the rule that it breaks."""

    plant: Fault
    story: str
    rule: str
    #: Whether a plan has those that the fault is about; seeds of other plans pass it.
    concerns: Callable[[Plan], bool] = _any_seed

    @property
    def name(self) -> str:
        """Return what it is called by."""
        return self.plant.__name__


def any_follower_commits(patch: pytest.MonkeyPatch) -> None:
    """Commit what one follower has, in sync or not."""
    rule = partitions.leader_high_watermark

    def largest(current: int, end: int, ends: Iterable[int]) -> int:
        return rule(current, end, [max(ends, default=end)])

    patch.setattr(partitions, "leader_high_watermark", largest)
    patch.setattr(partitions, "is_watermark_held", lambda *_: False)


def leaving_members_hold_nothing(patch: pytest.MonkeyPatch) -> None:
    """Commit without a member of the set from when a move takes it off the assigned replicas."""
    rule = partitions.followers_of

    def assigned_alone(leader_id: int, assigned: Iterable[int], _isr: object, known: Any) -> Any:
        return rule(leader_id, assigned, (), known)

    patch.setattr(partitions, "followers_of", assigned_alone)


def epochs_outlive_their_records(patch: pytest.MonkeyPatch) -> None:
    """Keep the epochs of records that were cut off."""
    patch.setattr(EpochCache, "truncate_from_end", lambda self, end_offset: False)


def repeated_orders_drop_proposals(patch: pytest.MonkeyPatch) -> None:
    """Forget a proposed in-sync set when the controller's order comes a second time."""
    become_leader = Partition.become_leader

    def forgetting(self: Partition, state: Any) -> Any:
        self._is_awaited = False
        return become_leader(self, state)

    patch.setattr(Partition, "become_leader", forgetting)


def lost_requests_are_given_up(patch: pytest.MonkeyPatch) -> None:
    """Give an event of the controller up when the connection to the store is lost."""
    patch.setattr(node, "RetryingZnodeClient", lambda client: client)


def failed_orders_stay_secret(patch: pytest.MonkeyPatch) -> None:
    """Tell nobody of a disk that fails during an order of the controller."""
    from engine.replication.errors import to_api_error

    def quiet(self: Leadership, topic_partition: Any, failure: Any) -> Any:
        self._replicas.mark_offline(topic_partition)
        return to_api_error(topic_partition, failure)

    patch.setattr(Leadership, "_failed", quiet)


def passed_over_is_known(patch: pytest.MonkeyPatch) -> None:
    """Go on with a fetch session after an answer that was passed over."""
    taken = FollowedPartitions.apply_responses

    def certain(self: FollowedPartitions, *arguments: Any) -> bool:
        taken(self, *arguments)
        return True

    patch.setattr(FollowedPartitions, "apply_responses", certain)


def targets_need_not_catch_up(patch: pytest.MonkeyPatch) -> None:
    """End a reassignment before the replicas that come are in sync."""
    patch.setattr(reassignment, "is_caught_up", lambda assignment, isr: True)


def dead_replicas_count_as_deleted(patch: pytest.MonkeyPatch) -> None:
    """Remove a topic while a broker that has a replica of it is down."""
    phases_of = TopicDeletion._phases_of

    def without_the_dead(self: TopicDeletion, topic: str) -> set[ReplicaPhase]:
        phases = phases_of(self, topic)
        return phases - {ReplicaPhase.DELETION_INELIGIBLE} or phases

    patch.setattr(TopicDeletion, "_phases_of", without_the_dead)


def any_phase_follows_any(patch: pytest.MonkeyPatch) -> None:
    """Move replicas from phase to phase, the table not asked."""
    everything = dict.fromkeys(REPLICA_COMES_FROM, frozenset(ReplicaPhase))
    patch.setattr(replica_machine, "REPLICA_COMES_FROM", everything)


def ephemerals_outlive_their_sessions(patch: pytest.MonkeyPatch) -> None:
    """Leave what a session owned when it ends."""
    patch.setattr(ZnodeTree, "ephemerals", lambda self, session_id: [])


def renamed_before_it_is_synced(patch: pytest.MonkeyPatch) -> None:
    """Let the name of a checkpoint say that it is whole before its bytes are on the disk."""

    def replace_hastily(files: Files, path: str, content: bytes) -> None:
        handle = files.open(path + TEMPORARY_SUFFIX, write=True, create=True)
        handle.truncate(0)
        files.rename(path + TEMPORARY_SUFFIX, path)
        files.sync_dir(os.path.dirname(path))
        handle.append((content,))
        handle.sync()
        handle.close()

    patch.setattr(memory, "replace_durably", replace_hastily)


def folders_are_not_synced(patch: pytest.MonkeyPatch) -> None:
    """Leave to chance whether a power cut takes back the names of files."""
    patch.setattr(MemoryFiles, "sync_dir", lambda self, path: None)


def lost_watches_stay_lost(patch: pytest.MonkeyPatch) -> None:
    """Set no watch again on a new connection to the store."""
    reconnected = KeptWatches.set_all_again

    async def forgetful(self: KeptWatches) -> bool:
        self._watches.clear()
        return await reconnected(self)

    patch.setattr(KeptWatches, "set_all_again", forgetful)


def failed_directories_stay_in_use(patch: pytest.MonkeyPatch) -> None:
    """Say nothing to the partitions of a log directory that has failed beside another."""
    patch.setattr(Storage, "_on_offline_directory", lambda self, *_failure: None)


MUTANTS = (
    Mutant(planted.truncating_to_the_watermark, "watermark truncation", "REPL-2, R2"),
    Mutant(planted.the_end_alone, "fast double fail-over", "REPL-2, R1"),
    Mutant(planted.unfenced, "unfenced fetch", "REPL-3, R6"),
    Mutant(planted.no_divergence, "missed LeaderAndIsr", "REPL-4, R10"),
    Mutant(planted.joining_below_the_epochs_start, "early ISR growth", "R11"),
    Mutant(planted.joining_below_the_watermark, "early ISR growth", "ISR-5, R11"),
    Mutant(planted.always_unclean, "unclean election", "CTL, R13"),
    Mutant(loss_faults.the_last_replica_leaves, "last replica standing", "R13"),
    Mutant(loss_faults.bounced_brokers_are_not_noticed, "fast bounce with loss", "CTL-8, R12"),
    Mutant(planted.unguarded_writes, "zombie controller", "C1"),
    Mutant(planted.any_controller_is_obeyed, "zombie controller", "C2"),
    Mutant(planted.the_smaller_set_commits, "zombie leader", "ISR-6, R4"),
    Mutant(planted.the_leader_commits_alone, "ack before replication", "HW-7, R3"),
    Mutant(loss_faults.acknowledged_when_appended, "ack before replication", "ISR-7, R8"),
    Mutant(any_follower_commits, "watermark by a replica out of the ISR", "HW-7, R3"),
    Mutant(planted.committed_by_too_few, "too few in sync", "ISR-9, R8"),
    Mutant(loss_faults.repeated_sequences_are_written, "duplicate after a retry", "T5"),
    Mutant(loss_faults.followers_forget_producers, "duplicate after leader change", "T5"),
    Mutant(loss_faults.restarts_forget_producers, "duplicate after a restart", "T5"),
    Mutant(epochs_outlive_their_records, "fast double fail-over", "L4"),
    Mutant(planted.shrinking_while_asking, "in-sync sets in flight", "ISR-6"),
    Mutant(repeated_orders_drop_proposals, "an order that comes twice", "ISR-10"),
    Mutant(lost_requests_are_given_up, "the store is away for a moment", "C5"),
    Mutant(failed_orders_stay_secret, "a disk fails during an order", "D20"),
    Mutant(passed_over_is_known, "an answer that comes too late", "HW-6"),
    Mutant(lost_watches_stay_lost, "the store resets a connection", "LIVE"),
    Mutant(failed_directories_stay_in_use, "one directory fails beside another", "D20"),
    Mutant(renamed_before_it_is_synced, "swap crash", "L8"),
    Mutant(folders_are_not_synced, "swap crash", "L8"),
    Mutant(targets_need_not_catch_up, "a move that ends too early", "C6"),
    Mutant(leaving_members_hold_nothing, "a member of the set that a move removes", "HW-7, R3"),
    Mutant(dead_replicas_count_as_deleted, "a topic that is gone but for one", "C8"),
    Mutant(any_phase_follows_any, "replicas during two events", "C3"),
    Mutant(cleaner.cleaned_beyond_the_watermark, "a cleaning of what is not committed", "L7"),
    Mutant(cleaner.the_maps_last_value_goes, "a last value that goes", "L7"),
    Mutant(cleaner.tombstones_go_at_once, "a tombstone that goes before its time", "L7"),
    Mutant(cleaner.last_batches_of_producers_go, "a producer that a cleaning forgets", "T5"),
    Mutant(cleaner.a_cut_log_is_cleaned_on, "a log that is cut during its cleaning", "L7"),
    Mutant(cleaner.cleaned_segments_are_not_synced, "swap crash of a cleaning", "L8"),
    Mutant(retention.first_batches_of_fetches_go, "a fetch that skips", "R14"),
    Mutant(retention.retention_by_time_is_early, "retention by time", "L6"),
    Mutant(retention.retention_by_size_takes_more, "retention by size", "L6"),
    Mutant(retention.retention_takes_one_more, "retention takes one more", "L6"),
    Mutant(retention.oldest_segments_go_unasked, "deletion without a reason", "L6"),
    Mutant(excused.rolled_segments_are_not_synced, "a power cut takes what was synced", "L2"),
    Mutant(excused.a_higher_min_isr_is_not_heard_of, "settings that nobody hears of", "LIVE"),
    Mutant(excused.tombstones_go_before_their_values, "deletes that come back", "L7"),
    Mutant(disks.failed_syncs_pass, "a sync that fails as the power goes", "L2"),
    Mutant(disks.requests_delete_all_that_is_committed, "DeleteRecords takes more", "L6"),
    Mutant(rot.followers_take_damaged_batches, "bit rot in a leader's log", "R1"),
    Mutant(rot.recovery_goes_past_damage, "bit rot in what is recovered", "L2"),
    Mutant(set_back.nodes_outlive_their_sessions, "a store that is set back", "Z2"),
    Mutant(set_back.leader_epochs_are_set_back, "epochs that begin again", "R5"),
    Mutant(set_back.equal_partitions_lose_their_sets, "a set that nobody stored", "R5"),
    Mutant(set_back.strays_are_not_set_aside, "a log of another topic", "LIVE"),
    Mutant(groups.all_members_get_the_same, "two owners", "G1", _has_group),
    Mutant(groups.any_generation_commits, "a member that is out of its group", "G2", _has_group),
    Mutant(
        groups.committed_offsets_are_not_loaded, "a coordinator that takes over", "G4", _has_group
    ),
    Mutant(
        groups.commits_count_once_appended,
        "a commit that only its coordinator has",
        "G4",
        _has_group,
    ),
    Mutant(groups.sessions_last_for_ever, "a member that is gone", "G5", _has_group),
    Mutant(groups.resigned_groups_are_kept, "a coordinator that leads again", "G4", _has_group),
    Mutant(groups.undecided_offsets_are_given, "a copy that is not decided", "X1", _has_copiers),
    Mutant(groups.aborted_offsets_count, "a copy that is aborted", "X1", _has_copiers),
    Mutant(
        groups.any_generation_commits_in_transactions,
        "a copier that is out of its group",
        "X1",
        _has_copiers,
    ),
    Mutant(groups.open_commits_are_not_loaded, "a coordinator that takes over", "X1", _has_copiers),
    Mutant(quotas.produced_bytes_count_for_nothing, "a quota that bounds nothing", "Q2"),
    Mutant(quotas.throttled_connections_are_served, "a throttled connection", "Q1"),
    Mutant(quotas.removed_quotas_stay, "a quota that is removed", "LIVE"),
    Mutant(transactions.aborts_commit, "an abort that commits", "T2", _has_transactions),
    Mutant(
        transactions.failed_markers_are_given_up,
        "a marker that meets a new leader",
        "T7",
        _has_transactions,
    ),
    Mutant(
        transactions.failed_markers_count_as_written,
        "a marker that meets a new leader",
        "T3",
        _has_transactions,
    ),
    Mutant(
        transactions.decided_ends_are_not_resumed,
        "a coordinator that takes over",
        "T7",
        _has_transactions,
    ),
    Mutant(
        transactions.transactions_have_all_time, "a producer that is gone", "T7", _has_transactions
    ),
    Mutant(
        transactions.open_transactions_are_stable,
        "reading what is not decided",
        "T1",
        _has_transactions,
    ),
    Mutant(
        transactions.aborted_transactions_are_not_listed,
        "reading what is aborted",
        "T1",
        _has_transactions,
    ),
    Mutant(
        transactions.earlier_epochs_are_written,
        "an instance that is fenced",
        "T4",
        _has_transactions,
    ),
    Mutant(transactions.nothing_is_verified, "a hanging transaction", "T3", _has_transactions),
    Mutant(
        transactions.verifications_outlive_their_transactions,
        "a hanging transaction",
        "T3",
        _has_transactions,
    ),
    Mutant(
        transactions.fenced_instances_add_partitions,
        "an instance that is fenced",
        "T8",
        _has_transactions,
    ),
    Mutant(
        transactions.first_states_are_loaded,
        "a coordinator that takes over",
        "G3",
        _has_transactions,
    ),
    Mutant(transport.given_records_count_as_committed, "calls between brokers", "HW-6"),
    Mutant(ephemerals_outlive_their_sessions, "a broker that is gone and registered", "Z2"),
)


class Found(NamedTuple):
    """The first seed that finds a mutant; `seed` is None if none did."""

    name: str
    seed: int | None
    violation: str


class BrokenMutant(Exception):
    """A planted fault raises an exception of its own, so that it breaks no rule."""

    def __init__(self, name: str, violation: Violation) -> None:
        super().__init__(f"{name}: {violation}")


def first_failing_seed(name: str, seed_count: int, first_seed: int = 0) -> Found:
    """Run seeds with a mutant until a rule is seen broken; raises BrokenMutant."""
    mutant = next(mutant for mutant in MUTANTS if mutant.name == name)
    return find_failing_seed(mutant, range(first_seed, first_seed + seed_count))


def find_failing_seed(mutant: Mutant, seeds: Iterable[int]) -> Found:
    """Run seeds with a mutant until a rule is seen broken; raises BrokenMutant."""
    name = mutant.name
    with pytest.MonkeyPatch.context() as patch:
        mutant.plant(patch)
        for seed in seeds:
            plan = plan_of(seed)
            violation = run_plan(plan).violation if mutant.concerns(plan) else None
            if violation is not None and violation.rule == "BUG":
                raise BrokenMutant(name, violation)
            if violation is not None:
                return Found(name, seed, str(violation).splitlines()[0])
    return Found(name, None, "")


def main() -> None:
    """Print the first failing seed of each mutant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[mutant.name for mutant in MUTANTS])
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        work = [pool.submit(first_failing_seed, name, arguments.seeds) for name in arguments.names]
        for future in work:
            found = future.result()
            seeds = "none" if found.seed is None else found.seed + 1
            print(f"{found.name:34} {seeds!s:>6}  {found.violation[:140]}", flush=True)


if __name__ == "__main__":
    main()
