"""Partitions of which a follower's session has nothing to learn: they are not read for it.

```
                    led here, the same epoch, the replica is followed
 a read finds ──┬── and ends where it begins, as the log does ──┬── offsets as told ─> unchanged
                │                                               └── others ─────────> news
                └── an error, records, another epoch ───────────────────────────────> news
```

A session is told of what has changed alone (KIP-227), so a partition that has not need not be read
to leave it out. What its fetch says of the follower is noted all the same.

Source: FET-7, PUR-5.
"""

from __future__ import annotations

from typing import Protocol

from engine.replication.partition import Partition
from engine.replication.partition_types import FetchSpec


class Told(Protocol):
    """What a session was told last of a partition; −1 where that was an error, or nothing."""

    high_watermark: int
    log_start_offset: int


def is_unchanged(partition: Partition, replica_id: int, spec: FetchSpec, told: Told) -> bool:
    """Return whether a follower's read would find no bytes, no error, and the offsets it was told.

    The partition must be the one that is read now. False where that is not known without a read.
    """
    offset, _, leader_epoch, fetched_epoch, _ = spec
    log = partition.log
    return (
        # A log begins nowhere behind its end, so that the offset is in range.
        offset == log.log_end_offset
        and partition.high_watermark == told.high_watermark
        and log.log_start_offset == told.log_start_offset
        and partition.serves(leader_epoch)
        # The newest epoch ends with the log, and so do both logs.
        and (fetched_epoch is None or fetched_epoch == log.epochs.latest_epoch)
        and replica_id in partition.followers
    )
