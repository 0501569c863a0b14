"""Find the next batch of a log after damage.

```
an impossible length             search every byte: `find_end_after_bad_length`
a wrong CRC, so that the length  continue at its stated end if a plausible header is
may be wrong, too                there, unless whole batches within the length show otherwise;
                                 else search every byte: `find_end_after_bad_crc`
```

A whole batch has a plausible header, a length within the file and a valid CRC. The value of a
record may contain a whole batch, too, at which reading must not continue:

```
the CRC of the damaged batch fits the bytes up to a whole batch       only its length was wrong
a chain of headers leads from a whole batch to the end of the         the length and other bytes
bytes around it; a batch in a value is not followed by a header       were wrong
neither, and the length leads to no batch                             the offsets decide: `_Chains`
```
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Container, Iterator
from heapq import merge

from engine.host.ports import File
from engine.limits import (
    CHAINS_CHECKED_MAX,
    EXTENT_BYTES_MAX,
    LONG_CHAIN_BYTES,
    RESYNC_CHECKED_BYTES_FACTOR,
    SEARCH_CHUNK_BYTES,
)
from engine.log.batch_scan import zero_tail_start
from engine.records.batch_header import (
    CHECKED_FROM,
    CRC_AT,
    HEADER_BYTES,
    KNOWN_FLAGS,
    LENGTH_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    PROLOGUE_BYTES,
    read_header_start,
    read_length,
    read_offset_and_length,
)
from engine.records.crc import crc32c

_V2_LENGTH_MIN = HEADER_BYTES - LENGTH_OVERHEAD_BYTES
#: Matches the start of a message of magic 0 or 1 below 16 MiB with an offset below 2^48, up to its
#: attributes.
_LEGACY_START = re.compile(
    rb"\x00(?=\x00.{6}\x00(?!\x00\x00\x00).{3}.{4}[\x00\x01][\x00-\x0f])", re.S
)
#: Matches magic 2, the CRC, attributes without unknown flags, and a last offset delta >= 0.
_MAGIC_2 = re.compile(rb"\x02(?=.{4}\x00[\x00-\x7f][\x00-\x7f])", re.S)
_LEGACY_START_BYTES = 18
_LEGACY_BYTES_MIN = 26
_LEGACY_CRC_AT = 12
_LEGACY_CHECKED_FROM = 16
_LEGACY_FLAGS = 0x0F
#: Position of the key's size in a message, by magic.
_LEGACY_KEY_AT = (18, 26)
_SIZE_BYTES = 4
#: Largest number of zeros that a batch itself may end with: no headers, and the end of a value.
_OWN_ZEROS_MAX = 16
_FIRST_CHUNK_BYTES = 1 << 12


def find_next_batch(
    file: File, position: int, *, end: int | None = None, chunk_bytes: int = SEARCH_CHUNK_BYTES
) -> int | None:
    """Return the position of the first whole batch at or after `position`, or None.

    At most RESYNC_CHECKED_BYTES_FACTOR times the searched bytes are checksummed, because crafted
    nested batches would be read again and again.
    """
    end = file.size_bytes() if end is None else min(end, file.size_bytes())
    return next(_iter_whole_batches(file, position, end, chunk_bytes), (None, 0))[0]


def find_end_after_bad_length(
    file: File,
    position: int,
    *,
    end: int | None = None,
    next_offset: int = 0,
    chunk_bytes: int = SEARCH_CHUNK_BYTES,
) -> int | None:
    """Return the position at which the log continues after a batch with a wrong length field.

    That is the end of the batch at `position` if its CRC confirms one, else the next whole batch;
    None if no whole batch follows. A batch with offsets below `next_offset`, the offset after the
    last good batch, does not belong to the log.
    """
    end = file.size_bytes() if end is None else min(end, file.size_bytes())
    extent = _checksum_at(file, position, end, chunk_bytes)
    chains = _Chains(file, end, next_offset)
    own_end = _legacy_end(file, position, end)
    if own_end is not None and is_whole(file, position, own_end - position, chunk_bytes):
        return own_end
    for start, size in _iter_whole_batches(file, position + 1, end, chunk_bytes, chains.passed):
        if extent is not None and extent.matches_up_to(start):
            return start
        if chains.add_candidate(start, size) or start - position > EXTENT_BYTES_MAX:
            break
    if chains.may_end_log:
        last = _end_before_zeros(file, position, end, extent)
        if last is not None:
            return last
    return chains.best_start()


class _Chains:
    """Chains of consecutive batches after a damage, and the choice of the chain that is the log.

    A chain that reaches the end of the file, or LONG_CHAIN_BYTES, is the log. A shorter chain ends
    at a second damage, or lies inside a record's value. It is the log if its first offset is at or
    above `next_offset` and below the first offset of the long chain after it.
    """

    def __init__(self, file: File, end: int, next_offset: int) -> None:
        """Begin without chains; `next_offset` is the offset after the last good batch of `file`."""
        self._file = file
        self._end = end
        self._next_offset = next_offset
        #: Positions of all batches in the known chains, except the first of each chain. A search
        #: does not start another chain there.
        self.passed: set[int] = set()
        #: Start of the chain that is taken for the log, because it reaches the end of the file or
        #: very far. None while no such chain was found.
        self._long: int | None = None
        #: Whether nothing but zeros is known to follow the chains.
        self.may_end_log = True
        #: Where chains start that are not part of an earlier one, the long one last.
        self.starts: list[int] = []

    def add_candidate(self, start: int, size: int) -> bool:
        """Add a whole batch after the damage as a candidate; return True if the search may end.

        The log continues at one of the candidates. The search ends when a long chain of batches
        follows a candidate, or at CHAINS_CHECKED_MAX candidates: bytes inside of a record may look
        like one batch by chance, but not like a long chain.
        """
        self.starts.append(start)
        limit = min(self._end, start + LONG_CHAIN_BYTES)
        chain_end = _end_of_chain(self._file, start + size, limit, self.passed)
        is_long = chain_end is not None and chain_end >= limit
        if chain_end is not None and not is_long:
            is_zero = zero_tail_start(self._file, chain_end) is not None
            if is_zero or _is_cut_off(self._file, chain_end, self._end):
                self._long = start
                self.may_end_log = is_zero
        if is_long:
            self._long, self.may_end_log = start, False
        return self._long is not None or len(self.starts) >= CHAINS_CHECKED_MAX

    def best_start(self) -> int | None:
        """Return the position of the candidate where the log continues, None without a candidate.

        That is the first candidate with a base offset from `next_offset` up to that of the long
        chain, else the start of the long chain. Without a long chain, the first candidate.
        """
        if self._long is None:
            return min(self.starts, default=None)
        upper = self._offset_at(self._long)
        may_be = (s for s in self.starts if self._next_offset <= self._offset_at(s) < upper)
        return next(may_be, self._long)

    def _offset_at(self, position: int) -> int:
        """Return the base offset in the batch header at a byte position."""
        start = self._file.read_at(position, PROLOGUE_BYTES)
        return int(read_offset_and_length(start, 0)[0])


def find_end_after_bad_crc(
    file: File,
    position: int,
    stated_end: int,
    *,
    end: int | None = None,
    next_offset: int = 0,
    chunk_bytes: int = SEARCH_CHUNK_BYTES,
) -> int:
    """Return the position where the log continues after the batch at `position` with a wrong CRC.

    `stated_end` is the end of the batch by its length field, which may be wrong too: if no batch
    starts there, or whole batches lie before it, the log continues elsewhere. Returns `end` if no
    whole batch follows.
    """
    end = file.size_bytes() if end is None else min(end, file.size_bytes())
    is_zero_after = zero_tail_start(file, stated_end) is not None
    if stated_end < end and not is_zero_after and not plausible_size(file, stated_end, end):
        following = find_end_after_bad_length(
            file, position, end=end, next_offset=next_offset, chunk_bytes=chunk_bytes
        )
        return end if following is None else following
    extent = _checksum_at(file, position, stated_end, chunk_bytes)
    own_end = _legacy_end(file, position, end)
    passed: set[int] = set()
    first: int | None = None
    for start, size in _iter_whole_batches(file, position + 1, stated_end, chunk_bytes):
        if extent is not None and extent.matches_up_to(start):
            return start
        if first is None and own_end in (None, start):
            chain_end = _end_of_chain(file, start + size, stated_end, passed)
            is_chain = chain_end == stated_end
            if is_zero_after and chain_end is not None and stated_end - chain_end >= PROLOGUE_BYTES:
                is_chain = _is_zero(file, chain_end, stated_end)
            first = start if is_chain else None
    if is_zero_after and (last := _end_before_zeros(file, position, end, extent)) is not None:
        return last
    return stated_end if first is None else first


def plausible_size(file: File, position: int, end: int) -> int:
    """Return the size of the batch that may start at a position; 0 without a plausible header.

    Only the header's fields are checked, and for magic 0 and 1 the sizes of key and value; no CRC.
    `end` is the position that the batch must not exceed.
    """
    header = file.read_at(position, min(HEADER_BYTES, end - position))
    if len(header) < PROLOGUE_BYTES:
        return 0
    if header[MAGIC_AT] == MAGIC and len(header) == HEADER_BYTES:
        return _size_by_header(header, 0, end - position)
    if header[MAGIC_AT] < MAGIC and _LEGACY_START.match(header):
        return _legacy_size(file.read_at, position, end)
    return 0


def is_whole(file: File, position: int, size: int, chunk_bytes: int = SEARCH_CHUNK_BYTES) -> bool:
    """Return True if the CRC of the `size` bytes at a position matches the batch header there."""
    checksum = _Checksum.at(file, position, chunk_bytes)
    return checksum is not None and checksum.matches_up_to(position + size)


class _Checksum:
    """The CRC that a batch's header states, and the computed CRC up to a rising end position."""

    def __init__(self, file: File, position: int, start: bytes, chunk_bytes: int) -> None:
        """Read the stored CRC from the batch's first bytes, `start`; `position` is the batch's."""
        self._file = file
        self._chunk_bytes = chunk_bytes
        #: CRC-32C for magic 2, CRC-32 for the messages of magic 0 and 1.
        self._checksum: Callable[[bytes, int], int] = crc32c
        #: Position up to which `_crc` covers the file. It only rises: ends are checked in ascending
        #: order.
        self._done = position + CHECKED_FROM
        self._stored = int.from_bytes(start[CRC_AT:CHECKED_FROM], "big")
        if start[MAGIC_AT] < MAGIC:
            self._checksum = zlib.crc32
            self._done = position + _LEGACY_CHECKED_FROM
            self._stored = int.from_bytes(start[_LEGACY_CRC_AT:_LEGACY_CHECKED_FROM], "big")
        self._crc = 0

    @staticmethod
    def at(file: File, position: int, chunk_bytes: int) -> _Checksum | None:
        """Return the checksum of the batch at a position; no byte after the CRC field is added yet.

        None if the file ends within the CRC field.
        """
        start = file.read_at(position, CHECKED_FROM)
        return None if len(start) < CHECKED_FROM else _Checksum(file, position, start, chunk_bytes)

    def matches_up_to(self, end: int) -> bool:
        """Return True if the CRC of the batch's bytes up to position `end` matches the stored CRC.

        Each byte is read once and added to a running CRC: `end` must rise between calls.
        """
        while self._done < end:
            chunk = self._file.read_at(self._done, min(self._chunk_bytes, end - self._done))
            if not chunk:
                return False
            self._crc = self._checksum(chunk, self._crc)
            self._done += len(chunk)
        return self._done == end and self._crc == self._stored


