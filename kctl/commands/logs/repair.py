"""Implementation of `kctl logs repair`: plan all repairs, show them, confirm, then write."""

from __future__ import annotations

from typing import NamedTuple

from engine.errors import EngineError
from engine.host import lock_file
from engine.host.real import RealFiles
from engine.inspection.repair import (
    copy_state_files,
    lower_checkpoints,
    repair_in_place,
    repair_into,
)
from engine.inspection.repair_actions import RepairOptions, RepairPlan
from engine.inspection.repair_plan import plan_repair
from engine.log.directory.log_dir import LOCK_FILE, LogDir, PartitionFolder, find_log_dir
from engine.log.directory.offset_checkpoint import RECOVERY_POINTS
from kctl import exits
from kctl.arguments import counted
from kctl.commands.logs.listing import log_bytes
from kctl.commands.logs.progress import Progress
from kctl.commands.logs.rows import ACTION_COLUMNS, action_row
from kctl.console import confirm, notify, report_error
from kctl.destinations import check_destination
from kctl.render import RowWriter


class ChooseTarget(EngineError):
    """The options name no target for the repaired data, or two targets."""

    exit_code = exits.USAGE
    hint = "--to DIR writes repaired copies, --in-place changes the data, --dry-run only shows"

    def __init__(self) -> None:
        super().__init__("choose one of --to DIR, --in-place and --dry-run")


class DirectoryInUse(EngineError):
    """A broker holds the lock of the log directory."""

    hint = "stop the broker first, or repair a copy with --to DIR"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: another process holds the lock of this log directory")
        self.path = path


class RepairRequest(NamedTuple):
    """The options of `kctl logs repair`."""

    into: str | None
    in_place: bool
    dry_run: bool
    backup: bool
    from_recovery_point: bool
    rebuild_indexes: bool
    cut_overlaps: bool
    index_interval_bytes: int
    yes: bool
    output: str


def repair_dir(path: str, request: RepairRequest) -> int:
    """Repair one log or partition directory, in place or as a copy; returns the exit code.

    Errors: ChooseTarget unless one of --to, --in-place and --dry-run is given; DirectoryInUse;
    those of files.
    """
    targets = (request.into is not None) + request.in_place
    if targets > 1 or not (targets or request.dry_run):
        raise ChooseTarget
    writer = RowWriter(ACTION_COLUMNS, request.output)
    log_dir = find_log_dir(RealFiles(), path)
    check_destination(request.into, [path])
    lock = f"{log_dir.path or '.'}/{LOCK_FILE}"
    if request.in_place and not request.dry_run and lock_file.is_held(lock):
        raise DirectoryInUse(log_dir.path)
    plans, failures = _plan_repairs(log_dir, request)
    for plan in plans:
        for action in plan.actions:
            writer.write(action_row(plan, action))
    writer.close(failures=failures)
    _print_summary(plans)
    if request.dry_run:
        pending = any(plan.actions for plan in plans)
        return exits.FAILED if failures else exits.CHANGES_PENDING if pending else exits.OK
    if request.in_place and any(plan.lost_bytes for plan in plans):
        confirm("Cut these records", yes=request.yes)
    failed = _perform(plans, request, log_dir)
    if not failed:
        _lower_checkpoints(plans, request, log_dir)
    failures += failed
    return exits.FAILED if failures else exits.OK


def _plan_repairs(log_dir: LogDir, request: RepairRequest) -> tuple[list[RepairPlan], int]:
    """Plan the repair of every partition without writing, and show the progress.

    Returns the plans, and the number of partitions that cannot be read, whose errors are printed.
    """
    plans = []
    failures = 0
    with Progress(log_bytes([log_dir]), "reading") as progress:
        for partition in log_dir.partitions:
            if not partition.is_kept:
                continue
            options = RepairOptions(
                index_interval_bytes=request.index_interval_bytes,
                recovery_point=_recovery_point(log_dir, partition, request),
                rebuild_all=request.rebuild_indexes,
                cuts_overlaps=request.cut_overlaps,
            )
            try:
                plan = plan_repair(RealFiles(), partition, options, on_read=progress.advance)
            except EngineError as error:
                report_error(error)
                failures += 1
            else:
                plans.append(plan)
    return plans, failures


def _recovery_point(
    log_dir: LogDir, partition: PartitionFolder, request: RepairRequest
) -> int | None:
    """Return the offset at which the check starts; None to check the complete log.

    With --from-recovery-point it is the recovery point, 0 if the checkpoint lacks the partition: a
    broker trusts what is below it.
    """
    if not request.from_recovery_point:
        return None
    return log_dir.state.offset(RECOVERY_POINTS, partition.topic_partition) or 0


def _perform(plans: list[RepairPlan], request: RepairRequest, log_dir: LogDir) -> int:
    """Write the repaired partitions, in place or into --to; returns the number of failures.

    A failure of one is printed and does not stop the others.
    """
    files = RealFiles()
    failures = 0
    if request.into is not None and log_dir.is_whole:
        copy_state_files(files, log_dir.path, request.into)
    for plan in plans:
        try:
            if request.into is not None:
                target = f"{request.into}/{plan.name}" if log_dir.is_whole else request.into
                repair_into(files, plan, target)
            else:
                for name in repair_in_place(files, plan, backup=request.backup):
                    notify(f"kept {plan.path}/{name}")
        except EngineError as error:
            report_error(error)
            failures += 1
    return failures


def _lower_checkpoints(plans: list[RepairPlan], request: RepairRequest, log_dir: LogDir) -> None:
    """Lower checkpointed offsets that exceed the new log end offsets of repaired partitions.

    A recovery point above the log end offset would make the broker skip the recovery of new
    records.
    """
    if request.into is not None and not log_dir.is_whole:
        return
    places = {p.files.path: p.topic_partition for p in log_dir.partitions}
    ends = {place: plan.end_offset for plan in plans if (place := places.get(plan.path))}
    for change in lower_checkpoints(RealFiles(), request.into or log_dir.path or ".", ends):
        notify(change)


def _print_summary(plans: list[RepairPlan]) -> None:
    """Print the number of actions, then lost bytes and kept overlaps of each partition."""
    actions = sum(len(plan.actions) for plan in plans)
    notify(f"{counted(len(plans), 'partition')}, {counted(actions, 'action')}")
    for plan in plans:
        if plan.lost_bytes:
            notify(
                f"{plan.name}: ends at offset {plan.end_offset}; "
                f"{plan.lost_bytes} bytes from there on are cut"
            )
        if plan.overlaps:
            notify(
                f"{plan.name}: {plan.overlaps} batches with offsets that were there before stay, "
                "as a broker keeps them; --cut-overlaps cuts at the first"
            )
