"""Producer ids: each id is given out once in the life of a cluster.

```
block   first id … first id + 999        from the controller, which stores the block's end
        |---------- 90 % ---------|--|   at the mark the next block is requested
```

While no id is available the response is COORDINATOR_LOAD_IN_PROGRESS, which all client versions
retry. The ids left of a block when the broker stops are never used.

Source: REPL-12; Kafka's RPCProducerIdManager; KIP-360, KIP-730.
Differs: a block that the controller returns at once, being in the same process, is used at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from engine.errors import ApiError
from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.kafka_errors import COORDINATOR_LOAD_IN_PROGRESS
from engine.limits import PRODUCER_ID_RETRY_MS

_ID_MAX = (1 << 63) - 1
_PREFETCH_PERCENT = 90


class ProducerIdsNotReady(ApiError):
    """The next block of producer ids has not arrived (COORDINATOR_LOAD_IN_PROGRESS)."""

    def __init__(self) -> None:
        super().__init__(COORDINATOR_LOAD_IN_PROGRESS, "waiting for the next producer ids")


class ProducerIdBlock(NamedTuple):
    """A block of `size` producer ids from `first_id`, allocated to one broker only."""

    first_id: int
    size: int

    @property
    def end_id(self) -> int:
        """The exclusive end of the block: its last id plus 1."""
        return self.first_id + self.size


#: Requests a block from the controller; the promise has None if the controller refuses it.
AllocateBlock: TypeAlias = Callable[[], Promise[ProducerIdBlock | None]]


class ProducerIds:
    """Generates the producer ids of one broker from blocks of the controller."""

    def __init__(self, allocate: AllocateBlock, clock: Clock) -> None:
        """Create the generator without a block; `allocate` requests a block from the controller."""
        self._allocate = allocate
        self._clock = clock
        #: The block in use, and the next id of it.
        self._block = ProducerIdBlock(0, 0)
        self._next_id = 0
        #: The block after the one in use, requested early. None until it arrives.
        self._next_block: ProducerIdBlock | None = None
        self._is_requesting = False
        #: Monotonic time before which no block is requested, after a failed request; otherwise
        #: None.
        self._retry_at_ms: int | None = None

    def generate(self) -> int:
        """Return an unused producer id; request the next block at 90 % of the present one.

        Raises ProducerIdsNotReady if the block is used up and the next one has not arrived.
        """
        if self._next_id >= self._block.end_id:
            self.request_next_block()
            if self._next_block is None:
                raise ProducerIdsNotReady
            self._block, self._next_block = self._next_block, None
            self._next_id = self._block.first_id
        given = self._next_id
        self._next_id += 1
        block = self._block
        if given == block.first_id + block.size * _PREFETCH_PERCENT // 100:
            self.request_next_block()
        return given

    def request_next_block(self) -> None:
        """Request the next block from the controller.

        Does nothing if it has arrived or is requested, or soon after a failed request.
        """
        if self._next_block is not None or self._is_requesting:
            return
        if self._retry_at_ms is not None and self._clock.monotonic_ms() < self._retry_at_ms:
            return
        self._is_requesting = True
        self._retry_at_ms = None
        requested = self._allocate()
        requested.watch(lambda: self._on_block(requested))

    def _on_block(self, requested: Promise[ProducerIdBlock | None]) -> None:
        """Keep the block that the controller has allocated, if it is usable.

        Otherwise the next request is allowed after PRODUCER_ID_RETRY_MS.
        """
        self._is_requesting = False
        block = None if requested.error is not None else requested.result()
        if block is None or not self._is_usable(block):
            self._retry_at_ms = self._clock.monotonic_ms() + PRODUCER_ID_RETRY_MS
        else:
            self._next_block = block

    def _is_usable(self, block: ProducerIdBlock) -> bool:
        """Return True if a block is not empty and its ids are above the present ones."""
        # Two producers with the same id could not be distinguished.
        return block.size > 0 and self._block.end_id <= block.first_id <= _ID_MAX - block.size
