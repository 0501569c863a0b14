"""Compiled version of the cleaner's work on the records of a batch, called through ctypes.

```
note_keys      puts the last offset of each key into the map     40 ns a record, and MD5
keep_records   selects the records to keep, and writes them      the same, and the copy
```

Plain Python does the same over the same memory (`engine.log.cleaner`) in 3 µs a record. It also
handles the records that compiled code does not (those off the fast path): the compiled functions
return None for them, and change nothing. `compiled_walk.py` describes how code is compiled and
cached; here the cleaner's process looks for it.
"""

from __future__ import annotations

from array import array
from hashlib import md5
from struct import Struct
from typing import NamedTuple

from engine.host.ports import Buffer
from engine.native.clean_layout import GROWTH_BYTES, KEEP, NOTE, SCRATCH_BYTES, SPAN
from engine.native.compiled_walk import start_compiler
from engine.native.flat_code import flat_path, load_flat

_SOURCES = (
    "cleaner_kernel.py", "clean_layout.py", "kernel_varint.py", "md5_code.py", "raw_memory.py",
)  # fmt: skip
_FULL = 2
# Sizes that most batches fit into; more memory is allocated for larger ones.
_COUNT_FAST, _BYTES_FAST = 1 << 10, 1 << 18
_NOTE_IN = Struct(f"={len(NOTE)}q")
_KEEP_IN = Struct("=8q")
_SIZE, _LATEST, _RECORDS = NOTE.index("size"), NOTE.index("latest_offset"), NOTE.index("records")
_COUNT, _TOMBSTONE, _BASE_MS, _MAX_MS, _OUT = (
    KEEP.index(name) for name in ("count", "has_tombstone", "new_base_ms", "max_ms", "out_bytes")
)


class CleanerCode(NamedTuple):
    """The addresses of the two compiled functions, `note_keys` and `keep_records`."""

    note: int
    keep: int


class MapMemory(NamedTuple):
    """The memory of an offset map: per slot 16 bytes of digest and an int64, and one spare slot."""

    digests: bytearray
    offsets: memoryview
    slot_count: int


class Noted(NamedTuple):
    """The result for a block: keys in the map, the last offset noted, the number of records."""

    is_full: bool
    size: int
    latest_offset: int
    record_count: int


class KeptRecords(NamedTuple):
    """The kept part of a block; `payload` is None where all or nothing of it is kept unchanged.

    Times in ms: the base that the payload's deltas count from, and the largest.
    """

    record_count: int
    has_tombstone: bool
    payload: memoryview | bytes | None
    base_ms: int
    max_ms: int


