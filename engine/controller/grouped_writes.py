"""Combine groups of writes into one transaction, to save fsyncs; each group can fail separately.

```
groups   [a b] [c] [d e] ...      one multi for all, up to a bound of operations and of bytes
                │ a group is refused: nothing was written
                v
         [a b]   [c]   [d e]      one multi for each group: written, or refused separately
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

#: The results of a group's operations, or the error that refused the group.
GroupResult: TypeAlias = "list[OperationResult] | NodeError"
#: Runs all operations in one transaction.
Multi: TypeAlias = Callable[[Sequence[Operation]], PromiseCoroutine[list[OperationResult]]]


async def write_groups(multi: Multi, groups: Sequence[Sequence[Operation]]) -> list[GroupResult]:
    """Write groups of znode operations in order, in few transactions; each group completely or not.

    Returns for each group the results of its operations, or its NodeError. `multi` applies one
    transaction.
    """
    results: list[GroupResult] = []
    for chunk in _iter_chunks(groups):
        results += await _write_chunk(multi, chunk)
    return results


async def _write_chunk(multi: Multi, chunk: list[Sequence[Operation]]) -> list[GroupResult]:
    """Write several groups in one transaction; if that fails, each group in its own transaction.

    So an error of one group does not prevent the others.
    """
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


def _iter_chunks(groups: Sequence[Sequence[Operation]]) -> Iterable[list[Sequence[Operation]]]:
    """Yield lists of groups that fit into one transaction; a larger group is yielded alone."""
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
