"""Columns and rows of `kctl logs`."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from engine.inspection.findings import Severity
from kctl.render import Column

if TYPE_CHECKING:
    from engine.inspection.findings import Finding
    from engine.inspection.log_compare import BatchPrint, Comparison
    from engine.inspection.partition_summary import PartitionSummary
    from engine.inspection.repair_actions import Action, RepairPlan
    from engine.inspection.verify import PartitionReport

DIRS_COLUMNS = (
    Column("name", "PARTITION"),
    Column("kind", "KIND"),
    Column("segments", "SEGMENTS", right=True),
    Column("size_bytes", "SIZE", right=True, is_size=True),
    Column("log_start_offset", "START", right=True, kind="integer?"),
    Column("log_end_offset", "END", right=True, kind="integer?"),
    Column("high_watermark", "HIGH WATERMARK", right=True, kind="integer?"),
    Column("recovery_point", "RECOVERY POINT", right=True, kind="integer?"),
    Column("leftovers", "LEFTOVERS", right=True),
    Column("topic", "TOPIC", wide=True, kind="string?"),
    Column("partition", "NUMBER", right=True, wide=True, kind="integer?"),
    Column("topic_id", "TOPIC ID", wide=True, kind="string?"),
    Column("path", "PATH", wide=True),
)

SUMMARY_COLUMNS = (
    Column("partition", "PARTITION"),
    Column("segments", "SEGMENTS", right=True),
    Column("batches", "BATCHES", right=True),
    Column("size_bytes", "BYTES", right=True),
    Column("first_offset", "START", right=True),
    Column("next_offset", "END", right=True),
    Column("errors", "ERRORS", right=True),
    Column("warnings", "WARNINGS", right=True),
    Column("worst", "WORST"),
    Column("path", "PATH", wide=True),
)

FINDING_COLUMNS = (
    Column("severity", "SEVERITY"),
    Column("code", "CODE"),
    Column("partition", "PARTITION", kind="string?"),
    Column("file", "FILE"),
    Column("position", "POSITION", right=True, kind="integer?"),
    Column("offset", "OFFSET", right=True, kind="integer?"),
    Column("message", "MESSAGE"),
    Column("expected", "EXPECTED", wide=True, kind="any"),
    Column("got", "GOT", wide=True, kind="any"),
    Column("path", "PATH", wide=True),
)

ACTION_COLUMNS = (
    Column("partition", "PARTITION"),
    Column("action", "ACTION"),
    Column("file", "FILE"),
    Column("size_bytes", "BYTES", right=True, kind="integer?"),
    Column("was_bytes", "WAS BYTES", right=True, kind="integer?"),
    Column("reason", "REASON"),
    Column("target", "TARGET", wide=True, kind="string?"),
    Column("path", "PATH", wide=True),
)

_BATCH_COLUMNS = (
    Column("base_offset", "BASE OFFSET", kind="integer"),
    Column("last_offset", "LAST OFFSET", kind="integer"),
    Column("leader_epoch", "EPOCH", kind="integer"),
    Column("size_bytes", "BYTES", kind="integer"),
    Column("is_crc_valid", "CRC VALID", kind="boolean"),
    Column("path", "PATH"),
    Column("position", "POSITION", kind="integer"),
)
DIFF_COLUMNS = (
    Column("kind", "KIND"),
    Column("offset", "OFFSET", right=True, kind="integer?"),
    Column("equal_batches", "EQUAL BATCHES", right=True),
    Column("left_start_offset", "LEFT START", right=True, kind="integer?"),
    Column("left_end_offset", "LEFT END", right=True, kind="integer?"),
    Column("right_start_offset", "RIGHT START", right=True, kind="integer?"),
    Column("right_end_offset", "RIGHT END", right=True, kind="integer?"),
    Column("left_batch", "LEFT BATCH", wide=True, kind="object?", fields=_BATCH_COLUMNS),
    Column("right_batch", "RIGHT BATCH", wide=True, kind="object?", fields=_BATCH_COLUMNS),
    Column("damage", "DAMAGE", wide=True, kind="string[]"),
)


def dirs_row(summary: PartitionSummary) -> dict[str, object]:
    """Return the row of one partition: the fields of its summary."""
    return summary._asdict()


def summary_row(
    report: PartitionReport | None, problems: list[Finding], path: str | None
) -> dict[str, object]:
    """Return the row of a partition: its size and offsets, and how many problems it has.

    `problems` is sorted, the worst first; `report` None means a log directory itself.
    """
    errors = sum(finding.severity is Severity.ERROR for finding in problems)
    worst = problems[0] if problems else None
    offsets = "segments", "batches", "size_bytes", "first_offset", "next_offset"
    return {
        "partition": report.name if report else None,
        **{name: getattr(report, name, None) for name in offsets},
        "errors": errors,
        "warnings": len(problems) - errors,
        "worst": f"{worst.code}: {worst.message}" if worst else None,
        "path": path,
    }


def finding_row(finding: Finding, partition: str | None) -> dict[str, object]:
    """Return the row of a finding; `partition` None means a log directory itself."""
    return {
        "severity": finding.severity.value,
        "code": finding.code,
        "partition": partition,
        "file": posixpath.basename(finding.path),
        "position": finding.position,
        "offset": finding.offset,
        "message": finding.message,
        "expected": _plain_value(finding.expected),
        "got": _plain_value(finding.got),
        "path": finding.path,
    }


def action_row(plan: RepairPlan, action: Action) -> dict[str, object]:
    """Return the row of one planned change to a file of a partition.

    `action` is rewrite, truncate and so on: the class name of the action.
    """
    kind = type(action).__name__.removesuffix("File").lower()
    content = getattr(action, "content", None)
    size = len(content) if content is not None else getattr(action, "size_bytes", None)
    return {
        "partition": plan.name,
        "action": kind,
        "file": action.name,
        "size_bytes": size,
        "was_bytes": getattr(action, "was_bytes", None),
        "reason": action.reason,
        "target": getattr(action, "target", None),
        "path": f"{plan.path}/{action.name}",
    }


def diff_row(comparison: Comparison) -> dict[str, object]:
    """Return the row of a comparison of two copies of a log: the first difference, if any.

    `kind` is `same` without a difference, and `damage` if a damaged batch ended the comparison.
    """
    difference = comparison.difference
    left_start, left_end = comparison.left_offsets or (None, None)
    right_start, right_end = comparison.right_offsets or (None, None)
    return {
        "kind": difference.kind if difference else ("damage" if comparison.damage else "same"),
        "offset": difference.offset if difference else None,
        "equal_batches": comparison.equal_batches,
        "left_start_offset": left_start,
        "left_end_offset": left_end,
        "right_start_offset": right_start,
        "right_end_offset": right_end,
        "left_batch": _batch_columns(difference.left) if difference else None,
        "right_batch": _batch_columns(difference.right) if difference else None,
        "damage": list(comparison.damage),
    }


def _batch_columns(batch: BatchPrint) -> dict[str, object]:
    """Return where a differing batch is: offsets (the last inclusive), file and position."""
    return {
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "leader_epoch": batch.leader_epoch,
        "size_bytes": batch.size_bytes,
        "is_crc_valid": batch.is_crc_valid,
        "path": batch.path,
        "position": batch.position,
    }


def _plain_value(value: object) -> object:
    """Convert a finding's value to a bool, int, text, None or list, as every output needs."""
    if isinstance(value, tuple | list):
        return [_plain_value(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)
