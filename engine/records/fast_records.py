"""Encode many records at once: records with one timestamp and the same headers.

The bytes between the contents of two records depend only on a few sizes, so they are encoded once
for each size and looked up; the rest is one `join`.

```
… value │ headers │ length attributes timestampDelta │ offsetDelta │ key, value's length │ value …
        ╰──────── a head, by the contents' size ─────╯   by number   ╰─── by the sizes ───╯
```
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import add
from typing import NamedTuple, TypeVar

from engine.limits import RECORD_HEADS_KEPT
from engine.records.varint import size_of_varint, write_varint

T = TypeVar("T")

#: Offset deltas below these take 1, 2, 3 and 4 bytes.
_DELTA_BOUNDS = (1 << 6, 1 << 13, 1 << 20, 1 << 27)
#: Bytes of a record without key, value and headers: length, attributes, timestamp delta, offset
#: delta, and the sizes of key (if each record has its own) and value.
_LEAST_BYTES = 1 + 1 + 1 + 1 + 1
_MOST_BYTES = 5 + 1 + 10 + 5 + 5 + 5
#: Added to the estimated number of records that fit, so that the estimate is never too low.
_SPARE_RECORDS = 16


def varint_bytes(value: int) -> bytes:
    """Return an integer encoded as a zigzag varint."""
    out = bytearray()
    write_varint(out, value)
    return bytes(out)


class _BySize(dict[int, T]):
    """A cache of one value per size, created at first use; the number of entries is bounded."""

    def __init__(self, make: Callable[[int], T]) -> None:
        """Start empty; `make` returns the value for a size."""
        self._make = make

    def __missing__(self, size: int) -> T:
        """Make the value for a size; keep it, unless RECORD_HEADS_KEPT values are kept already."""
        made = self._make(size)
        if len(self) < RECORD_HEADS_KEPT:
            self[size] = made
        return made


@lru_cache(maxsize=64)
def _heads(headers: bytes, time: bytes, delta_size: int) -> _BySize[bytes]:
    """Return the bytes between two records' contents, by the size of the second content.

    These are the first record's headers, then the second's length, attributes and timestamp delta.
    """
    rest = b"\0" + time
    fixed_size = len(rest) + delta_size + len(headers)
    return _BySize(lambda size: headers + varint_bytes(fixed_size + size) + rest)


@lru_cache(maxsize=8)
def _sized(key: bytes) -> _BySize[bytes]:
    """Return the bytes before a value (key and size varint) by the value's size."""
    return _BySize(lambda size: key + varint_bytes(size))


_SIZES = _sized(b"")
#: Number of bytes of a content with its size varint, by the content's length.
_SIZED_BYTES = _BySize(lambda size: size_of_varint(size) + size)
_DELTAS: list[bytes] = []


def _deltas(start: int, stop: int) -> list[bytes]:
    """Return the varint of each offset delta from `start` to `stop` (exclusive).

    Made once, then kept.
    """
    if len(_DELTAS) < stop:
        _DELTAS.extend(map(varint_bytes, range(len(_DELTAS), max(stop, 2 * len(_DELTAS)))))
    return _DELTAS[start:stop]


class FastRun(NamedTuple):
    """Records with one timestamp; `key` (encoded) applies to all, unless `keys` has one for each.

    `headers` are the encoded headers of each record: their count and their bytes.
    """

    values: Sequence[bytes]
    keys: Sequence[bytes] | None
    key: bytes
    headers: bytes


