"""Writes grouped into one transaction, to save syncs of the disk; each can fail alone.

```
groups   [a b] [c] [d e] ...      one multi for all, up to a bound of operations and of bytes
                │ one is refused: nothing was done
                v
         [a b]   [c]   [d e]      a multi each: done, or refused by itself
```

Source: none; Kafka sends a transaction for every write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from engine.host.coroutine import PromiseCoroutine
from engine.limits import CONTROLLER_MULTI_BYTES_MAX, CONTROLLER_MULTI_OPERATIONS_MAX
from engine.znode.errors import NodeError
from engine.znode.model import Operation, OperationResult
from engine.znode.request_size import request_bytes

#: Of a group of writes: the results of its operations, or why all of it was refused.
GroupResult: TypeAlias = "list[OperationResult] | NodeError"
#: Does all operations or none.
Multi: TypeAlias = Callable[[Sequence[Operation]], PromiseCoroutine[list[OperationResult]]]


async def write_groups(multi: Multi, groups: Sequence[Sequence[Operation]]) -> list[GroupResult]:
    """Do groups of operations, each whole or not at all, in order."""
    results: list[GroupResult] = []
    for chunk in _chunks(groups):
        results += await _write_chunk(multi, chunk)
    return results


async def _write_chunk(multi: Multi, chunk: list[Sequence[Operation]]) -> list[GroupResult]:
    """Write several groups in one transaction; if it fails, write each group alone."""
    try:
        flat = await multi([operation for group in chunk for operation in group])
    except NodeError as error:
        if len(chunk) == 1:
            return [error]
        return [await _write_alone(multi, group) for group in chunk]
    results: list[GroupResult] = []
    start = 0
    for group in chunk:
        results.append(flat[start : start + len(group)])
        start += len(group)
    return results


async def _write_alone(multi: Multi, group: Sequence[Operation]) -> GroupResult:
    """Write one group in its own transaction; return its error instead of raising it."""
    try:
        return await multi(group)
    except NodeError as error:
        return error


def _chunks(groups: Sequence[Sequence[Operation]]) -> Iterable[list[Sequence[Operation]]]:
    """Yield groups together up to the bounds of a transaction; a larger group alone."""
    chunk: list[Sequence[Operation]] = []
    count = size_bytes = 0
    for group in groups:
        group_bytes = request_bytes(group)
        is_full = count + len(group) > CONTROLLER_MULTI_OPERATIONS_MAX
        if chunk and (is_full or size_bytes + group_bytes > CONTROLLER_MULTI_BYTES_MAX):
            yield chunk
            chunk, count, size_bytes = [], 0, 0
        chunk.append(group)
        count += len(group)
        size_bytes += group_bytes
    if chunk:
        yield chunk
