"""Many records at once, as bytes: those of one time, with values, and with the same headers.

What stands between the contents of two records depends on a few sizes only, so it is made once for
each size and looked up; the rest is one `join`.

```
… value │ headers │ length attributes timestampDelta │ offsetDelta │ key, value's length │ value …
        ╰──────── a head, by the contents' size ─────╯   by number   ╰─── by the sizes ───╯
```
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import add
from typing import NamedTuple

from engine.limits import RECORD_HEADS_KEPT
from engine.records.varint import size_of_varint, write_varint

#: Offset deltas below these take 1, 2, 3 and 4 bytes.
_DELTA_BOUNDS = (1 << 6, 1 << 13, 1 << 20, 1 << 27)
#: Estimates of how many records fit are too high by this many, so that one estimate is enough.
_SPARE_RECORDS = 16


def varint_bytes(value: int) -> bytes:
    """Return the form of an integer."""
    out = bytearray()
    write_varint(out, value)
    return bytes(out)


class _Table(dict[int, bytes]):
    """Bytes by size, made when first asked for; only so many are kept."""

    def __missing__(self, size: int) -> bytes:
        made = self.make(size)
        if len(self) < RECORD_HEADS_KEPT:
            self[size] = made
        return made

    def make(self, size: int) -> bytes:
        """Return what stands before contents of a size."""
        raise NotImplementedError


class _Heads(_Table):
    """What stands between the contents of two records, by the size of the second's contents."""

    def __init__(self, headers: bytes, time: bytes, delta_size: int) -> None:
        self._headers = headers
        self._rest = b"\0" + time
        self._fixed_size = len(self._rest) + delta_size + len(headers)

    def make(self, size: int) -> bytes:
        return self._headers + varint_bytes(self._fixed_size + size) + self._rest


class _Sized(_Table):
    """What stands before a value, by its size: the key, and the size."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def make(self, size: int) -> bytes:
        return self._key + varint_bytes(size)


class _SizedBytes(dict[int, int]):
    """How many bytes contents take with their size in front."""

    def __missing__(self, size: int) -> int:
        made = size_of_varint(size) + size
        if len(self) < RECORD_HEADS_KEPT:
            self[size] = made
        return made


@lru_cache(maxsize=64)
def _heads(headers: bytes, time: bytes, delta_size: int) -> _Heads:
    return _Heads(headers, time, delta_size)


@lru_cache(maxsize=8)
def _sized(key: bytes) -> _Sized:
    return _Sized(key)


_SIZES = _Sized(b"")
_SIZED_BYTES = _SizedBytes()
_DELTAS: list[bytes] = []


def _deltas(start: int, stop: int) -> list[bytes]:
    """Return the forms of consecutive offset deltas."""
    if len(_DELTAS) < stop:
        _DELTAS.extend(map(varint_bytes, range(len(_DELTAS), max(stop, 2 * len(_DELTAS)))))
    return _DELTAS[start:stop]


class UsualRun(NamedTuple):
    """Records of one time: `key` for all of them, or one each in `keys`; `headers` as bytes.

    `headers` are their count and all that follows, as a record ends with them.
    """

    values: Sequence[bytes]
    keys: Sequence[bytes] | None
    key: bytes
    headers: bytes


def encode_usual(
    run: UsualRun, start: int, *, timestamp_delta: int, first_delta: int, room_bytes: int
) -> tuple[int, bytes]:
    """Return how many records from `start` on fit into the room, and their bytes."""
    values = run.values[start:]
    keys = None if run.keys is None else run.keys[start:]
    count = _estimate(values, keys, len(run.key) + len(run.headers), room_bytes)
    if count < len(values):
        values, keys = values[:count], None if keys is None else keys[:count]
    width = 4 if keys is None else 6
    pieces: list[bytes] = []
    time = varint_bytes(timestamp_delta)
    for part, delta_size, deltas in _by_delta_size(first_delta, len(values)):
        heads = _heads(run.headers, time, delta_size)
        if keys is None:
            pieces += _with_one_key(values[part], run.key, heads, deltas)
        else:
            pieces += _with_keys(values[part], keys[part], heads, deltas)
    if not pieces:
        return 0, b""
    # The first head starts with the headers of the record before it, which are there.
    pieces[0] = pieces[0][len(run.headers) :]
    ends = list(accumulate(map(len, pieces)))
    fitting = bisect_right(ends, room_bytes - len(run.headers)) // width
    del pieces[fitting * width :]
    pieces.append(run.headers if fitting else b"")
    return fitting, b"".join(pieces)


def _estimate(
    values: Sequence[bytes], keys: Sequence[bytes] | None, fixed_size: int, room_bytes: int
) -> int:
    """Return how many records may fit, rather too many than too few if they are much alike."""
    count = len(values)
    size = sum(map(len, values)) + (0 if keys is None else sum(map(len, keys)))
    least = size + count * (fixed_size + 6)
    if least <= room_bytes:
        return count
    return min(count, max(room_bytes, 0) * count // least + _SPARE_RECORDS)


def _by_delta_size(first_delta: int, count: int) -> Iterator[tuple[slice, int, list[bytes]]]:
    """Yield runs of records whose offset deltas take as many bytes."""
    done = 0
    for size, bound in enumerate(_DELTA_BOUNDS, 1):
        taken = min(count - done, bound - first_delta - done)
        if taken > 0:
            deltas = _deltas(first_delta + done, first_delta + done + taken)
            yield slice(done, done + taken), size, deltas
            done += taken


def _with_one_key(
    values: Sequence[bytes], key: bytes, heads: _Heads, deltas: list[bytes]
) -> list[bytes]:
    lengths = list(map(len, values))
    pieces = [b""] * (4 * len(values))
    key_size = len(key)
    contents = map(key_size.__add__, map(_SIZED_BYTES.__getitem__, lengths))
    pieces[0::4] = map(heads.__getitem__, contents)
    pieces[1::4] = deltas
    pieces[2::4] = map(_sized(key).__getitem__, lengths)
    pieces[3::4] = values
    return pieces


def _with_keys(
    values: Sequence[bytes], keys: Sequence[bytes], heads: _Heads, deltas: list[bytes]
) -> list[bytes]:
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