def encode_fast(
    run: FastRun, start: int, *, timestamp_delta: int, first_delta: int, room_bytes: int
) -> tuple[int, bytes]:
    """Encode the records of a run from index `start` on that fit into `room_bytes`.

    Returns their number (0 if the first one does not fit) and their bytes. All have the given
    timestamp delta; their offset deltas count up from `first_delta`.
    """
    values = run.values[start:]
    keys = None if run.keys is None else run.keys[start:]
    fixed_size = len(run.key) + len(run.headers)
    bounds = _bounds(values, keys, fixed_size)
    if bounds.least_bytes > room_bytes:
        count = max(room_bytes, 0) * len(values) // bounds.least_bytes + _SPARE_RECORDS
        values, keys = values[:count], None if keys is None else keys[:count]
    pieces: list[bytes] = []
    time = varint_bytes(timestamp_delta)
    for part, delta_size, deltas in _group_by_delta_size(first_delta, len(values)):
        heads = _heads(run.headers, time, delta_size)
        if keys is None:
            pieces += _encode_with_one_key(values[part], run.key, heads, deltas)
        else:
            pieces += _encode_with_keys(values[part], keys[part], heads, deltas)
    if not pieces:
        return 0, b""
    # The first head starts with the headers of the record before it, which are there.
    pieces[0] = pieces[0][len(run.headers) :]
    fitting = len(values)
    if bounds.most_bytes > room_bytes:
        width = 4 if keys is None else 6
        ends = list(accumulate(map(len, pieces)))
        fitting = bisect_right(ends, room_bytes - len(run.headers)) // width
        del pieces[fitting * width :]
    pieces.append(run.headers if fitting else b"")
    return fitting, b"".join(pieces)


class _Bounds(NamedTuple):
    """The smallest and the largest possible size of encoded records, in bytes."""

    least_bytes: int
    most_bytes: int


def _bounds(values: Sequence[bytes], keys: Sequence[bytes] | None, fixed_size: int) -> _Bounds:
    """Return the smallest and the largest possible size in bytes of these records encoded.

    `fixed_size` is the size of the parts that all of them share: one key for all, and the headers.
    """
    size = sum(map(len, values)) + (0 if keys is None else sum(map(len, keys)))
    size += fixed_size * len(values)
    return _Bounds(size + _LEAST_BYTES * len(values), size + _MOST_BYTES * len(values))


def _group_by_delta_size(first_delta: int, count: int) -> Iterator[tuple[slice, int, list[bytes]]]:
    """Yield (slice, bytes per delta, encoded deltas) for records whose deltas have one size."""
    done = 0
    for size, bound in enumerate(_DELTA_BOUNDS, 1):
        taken = min(count - done, bound - first_delta - done)
        if taken > 0:
            deltas = _deltas(first_delta + done, first_delta + done + taken)
            yield slice(done, done + taken), size, deltas
            done += taken


def _encode_with_one_key(
    values: Sequence[bytes], key: bytes, heads: _BySize[bytes], deltas: list[bytes]
) -> list[bytes]:
    """Return the byte strings to join for records that share a key: four for each record."""
    lengths = list(map(len, values))
    pieces = [b""] * (4 * len(values))
    key_size = len(key)
    contents = map(key_size.__add__, map(_SIZED_BYTES.__getitem__, lengths))
    pieces[0::4] = map(heads.__getitem__, contents)
    pieces[1::4] = deltas
    pieces[2::4] = map(_sized(key).__getitem__, lengths)
    pieces[3::4] = values
    return pieces


def _encode_with_keys(
    values: Sequence[bytes], keys: Sequence[bytes], heads: _BySize[bytes], deltas: list[bytes]
) -> list[bytes]:
    """Return the byte strings to join for records with separate keys: six for each record."""
    value_lengths = list(map(len, values))
    key_lengths = list(map(len, keys))
    pieces = [b""] * (6 * len(values))
    key_sizes = map(_SIZED_BYTES.__getitem__, key_lengths)
    contents = map(add, key_sizes, map(_SIZED_BYTES.__getitem__, value_lengths))
    pieces[0::6] = map(heads.__getitem__, contents)
    pieces[1::6] = deltas
    pieces[2::6] = map(_SIZES.__getitem__, key_lengths)
    pieces[3::6] = keys
    pieces[4::6] = map(_SIZES.__getitem__, value_lengths)
    pieces[5::6] = values
    return pieces
