"""The actions of a repair, and the plan that lists them.

A plan is complete before anything is changed, and states what will be lost.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from engine.log.index_builder import INDEX_INTERVAL_BYTES


class RemoveFile(NamedTuple):
    """Remove a file; `keep_backup` if it contains records that are in no other file."""

    name: str
    reason: str
    keep_backup: bool = False


class RenameFile(NamedTuple):
    """Rename a file, replacing a file with that name."""

    name: str
    target: str
    reason: str


class CutFile(NamedTuple):
    """Truncate a file from `was_bytes` to `size_bytes`."""

    name: str
    size_bytes: int
    was_bytes: int
    reason: str


class WriteFile(NamedTuple):
    """Replace the whole content of a file."""

    name: str
    content: bytes
    reason: str


Action: TypeAlias = RemoveFile | RenameFile | CutFile | WriteFile


class RepairOptions(NamedTuple):
    """The options of a repair.

    `recovery_point`: leave the logs of segments below this offset unchanged; None to check all.
    `cuts_overlaps`: truncate at the first batch whose offsets are not above all before it, which a
    broker keeps. `rebuild_all`: rebuild every index that differs from what a broker would build,
    not only wrong ones.
    """

    index_interval_bytes: int = INDEX_INTERVAL_BYTES
    recovery_point: int | None = None
    rebuild_all: bool = False
    cuts_overlaps: bool = False


class RepairPlan(NamedTuple):
    """The actions of a repair of a partition directory, and the files that remain.

    `actions` are in the order of execution. `log_bytes` has the final size of each .log by base
    offset. `lost_bytes` counts the removed bytes of logs; `lost_from_offset` is the first lost
    offset, None if nothing is lost. `overlaps` counts batches that are kept although their offsets
    are not above all before them. `carried` are the files that remain, changed or not, as (present
    name, final name).
    """

    name: str
    path: str
    actions: tuple[Action, ...]
    carried: tuple[tuple[str, str], ...]
    log_bytes: dict[int, int]
    end_offset: int
    lost_bytes: int = 0
    lost_from_offset: int | None = None
    overlaps: int = 0
