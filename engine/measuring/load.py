"""The records that a measurement sends: values generated once, keys, partitions in turn.

| keys | partition of a record |
|---|---|
| none | the next one in turn: evenly, and no batch waits for a key |
| N | by the key, as the Java producer chooses it; keys are used in turn |

Values are random capital letters, which a codec reduces by a third: zeros would compress to
nothing, random bytes not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.client.producing import OutgoingValues
from engine.host.ports import Entropy

#: Translates a random byte to a capital letter.
_LETTERS: Final = bytes(65 + byte % 26 for byte in range(256))
_POOL_RECORDS_MAX: Final = 1000
_POOL_BYTES: Final = 4 << 20
_CHUNK_RECORDS_MAX: Final = 500
_CHUNK_BYTES: Final = 256 << 10


class LoadShape(NamedTuple):
    """The shape of the records; `key_count` is 0 for no keys, `rate_per_s` None for no limit."""

    topic: str
    partition_count: int
    size_bytes: int
    key_count: int = 0
    rate_per_s: float | None = None


class RecordLoad:
    """Makes the records of a shape, in chunks."""

    def __init__(self, shape: LoadShape, entropy: Entropy) -> None:
        """Generate a pool of values: generating each value would take longer than sending it."""
        self.shape = shape
        size = shape.size_bytes
        count = max(min(_POOL_RECORDS_MAX, _POOL_BYTES // max(size, 1)), 1)
        pool = entropy.random_bytes(count * size).translate(_LETTERS)
        self._values = [pool[at * size : (at + 1) * size] for at in range(count)]
        self._keys = [b"%d" % number for number in range(shape.key_count)]
        #: Maximum number of records in a chunk: large for speed, limited by memory.
        self.chunk_records = max(min(_CHUNK_RECORDS_MAX, _CHUNK_BYTES // max(size, 1), count), 1)

    def build_chunk(self, first: int, count: int) -> Iterator[tuple[OutgoingValues, range]]:
        """Yield `count` records from number `first` on, with their positions in the chunk.

        There is one group for each partition; with keys there is a single one, which the producer's
        partitioner distributes.
        """
        start = first % len(self._values)
        values = (self._values[start:] + self._values[:start])[:count]
        shape = self.shape
        if self._keys:
            keys = [self._keys[number % len(self._keys)] for number in range(first, first + count)]
            yield OutgoingValues(shape.topic, values, keys=keys), range(count)
            return
        step = shape.partition_count
        for at in range(min(count, step)):
            partition = (first + at) % step
            yield (
                OutgoingValues(shape.topic, values[at::step], partition=partition),
                range(at, count, step),
            )
