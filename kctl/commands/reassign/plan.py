"""Implementation of `kctl reassign plan`: read the cluster, make, write and print the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from engine.errors import EngineError
from engine.host.real import RealFiles
from engine.planner import planner
from engine.planner.cluster_model import ClusterModel
from engine.planner.constraints import LevelGoal, PlanConstraints, RackRule
from engine.planner.plan import PartitionChange, ReassignmentPlan, UnmetGoal
from engine.planner.plan_file import plan_to_json
from engine.planner.sampled_rates import with_rates
from engine.planner.trade_offs import TradeOff, find_trade_offs
from engine.reassign.cluster_reader import read_cluster
from kctl import exits
from kctl.arguments import UnreadableArgument, counted
from kctl.commands.reassign.rates import RateRequest, parse_goals, print_rates, sample_or_read_rates
from kctl.connect import ClusterOptions, connect
from kctl.console import notify
from kctl.render import Column, check_format, write_rows
from kctl.render.rows import OutputRow
from kctl.render.table import size_text
from kctl.selection import name_matcher
from kctl.sizes import parse_bytes

#: How many partition numbers a warning about a topic lists.
_PARTITIONS_SHOWN = 5

BROKER_COLUMNS = (
    Column("broker_id", "BROKER", right=True, is_name=True),
    Column("rack", "RACK", kind="string?"),
    Column("replicas_before", "REPLICAS", right=True),
    Column("replicas_after", "THEN", right=True),
    Column("leaders_before", "LEADERS", right=True),
    Column("leaders_after", "THEN", right=True),
    Column("size_bytes_before", "SIZE", right=True, is_size=True),
    Column("size_bytes_after", "THEN", right=True, is_size=True),
    Column("moves_in", "IN", right=True),
    Column("moves_out", "OUT", right=True),
    Column("bytes_in", "BYTES-IN", right=True, is_size=True),
    Column("bytes_out", "BYTES-OUT", right=True, is_size=True, wide=True),
)
RATE_COLUMNS = (
    Column("in_bytes_per_s_before", "IN/S", right=True, is_size=True, is_optional=True),
    Column("in_bytes_per_s_after", "THEN", right=True, is_size=True, is_optional=True),
    Column("out_bytes_per_s_before", "OUT/S", right=True, is_size=True, is_optional=True),
    Column("out_bytes_per_s_after", "THEN", right=True, is_size=True, is_optional=True),
)
CHANGE_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("batch", "BATCH", right=True),
    Column("old_replicas", "REPLICAS", kind="integer[]"),
    Column("new_replicas", "THEN", kind="integer[]"),
    Column("old_leader", "LEADER", right=True, kind="integer?"),
    Column("new_leader", "THEN", right=True),
    Column("bytes_moved", "BYTES", right=True, is_size=True),
    Column("log_dir_bytes", "BETWEEN-DIRS", right=True, is_size=True, wide=True),
    Column("new_log_dirs", "LOG-DIRS", wide=True, kind="string[]"),
)
FRONT_COLUMNS = (
    Column("moves", "MOVES", right=True),
    Column("bytes_moved", "BYTES", right=True, is_size=True),
    Column("count_spread", "REPLICAS-SPREAD", right=True),
    Column("leader_spread", "LEADERS-SPREAD", right=True),
    Column("bytes_max_over_mean", "BYTES-MAX/MEAN", right=True, kind="number"),
    Column("rack_faults", "RACK-FAULTS", right=True),
    Column("offline_replicas", "OFFLINE", right=True),
    Column("unmet", "UNMET", right=True),
    Column("max_moves", "MAX-MOVES", right=True, wide=True, kind="integer?"),
    Column("max_bytes_moved", "MAX-BYTES", right=True, wide=True, kind="integer?"),
)
FRONT_RATE_COLUMNS = (
    Column("in_max_over_mean", "IN-MAX/MEAN", right=True, kind="number", is_optional=True),
    Column("out_max_over_mean", "OUT-MAX/MEAN", right=True, kind="number", is_optional=True),
)
_VERBS = "--add-broker, --drain, --replace, --repair, --rf, --balance, --demote, --log-dirs"


class NotOneVerb(EngineError):
    """The options name no purpose of a plan, or several."""

    exit_code = exits.USAGE

    def __init__(self, verbs: Iterable[str]) -> None:
        self.verbs = [f"--{verb}" for verb in verbs]
        given = f"not {' and '.join(self.verbs)}" if self.verbs else "none is given"
        self.hint = f"give one of {_VERBS}"
        super().__init__(f"a plan is for one thing: {given}")


class PlanRequest(NamedTuple):
    """The options of `kctl reassign plan`."""

    topics: list[str]
    verbs: dict[str, Any]
    exclude_topic: list[str]
    exclude_broker: str | None
    racks: str
    max_moves: int | None
    max_bytes_moved: str | None
    moves_per_broker: int
    seed: int
    throttle: str | None
    out: str | None
    changes: bool
    front: bool
    exit_code: bool
    rates: RateRequest
    output: str


def make_plan(options: ClusterOptions, request: PlanRequest) -> int:
    """Plan reassignments for one goal; write the plan to --out, and print rows.

    Returns the exit code. The cluster is not changed. Errors: NotOneVerb, those of options, of
    reading the cluster and of the planner.
    """
    check_format(request.output)
    if len(request.verbs) != 1:
        raise NotOneVerb(request.verbs)
    rate = None if request.throttle is None else parse_bytes(request.throttle)
    goals = parse_goals(request.rates, next(iter(request.verbs)))
    plan_within = _planner_function(request, goals)
    with connect(options) as client:
        read = read_cluster(client)
        rates = sample_or_read_rates(client, request.rates, goals, read.cluster_id)
    for warning in read.warnings:
        notify(f"warning: {warning}")
    if rates is not None:
        read = read._replace(model=with_rates(read.model, rates))
    plan = plan_within(read.model, _parse_constraints(request, read.model))
    if request.out is not None:
        text = plan_to_json(plan, read.cluster_id, rates)
        RealFiles().replace_file(request.out, text.encode())
    print_plan(plan, rate, request.out)
    if rates is not None:
        print_rates(plan)
    if request.front:
        constraints = _parse_constraints(request, read.model)
        front = find_trade_offs(lambda bounded: plan_within(read.model, bounded), constraints, plan)
        columns = FRONT_COLUMNS if rates is None else (*FRONT_COLUMNS, *FRONT_RATE_COLUMNS)
        write_rows(columns, map(_front_row, front), request.output)
    else:
        print_plan_rows(
            plan, request.output, is_by_change=request.changes, has_rates=rates is not None
        )
    if plan.unmet and request.max_moves is None and request.max_bytes_moved is None:
        # With limits, later plans may continue; without limits no plan reaches the goal.
        return end_short_of_goal(plan)
    return exits.CHANGES_PENDING if request.exit_code and not plan.is_empty else exits.OK


def end_short_of_goal(plan: ReassignmentPlan) -> int:
    """Print that a plan does not reach its goal, whether it has changes or not; return FAILED."""
    nearest = "nothing can be done" if plan.is_empty else "the plan is the nearest to it"
    notify(f"error: the goal cannot be reached; {nearest}")
    return exits.FAILED


def _planner_function(
    request: PlanRequest, goals: frozenset[LevelGoal]
) -> Callable[[ClusterModel, PlanConstraints], ReassignmentPlan]:
    """Return the function that plans for the one goal requested, after checks of its arguments.

    Its parameters are a model of the cluster and the constraints. Errors: UnreadableArgument.
    """
    ((verb, value),) = request.verbs.items()
    match verb:
        case "add-broker" | "drain" | "demote":
            ids = parse_brokers(value)
            of_brokers = {
                "add-broker": planner.spread,
                "drain": planner.drain,
                "demote": planner.demote,
            }[verb]
            return lambda model, constraints: of_brokers(model, ids, constraints)
        case "replace":
            old, colon, new = value.partition(":")
            if not colon or not old.isdecimal() or not new.isdecimal():
                raise UnreadableArgument(
                    "a broker and its replacement", value, "OLD:NEW such as 3:7"
                )
            return lambda model, constraints: planner.replace(
                model, int(old), int(new), constraints
            )
        case "repair":
            return planner.repair
        case "rf":
            return lambda model, constraints: planner.set_replication_factor(
                model, dict.fromkeys(_select_topics(request, model), value), constraints
            )
        case "balance":
            return lambda model, constraints: planner.balance(model, goals, constraints)
        case _:
            return lambda model, constraints: planner.balance_log_dirs(
                model, constraints=constraints
            )


def parse_brokers(text: str) -> list[int]:
    """Parse a list of broker ids such as 4,5; raises UnreadableArgument."""
    ids = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in ids):
        raise UnreadableArgument("a list of brokers", text, "ids such as 4,5")
    return [int(part) for part in ids]


def _select_topics(request: PlanRequest, model: ClusterModel) -> list[str]:
    """Return the topics that may change: the named ones or all, without --exclude-topic.

    Errors: NoSuchTopics.
    """
    topics = sorted({partition.topic for partition in model.partitions})
    patterns = [name_matcher(pattern) for pattern in request.exclude_topic]
    unknown = [name for name in request.topics if name not in topics]
    if unknown:
        raise NoSuchTopics(unknown)
    return [
        name
        for name in request.topics or topics
        if not any(pattern.fullmatch(name) for pattern in patterns)
    ]


class NoSuchTopics(EngineError):
    """The options name topics that the cluster does not have."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.hint = "`kctl topics list` shows them"
        super().__init__(f"the cluster has no topic {', '.join(names)}")


