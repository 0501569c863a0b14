"""Implementation of `kctl reassign throttles`: show throttles and the moves that need them.

With `--clear`, remove the throttles that no move needs. Only moves that the controller lists count.
A paused execution without moves in progress needs its throttles as well, but its journal may be on
another machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.cluster_admin import describe_log_dirs
from engine.client.config_admin import (
    ConfigChange,
    ConfigOp,
    ConfigResourceType,
    Resource,
    alter_configs,
)
from engine.client.health import ALL_BROKERS, Throttle, request_throttles
from engine.client.reassignments import OngoingReassignment, list_reassignments
from engine.errors import EngineError
from engine.model import TopicPartition
from engine.reassign.throttles import LOG_DIRS_RATE
from kctl import exits
from kctl.arguments import counted
from kctl.command_results import end_with
from kctl.connect import ClusterOptions, cluster_named, connect
from kctl.console import confirm, notify, report_error
from kctl.render import Column, check_format

THROTTLE_COLUMNS = (
    Column("kind", "OF"),
    Column("name", "NAME", is_name=True),
    Column("setting", "SETTING"),
    Column("value", "VALUE"),
    Column("moves", "NEEDED-BY", right=True),
    Column("left", "WOULD-BE", kind="string?", wide=True),
)
#: Value of a topic's list that means all replicas.
_ALL = "*"


class NeededThrottle(NamedTuple):
    """A throttle, the number of moves that need it, and the part that they need, or None."""

    throttle: Throttle
    move_count: int
    needed: str | None

    @property
    def is_needed(self) -> bool:
        """Return True if reassignments need the throttle unchanged.

        Otherwise it, or a part of its list of replicas, may be removed.
        """
        return self.needed == self.throttle.value


def show_throttles(
    options: ClusterOptions, *, clear: bool, dry_run: bool, yes: bool, output: str
) -> int:
    """Print replication throttles; with `clear` remove those that no reassignment needs.

    Returns the exit code.
    """
    check_format(output)
    with connect(options) as client:
        found = read_needed_throttles(client)
        idle = [one for one in found if not one.is_needed]
        failures = 0
        if clear and idle and not dry_run:
            what = f"take away {counted(len(idle), 'throttle')} of {cluster_named(client)}"
            confirm(what, yes=yes)
            # A move that started during the confirmation needs its throttles.
            listed, idle = idle, still_idle(idle, read_needed_throttles(client))
            if len(idle) < len(listed):
                notify(f"{len(listed) - len(idle)} of them changed or are needed by now, and stay")
            failures = _remove_throttles(client, idle)
    if idle and not clear:
        notify(f"{len(idle)} of {counted(len(found), 'throttle')} needed by no move: --clear")
    shown = idle if clear else found
    code = end_with(THROTTLE_COLUMNS, map(_row, shown), output, failures=failures)
    return exits.CHANGES_PENDING if clear and dry_run and idle else code


def still_idle(listed: list[NeededThrottle], found: list[NeededThrottle]) -> list[NeededThrottle]:
    """Return the throttles to remove that are unchanged since they were `listed` for confirmation.

    A reassignment that started since then needs its throttles.
    """
    return [one for one in found if one in listed]


def _row(one: NeededThrottle) -> dict[str, object]:
    """Return the row of a throttle, with the number of moves that need it and what they leave."""
    throttle = one.throttle
    return {**throttle._asdict(), "moves": one.move_count, "left": one.needed}


def read_needed_throttles(client: KafkaClient) -> list[NeededThrottle]:
    """Return the cluster's throttles, each with the part that moves in progress need."""
    # Read throttles before moves: a move that starts in between then keeps its throttles.
    view = client.view(None)
    throttles = request_throttles(client, sorted(view.topics), sorted(view.brokers))
    ongoing = list_reassignments(client)
    copying = _count_future_replicas(client) if throttles else {}
    return [_needed_throttle(throttle, ongoing, copying) for throttle in throttles]


def _needed_throttle(
    throttle: Throttle,
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    copying: Mapping[int, int],
) -> NeededThrottle:
    """Return a throttle with the reassignments that need it.

    `copying` is the number of replicas that move to another log directory, by broker.
    """
    if throttle.kind == "topic":
        return _needed_list(throttle, ongoing)
    is_of_all = throttle.name == ALL_BROKERS
    if throttle.setting == LOG_DIRS_RATE:
        count = sum(copying.values()) if is_of_all else copying.get(int(throttle.name), 0)
    elif is_of_all:
        count = len(ongoing)
    else:
        count = sum(int(throttle.name) in move.replicas for move in ongoing.values())
    return NeededThrottle(throttle, count, throttle.value if count else None)


def _needed_list(
    throttle: Throttle, ongoing: Mapping[TopicPartition, OngoingReassignment]
) -> NeededThrottle:
    """Return the entries of a topic's list of throttled replicas that reassignments need.

    The list `*` is needed completely if any partition of the topic moves.
    """
    moving = {key.partition for key in ongoing if key.topic == throttle.name}
    if throttle.value == _ALL:
        return NeededThrottle(throttle, len(moving), _ALL if moving else None)
    # An execution sets throttled replicas before their moves start: keep entries of its brokers.
    brokers = {broker_id for move in ongoing.values() for broker_id in move.replicas}
    entries = [entry for entry in throttle.value.split(",") if entry]
    kept = [entry for entry in entries if _is_needed(entry, moving, brokers)]
    return NeededThrottle(throttle, len(moving), ",".join(kept) or None)


def _is_needed(entry: str, moving: set[int], brokers: set[int]) -> bool:
    """Return True if a reassignment may need an entry `partition:broker` of throttled replicas.

    That is if the partition moves, or another move involves the broker.
    """
    partition, _, broker_id = (part.strip() for part in entry.partition(":"))
    if not (partition.isdecimal() and broker_id.isdecimal()):
        return False
    return int(partition) in moving or int(broker_id) in brokers


def _count_future_replicas(client: KafkaClient) -> dict[int, int]:
    """Count by broker the replicas that are moving to another log directory.

    A broker that does not respond counts as 1, so that its throttle is kept.
    """
    view = client.brokers_view()
    counts = {}
    for broker_id, dirs in describe_log_dirs(client, sorted(view.brokers)).items():
        if isinstance(dirs, EngineError):
            report_error(dirs, f"broker {broker_id}")
            counts[broker_id] = 1
        else:
            counts[broker_id] = sum(r.is_future for log_dir in dirs for r in log_dir.replicas)
    return counts


def _remove_throttles(client: KafkaClient, idle: list[NeededThrottle]) -> int:
    """Remove the throttles, or their unneeded parts; returns the number of failures."""
    changes: dict[Resource, list[ConfigChange]] = {}
    for (kind, name, setting, _), _, needed in idle:
        type_ = ConfigResourceType.TOPIC if kind == "topic" else ConfigResourceType.BROKER
        change = (
            ConfigChange(ConfigOp.DELETE, setting)
            if needed is None
            else ConfigChange(ConfigOp.SET, setting, needed)
        )
        is_of_all = kind == "broker" and name == ALL_BROKERS
        changes.setdefault(Resource(type_, "" if is_of_all else name), []).append(change)
    failures = 0
    for resource, change_list in changes.items():
        error: EngineError | None
        try:
            error = alter_configs(client, {resource: change_list})[resource]
        except EngineError as raised:
            error = raised
        if error is not None:
            report_error(error, f"{resource.kind.name.lower()} {resource.name or ALL_BROKERS}")
            failures += len(change_list)
    return failures
