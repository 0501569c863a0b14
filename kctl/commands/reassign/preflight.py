"""Checks and warnings before a plan is executed, and for a dry run."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from engine.client.blocking import KafkaClient
from engine.errors import EngineError
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange
from engine.reassign.journal_state import ExecutionSettings
from engine.reassign.live_cluster import LiveCluster
from engine.reassign.precondition_reader import read_ground
from engine.reassign.preflight import DiskRoom, check_changes, waiting_changes
from engine.reassign.throttles import settings_to_read, throttles_to_set
from kctl.arguments import counted
from kctl.console import notify
from kctl.render.table import size_text


class PlanRefused(EngineError):
    """The plan cannot be executed in the cluster's current state."""

    def __init__(self, reasons: Sequence[str], *, is_begun: bool, lacks_room: bool) -> None:
        """Create the error for changes that cannot be executed, by `reasons`.

        `is_begun` says that an earlier process has begun moves, `lacks_room` that a disk may become
        full.
        """
        self.reasons = tuple(reasons)
        self.hint = (
            "make a new plan: `kctl reassign plan`; `kctl brokers log-dirs` shows directories"
        )
        if lacks_room:
            self.hint += "; --ignore-free-space goes on though disks may become full"
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        moved = "nothing more was begun" if is_begun else "nothing was moved"
        super().__init__(f"the plan cannot be executed, {moved}: {reasons[0]}{more}")


def require_possible(
    client: KafkaClient,
    changes: Sequence[PartitionChange],
    settings: ExecutionSettings,
    *,
    is_dry_run: bool,
    ignores_room: bool = False,
    begun: Collection[TopicPartition] | None = None,
) -> None:
    """Raise PlanRefused if a change of replicas cannot succeed; called before an execution.

    Warnings about other changes are printed; a dry run also prints disks and throttles. Of a
    resumed execution only changes that are not in `begun` are checked. Errors: also those of
    metadata requests.
    """
    waiting, positions = waiting_changes(changes, settings.order(len(changes)), begun or ())
    if begun is not None and not waiting:
        return
    found = check_changes(
        waiting, positions, read_ground(client, waiting), is_room_required=not ignores_room
    )
    for warning in found.warnings:
        notify(f"warning: {warning}")
    if found.faults:
        for fault in found.faults[1:]:
            notify(f"error: {fault}")
        lacks_room = any(room.lasting_short_bytes for room in found.rooms)
        reasons = [str(fault) for fault in found.faults]
        raise PlanRefused(reasons, is_begun=begun is not None, lacks_room=lacks_room)
    if is_dry_run:
        for room in found.rooms:
            notify(_room_line(room))
        for line in _throttle_lines(client, changes, settings):
            notify(line)


def _room_line(room: DiskRoom) -> str:
    """Return a line on a broker's disk: bytes to come, free bytes, directories."""
    coming, free = size_text(room.coming_bytes), size_text(room.free_bytes)
    return f"broker {room.broker_id}: {coming} to come, {free} free in {', '.join(room.paths)}"


def _throttle_lines(
    client: KafkaClient, changes: Sequence[PartitionChange], settings: ExecutionSettings
) -> list[str]:
    """Return a line for each throttle that an execution would set, or cannot read (dry run).

    Without a throttle although replicas are copied, the line recommends one.
    """
    rates = settings.rates
    there = LiveCluster(client, changes).throttles(settings_to_read(changes, rates))
    known = {s: value for s, value in there.items() if not isinstance(value, EngineError)}
    lines = [
        f"warning: {setting} cannot be set now: {error}"
        for setting, error in there.items()
        if isinstance(error, EngineError)
    ]
    by_value: dict[tuple[str, str], list[str]] = {}
    for setting, value in throttles_to_set(changes, rates, known).items():
        if setting in known:
            by_value.setdefault((setting.name, value), []).append(str(setting).split(" of ")[-1])
    if not by_value and not lines:
        return ["no throttle is set: add --throttle to bound what brokers send and take in"] * (
            rates.replication is None and any(change.added for change in changes)
        )
    lines += [
        f"throttle: {name}={value} of {', '.join(of)}" for (name, value), of in by_value.items()
    ]
    return lines


def log_dir_moves_text(changes: Sequence[PartitionChange]) -> str:
    """Return the moves between log directories as text after a comma; "" without any."""
    count = sum(len(change.log_dir_moves) for change in changes)
    if not count:
        return ""
    size = size_text(sum(change.log_dir_bytes for change in changes))
    return f", {counted(count, 'move')} between directories, {size}"
