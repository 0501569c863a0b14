"""Writes that only the controller of this epoch may do.

Each transaction begins with a check of `/controller_epoch`:

```
multi { check /controller_epoch version · write · write · ... }
```

so that a controller that was deposed, and does not know it yet, changes nothing (Z1, ZN fence).
Writes of one step go together, up to a bound, since a transaction costs a sync of the disk.
When one of them is refused, they are tried one group after another: each group is done or
refused by itself, as if it had never been with the others.

Source: KafkaZkClient.retryRequestsUntilConnected with an expected controller epoch version.
Differs: Kafka sends a multi for every single write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from engine.errors import FencedError
from engine.limits import CONTROLLER_MULTI_OPERATIONS_MAX
from engine.znode.client import ZnodeClient
from engine.znode.errors import BadVersion, NodeError, NodeExists, NoNode
from engine.znode.model import Check, Create, Delete, Operation, OperationResult
from engine.znode.paths import CONTROLLER_EPOCH

#: Of a group of writes: the results of its operations, or why all of it was refused.
GroupResult: TypeAlias = "list[OperationResult] | NodeError"


class ControllerMoved(FencedError):
    """Another controller was elected: this one may no longer write."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the controller has moved to another broker: {reason}")
        self.reason = reason


class GuardedZnodes:
    """A store as the controller writes it; `epoch_version` is set by the election."""

    def __init__(self, client: ZnodeClient) -> None:
        self.client = client
        self.epoch_version = 0

    async def write(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """Do all operations or none; raises ControllerMoved, NodeError."""
        guarded = (Check(CONTROLLER_EPOCH, self.epoch_version), *operations)
        try:
            results = await self.client.multi(guarded)
        except (BadVersion, NoNode) as error:
            if error.operation_index == 0:
                raise ControllerMoved(f"{CONTROLLER_EPOCH} is not what it wrote") from error
            raise
        return results[1:]

    async def write_groups(self, groups: Sequence[Sequence[Operation]]) -> list[GroupResult]:
        """Do groups of operations, each whole or not at all, in order; raises ControllerMoved."""
        results: list[GroupResult] = []
        for chunk in _chunks(groups):
            results += await self._write_chunk(chunk)
        return results

    async def create_missing(self, paths: Iterable[str]) -> None:
        """Create nodes without data; those that are there stay as they are."""
        for result in await self.write_groups([(Create(path),) for path in paths]):
            if isinstance(result, NodeError) and not isinstance(result, NodeExists):
                raise result

    async def delete_all(self, paths: Iterable[str]) -> None:
        """Delete nodes in order; those that are gone already do not matter."""
        for result in await self.write_groups([(Delete(path),) for path in paths]):
            if isinstance(result, NodeError) and not isinstance(result, NoNode):
                raise result

    async def tree_below(self, path: str) -> list[str]:
        """Return a node and all below it, each behind what is below it; empty if it is gone."""
        try:
            names = await self.client.children(path)
        except NoNode:
            return []
        found = []
        for name in names:
            found += await self.tree_below(f"{path}/{name}")
        found.append(path)
        return found

    async def _write_chunk(self, chunk: list[Sequence[Operation]]) -> list[GroupResult]:
        try:
            flat = await self.write([each for group in chunk for each in group])
        except NodeError as error:
            if len(chunk) == 1:
                return [error]
            return [await self._write_alone(group) for group in chunk]
        results: list[GroupResult] = []
        start = 0
        for group in chunk:
            results.append(flat[start : start + len(group)])
            start += len(group)
        return results

    async def _write_alone(self, group: Sequence[Operation]) -> GroupResult:
        try:
            return await self.write(group)
        except NodeError as error:
            return error


def _chunks(groups: Sequence[Sequence[Operation]]) -> Iterable[list[Sequence[Operation]]]:
    """Yield groups together up to the bound of a transaction; a larger group goes alone."""
    chunk: list[Sequence[Operation]] = []
    size = 0
    for group in groups:
        if chunk and size + len(group) > CONTROLLER_MULTI_OPERATIONS_MAX:
            yield chunk
            chunk, size = [], 0
        chunk.append(group)
        size += len(group)
    if chunk:
        yield chunk
