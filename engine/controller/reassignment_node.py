"""`/admin/reassign_partitions`: unfinished reassignments that tools before 2.4 requested.

A tool creates the node with a target for each partition and waits for its deletion. The controller
removes each partition that is done, refused or requested by the API, and deletes the node after the
last one.

Source: ZN:reassign; KafkaController.maybeRemoveFromZkReassignment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from engine.controller.guarded_znodes import GuardedZnodes
from engine.controller.ports import ControllerReporter
from engine.model import TopicPartition
from engine.znode.errors import NoNode
from engine.znode.json_text import InvalidZnodeValue
from engine.znode.model import Delete, SetData
from engine.znode.paths import REASSIGN_PARTITIONS
from engine.znode.values import decode_reassignment, encode_reassignment

#: Returns True for a partition, with its target, that is to be removed.
IsDone: TypeAlias = Callable[[TopicPartition, tuple[int, ...]], bool]


class ReassignmentNode:
    """Reads and writes the node for the active controller."""

    def __init__(self, znodes: GuardedZnodes, reporter: ControllerReporter) -> None:
        self._znodes = znodes
        self._reporter = reporter

    async def targets(self) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the target replicas by partition in `/admin/reassign_partitions`.

        Empty if the node is absent or cannot be parsed.
        """
        return await self._read_targets() or {}

    async def remove_done(self, is_done: IsDone) -> None:
        """Remove partitions from `/admin/reassign_partitions`, those for which `is_done` is True.

        The node is deleted if none is left, and written even without a change, as in Kafka.
        """
        targets = await self._read_targets()
        if targets is None:
            return
        kept = {
            partition: target
            for partition, target in targets.items()
            if not is_done(partition, target)
        }
        if kept:
            await self._znodes.write([SetData(REASSIGN_PARTITIONS, encode_reassignment(kept))])
        else:
            await self._znodes.write([Delete(REASSIGN_PARTITIONS)])

    async def _read_targets(self) -> dict[TopicPartition, tuple[int, ...]] | None:
        """Return the targets in the node: None if it is absent, empty if it cannot be parsed."""
        try:
            data, _ = await self._znodes.client.get(REASSIGN_PARTITIONS)
            return decode_reassignment(data, REASSIGN_PARTITIONS)
        except NoNode:
            return None
        except InvalidZnodeValue as error:
            # The invalid node stays until the next request or the end of a reassignment.
            self._reporter.event_failed("ZkPartitionReassignment", error)
            return {}
