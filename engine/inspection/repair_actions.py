"""The steps a repair is made of, and the plan that lists them.

A plan is complete before anything is touched, and states its losses.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from engine.log.index_builder import INDEX_INTERVAL_BYTES


class RemoveFile(NamedTuple):
    """Remove a file; `keep_backup` if it holds records that are nowhere else."""

    name: str
    reason: str
    keep_backup: bool = False


class RenameFile(NamedTuple):
    """Give a file another name, over a file that may have it."""

    name: str
    target: str
    reason: str


class CutFile(NamedTuple):
    """Cut a file from `was_bytes` to `size_bytes`."""

    name: str
    size_bytes: int
    was_bytes: int
    reason: str


class WriteFile(NamedTuple):
    """Write a file's whole content."""

    name: str
    content: bytes
    reason: str


Action: TypeAlias = RemoveFile | RenameFile | CutFile | WriteFile


class RepairOptions(NamedTuple):
    """The options of a repair.

    `recovery_point`: offset below which segments' logs are left alone, None to look at all.
    `cuts_overlaps`: cut at the first batch whose offsets were there before, which a broker keeps.
    `rebuild_all`: rebuild every index that differs from a broker's rebuild, not only wrong ones.
    """

    index_interval_bytes: int = INDEX_INTERVAL_BYTES
    recovery_point: int | None = None
    rebuild_all: bool = False
    cuts_overlaps: bool = False


class RepairPlan(NamedTuple):
    """The actions of a repair on one partition directory, and its remaining files.

    `actions` are in the order of doing. `log_bytes` has the size of each .log afterwards by base
    offset. `lost_bytes` counts bytes of logs that go; `lost_from_offset` is the first offset that
    is not there any more, None if nothing is lost. `overlaps` counts batches that stay although
    their offsets were there before. `carried` are the files that stay, as (present name, name
    afterwards), whether or not an action changes them.
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