class CompiledCleaner:
    """Calls both compiled functions on the memory of one map; for one thread."""

    def __init__(self, code: CleanerCode, memory: MapMemory) -> None:
        """Use `memory`, the slots of the offset map, which must not be replaced later."""
        import ctypes

        # Unlike CFUNCTYPE this keeps the interpreter's lock; see `compiled_walk.py`.
        self._note = ctypes.PYFUNCTYPE(ctypes.c_int)(code.note)
        self._keep = ctypes.PYFUNCTYPE(ctypes.c_int)(code.keep)
        self._byte_in, self._by_reference = ctypes.c_char.from_buffer, ctypes.byref
        self._slot_count = memory.slot_count
        #: Parameters and results of both functions, one slot each.
        self._numbers = array("q", bytes(8 * max(len(NOTE), len(KEEP))))
        self._verdict = array("q", (0,))
        # A reference keeps the memory where it is, for as long as this lives.
        self._verdict_at = ctypes.c_void_p(self._verdict.buffer_info()[0])
        #: Addresses that stay the same from call to call; a reference keeps their memory in place.
        self._map = (
            ctypes.c_void_p(self._numbers.buffer_info()[0]),
            self._at(memory.digests),
            self._at(memory.offsets),
            self._at(bytearray(SCRATCH_BYTES)),
        )
        self._make_room(_COUNT_FAST, _BYTES_FAST)

    def _at(self, memory: bytearray | memoryview) -> object:
        """Return the address of writable memory, as an argument for the compiled code."""
        return self._by_reference(self._byte_in(memory))

    def _make_room(self, count: int, out_bytes: int) -> None:
        """Allocate the output memory: for `count` records of a batch and `out_bytes` bytes."""
        self._room_count, self._room_bytes = count, out_bytes
        self._out = memoryview(bytearray(out_bytes))
        self._made = (*self._map, self._at(bytearray(8 * SPAN * count)), self._at(self._out))

    def note_keys(
        self,
        data: Buffer,
        count: int,
        *,
        base_offset: int,
        start_offset: int,
        size: int,
        limit: int,
    ) -> Noted | None:
        """Put into the map the keys of a batch's records from `start_offset` on, with offsets.

        `data` is the `count` decompressed records, as bytes or a writable buffer. `size` is the
        number of keys that the map has; it gets no more than `limit`. Returns None for records that
        this code cannot parse: the caller then decodes them one by one.
        """
        length = len(data)
        if not length:
            return None
        numbers, slots = self._numbers, self._slot_count
        _NOTE_IN.pack_into(
            numbers, 0, base_offset, start_offset, slots, size, limit, base_offset - 1, 0
        )
        block = data if data.__class__ is bytes else self._at(data)  # type: ignore[arg-type]
        self._note(self._verdict_at, None, block, length, count, *self._map)
        verdict = self._verdict[0]
        if not verdict:
            return None
        return Noted(verdict == _FULL, numbers[_SIZE], numbers[_LATEST], numbers[_RECORDS])

    def keep_records(
        self,
        data: Buffer,
        count: int,
        *,
        base_offset: int,
        latest_offset: int,
        base_ms: int,
        keeps_tombstones: bool,
        horizon_ms: int | None,
        new_horizon_ms: int,
    ) -> KeptRecords | None:
        """Select a batch's records to keep and write them; None for records this code cannot parse.

        `data` is the `count` decompressed records. The map has offsets up to `latest_offset`
        (inclusive). `horizon_ms` is the batch's delete horizon, None without one; `new_horizon_ms`
        is the horizon that a kept tombstone gives it. The payload that is returned is valid until
        the next call.
        """
        size = len(data)
        # A record has at least seven bytes, so a wrong count must not allocate memory.
        if not size or count * 7 > size:
            return None
        room = size + GROWTH_BYTES * count
        if count > self._room_count or room > self._room_bytes:
            self._make_room(max(count, self._room_count), max(room, self._room_bytes))
        numbers = self._numbers
        has_horizon = horizon_ms is not None
        _KEEP_IN.pack_into(
            numbers,
            0,
            base_offset,
            latest_offset,
            self._slot_count,
            keeps_tombstones,
            base_ms,
            has_horizon,
            horizon_ms or 0,
            new_horizon_ms,
        )
        block = data if data.__class__ is bytes else self._at(data)  # type: ignore[arg-type]
        self._keep(self._verdict_at, None, block, size, count, *self._made)
        if not self._verdict[0]:
            return None
        kept, has_tombstone = numbers[_COUNT], bool(numbers[_TOMBSTONE])
        if not kept or (kept == count and (has_horizon or not has_tombstone)):
            return KeptRecords(kept, has_tombstone, None, 0, 0)
        payload = self._out[: numbers[_OUT]]
        return KeptRecords(kept, has_tombstone, payload, numbers[_BASE_MS], numbers[_MAX_MS])


class CleanerTier:
    """The compiled code that this process uses, and whether it was requested.

    The code is None until it is loaded.
    """

    code: CleanerCode | None = None
    is_requested = False


def kept_note_path() -> str | None:
    """Return the cache path of the compiled `note_keys`, None without a cache folder."""
    return flat_path("cleaner-note", __file__, _SOURCES)


def kept_keep_path() -> str | None:
    """Return the cache path of the compiled `keep_records`, as `kept_note_path` does."""
    return flat_path("cleaner-keep", __file__, _SOURCES)


def load_cleaner() -> CleanerCode | None:
    """Return the cached compiled code, None unless both functions are cached."""
    paths = kept_note_path(), kept_keep_path()
    note, keep = (None if path is None else load_flat(path) for path in paths)
    return None if note is None or keep is None else CleanerCode(note, keep)


def load_or_compile_cleaner() -> bool:
    """Use the cached code if it is right; without it start its compilation for later cleanings.

    Return True if compiled code is in use.
    """
    if CleanerTier.code is not None:
        return True
    code = load_cleaner()
    if code is None:
        if not CleanerTier.is_requested:
            CleanerTier.is_requested = True
            start_compiler()
    elif is_note_right(code.note) and is_keep_right(code.keep):
        CleanerTier.code = code
    return CleanerTier.code is not None


