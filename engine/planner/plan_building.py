"""Creation of a plan from the result of a search.

Changes, batches, and figures before and after.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.planner.batch_order import batch_changes, without
from engine.planner.byte_balancing import expected_bytes
from engine.planner.cluster_model import PartitionModel
from engine.planner.placement_state import UNBOUNDED, PlacementState
from engine.planner.plan import (
    BrokerFigures,
    LevelFigures,
    LoadFigures,
    PartitionChange,
    ReassignmentPlan,
    UnmetGoal,
)


class PlanFindings:
    """Findings of a planning command besides the placement.

    Bounds, warnings, unmet goals, elections.
    """

    def __init__(self, verb: str) -> None:
        """Create empty findings.

        `verb` is the name of the planning command, which the plan shows.
        """
        self.verb = verb
        #: A lower bound of the moves by which the goal can be reached.
        self.bound_moves = 0
        self.warnings: list[str] = []
        self.unmet: list[UnmetGoal] = []
        #: Numbers of partitions whose preferred leader is to be elected while their replicas stay.
        self.elections: set[int] = set()


def build_plan(state: PlacementState, notes: PlanFindings) -> ReassignmentPlan:
    """Return the plan of a finished search.

    Changes that fit into no batch for lack of disk space become unmet goals.
    """
    changes = _changes_of_search(state, notes)
    held = {b.broker_id: 0 for b in state.brokers}
    for partition in state.partitions:
        for broker_id in partition.replicas:
            held[broker_id] += partition.size_on(broker_id)
    capacity = {
        b.broker_id: bound
        for b, bound in zip(state.brokers, state.capacity, strict=True)
        if bound != UNBOUNDED
    }
    in_flight = state.constraints.moves_per_broker
    batches, given_up = batch_changes(changes, held, capacity, in_flight)
    while given_up:
        for position in given_up:
            change = changes[position]
            notes.unmet.append(
                UnmetGoal("capacity", str(change.name), "no order leaves room for its move")
            )
        changes = without(changes, set(given_up))
        batches, given_up = batch_changes(changes, held, capacity, in_flight)
    return assemble_plan(state, notes, changes, batches)


def _changes_of_search(state: PlacementState, notes: PlanFindings) -> list[PartitionChange]:
    """Return the changes of a search by partition, including elections of leaders."""
    ids = [b.broker_id for b in state.brokers]
    found = []
    for number, (original, replicas) in enumerate(zip(state.original, state.replicas, strict=True)):
        if tuple(replicas) != original or number in notes.elections:
            partition = state.partitions[number]
            new_replicas = tuple(ids[broker] for broker in replicas)
            found.append(
                PartitionChange(
                    topic=partition.topic,
                    partition=partition.partition,
                    old_replicas=partition.replicas,
                    new_replicas=new_replicas,
                    old_leader=partition.leader,
                    new_leader=new_replicas[0],
                    size_bytes=partition.size_bytes,
                    old_sizes=partition.replica_sizes,
                    old_log_dirs=partition.log_dirs,
                    is_mandatory=number in state.forced,
                )
            )
    found.sort(key=lambda change: (change.topic, change.partition))
    return found


def assemble_plan(
    state: PlacementState,
    notes: PlanFindings,
    changes: Sequence[PartitionChange],
    batches: Sequence[Sequence[int]],
) -> ReassignmentPlan:
    """Return a plan of the changes and batches, with each broker's figures before and after.

    `batches` are positions in `changes`.
    """
    changed = {change.name: change for change in changes}
    after = [
        (p, changed[p.name].new_replicas if p.name in changed else p.replicas)
        for p in state.partitions
    ]
    before = [(p, p.replicas) for p in state.partitions]
    figures_before = _Loads(state, before)
    figures_after = _Loads(state, after)
    return ReassignmentPlan(
        verb=notes.verb,
        changes=changes,
        batches=batches,
        brokers=_broker_figures(state, changes, figures_before, figures_after),
        before=figures_before.level(),
        after=figures_after.level(),
        moves=sum(len(change.added) for change in changes),
        bytes_moved=sum(change.bytes_moved for change in changes),
        log_dir_moves=sum(len(change.log_dir_moves) for change in changes),
        leader_changes=sum(change.new_leader != change.old_leader for change in changes),
        bound_moves=notes.bound_moves,
        warnings=notes.warnings,
        unmet=notes.unmet,
        seed=state.constraints.seed,
    )


class _Loads:
    """The loads of all brokers for one assignment of the partitions."""

    def __init__(
        self, state: PlacementState, places: Sequence[tuple[PartitionModel, tuple[int, ...]]]
    ) -> None:
        """Add up the load of each broker with the replicas in `places` (broker ids)."""
        self._state = state
        count = len(state.brokers)
        #: By broker number: replicas, leaders, bytes, and bytes per second in and out.
        self.counts = [0] * count
        self.leads = [0] * count
        self.sizes = [0] * count
        self.rates_in = [0] * count
        self.rates_out = [0] * count
        #: The number of rack faults of all partitions, and of offline replicas.
        self.faults = 0
        self.offline = 0
        index_of = state.index_of
        for partition, replicas in places:
            for broker_id in replicas:
                broker = index_of[broker_id]
                self.counts[broker] += 1
                self.sizes[broker] += (
                    partition.size_on(broker_id)
                    if partition.replica_sizes
                    else partition.size_bytes
                )
            self.leads[index_of[replicas[0]]] += 1
            if partition.write_rate:
                self._add_rates(partition.write_rate, replicas)
            if partition.offline:
                self.offline += len(set(partition.offline) & set(replicas))
            if state.has_racks:
                self.faults += _rack_fault_count(state, replicas)
        for broker, model in enumerate(state.brokers):
            if not model.is_alive:
                self.offline += self.counts[broker]

    def _add_rates(self, rate: int, replicas: tuple[int, ...]) -> None:
        """Add a partition's write rate (bytes/s): to each replica's in, and to the leader's out.

        The leader sends it to each follower.
        """
        index_of = self._state.index_of
        for broker_id in replicas:
            self.rates_in[index_of[broker_id]] += rate
        self.rates_out[index_of[replicas[0]]] += rate * (len(replicas) - 1)

    def level(self) -> LevelFigures:
        """Return how even the loads of the brokers that take part in balancing are."""
        state = self._state
        playing = [b for b in range(len(state.brokers)) if state.in_play[b]]
        in_racks = [[self.counts[b] for b in m if state.in_play[b]] for m in state.members]
        held = [self.sizes[b] for b in playing]
        expected = expected_bytes(state, self.sizes)
        return LevelFigures(
            count_spread_in_rack=max(map(_spread_of, in_racks), default=0),
            count_spread=_spread_of([self.counts[b] for b in playing]),
            leader_spread=_spread_of([self.leads[b] for b in playing]),
            bytes_max_over_mean=_max_over_mean(held),
            bytes_max_over_level=max(
                (self.sizes[b] / expected[b] for b in playing if expected[b]), default=1.0
            ),
            rack_faults=self.faults,
            offline_replicas=self.offline,
            in_max_over_mean=_max_over_mean([self.rates_in[b] for b in playing]),
            out_max_over_mean=_max_over_mean([self.rates_out[b] for b in playing]),
        )

    def of(self, broker: int) -> LoadFigures:
        """Return the load of one broker, by its number in the search."""
        return LoadFigures(
            self.counts[broker],
            self.leads[broker],
            self.sizes[broker],
            self.rates_in[broker],
            self.rates_out[broker],
        )


def _spread_of(values: Sequence[int]) -> int:
    """Return the difference of the largest and the smallest value."""
    return max(values) - min(values) if values else 0


def _max_over_mean(values: Sequence[int]) -> float:
    """Return the largest value divided by the mean, 1.0 if all are 0."""
    total = sum(values)
    return max(values) * len(values) / total if total else 1.0


def _rack_fault_count(state: PlacementState, replicas: Sequence[int]) -> int:
    """Return how many replicas of a partition (broker ids) exceed the limit of their rack."""
    groups = [state.group_of[state.index_of[broker_id]] for broker_id in replicas]
    if len(set(groups)) == len(groups):
        return 0
    limit = state.limits.limit(len(groups))
    return sum(max(0, groups.count(group) - limit) for group in set(groups))


def _broker_figures(
    state: PlacementState, changes: Sequence[PartitionChange], before: _Loads, after: _Loads
) -> list[BrokerFigures]:
    """Return each broker's load before and after, and its bytes and moves in and out.

    A new replica is copied from the partition's old leader.
    """
    count = len(state.brokers)
    bytes_in, bytes_out, moves_in, moves_out = ([0] * count for _ in range(4))
    for change in changes:
        for broker_id in change.added:
            broker = state.index_of[broker_id]
            bytes_in[broker] += change.size_bytes
            moves_in[broker] += 1
            if change.old_leader is not None:
                bytes_out[state.index_of[change.old_leader]] += change.size_bytes
        for broker_id in change.removed:
            moves_out[state.index_of[broker_id]] += 1
    return [
        BrokerFigures(
            broker_id=model.broker_id,
            rack=model.rack,
            before=before.of(broker),
            after=after.of(broker),
            capacity_bytes=model.capacity_bytes,
            bytes_in=bytes_in[broker],
            bytes_out=bytes_out[broker],
            moves_in=moves_in[broker],
            moves_out=moves_out[broker],
        )
        for broker, model in enumerate(state.brokers)
    ]
