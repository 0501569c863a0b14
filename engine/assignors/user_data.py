"""User data of sticky assignors in a member's subscription: former partitions and generation.

```
sticky, version 0   count of topics int32
                    each: name (length int16, UTF-8), count of partitions int32, numbers int32
sticky, version 1   the same, generation int32
cooperative-sticky  generation int32
```

No field distinguishes the versions of sticky: data without a generation has version 0. Malformed
data means no previous partitions, as in Kafka; bytes after the end are ignored.

Source: StickyAssignor, CooperativeStickyAssignor of 3.9.1; KIP-54, KIP-341.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct as Format
from typing import Final, NamedTuple

from engine.assignors.subscription import NO_GENERATION
from engine.hash_order import in_java_hash_order
from engine.java_text import decode_java_utf8
from engine.model import TopicPartition

_INT16: Final = Format(">h")
_INT32: Final = Format(">i")


class PreviousAssignment(NamedTuple):
    """A member's previous partitions and their generation; NO_GENERATION if it was not sent."""

    partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = NO_GENERATION


NOTHING: Final = PreviousAssignment()


def encode_previous_assignment(previous: PreviousAssignment) -> bytes:
    """Return a previous assignment as the sticky assignor's user data, version 1.

    Topics are in Java's map order. Within one hash chain the last topic comes first: Kafka
    inserts them by computeIfAbsent.
    """
    numbers: dict[str, list[int]] = {}
    for topic, number in previous.partitions:
        numbers.setdefault(topic, []).append(number)
    parts = [_INT32.pack(len(numbers))]
    for topic in in_java_hash_order(reversed(numbers)):
        name = topic.encode()
        parts += [_INT16.pack(len(name)), name, _INT32.pack(len(numbers[topic]))]
        parts += map(_INT32.pack, numbers[topic])
    return b"".join((*parts, _INT32.pack(previous.generation_id)))


def decode_previous_assignment(data: bytes | None) -> PreviousAssignment:
    """Return the previous assignment in the sticky assignor's user data, version 0 or 1.

    NOTHING if the data is malformed.
    """
    if not data:
        return NOTHING
    fields = _Fields(data)
    try:
        partitions = tuple(_read_partitions(fields))
    except _BadField:
        return NOTHING
    try:
        return PreviousAssignment(partitions, fields.int32())
    except _BadField:
        return PreviousAssignment(partitions)


def encode_generation(generation_id: int) -> bytes:
    """Return a generation as the user data of the cooperative sticky assignor."""
    return _INT32.pack(generation_id)


def decode_generation(data: bytes | None) -> int:
    """Return the generation in the user data of cooperative-sticky, NO_GENERATION without one."""
    if data is None or len(data) < _INT32.size:
        return NO_GENERATION
    generation_id: int = _INT32.unpack_from(data)[0]
    return generation_id


class _BadField(Exception):
    """A field is cut off, or a length is out of bounds."""


class _Fields:
    """Reads fields in sequence; checks each length against the bytes left."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def _read_bytes(self, length: int) -> bytes:
        """Return the next `length` bytes; raises _BadField if there are fewer."""
        end = self._position + length
        if length < 0 or end > len(self._data):
            raise _BadField
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def int32(self) -> int:
        """Return the next number; raises _BadField."""
        number: int = _INT32.unpack(self._read_bytes(_INT32.size))[0]
        return number

    def read_count(self) -> int:
        """Return an array's length.

        Raises _BadField if it is negative or exceeds the bytes left.
        """
        count = self.int32()
        if not 0 <= count <= len(self._data) - self._position:
            raise _BadField
        return count

    def text(self) -> str:
        """Return the next string; raises _BadField."""
        length: int = _INT16.unpack(self._read_bytes(_INT16.size))[0]
        return decode_java_utf8(self._read_bytes(length))


def _read_partitions(fields: _Fields) -> Iterable[TopicPartition]:
    """Yield the partitions of all topics; raises _BadField for malformed data."""
    for _ in range(fields.read_count()):
        topic = fields.text()
        for _ in range(fields.read_count()):
            yield TopicPartition(topic, fields.int32())
