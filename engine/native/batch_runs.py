"""Runs of batches, and their records put into columns, by compiled code called through ctypes.

```
bytes of a log ─ find ─► batches that follow each other ─ fill ─► offsets, times, sizes, keys, …
```

find      whole batches of magic 2, of one leader epoch, each with the base offset that must come
          next; the caller checks their CRCs
fill      the records of such batches, or only the wanted ones; each key and value is copied once,
          from the bytes of the log to the end of a column

Both functions exist only as compiled code (`run_kernel.py`), with no plain Python version. Without
compiled code, and for batches that it does not handle, `records.decode` reads record by record.

Source: D16.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from engine.host.ports import Buffer
from engine.native.flat_code import flat_path, load_flat
from engine.native.run_layout import FILL, FIND, FRAME

_SOURCES = (
    "run_kernel.py",
    "run_layout.py",
    "kernel_varint.py",
    "kernel_numbers.py",
    "raw_memory.py",
)
#: Batches that are found at once: as many as a chunk of small ones has.
FRAMES_MAX = 4096
WIDTH = len(FRAME)
_START, _SIZE, _CRC, _POSITION, _PASSED, _ATTRIBUTES = (
    FRAME.index(name) for name in ("start", "size", "crc", "position", "is_passed", "attributes")
)
_CODEC_BITS = 7
# The slots of parameters and of results; the slot that is both is the last parameter and the first
# result.
_FIND_IN = Struct(f"={FIND.index('next_offset') + 1}q")
_FIND_OUT = Struct(f"={len(FIND) - FIND.index('next_offset')}q")
_OUT_AT = 8 * FIND.index("next_offset")


class RunCode(NamedTuple):
    """The addresses of the two compiled functions, find and fill."""

    find: int
    fill: int


class RunTier:
    """The compiled code that this process uses, None until it is loaded."""

    code: RunCode | None = None


class BatchRun(NamedTuple):
    """Consecutive batches in a buffer, as rows of FRAME; valid until the next run is found.

    `frames` may have more than `frame_count` rows. All ends are exclusive.
    """

    buffer: memoryview
    frames: array[int]
    frame_count: int
    end: int
    next_offset: int
    is_compacted: bool
    record_count: int

    def iter_checksums(self) -> Iterator[tuple[int, int, int]]:
        """Yield (start, end, stored CRC) of each batch.

        Start and end are positions in the buffer.
        """
        used = self.frame_count * WIDTH
        starts, crcs = self.frames[_START:used:WIDTH], self.frames[_CRC:used:WIDTH]
        starts.append(self.end)
        return zip(starts, starts[1:], crcs, strict=False)

    @property
    def last_start(self) -> int:
        """Return the position in the buffer where the last batch starts."""
        return self.frames[(self.frame_count - 1) * WIDTH + _START]

    def batch(self, number: int) -> tuple[int, memoryview]:
        """Return the position in the file of the batch with this index, and the batch's bytes."""
        slot = number * WIDTH
        start = self.frames[slot + _START]
        return self.frames[slot + _POSITION], self.buffer[start : start + self.frames[slot + _SIZE]]

    def frame(self, number: int) -> array[int]:
        """Return a copy of the FRAME of the batch with this index: its header fields as numbers."""
        return self.frames[number * WIDTH : (number + 1) * WIDTH]

    def is_to_open(self, number: int) -> bool:
        """Return True if this batch must be decompressed: it is compressed, and not left out."""
        slot = number * WIDTH
        return (
            not self.frames[slot + _PASSED] and self.frames[slot + _ATTRIBUTES] & _CODEC_BITS != 0
        )

    def field(self, name: str) -> list[int]:
        """Return the values of one field of FRAME, one for each batch of the run."""
        return self.frames[FRAME.index(name) : self.frame_count * WIDTH : WIDTH].tolist()

    def pass_over(self, number: int) -> None:
        """Mark the batch with this index, so that `fill` leaves out its records."""
        self.frames[number * WIDTH + _PASSED] = 1


