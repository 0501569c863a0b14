"""ISRs that a leader writes to the metadata store itself, as before release 2.7.

```
propose ── write the state znode if its version is known ─┬─ written ──> decided, change recorded
                                                          ├─ newer ────> INVALID_UPDATE_VERSION
                                                          └─ no store ─> retry after a pause
every 2.5 s ── a change recorded, and no change for 5 s or no notification for 60 s?
            └─> /isr_change_notification/isr_change_<n>, for the controller to notify all brokers
```

1. The state has the epoch of the controller that elected the leader: a later controller has
   written a later version, and then this write fails.
2. A newer version may be this write itself, whose response was lost: the same leader, leader
   epoch and ISR is a success.

Source: ISR-6, SCH-3; Kafka's ZkIsrManager and ReplicationUtils.updateLeaderAndIsr.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from engine.broker.tasks import LoopTasks
from engine.host.coroutine import drive
from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.kafka_errors import INVALID_UPDATE_VERSION, NONE, UNKNOWN_TOPIC_OR_PARTITION
from engine.limits import (
    ISR_CHANGE_CHECK_MS,
    ISR_CHANGE_DELAY_MS_MAX,
    ISR_CHANGE_LINGER_MS,
    ISR_PROPOSAL_RETRY_MS,
)
from engine.model import TopicPartition
from engine.replication.effects import ProposeIsr
from engine.replication.isr import NEVER_MS
from engine.replication.partition_types import IsrDecision
from engine.znode.client import ZnodeClient
from engine.znode.errors import BadVersion, NoNode
from engine.znode.paths import ISR_CHANGE_PREFIX, partition_state_path
from engine.znode.values import (
    PartitionStateNode,
    decode_partition_state,
    encode_partition_state,
    encode_partitions,
)

_log = logging.getLogger("kafka.server.ZkIsrManager")


class IsrWritePorts(NamedTuple):
    """The parts of a broker that the writes use.

    `controller_epoch` returns the epoch of the controller that elected the partition's leader;
    `decided` gets the result on a later turn.
    """

    znodes: ZnodeClient
    controller_epoch: Callable[[TopicPartition], int]
    decided: Callable[[ProposeIsr, IsrDecision], None]


class IsrWrites:
    """The ISR writes of one broker; used in place of `IsrProposals`."""

    def __init__(
        self, broker_id: int, ports: IsrWritePorts, tasks: LoopTasks, clock: Clock
    ) -> None:
        """Create the writer of ISRs to the metadata store, which old protocol versions need."""
        self._broker_id = broker_id
        self._ports = ports
        self._tasks = tasks
        self._clock = clock
        #: Changed partitions of which the controller was not notified yet.
        self._changed: dict[TopicPartition, None] = {}
        #: Monotonic times of the last written change and of the last notification. Both are
        #: NEVER_MS at first: the first change is sent at the next check.
        self._last_change_ms = self._last_sent_ms = NEVER_MS
        self._is_stopped = False
        #: Number of writes without a result.
        self._in_flight = 0

    @property
    def waiting_count(self) -> int:
        """Return the number of ISR writes without a result."""
        return self._in_flight

    def start(self) -> None:
        """Start the periodic check for ISR changes to report to the controller (SCH-3)."""
        self._tasks.every(
            "isr-change-propagation",
            ISR_CHANGE_CHECK_MS,
            self._send_changes,
            first_after_ms=ISR_CHANGE_CHECK_MS,
        )

    def stop(self) -> None:
        """Ignore the results of all writes, and send no notifications."""
        self._is_stopped = True

    def propose(self, proposal: ProposeIsr) -> None:
        """Write a proposed ISR to its znode.

        `decided` is called with the result on a later turn.
        """
        self._in_flight += 1
        # Not within the caller's work, since a store in this process responds at once.
        self._tasks.once("isr-write", 0, partial(self._write, proposal))

    def _write(self, proposal: ProposeIsr) -> None:
        """Start to write a proposed ISR to its znode, unless the broker stops."""
        if self._is_stopped:
            return
        writing = drive(self._write_znode(proposal))
        writing.watch(partial(self._on_written, proposal, writing))

    async def _write_znode(self, proposal: ProposeIsr) -> IsrDecision:
        """Write a proposed ISR to the partition's znode; return the new version, or an error code.

        A znode that already has the proposed state counts as written: the first response was lost.
        """
        key = proposal.topic_partition
        path = partition_state_path(key)
        state = PartitionStateNode(
            self._broker_id, proposal.leader_epoch, proposal.isr, self._ports.controller_epoch(key)
        )
        try:
            stat = await self._ports.znodes.set(
                path, encode_partition_state(state), proposal.partition_epoch
            )
            version = stat.version
        except NoNode:
            return IsrDecision(UNKNOWN_TOPIC_OR_PARTITION)
        except BadVersion:
            data, stat = await self._ports.znodes.get(path)
            found = decode_partition_state(data, path)
            if found._replace(controller_epoch=state.controller_epoch) != state:
                return IsrDecision(INVALID_UPDATE_VERSION)
            version = stat.version
        return IsrDecision(NONE, proposal.isr, proposal.leader_epoch, version)

    def _on_written(self, proposal: ProposeIsr, writing: Promise[IsrDecision]) -> None:
        """Pass the result of a write to the partition; retry after an error of the store."""
        if self._is_stopped:
            return
        if writing.error is not None:
            _log.warning(
                "%s: ISR %s is not written, trying again: %s",
                proposal.topic_partition,
                proposal.isr,
                writing.error,
            )
            self._tasks.once("isr-write", ISR_PROPOSAL_RETRY_MS, partial(self._write, proposal))
            return
        self._in_flight -= 1
        decision = writing.result()
        if decision.error_code == NONE:
            self._changed[proposal.topic_partition] = None
            self._last_change_ms = self._clock.monotonic_ms()
        self._ports.decided(proposal, decision)

    # Notifying the controller

    def _send_changes(self) -> None:
        """Notify the controller of changed ISRs, after a time without changes or the maximal delay.

        So many changes in a row lead to one notification.
        """
        now_ms = self._clock.monotonic_ms()
        is_quiet = self._last_change_ms + ISR_CHANGE_LINGER_MS < now_ms
        is_late = self._last_sent_ms + ISR_CHANGE_DELAY_MS_MAX < now_ms
        if not self._changed or not (is_quiet or is_late) or self._is_stopped:
            return
        changed, self._changed = self._changed, {}
        sending = drive(self._send(changed))
        sending.watch(partial(self._on_sent, changed, sending))

    async def _send(self, changed: dict[TopicPartition, None]) -> None:
        """Create the sequential znode that notifies the controller of changed ISRs."""
        await self._ports.znodes.create(
            ISR_CHANGE_PREFIX, encode_partitions(changed), sequential=True
        )

    def _on_sent(self, changed: dict[TopicPartition, None], sending: Promise[None]) -> None:
        """Record the time of a notification; after an error keep the changes for the next one."""
        if sending.error is None:
            self._last_sent_ms = self._clock.monotonic_ms()
        else:
            # The next check sends them together with later changes.
            self._changed = changed | self._changed
            _log.warning("changed in-sync sets are not reported yet: %s", sending.error)


def writes_sets_itself(release: str) -> bool:
    """True if leaders write the ISR to the metadata store in this inter.broker.protocol.version.

    From 2.7-IV2 on they propose it to the controller (KIP-497).
    """
    head, _, step = ".".join(release.split(".")[:2]).partition("-IV")
    major, minor = map(int, head.split("."))
    return (major, minor, int(step or 2)) < (2, 7, 2)
