"""Rates on which a plan is based: sampled now, or stored in a plan file."""

from __future__ import annotations

from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.planner.constraints import ALL_GOALS, RATE_GOALS, LevelGoal
from engine.planner.plan import ReassignmentPlan
from engine.planner.sampled_rates import SampledRates
from engine.reassign.execution import require_cluster
from kctl.arguments import UnreadableArgument
from kctl.commands.reassign.files import NoPlan, read_plan
from kctl.console import notify
from kctl.options.rates import WINDOW_S, sample_rates_or_report


class RateRequest(NamedTuple):
    """The options of `kctl reassign plan` on goals and rates; None if not given."""

    goals: str | None
    window_s: float | None
    path: str | None


def parse_goals(request: RateRequest, verb: str) -> frozenset[LevelGoal]:
    """Return the goals of --balance: those of --goals, else all.

    Goals on rates are included if rates are given. Errors: UnreadableArgument for options without
    effect.
    """
    given = {
        "--goals": request.goals,
        "--rate-window": request.window_s,
        "--rates": request.path,
    }
    named = [name for name, value in given.items() if value is not None]
    if named and verb != "balance":
        raise UnreadableArgument(f"an option of --{verb}", named[0], "it with --balance")
    if request.window_s is not None and request.path is not None:
        raise UnreadableArgument("one source of rates", "--rates", "it without --rate-window")
    wants_rates = request.window_s is not None or request.path is not None
    goals = ALL_GOALS | RATE_GOALS if wants_rates else ALL_GOALS
    if request.goals is not None:
        goals = frozenset(map(_parse_goal, request.goals.split(",")))
    if wants_rates and not goals & RATE_GOALS:
        raise UnreadableArgument(
            "goals on rates", str(request.goals), "bytes-in or bytes-out in it"
        )
    return goals


def _parse_goal(goal: str) -> LevelGoal:
    """Parse one goal of `--goals`; raises UnreadableArgument."""
    try:
        return LevelGoal(goal.strip())
    except ValueError:
        expected = ", ".join(goal.value for goal in LevelGoal)
        raise UnreadableArgument("a goal of --goals", goal, expected) from None


def sample_or_read_rates(
    client: KafkaClient,
    request: RateRequest,
    goals: frozenset[LevelGoal],
    cluster_id: str | None,
) -> SampledRates | None:
    """Sample the partitions' write rates, or read them from a plan file; None if not needed.

    They are needed if a goal is about rates. Errors: those of the file, WrongCluster, and of
    requests.
    """
    if not goals & RATE_GOALS:
        return None
    if request.path is not None:
        kept = read_plan(request.path)
        if kept.rates is None:
            raise NoPlan(request.path, "it has no samples of rates")
        require_cluster(kept.cluster_id, cluster_id)
        return kept.rates
    rates, _ = sample_rates_or_report(client, None, request.window_s)
    window_ms = round((request.window_s or WINDOW_S) * 1000)
    return SampledRates(window_ms, {name: rate.bytes_per_s for name, rate in rates.items()})


def print_rates(plan: ReassignmentPlan) -> None:
    """Print how evenly rates are spread over brokers, before and after the plan."""
    before, after = plan.before, plan.after
    notify(
        f"busiest broker by the mean: bytes in {before.in_max_over_mean:.2f}, then "
        f"{after.in_max_over_mean:.2f}; bytes out {before.out_max_over_mean:.2f}, then "
        f"{after.out_max_over_mean:.2f} (to followers: Kafka does not report what consumers fetch)"
    )