class RunFinder:
    """Finds runs of batches; for one thread, and for one run at a time."""

    def __init__(self, code: RunCode, *, passes_control: bool) -> None:
        """With `passes_control`, control batches are marked as passed over."""
        import ctypes

        # Unlike CFUNCTYPE this keeps the interpreter's lock; see `compiled_walk.py`.
        self._call = ctypes.PYFUNCTYPE(ctypes.c_int)(code.find)
        self._byte_in, self._by_reference = ctypes.c_char.from_buffer, ctypes.byref
        self._passes_control = passes_control
        #: FRAME numbers of the batches that a call found; below, its parameters and results, one
        #: slot each.
        self._frames = array("q", bytes(8 * WIDTH * FRAMES_MAX))
        self._numbers = array("q", bytes(8 * len(FIND)))
        self._verdict = array("q", (0,))
        self._verdict_at, self._numbers_at, self._frames_at = (
            ctypes.c_void_p(memory.buffer_info()[0])
            for memory in (self._verdict, self._numbers, self._frames)
        )

    def find(
        self,
        buffer: memoryview,
        start: int,
        limit: int,
        file_position: int,
        next_offset: int,
        epoch: int,
        *,
        frames_max: int = FRAMES_MAX,
    ) -> BatchRun:
        """Return the run of batches from `start` on in a writable buffer, before `limit`.

        No batch of the run starts at `limit` or after it. `file_position` is the position of the
        buffer in the file; the first batch must have `next_offset` as its base offset, and all have
        `epoch`.
        """
        size, passes = len(buffer), self._passes_control
        _FIND_IN.pack_into(
            self._numbers, 0, size, start, limit, file_position, epoch, frames_max, passes,
            next_offset,
        )  # fmt: skip
        first_byte = self._by_reference(self._byte_in(buffer))
        self._call(self._verdict_at, None, first_byte, self._numbers_at, self._frames_at)
        behind, found, end, is_compacted, records = _FIND_OUT.unpack_from(self._numbers, _OUT_AT)
        return BatchRun(buffer, self._frames, found, end, behind, bool(is_compacted), records)


class RowFiller:
    """Puts records into the columns whose addresses are in `numbers`; for one thread."""

    def __init__(self, code: RunCode) -> None:
        """Allocate parameters and result; `numbers` is filled by the caller."""
        import ctypes

        self._call = ctypes.PYFUNCTYPE(ctypes.c_int)(code.fill)
        self._byte_in, self._by_reference = ctypes.c_char.from_buffer, ctypes.byref
        self._pointer = ctypes.c_void_p
        #: Parameters and results, one slot each, and the addresses of columns.
        self.numbers = array("q", bytes(8 * len(FILL)))
        memcpy = ctypes.cast(ctypes.CDLL(None).memcpy, ctypes.c_void_p).value
        self.numbers[FILL.index("memcpy")] = memcpy or 0
        self._verdict = array("q", (0,))
        self._verdict_at = self._pointer(self._verdict.buffer_info()[0])
        self._numbers_at = self._pointer(self.numbers.buffer_info()[0])

    def fill(self, data: Buffer, frames: array[int], first: int, count: int) -> int:
        """Add the records of `count` batches, from the one with index `first` on, to the columns.

        `data` is the bytes, or a writable buffer, that the run's `frames` refer to. Returns why it
        stopped (DONE, FULL, COMPRESSED or ODD); the slot `frame` of `numbers` then has the index of
        the batch where it stopped.
        """
        numbers = self.numbers
        numbers[0], numbers[1], numbers[2] = first, count, len(data)
        block: object = data
        if data.__class__ is not bytes:
            block = self._by_reference(self._byte_in(data))
        frames_at = self._pointer(frames.buffer_info()[0])
        self._call(self._verdict_at, None, block, self._numbers_at, frames_at)
        return self._verdict[0]


def kept_find_path() -> str | None:
    """Return the cache path of the compiled `find` for this machine, None without a folder."""
    return flat_path("run-find", __file__, _SOURCES)


def kept_fill_path() -> str | None:
    """Return the cache path of the compiled `fill` for this machine, None without a folder."""
    return flat_path("run-fill", __file__, _SOURCES)


def load_runs() -> RunCode | None:
    """Return the cached code of both functions for this machine, None without one of them.

    The caller must test the code before use.
    """
    find_path, fill_path = kept_find_path(), kept_fill_path()
    if find_path is None or fill_path is None:
        return None
    find, fill = load_flat(find_path), load_flat(fill_path)
    return None if find is None or fill is None else RunCode(find, fill)