def _checksum_at(file: File, position: int, end: int, chunk_bytes: int) -> _Checksum | None:
    """Return the running checksum of a batch whose length field is wrong, to find its true end.

    None if other header fields are implausible too: then the CRC field cannot be trusted.
    """
    header = file.read_at(position, max(min(HEADER_BYTES, end - position), 0))
    if len(header) < _LEGACY_BYTES_MIN:
        return None
    if header[MAGIC_AT] >= MAGIC:
        if len(header) < HEADER_BYTES or not _is_header(read_header_start(header, 0)):
            return None
    elif header[MAGIC_AT + 1] & ~_LEGACY_FLAGS:
        return None
    return _Checksum.at(file, position, chunk_bytes)


def _end_of_chain(file: File, position: int, end: int, passed: set[int]) -> int | None:
    """Return the end of the chain of plausible batches from `position` on, at most `end`.

    `passed` is the set of positions that earlier chains visited, and grows by this chain's. None if
    the chain joins an earlier one, which the caller has refused.
    """
    while position < end:
        if position in passed:
            return None
        passed.add(position)
        size = plausible_size(file, position, end)
        if not size:
            break
        position += size
    return position


def _is_cut_off(file: File, position: int, end: int) -> bool:
    """Return True if the file ends within a batch of magic 2 that starts at `position`.

    `end` is the end of the file.
    """
    header = file.read_at(position, max(min(HEADER_BYTES, end - position), 0))
    return (
        len(header) == HEADER_BYTES
        and header[MAGIC_AT] == MAGIC
        and _is_header(read_header_start(header, 0))
        and position + LENGTH_OVERHEAD_BYTES + read_length(header, 0) > end
    )