def _parse_constraints(request: PlanRequest, model: ClusterModel) -> PlanConstraints:
    """Return the constraints of the plan that the options set.

    Topics that are not selected are excluded. Errors: UnreadableArgument, NoSuchTopics.
    """
    topics = {partition.topic for partition in model.partitions}
    try:
        racks = RackRule(request.racks)
    except ValueError:
        raise UnreadableArgument(
            "a rule on racks", request.racks, "strict, relaxed, ignored"
        ) from None
    excluded = request.exclude_broker
    budget = request.max_bytes_moved
    return PlanConstraints(
        excluded_topics=frozenset(topics - set(_select_topics(request, model))),
        excluded_brokers=frozenset(() if excluded is None else parse_brokers(excluded)),
        racks=racks,
        max_moves=request.max_moves,
        max_bytes_moved=None if budget is None else parse_bytes(budget),
        moves_per_broker=request.moves_per_broker,
        seed=request.seed,
    )


def print_plan(plan: ReassignmentPlan, rate: int | None, path: str | None) -> None:
    """Print the summary of a plan, and the goals that it does not reach, on stderr.

    `rate` is a throttle in bytes/s for an estimate of the time, None for no estimate; `path` is the
    plan's file, None if there is none.
    """
    for warning in plan.warnings:
        notify(f"warning: {warning}")
    report_unmet(plan.unmet)
    if plan.is_empty:
        notify("nothing can be done" if plan.unmet else "nothing is to be done")
        return
    # The bound is invalid if the plan does not reach its goals.
    bound = "" if plan.unmet else f" (no plan does with fewer than {plan.bound_moves})"
    removed = sum(max(0, len(c.old_replicas) - len(c.new_replicas)) for c in plan.changes)
    parts = [
        f"{counted(plan.moves, 'move')}{bound}",
        *([f"{counted(removed, 'replica')} removed"] if removed else []),
        size_text(plan.bytes_moved),
        counted(plan.leader_changes, "change") + " of leaders",
    ]
    if plan.log_dir_moves:
        parts.append(f"{counted(plan.log_dir_moves, 'move')} between directories")
    if rate:
        parts.append(f"{plan.eta_s(rate):,.0f} s at {size_text(rate)}/s")
    where = "" if path is None else f"; written to {path}"
    batches = f"{len(plan.batches)} batches" if len(plan.batches) != 1 else "1 batch"
    notify(f"{', '.join(parts)}, in {batches}{where}")


