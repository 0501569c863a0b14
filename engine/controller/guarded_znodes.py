"""Writes that only the controller of this epoch may do.

Each transaction begins with a check of `/controller_epoch`:

```
multi { check /controller_epoch version · write · write · ... }
```

so that a controller that was deposed, and does not know it yet, changes nothing (ZN:fence).

Source: C1; KafkaZkClient.retryRequestsUntilConnected with an expected controller epoch version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from engine.controller.grouped_writes import GroupResult, write_groups
from engine.errors import FencedError
from engine.host.coroutine import together
from engine.host.turns import LoopTurns
from engine.limits import CONTROLLER_OPERATIONS_PER_SHARE
from engine.znode.client import ZnodeClient
from engine.znode.errors import BadVersion, NodeError, NodeExists, NoNode
from engine.znode.model import Check, Create, Delete, Operation, OperationResult
from engine.znode.paths import CONTROLLER_EPOCH


class ControllerMoved(FencedError):
    """Another controller was elected: this one may no longer write."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the controller has moved to another broker: {reason}")
        self.reason = reason


class GuardedZnodes:
    """A store as the controller writes it; `epoch_version` is set by the election."""

    def __init__(self, client: ZnodeClient, turns: LoopTurns) -> None:
        """Wrap the session of the broker; the election begins the writes."""
        self.client = client
        #: Shares of the loop's turns for work over thousands of partitions.
        self.turns = turns
        self.epoch_version = 0

    async def write(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """Apply all operations or none, if the controller epoch is still this controller's.

        Raises ControllerMoved if a later controller was elected, and NodeError. Many operations get
        a turn of the loop to themselves: the embedded store applies them within the call.
        """
        if len(operations) > CONTROLLER_OPERATIONS_PER_SHARE:
            await self.turns.await_turn()
        guarded = (Check(CONTROLLER_EPOCH, self.epoch_version), *operations)
        try:
            _, *results = await self.client.multi(guarded)
        except (BadVersion, NoNode) as error:
            if error.operation_index == 0:
                raise ControllerMoved(f"{CONTROLLER_EPOCH} is not what it wrote") from error
            raise
        return results

    async def write_groups(self, groups: Sequence[Sequence[Operation]]) -> list[GroupResult]:
        """Do groups of operations, each whole or not at all, in order; raises ControllerMoved."""
        return await write_groups(self.write, groups)

    async def create_missing(self, paths: Iterable[str]) -> None:
        """Create nodes without data, where they do not exist."""
        for result in await self.write_groups([(Create(path),) for path in paths]):
            if isinstance(result, NodeError) and not isinstance(result, NodeExists):
                raise result

    async def delete_all(self, paths: Iterable[str]) -> None:
        """Delete nodes in order; absent ones do not matter."""
        for result in await self.write_groups([(Delete(path),) for path in paths]):
            if isinstance(result, NodeError) and not isinstance(result, NoNode):
                raise result

    async def tree_below(self, path: str) -> list[str]:
        """Return a node and all its descendants, children before parents, for a deletion.

        Empty if the node does not exist.
        """
        try:
            names = await self.client.children(path)
        except NoNode:
            return []
        trees = await together([self.tree_below(f"{path}/{name}") for name in names])
        return [*chain.from_iterable(trees), path]
