"""Log lines about roles and ISRs, at INFO.

```
state.change.logger        Leader t-0 with topic id … starts at leader epoch 3 from offset 90 …
                           Follower t-0 starts at leader epoch 4 from offset 95 …
kafka.cluster.Partition    Shrinking ISR from 1,2,3 to 1,2. Leader: (highWatermark: …
                           Expanding ISR from 1,2 to 1,2,3
                           ISR updated to 1,2,3 and version updated to 7
```

The loggers and first words are Kafka's, which tools search for. Source: kafka.cluster.Partition.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from engine.replication.partition import Partition

_state_log = logging.getLogger("state.change.logger")
_partition_log = logging.getLogger("kafka.cluster.Partition")


def log_role(partition: Partition, former_leader_id: int, former_leader_epoch: int) -> None:
    """Log a replica's role in a new leader epoch; the former leader and epoch are −1 if unknown."""
    former = f"Previous leader {former_leader_id} and previous leader epoch was"
    if partition.is_leader:
        _state_log.info(
            "Leader %s with topic id %s starts at leader epoch %d from offset %d with partition"
            " epoch %d, high watermark %d, ISR [%s]. %s %d.",
            partition.topic_partition,
            partition.log.topic_id,
            partition.leader_epoch,
            partition.log.log_end_offset,
            partition.partition_epoch,
            partition.high_watermark,
            _ids_text(partition.in_sync.committed),
            former,
            former_leader_epoch,
        )
    else:
        _state_log.info(
            "Follower %s starts at leader epoch %d from offset %d with partition epoch %d and high"
            " watermark %d. Current leader is %d. %s %d.",
            partition.topic_partition,
            partition.leader_epoch,
            partition.log.log_end_offset,
            partition.partition_epoch,
            partition.high_watermark,
            partition.leader_id,
            former,
            former_leader_epoch,
        )


def log_isr_proposal(partition: Partition, isr: Iterable[int]) -> None:
    """Log the ISR that a leader proposes."""
    committed, wanted = set(partition.in_sync.committed), set(isr)
    out_of_sync = committed - wanted
    if out_of_sync:
        _partition_log.info(
            "%s Shrinking ISR from %s to %s. Leader: (highWatermark: %d, endOffset: %d)."
            " Out of sync replicas: %s.",
            _line_start(partition),
            _ids_text(committed),
            _ids_text(wanted),
            partition.high_watermark,
            partition.log.log_end_offset,
            _ids_text(out_of_sync),
        )
    else:
        _partition_log.info(
            "%s Expanding ISR from %s to %s",
            _line_start(partition),
            _ids_text(committed),
            _ids_text(wanted),
        )


def log_isr(partition: Partition) -> None:
    """Log the ISR that the controller committed, after it has changed."""
    isr = partition.in_sync.committed
    below = " (under-min-isr)" if len(isr) < partition.config.min_insync_replicas else ""
    _partition_log.info(
        "%s ISR updated to %s%s and version updated to %d",
        _line_start(partition),
        _ids_text(isr),
        below,
        partition.partition_epoch,
    )


def _line_start(partition: Partition) -> str:
    """Return the begin of a log line about a partition, in Kafka's form."""
    return f"[Partition {partition.topic_partition} broker={partition.broker_id}]"


def _ids_text(broker_ids: Iterable[int]) -> str:
    """Return broker ids as text, sorted."""
    return ",".join(map(str, sorted(broker_ids)))
