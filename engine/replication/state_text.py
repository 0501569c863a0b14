"""The log line of a partition's state, written by a broker that stops after a bug."""

from __future__ import annotations

from engine.replication.partition import Partition


def format_state(partition: Partition) -> str:
    """Return the state of a partition on one line: roles, epochs, replicas, ISR and offsets."""
    log, in_sync = partition.log, partition.in_sync
    return (
        f"{partition.topic_partition} leader={partition.leader_id} epoch={partition.leader_epoch} "
        f"partition_epoch={partition.partition_epoch} replicas={partition.assigned_replicas} "
        f"isr={in_sync.committed} pending={in_sync.pending} "
        f"log={log.log_start_offset}..{log.log_end_offset} watermark={partition.high_watermark}"
    )