def _is_zero(file: File, start: int, end: int) -> bool:
    """Return True if all bytes of [start, end) are zero."""
    while start < end:
        chunk = file.read_at(start, min(SEARCH_CHUNK_BYTES, end - start))
        if not chunk or chunk.count(0) != len(chunk):
            return False
        start += len(chunk)
    return True


def _end_before_zeros(file: File, position: int, end: int, extent: _Checksum | None) -> int | None:
    """Return the end position of the batch at `position` if only zeros follow it up to `end`.

    None if no end matches the batch's CRC `extent`. The last bytes of the batch may be zeros
    themselves, so several ends are tried.
    """
    if extent is None:
        return None
    data_end = at = position
    limit = min(end, position + EXTENT_BYTES_MAX)
    while at < limit:
        chunk = file.read_at(at, min(SEARCH_CHUNK_BYTES, limit - at))
        if not chunk:
            break
        data_end = at + len(data) if (data := chunk.rstrip(b"\0")) else data_end
        at += len(chunk)
    if not _is_zero(file, data_end, end):
        return None
    ends = range(data_end, min(data_end + _OWN_ZEROS_MAX, end) + 1)
    return next((last for last in ends if extent.matches_up_to(last)), None)


def _iter_whole_batches(
    file: File, start: int, end: int, chunk_bytes: int, passed: Container[int] = ()
) -> Iterator[tuple[int, int]]:
    """Yield (position, size) of each batch with a valid CRC that starts and ends in [start, end).

    Positions in `passed` are left out. The bytes that may be checksummed are limited, so that bytes
    made to look like batches do not slow down the search.
    """
    budget = RESYNC_CHECKED_BYTES_FACTOR * max(end - start, 0)
    for position, size in _iter_candidates(file, start, end, chunk_bytes):
        if size > budget or position in passed:
            continue
        budget -= size
        if is_whole(file, position, size, chunk_bytes):
            yield position, size