# time 0, offset 0, key "k", value "v"; time 5, offset 1, key "j", no value; time 9, offset 2, no
# key, value "w"; time 11, offset 4, a key of 70 bytes, an empty value
_LONG = b"key" * 23 + b"!"
_FIRST = bytes.fromhex("10 00 00 00 02 6b 02 76 00")
_SECOND = bytes.fromhex("0e 00 0a 02 02 6a 01 00")
_THIRD = bytes.fromhex("0e 00 12 04 01 02 77 00")
_FOURTH = bytes.fromhex("9a01 00 16 08 8c01") + _LONG + bytes.fromhex("00 00")
_ALL = _FIRST + _SECOND + _THIRD + _FOURTH
_SLOTS = 5


def _sample_map() -> MapMemory:
    """Return an empty offset map of few slots, in which the digests of the samples collide."""
    return MapMemory(bytearray(16 * _SLOTS), memoryview(bytearray(8 * _SLOTS)).cast("q"), _SLOTS)


def _read_map(memory: MapMemory) -> dict[bytes, int]:
    """Return the map's content for the samples: offset by digest of the key."""
    digests, offsets = memory.digests, memory.offsets
    return {
        bytes(digests[16 * slot : 16 * slot + 16]): offsets[slot] - 1
        for slot in range(_SLOTS)
        if offsets[slot]
    }


def _digest(key: bytes) -> bytes:
    """Return the MD5 of a key, which Kafka's cleaner compares in place of keys."""
    return md5(key, usedforsecurity=False).digest()


def is_note_right(address: int) -> bool:
    """Return True if compiled code for `note_keys` gives the right results for the samples."""
    memory = _sample_map()
    compiled = CompiledCleaner(CleanerCode(address, address), memory)

    def noted(data: bytes, count: int, limit: int = 4, start: int = 10) -> Noted | None:
        """Return what the code returns for a sample: None if it refuses it."""
        size = len(_read_map(memory))
        return compiled.note_keys(
            data, count, base_offset=10, start_offset=start, size=size, limit=limit
        )

    wrong = (_ALL, 3), (_ALL[:-1], 4), (_FIRST + _FIRST, 2), (b"\xff" * 40, 1)
    if any(noted(data, count) is not None for data, count in wrong) or _read_map(memory):
        return False
    if noted(_ALL, 4, start=11, limit=1) != Noted(True, 1, 11, 3):
        return False
    if noted(_ALL, 4) != Noted(False, 3, 14, 4):
        return False
    return _read_map(memory) == {_digest(b"k"): 10, _digest(b"j"): 11, _digest(_LONG): 14}


def is_keep_right(address: int) -> bool:
    """Return True if compiled code for `keep_records` gives the right results for the samples."""
    memory = _sample_map()
    for slot, (key, offset) in enumerate({b"k": 11, _LONG: 14}.items()):
        start = int.from_bytes(_digest(key)[:8], "little") % _SLOTS
        # The first digest may have taken the slot of the second.
        place = start if not memory.offsets[start] else (start + 1) % _SLOTS
        memory.digests[16 * place : 16 * place + 16] = _digest(key)
        memory.offsets[place] = offset + 1
        assert slot < _SLOTS
    compiled = CompiledCleaner(CleanerCode(address, address), memory)

    def kept(data: bytes, count: int, latest: int, horizon_ms: int | None) -> object:
        """Run the compiled code over a sample; the bytes that it keeps are copied."""
        found = compiled.keep_records(
            data,
            count,
            base_offset=10,
            latest_offset=latest,
            base_ms=1000,
            keeps_tombstones=True,
            horizon_ms=horizon_ms,
            new_horizon_ms=3000,
        )
        if found is None or found.payload is None:
            return found
        return found._replace(payload=bytes(found.payload))

    # The records of "j" and of the long key are kept; their time deltas from the new horizon are
    # −1995 and −1989 ms.
    second = bytes.fromhex("10 00 951f 02 02 6a 01 00")
    fourth = bytes.fromhex("9c01 00 891f 08 8c01") + _LONG + bytes.fromhex("00 00")
    # Time deltas from the first of them: 0 and 6 ms.
    later = bytes.fromhex("0e 00 00 02 02 6a 01 00"), bytes.fromhex("9a01 00 0c 08 8c01")
    return (
        kept(_ALL, 3, 20, None) is None
        and kept(_ALL[:-1], 4, 20, None) is None
        and kept(_FIRST, 1, 20, None) == KeptRecords(0, False, None, 0, 0)
        and kept(_FIRST, 1, 9, None) == KeptRecords(1, False, None, 0, 0)
        and kept(_ALL, 4, 20, None) == KeptRecords(2, True, second + fourth, 3000, 1011)
        and kept(_ALL, 4, 20, 1005)
        == KeptRecords(2, True, later[0] + later[1] + _LONG + b"\0\0", 1005, 1011)
    )
