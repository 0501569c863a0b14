"""Bound on the bytes of a producer's records without a result, and the queue of sends for room.

```
send ──> room? ──yes──> held until its result ──> released ──> the first waiting send begins
           └─no──> waits in order ── max_block_ms ──> BufferExhausted
```

Source: BufferPool of 3.9.1, buffer.memory and max.block.ms of Java's producer.
Differs: a record counts with its own bytes from `send` on, a batch of Java's with its whole buffer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from engine.client.errors import BufferExhausted, RecordAboveBuffer
from engine.errors import EngineError
from engine.records.record import Header

T = TypeVar("T")
#: The bytes of a record besides its key, value and headers: lengths, timestamp, futures.
_RECORD_OVERHEAD_BYTES: Final = 100


def size_of_record(key: bytes | None, value: bytes | None, headers: tuple[Header, ...]) -> int:
    """Return the estimated bytes of memory that a record occupies while it waits in the buffer."""
    size = _RECORD_OVERHEAD_BYTES
    for part in (key, value):
        # A value of another type fails later, when the record is encoded.
        size += len(part) if isinstance(part, bytes | bytearray | memoryview) else 0
    return size + sum(len(name) + len(content or b"") for name, content in headers)


class Waiter(Generic[T]):
    """A send that waits for room: its size, and `begin`, which is called when there is room."""

    def __init__(self, size_bytes: int, begin: Callable[[], T]) -> None:
        self.size_bytes = size_bytes
        self.begin = begin
        self.begun: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def admit(self) -> None:
        """Start the send that waited for room in the buffer, now that there is room.

        `begun` completes with the result of `begin`, or with its EngineError.
        """
        try:
            self.begun.set_result(self.begin())
        except EngineError as error:
            self.begun.set_exception(error)


class SendBuffer:
    """The bound of one producer's buffer; for the event loop's thread alone."""

    def __init__(self, total_bytes: int, max_block_ms: int) -> None:
        """Create an empty buffer of `total_bytes`.

        A record waits for room for `max_block_ms` at most.
        """
        self._total_bytes = total_bytes
        self._max_block_ms = max_block_ms
        self._held_bytes = 0
        #: Records that wait for room, in order.
        self._waiting: deque[Waiter[Any]] = deque()
        #: Whether `_admit_waiting` is running, so that a nested call returns at once.
        self._is_admitting = False

    @property
    def held_bytes(self) -> int:
        """Return the bytes of buffer room that records without a result occupy."""
        return self._held_bytes

    @property
    def is_wanted(self) -> bool:
        """True if a record waits for room: open batches are then sent at once.

        Any thread may call it.
        """
        return bool(self._waiting)

    def try_hold(self, size_bytes: int) -> bool:
        """Reserve room for a record; True if it is reserved, False if the record has to wait.

        It waits if there is no room, or if an earlier record waits. Raises RecordAboveBuffer.
        """
        if size_bytes > self._total_bytes:
            raise RecordAboveBuffer(size_bytes, self._total_bytes)
        if self._waiting or self._held_bytes + size_bytes > self._total_bytes:
            return False
        self._held_bytes += size_bytes
        return True

    def enter(self, size_bytes: int, begin: Callable[[], T]) -> Waiter[T]:
        """Queue a record for room, after all waiting ones; return its waiter.

        `begin` is called once there is room, which is then reserved. The work that `begin` starts
        must release the room.
        """
        waiter = Waiter(size_bytes, begin)
        self._waiting.append(waiter)
        return waiter

    async def await_admission(self, waiter: Waiter[T]) -> T:
        """Wait until the waiter was admitted, and return the result of its `begin`.

        Raises BufferExhausted after `max_block_ms`, and the errors of `begin`.
        """
        try:
            return await asyncio.wait_for(asyncio.shield(waiter.begun), self._max_block_ms / 1000)
        except TimeoutError:
            if not self.leave(waiter):
                # It was admitted in the same turn of the loop.
                return waiter.begun.result()
            available = self._total_bytes - self._held_bytes
            raise BufferExhausted(
                waiter.size_bytes, self._max_block_ms, self._total_bytes, available
            ) from None

    def leave(self, waiter: Waiter[T]) -> bool:
        """Remove a waiter from the queue for room in the buffer.

        False if it no longer waits, as it was admitted or failed. Waiters after it may then have
        room.
        """
        if waiter not in self._waiting:
            return False
        self._waiting.remove(waiter)
        self._admit_waiting()
        return True

    def release(self, size_bytes: int) -> None:
        """Release the room of a record that has its result; admit waiting records."""
        self._held_bytes -= size_bytes
        self._admit_waiting()

    def fail_waiting(self, error: EngineError) -> None:
        """Fail and remove all records that wait for room."""
        waiting, self._waiting = self._waiting, deque()
        for waiter in waiting:
            waiter.begun.set_exception(error)

    def _admit_waiting(self) -> None:
        """Admit waiting records in order, while there is room for the first."""
        if self._is_admitting:
            # An admitted record may release its room at once: the outer call's loop uses it.
            return
        self._is_admitting = True
        try:
            while self._waiting:
                waiter = self._waiting[0]
                if self._held_bytes + waiter.size_bytes > self._total_bytes:
                    return
                self._waiting.popleft()
                self._held_bytes += waiter.size_bytes
                waiter.admit()
        finally:
            self._is_admitting = False
