"""`/admin/reassign_partitions`: the reassignments that old tools requested, until they are done.

A tool creates the node with a target for each partition and waits for its removal. The controller
removes each partition that is done, refused or requested again by the API, and the node
with the last of them.

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

#: Returns whether a partition with its target is to be removed.
IsDone: TypeAlias = Callable[[TopicPartition, tuple[int, ...]], bool]


class ReassignmentNode:
    """The node, as the active controller reads and writes it."""

    def __init__(self, znodes: GuardedZnodes, reporter: ControllerReporter) -> None:
        self._znodes = znodes
        self._reporter = reporter

    async def targets(self) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the requested targets; none if the node is absent or cannot be parsed."""
        return await self._read() or {}

    async def remove(self, is_done: IsDone) -> None:
        """Remove finished partitions from the node; delete the node after its last one.

        Written even without a change, as Kafka does, and a node that names no partition is deleted.
        """
        targets = await self._read()
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

    async def _read(self) -> dict[TopicPartition, tuple[int, ...]] | None:
        """Return the targets in the node, None if it is absent."""
        try:
            data, _ = await self._znodes.client.get(REASSIGN_PARTITIONS)
            return decode_reassignment(data, REASSIGN_PARTITIONS)
        except NoNode:
            return None
        except InvalidZnodeValue as error:
            # Its writer sees it until the next request or end of a move.
            self._reporter.event_failed("ZkPartitionReassignment", error)
            return {}
