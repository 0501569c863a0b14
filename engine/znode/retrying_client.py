"""A client that repeats requests lost with their connection, until the session is over.

| lost request | what is done |
|---|---|
| a read, a watch | is repeated |
| a write | is repeated; refused then, it counts as done if the store has its result |
| one with a sequential node | so too; the node is found by the same transaction and data |
| a write larger than jute.maxbuffer | is repeated twice: the server may close for its size |

A controller that gave up its work at every lost connection would never resume it: the event
of a broker's end, or of a topic, comes once. The requests wait in the client below until it
is connected again, so nothing here waits by itself.

Source: KafkaZkClient.retryRequestsUntilConnected.
Differs: Kafka takes a write that was applied, and is refused when repeated, for another client's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from engine.limits import ZNODE_LARGE_REQUEST_TRIES, ZNODE_REQUEST_BYTES_MAX
from engine.znode.client import ZnodeClient
from engine.znode.errors import (
    BadVersion,
    NodeExists,
    NoNode,
    ZnodeConnectionLost,
    ZnodeLimitExceeded,
)
from engine.znode.model import (
    ANY_VERSION,
    Create,
    Delete,
    Operation,
    OperationResult,
    SessionEvent,
    SetData,
    Stat,
    Watcher,
    WatchKind,
)
from engine.znode.names import parent_of
from engine.znode.request_size import request_bytes

T = TypeVar("T")
#: The digits of a sequential node's number, at the end of its name.
_SEQUENCE_DIGITS = 10


class _NotDone(Exception):
    """The store does not have the result of the write."""


class RetryingZnodeClient:
    """A session of another client, without lost requests; see `client.py` for the rules.

    ConnectionLost comes from `connect` alone.
    """

    def __init__(self, client: ZnodeClient) -> None:
        self._client = client

    @property
    def session_id(self) -> int:
        """Return the id of the session, 0 before the first."""
        return self._client.session_id

    @property
    def on_session(self) -> Callable[[SessionEvent], None]:
        """Return the listener that is called at changes of the session."""
        return self._client.on_session

    @on_session.setter
    def on_session(self, listener: Callable[[SessionEvent], None]) -> None:
        """Set the listener of the session's changes; before `connect`."""
        self._client.on_session = listener

    async def connect(self) -> None:
        """Begin a session; raises ConnectionLost if no server answers in time."""
        await self._client.connect()

    async def close(self) -> None:
        """End the session, its ephemeral nodes and watches."""
        await self._client.close()

    # -- reads ---------------------------------------------------------------------------------

    async def get(self, path: str) -> tuple[bytes | None, Stat]:
        """Return a node's data and stat; raises NoNode."""
        return await _repeat_while_lost(lambda: self._client.get(path))

    async def exists(self, path: str) -> Stat | None:
        """Return a node's stat, or None if it does not exist."""
        return await _repeat_while_lost(lambda: self._client.exists(path))

    async def children(self, path: str) -> list[str]:
        """Return the names of a node's children, sorted; raises NoNode."""
        return await _repeat_while_lost(lambda: self._client.children(path))

    async def watch(self, path: str, kind: WatchKind, watcher: Watcher) -> None:
        """Set a one-shot watch; for children the node must exist (NoNode)."""
        await _repeat_while_lost(lambda: self._client.watch(path, kind, watcher))

    # -- writes --------------------------------------------------------------------------------

    async def create(
        self,
        path: str,
        data: bytes | None = None,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> str:
        """Create a node and return its path.

        A sequential node may be created twice, if a lost request is repeated.
        """
        operation = Create(path, data, ephemeral, sequential)
        (created,) = await self._write(
            [operation],
            lambda: _alone(
                self._client.create(path, data, ephemeral=ephemeral, sequential=sequential)
            ),
        )
        return str(created)

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        """Replace a node's data if it has the version; raises NoNode, BadVersion."""
        (stat,) = await self._write(
            [SetData(path, data, version)], lambda: _alone(self._client.set(path, data, version))
        )
        assert isinstance(stat, Stat)
        return stat

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node without children if it has the version.

        Raises NoNode, NotEmpty, BadVersion.
        """
        await self._write(
            [Delete(path, version)], lambda: _alone(self._client.delete(path, version))
        )

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """Do all operations or none, and return their results in order.

        The error of a failed operation has its `operation_index`.
        """
        return await self._write(operations, lambda: self._client.multi(operations))

    async def _write(
        self,
        operations: Sequence[Operation],
        write: Callable[[], Awaitable[list[OperationResult]]],
    ) -> list[OperationResult]:
        """Repeat a write after each lost connection until it succeeds or is refused.

        A write that the store had applied before the connection was lost counts as successful.
        """
        was_lost, tries = False, 0
        while True:
            try:
                return await write()
            except ZnodeConnectionLost:
                was_lost, tries = True, tries + 1
                _check_size(operations, tries)
            except (BadVersion, NodeExists, NoNode):
                if not was_lost:
                    raise
                try:
                    return await self._results_if_done(operations)
                except _NotDone:
                    pass
                raise

    async def _results_if_done(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """Return the results of a write if the store has applied it; raise _NotDone.

        Of several operations on one node, the last one counts.
        """
        last = {operation.path: operation for operation in operations}
        stats = [
            await self._stat_if_done(each, is_last=last[each.path] is each) for each in operations
        ]
        pairs = list(zip(operations, stats, strict=True))
        zxids = [_zxid(operation, stat) for operation, stat in pairs if stat is not None]
        has_deletion = any(isinstance(operation, Delete) for operation in operations)
        results: list[OperationResult] = []
        for operation, stat in pairs:
            if not isinstance(operation, Create):
                results.append(stat)
            elif not operation.sequential:
                results.append(operation.path)
            elif zxids or has_deletion:
                results.append(await self._path_if_numbered(operation, zxids[0] if zxids else None))
            else:
                raise _NotDone
        return results

    async def _stat_if_done(self, operation: Operation, *, is_last: bool) -> Stat | None:
        """Return the stat of a node that an operation has written; raise _NotDone if it has not.

        None for an operation that leaves no stat. `is_last`: no later operation of the request
        writes the node.
        """
        if isinstance(operation, SetData):
            return await self._stat_if_replaced(operation, is_last=is_last)
        if isinstance(operation, Create) and not operation.sequential:
            return await self._stat_if_created(operation, is_last=is_last)
        if isinstance(operation, Delete) and await self.exists(operation.path) is not None:
            raise _NotDone
        return None

    async def _stat_if_created(self, operation: Create, *, is_last: bool) -> Stat:
        """Return the stat of the node that a lost Create has made; raise _NotDone if it has not."""
        data, stat = await self._read_existing(operation.path)
        if is_last and data != operation.data:
            raise _NotDone
        if operation.ephemeral and stat.ephemeral_owner != self.session_id:
            raise _NotDone
        return stat

    async def _path_if_numbered(self, operation: Create, zxid: int | None) -> str:
        """Return the path of the sequential node that a lost Create made, or raise _NotDone.

        With a zxid, that is the node of that transaction, else the newest node with the same data.
        """
        parent = parent_of(operation.path)
        prefix = operation.path.removeprefix(parent).removeprefix("/")
        for name in reversed(await self.children(parent)):
            path = f"{parent.rstrip('/')}/{name}"
            if name.startswith(prefix) and len(name) == len(prefix) + _SEQUENCE_DIGITS:
                data, stat = await self._read_existing(path)
                if data == operation.data and zxid in (None, stat.czxid):
                    return path
                if zxid is not None and stat.czxid < zxid:
                    break
        raise _NotDone

    async def _stat_if_replaced(self, operation: SetData, *, is_last: bool) -> Stat:
        """Return the stat of the node whose data a lost SetData replaced, or raise _NotDone."""
        data, stat = await self._read_existing(operation.path)
        if is_last and data != operation.data:
            raise _NotDone
        if operation.version not in (ANY_VERSION, stat.version - 1):
            raise _NotDone
        return stat

    async def _read_existing(self, path: str) -> tuple[bytes | None, Stat]:
        """Return a node's data and stat; raise _NotDone if the node does not exist."""
        try:
            return await self.get(path)
        except NoNode as error:
            raise _NotDone from error


def _zxid(operation: Operation, stat: Stat) -> int:
    """Return the zxid of the transaction that created a node or set its data."""
    return stat.czxid if isinstance(operation, Create) else stat.mzxid


def _check_size(operations: Sequence[Operation], tries: int) -> None:
    """Raise ZnodeLimitExceeded for a request that seems to close the connection by its size.

    `tries` is the number of attempts that lost the connection.
    """
    is_large = request_bytes(operations) > ZNODE_REQUEST_BYTES_MAX
    if is_large and tries >= ZNODE_LARGE_REQUEST_TRIES:
        what = "bytes in a request (jute.maxbuffer)"
        raise ZnodeLimitExceeded(operations[0].path, what, ZNODE_REQUEST_BYTES_MAX)


async def _repeat_while_lost(request: Callable[[], Awaitable[T]]) -> T:
    """Repeat a read after each lost connection, until it succeeds or the session ends."""
    while True:
        try:
            return await request()
        except ZnodeConnectionLost:
            continue


async def _alone(result: Awaitable[OperationResult]) -> list[OperationResult]:
    """Return one result in a list, as `_write` expects the results of a transaction."""
    return [await result]
