"""The log line of a partition's state, from a broker that cannot continue."""

from __future__ import annotations

from engine.replication.partition import Partition


def state_text(partition: Partition) -> str:
    """Return all values that decide a partition's behaviour, on one line."""
    log, in_sync = partition.log, partition.in_sync
    return (
        f"{partition.topic_partition} leader={partition.leader_id} epoch={partition.leader_epoch} "
        f"partition_epoch={partition.partition_epoch} replicas={partition.assigned_replicas} "
        f"isr={in_sync.committed} pending={in_sync.pending} "
        f"log={log.log_start_offset}..{log.log_end_offset} watermark={partition.high_watermark}"
    )
