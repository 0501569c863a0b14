"""How much a producer holds of records without a result, and who waits for room.

```
send ──> room? ──yes──> held until its result ──> released ──> the first that waits is held
           └─no──> waits in order ── max_block_ms ──> BufferExhausted
```

Source: BufferPool of 3.9.1, buffer.memory and max.block.ms of Java's producer.
Differs: a record counts with its own bytes from `send` on, a batch of Java's with its whole buffer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from engine.client.errors import BufferExhausted, RecordAboveBuffer
from engine.errors import EngineError
from engine.records.record import Header

#: What a record costs besides its key, value and headers: lengths, timestamp, futures.
_RECORD_OVERHEAD_BYTES: Final = 100


def size_of_record(key: bytes | None, value: bytes | None, headers: tuple[Header, ...]) -> int:
    """Return about how many bytes a record keeps occupied."""
    size = _RECORD_OVERHEAD_BYTES
    for part in (key, value):
        # What is no bytes fails later, alone.
        size += len(part) if isinstance(part, bytes | bytearray | memoryview) else 0
    return size + sum(len(name) + len(content or b"") for name, content in headers)


class SendBuffer:
    """The room of one producer; for the event loop's thread alone."""

    def __init__(self, total_bytes: int, max_block_ms: int) -> None:
        self._total_bytes = total_bytes
        self._max_block_ms = max_block_ms
        self._held_bytes = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def held_bytes(self) -> int:
        """Return the bytes of records without a result."""
        return self._held_bytes

    @property
    def is_wanted(self) -> bool:
        """Return whether a record waits for room; for any thread."""
        return bool(self._waiting)

    def try_hold(self, size_bytes: int) -> bool:
        """Hold a record if there is room and nobody waits. Errors: RecordAboveBuffer."""
        if size_bytes > self._total_bytes:
            raise RecordAboveBuffer(size_bytes, self._total_bytes)
        if self._waiting or self._held_bytes + size_bytes > self._total_bytes:
            return False
        self._held_bytes += size_bytes
        return True

    async def hold(self, size_bytes: int) -> None:
        """Hold a record as soon as there is room. Errors: BufferExhausted."""
        room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (size_bytes, room)
        self._waiting.append(entry)
        try:
            await asyncio.wait_for(asyncio.shield(room), self._max_block_ms / 1000)
        except BaseException as error:
            if entry in self._waiting:
                self._waiting.remove(entry)
                self._admit()
            elif room.done() and not room.cancelled() and room.exception() is None:
                self.release(size_bytes)
            if isinstance(error, TimeoutError | asyncio.TimeoutError):
                available = self._total_bytes - self._held_bytes
                raise BufferExhausted(
                    size_bytes, self._max_block_ms, self._total_bytes, available
                ) from None
            raise

    def release(self, size_bytes: int) -> None:
        """Give back the room of a record that has its result."""
        self._held_bytes -= size_bytes
        self._admit()

    def fail_waiting(self, error: EngineError) -> None:
        """Give up all that wait."""
        waiting, self._waiting = self._waiting, deque()
        for _, room in waiting:
            room.set_exception(error)

    def _admit(self) -> None:
        while self._waiting:
            size_bytes, room = self._waiting[0]
            if self._held_bytes + size_bytes > self._total_bytes:
                return
            self._waiting.popleft()
            self._held_bytes += size_bytes
            room.set_result(None)
