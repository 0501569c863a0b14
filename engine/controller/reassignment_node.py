"""`/admin/reassign_partitions`: what old tools ask to be moved, and what is left of it.

A tool creates the node with a target for each partition and waits until it is gone. The controller
takes out each partition that is done, refused or asked for again by the API, and removes the node
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

#: Tells of a partition and its target whether it is to be taken out.
IsDone: TypeAlias = Callable[[TopicPartition, tuple[int, ...]], bool]


class ReassignmentNode:
    """The node, as the active controller reads and writes it."""

    def __init__(self, znodes: GuardedZnodes, reporter: ControllerReporter) -> None:
        self._znodes = znodes
        self._reporter = reporter

    async def targets(self) -> dict[TopicPartition, tuple[int, ...]]:
        """Return what is asked for; nothing if the node is not there or nobody understands it."""
        return await self._read() or {}

    async def remove(self, is_done: IsDone) -> None:
        """Take out partitions, and the node with the last of them.

        A node from which nothing is taken is written again, too; one that names no partition goes.
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
        """Return what the node asks for, None if it is not there."""
        try:
            data, _ = await self._znodes.client.get(REASSIGN_PARTITIONS)
            return decode_reassignment(data, REASSIGN_PARTITIONS)
        except NoNode:
            return None
        except InvalidZnodeValue as error:
            # Its writer sees it until the next request or end of a move.
            self._reporter.event_failed("ZkPartitionReassignment", error)
            return {}