def _iter_candidates(
    file: File, start: int, end: int, chunk_bytes: int
) -> Iterator[tuple[int, int]]:
    """Yield (position, size) of each position in [start, end) that may start a batch.

    The bytes there look like a batch header; the CRC is not checked.
    """
    chunk_bytes = max(chunk_bytes, 2 * HEADER_BYTES)
    # Mostly the next batch is one of the first KiB.
    length = min(_FIRST_CHUNK_BYTES, chunk_bytes)
    while end - start >= _LEGACY_BYTES_MIN:
        chunk = file.read_at(start, min(length, end - start))
        length = min(2 * length, chunk_bytes)
        if len(chunk) < _LEGACY_BYTES_MIN:
            return
        is_final = start + len(chunk) >= end
        if chunk.count(0) == len(chunk):
            # No batch starts in zeros, but for the last few, of which an offset may be made.
            start += len(chunk) if is_final else len(chunk) - HEADER_BYTES + 1
            continue
        # A start in the last bytes is checked with the next chunk, which has all of the header.
        searched = len(chunk) if is_final else len(chunk) - HEADER_BYTES + 1
        for at, size in merge(
            _iter_headers(chunk, searched, end - start),
            _iter_legacy_headers(file, start, chunk, searched, end),
        ):
            yield start + at, size
        start += searched


