"""Implementation of `kctl cluster repair`."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from engine.cluster import daemon, repair
from engine.cluster.data_directory import DataDirectory
from engine.cluster.repair import Repair
from engine.host.real import RealClock, RealFiles
from kctl import exits
from kctl.console import confirm, notify
from kctl.embedded import cluster_path
from kctl.render import Column, check_format, write_rows

REPAIR_COLUMNS = (
    Column("kind", "KIND"),
    Column("name", "NAME", is_name=True),
    Column("partitions", "PARTITIONS", right=True, kind="integer?"),
    Column("log_bytes", "BYTES", right=True, kind="integer?"),
    Column("topic_id", "ID", kind="string?"),
    Column("result", "RESULT"),
    Column("reason", "REASON", kind="string?"),
)


class RepairRequest(NamedTuple):
    """The options of `kctl cluster repair`."""

    data: str | None
    dry_run: bool
    yes: bool
    timeout_s: float
    output: str


def repair_cluster(request: RepairRequest) -> int:
    """Write the metadata files that an embedded cluster lost, recovered from its logs.

    Asks for confirmation. Damaged files in their place are renamed, not deleted. Returns the exit
    code, CHANGES_PENDING with --dry-run if a repair is needed.
    """
    check_format(request.output)
    files, clock = RealFiles(), RealClock()
    data = DataDirectory(files, cluster_path(os.environ, request.data))
    repair.check_present(data, files)
    with daemon.hold_start_lock(data, files, clock, request.timeout_s, _pause):
        found = repair.examine_for_repair(data, files)
        if not found.is_needed:
            notify(f"the cluster in {data.path} has its metadata: there is nothing to repair")
            return exits.OK
        for note in found.notes:
            notify(f"note: {note}")
        if request.dry_run:
            write_rows(REPAIR_COLUMNS, _repair_rows(found, "would be written"), request.output)
            return exits.CHANGES_PENDING
        for path, reason in found.reasons.items():
            notify(f"{path}: {reason}")
        confirm(_confirmation_text(data, found), yes=request.yes)
        aside = repair.apply(data, files, clock, found)
    for path in aside:
        notify(f"note: what was there is now {path}")
    write_rows(REPAIR_COLUMNS, _repair_rows(found, "written"), request.output)
    return exits.OK


def _pause(duration_ms: int) -> None:
    """Sleep; called while waiting for the start lock."""
    time.sleep(duration_ms / 1000)


def _confirmation_text(data: DataDirectory, found: Repair) -> str:
    """Return the question before a repair: which files are written, for which cluster.

    If only the plan is lost, `found.found` is None.
    """
    if found.found is None:
        return f"Write a new plan of the cluster in {data.path}"
    cluster_id = found.found.cluster_ids[0] if found.found.cluster_ids else "unknown"
    count = len(found.found.topics)
    return f"Write the metadata of cluster {cluster_id} in {data.path} again, with {count} topics"


def _repair_rows(found: Repair, result: str) -> list[dict[str, object]]:
    """Return a row for each repaired file, then for each recovered topic."""
    rows: list[dict[str, object]] = [
        {"kind": "file", "name": path, "result": result, "reason": reason}
        for path, reason in found.reasons.items()
    ]
    for topic in found.found.topics if found.found is not None else ():
        rows.append(
            {
                "kind": "topic",
                "name": topic.name,
                "partitions": topic.partition_count,
                "log_bytes": topic.log_bytes,
                "topic_id": topic.topic_id,
                "result": result,
            }
        )
    return rows