def report_unmet(unmet: Sequence[UnmetGoal]) -> None:
    """Print a warning for each goal that a plan does not reach.

    The partitions of a topic with the same goal and reason have one warning.
    """
    partitions: dict[tuple[str, str, str], list[int]] = {}
    for goal in unmet:
        topic, _, number = goal.subject.rpartition("-")
        if topic and number.isdecimal():
            partitions.setdefault((topic, goal.goal, goal.reason), []).append(int(number))
        else:
            notify(f"warning: {goal.subject}: {goal.goal} is not reached: {goal.reason}")
    for (topic, name, reason), numbers in partitions.items():
        subject = f"{topic}-{numbers[0]}"
        if len(numbers) > 1:
            shown = ", ".join(map(str, sorted(numbers)[:_PARTITIONS_SHOWN]))
            more = ", …" if len(numbers) > _PARTITIONS_SHOWN else ""
            subject = f"{counted(len(numbers), 'partition')} of {topic} ({shown}{more})"
        notify(f"warning: {subject}: {name} is not reached: {reason}")


def print_plan_rows(
    plan: ReassignmentPlan, output: str, *, is_by_change: bool, has_rates: bool = False
) -> None:
    """Print a plan as a row for each change if `is_by_change`, else for each broker.

    `has_rates` adds the brokers' bytes in and out per second.
    """
    if is_by_change:
        write_rows(CHANGE_COLUMNS, _change_rows(plan), output)
    else:
        columns = (*BROKER_COLUMNS, *RATE_COLUMNS) if has_rates else BROKER_COLUMNS
        write_rows(columns, _broker_rows(plan), output)


