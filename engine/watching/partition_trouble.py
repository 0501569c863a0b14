"""The worst trouble of a partition's replicas, from metadata and min.insync.replicas. Pure."""

from __future__ import annotations

from typing import Final

from engine.client.metadata import PartitionView

#: Troubles, from the worst to the mildest.
TROUBLES: Final = ("offline", "under-min-isr", "at-min-isr", "under-replicated")


def partition_trouble(
    row: PartitionView, min_isr: int | None, adding: tuple[int, ...] = ()
) -> str | None:
    """Return the worst trouble of a partition's replicas, one of TROUBLES; None if there is none.

    `adding` are replicas that a reassignment adds.
    """
    if not row.has_leader:
        return "offline"
    in_sync = len(row.isr)
    is_lacking = row._replace(adding=adding).is_under_replicated
    if min_isr is not None and in_sync < min(min_isr, len(row.replicas)):
        return "under-min-isr"
    if is_lacking and in_sync == min_isr:
        return "at-min-isr"
    return "under-replicated" if is_lacking else None