def _iter_headers(chunk: bytes, searched: int, bytes_left: int) -> Iterator[tuple[int, int]]:
    """Yield (index in the chunk, batch size) of each plausible header of magic 2.

    Only the first `searched` bytes are searched for the start of a header. `bytes_left` is the
    number of bytes from the chunk's start to the end of the search.
    """
    last = min(searched - 1, len(chunk) - HEADER_BYTES)
    for match in _MAGIC_2.finditer(chunk, MAGIC_AT, max(last + HEADER_BYTES, 0)):
        at = match.start() - MAGIC_AT
        size = _size_by_header(chunk, at, bytes_left - at) if at <= last else 0
        if size:
            yield at, size


def _iter_legacy_headers(
    file: File, start: int, chunk: bytes, searched: int, end: int
) -> Iterator[tuple[int, int]]:
    """Yield (index in the chunk, message size) of each plausible message of magic 0 or 1.

    `start` is the chunk's position in the file; bytes after the chunk are read from the file. Only
    the first `searched` bytes are searched for the start of a message.
    """

    def read(position: int, length: int) -> bytes:
        """Return `length` bytes at a file position, from the chunk if it has them."""
        at = position - start
        fields = chunk[at : at + length]
        return fields if len(fields) == length else file.read_at(position, length)

    for match in _LEGACY_START.finditer(chunk):
        at = match.start()
        size = _legacy_size(read, start + at, end) if at < searched else 0
        if size:
            yield at, size


def _size_by_header(chunk: bytes, at: int, bytes_left: int) -> int:
    """Return the size of the batch of magic 2 that may start at index `at` of the chunk.

    0 if the header is implausible or the batch is longer than `bytes_left`.
    """
    fields = read_header_start(chunk, at)
    length = int(fields[1])
    if length < _V2_LENGTH_MIN or length + LENGTH_OVERHEAD_BYTES > bytes_left:
        return 0
    return length + LENGTH_OVERHEAD_BYTES if _is_header(fields) else 0


def _is_header(fields: tuple[int, ...]) -> bool:
    """Return True if the fields of a magic 2 header, as `read_header_start` returns, are plausible.

    The length field is not checked: the callers search for batches with a wrong length.
    """
    base_offset, _, epoch, _, _, attributes, last_delta = fields
    return base_offset >= 0 and epoch >= -1 and last_delta >= 0 and not attributes & ~KNOWN_FLAGS


def _legacy_size(read: Callable[[int, int], bytes], position: int, end: int) -> int:
    """Return the size of the message of magic 0 or 1 that may start at a position, 0 if none can.

    `read` takes a position and a length. The key and the value must fill the message exactly.
    """
    fields = read(position, _LEGACY_START_BYTES)
    if len(fields) < _LEGACY_START_BYTES or fields[MAGIC_AT] >= MAGIC:
        return 0
    size = read_length(fields, 0) + LENGTH_OVERHEAD_BYTES
    return size if size <= end - position and size == _size_by_fields(read, position, size) else 0


def _size_by_fields(read: Callable[[int, int], bytes], position: int, limit: int) -> int:
    """Return the size of a legacy message by the sizes of its header, key and value.

    0 if it exceeds `limit`. The length field of the message is not used.
    """
    at = _LEGACY_KEY_AT[read(position + MAGIC_AT, 1)[0]]
    for _ in ("key", "value"):
        raw = read(position + at, _SIZE_BYTES)
        if len(raw) < _SIZE_BYTES:
            return 0
        at += _SIZE_BYTES + max(int.from_bytes(raw, "big", signed=True), 0)
        if at > limit:
            return 0
    return at


def _legacy_end(file: File, position: int, end: int) -> int | None:
    """Return the end of a message of magic 0 or 1 by the sizes of its key and value.

    None for magic 2. Used where the length field is wrong. For a wrapper of compressed messages,
    the end may also be that of its last inner message.
    """
    magic = file.read_at(position + MAGIC_AT, 1)
    if not magic or magic[0] >= MAGIC:
        return None
    return position + _size_by_fields(file.read_at, position, end - position)