def _front_row(one: TradeOff) -> dict[str, object]:
    """Return the row of a trade-off between bytes moved and balance."""
    after = one.after
    return {
        "moves": one.moves,
        "bytes_moved": one.bytes_moved,
        "count_spread": after.count_spread,
        "leader_spread": after.leader_spread,
        "bytes_max_over_mean": round(after.bytes_max_over_mean, 3),
        "rack_faults": after.rack_faults,
        "offline_replicas": after.offline_replicas,
        "in_max_over_mean": round(after.in_max_over_mean, 3),
        "out_max_over_mean": round(after.out_max_over_mean, 3),
        "unmet": one.unmet,
        "max_moves": one.max_moves,
        "max_bytes_moved": one.max_bytes_moved,
    }


def _broker_rows(plan: ReassignmentPlan) -> list[dict[str, object]]:
    """Return a row for each broker: its load before and after, and its moves."""
    return [
        {
            "broker_id": broker.broker_id,
            "rack": broker.rack,
            "replicas_before": broker.before.replica_count,
            "replicas_after": broker.after.replica_count,
            "leaders_before": broker.before.leader_count,
            "leaders_after": broker.after.leader_count,
            "size_bytes_before": broker.before.size_bytes,
            "size_bytes_after": broker.after.size_bytes,
            "moves_in": broker.moves_in,
            "moves_out": broker.moves_out,
            "bytes_in": broker.bytes_in,
            "bytes_out": broker.bytes_out,
            "in_bytes_per_s_before": broker.before.in_bytes_per_s,
            "in_bytes_per_s_after": broker.after.in_bytes_per_s,
            "out_bytes_per_s_before": broker.before.out_bytes_per_s,
            "out_bytes_per_s_after": broker.after.out_bytes_per_s,
        }
        for broker in plan.brokers
    ]


def _change_rows(plan: ReassignmentPlan) -> list[dict[str, object]]:
    """Return a row for each change, in the order of batches."""
    return [
        change_row(plan.changes[position], number)
        for number, batch in enumerate(plan.batches, 1)
        for position in batch
    ]


def change_row(change: PartitionChange, batch: int) -> OutputRow:
    """Return the row of a partition's change; `batch` is its number in the plan, from 1."""
    return {
        "topic": change.topic,
        "partition": change.partition,
        "batch": batch,
        "old_replicas": list(change.old_replicas),
        "new_replicas": list(change.new_replicas),
        "old_leader": change.old_leader,
        "new_leader": change.new_leader,
        "bytes_moved": change.bytes_moved,
        "log_dir_bytes": change.log_dir_bytes,
        "new_log_dirs": list(change.new_log_dirs),
    }
