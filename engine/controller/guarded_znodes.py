"""Writes to the metadata store that fail if a later controller was elected.

Each transaction begins with a check of `/controller_epoch`:

```
multi { check /controller_epoch version · write · write · ... }
```

so that a controller that was replaced and does not know it yet changes nothing (ZN:fence).

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
    """A later controller was elected; the write was not applied."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the controller has moved to another broker: {reason}")
        self.reason = reason


class GuardedZnodes:
    """The metadata store with fenced writes; the election sets `epoch_version`."""

    def __init__(self, client: ZnodeClient, turns: LoopTurns) -> None:
        """Create the controller's access to znodes, whose writes fail after another election.

        `epoch_version` must be set before the first write.
        """
        self.client = client
        #: Divides work over thousands of partitions into turns of the loop.
        self.turns = turns
        self.epoch_version = 0

    async def write(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """Apply all operations or none, if the controller epoch is `epoch_version` still.

        Raises ControllerMoved if it has another version, and NodeError. Many operations get a
        separate turn of the event loop, since the embedded store applies them within the call.
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
        """Write groups of operations in order, as this controller.

        Each group completely or not at all. Returns for each group the results, or its NodeError.
        Raises ControllerMoved.
        """
        return await write_groups(self.write, groups)

    async def create_missing(self, paths: Iterable[str]) -> None:
        """Create the znodes of `paths` that do not exist, without data."""
        for result in await self.write_groups([(Create(path),) for path in paths]):
            if isinstance(result, NodeError) and not isinstance(result, NodeExists):
                raise result

    async def delete_all(self, paths: Iterable[str]) -> None:
        """Delete nodes in order; nodes that do not exist are skipped."""
        for result in await self.write_groups([(Delete(path),) for path in paths]):
            if isinstance(result, NodeError) and not isinstance(result, NoNode):
                raise result

    async def list_tree(self, path: str) -> list[str]:
        """Return the paths of a node and its descendants, children before parents.

        Empty if the node does not exist.
        """
        try:
            names = await self.client.children(path)
        except NoNode:
            return []
        trees = await together([self.list_tree(f"{path}/{name}") for name in names])
        return [*chain.from_iterable(trees), path]
