"""Count of records from the headers of their batches, by compiled code called through ctypes.

```
file ─ pread 61 bytes ─► header ─ next one at its length ─► pread 61 bytes …
```

This counts batches of magic 2 that follow each other without a gap, in epochs that do not decrease,
each with as many records as offsets. Any other batch is "odd": the caller then reads the batches
themselves, from two batches before the odd one. Two, because a wrong length, offset or count of a
batch shows only in the header after it, and the other one shows what should come next. Damaged
records are not noticed, as no checksum is computed. A million headers take 0.3 s.

The compiled code is `count_kernel.py`; without it `analysis/plain_header_counts.py` counts.
Source: D16.
"""

from __future__ import annotations

import struct
from array import array
from contextlib import closing, suppress
from typing import Final, NamedTuple

from engine.errors import StorageError
from engine.host.real import RealFiles
from engine.host.temporary import temporary_folder
from engine.native.flat_code import flat_path, load_flat

_SOURCES = ("count_kernel.py", "header_counts.py", "kernel_numbers.py", "raw_calls.py")
HEADER_BYTES: Final = 61
#: Parameters: the address of pread, the file and the ends of the range (batches start before
#: `limit` and end by `file_end`), whether control batches are left out, the largest number of
#: batches. Parameters and results: position and offset of the next batch, and the lowest epoch that
#: it may have. Results: the number of records, whether the next batch is odd, and the positions
#: and record counts of the last two batches that were counted.
COUNT: Final = (
    "pread", "descriptor", "limit", "file_end", "passes_control", "frames_max", "position",
    "next_offset", "epoch", "record_count", "is_odd", "last_position", "last_count",
    "before_position", "before_count",
)  # fmt: skip
_IN_AND_OUT = COUNT.index("position")
#: Batches in one call, which holds the interpreter's lock: this many take some milliseconds.
_FRAMES_MAX = 1 << 14


class CountTier:
    """The address of the compiled code that this process uses, None until it is loaded.

    The process looks for it once: code compiled after that is for later commands.
    """

    code: int | None = None
    is_sought: bool = False


class HeaderRange(NamedTuple):
    """A range of a file that starts with a batch; ends are exclusive."""

    descriptor: int
    start: int
    limit: int
    file_end: int
    first_offset: int
    first_epoch: int


class CountedRecords(NamedTuple):
    """The number of records before `position`, and `next_offset`, the offset expected there."""

    record_count: int
    position: int
    next_offset: int


class HeaderCounter:
    """Counts records with compiled code; for one thread."""

    def __init__(self, code: int, *, passes_control: bool) -> None:
        """With `passes_control`, control batches are left out."""
        import ctypes

        # Unlike CFUNCTYPE this keeps the interpreter's lock; see `compiled_walk.py`.
        self._call = ctypes.PYFUNCTYPE(ctypes.c_int)(code)
        #: Parameters and results, one slot each; below, room for one batch header.
        self._numbers = array("q", bytes(8 * len(COUNT)))
        self._header = array("B", bytes(HEADER_BYTES))
        self._verdict = array("q", (0,))
        pread = ctypes.cast(ctypes.CDLL(None).pread, ctypes.c_void_p).value
        self._pread, self._passes_control = pread or 0, passes_control
        self._verdict_at, self._header_at, self._numbers_at = (
            ctypes.c_void_p(memory.buffer_info()[0])
            for memory in (self._verdict, self._header, self._numbers)
        )

    def count(self, within: HeaderRange) -> CountedRecords:
        """Count the records of a range of a log file from the batch headers in it.

        An odd batch, which the compiled code cannot count, ends the count; the two batches before
        it are then left out of the result too.
        """
        numbers, total = self._numbers, 0
        numbers[:] = array("q", (
            self._pread, within.descriptor, within.limit, within.file_end, self._passes_control,
            _FRAMES_MAX, within.start, within.first_offset, within.first_epoch, 0, 0,
            within.start, 0, within.start, 0,
        ))  # fmt: skip
        while True:
            self._call(self._verdict_at, None, self._header_at, self._numbers_at, self._numbers_at)
            (position, next_offset, _, count, is_odd, _, last_count, before_position,
             before_count) = numbers[_IN_AND_OUT:]  # fmt: skip
            total += count
            if is_odd:
                left_out = last_count + before_count
                return CountedRecords(total - left_out, before_position, next_offset)
            if position >= within.limit:
                return CountedRecords(total, position, next_offset)


def kept_count_path() -> str | None:
    """Return the cache path of the compiled code for this machine, None without a cache folder."""
    return flat_path("header-count", __file__, _SOURCES)


def load_count() -> int | None:
    """Return the address of cached code, None without it; the caller must test it before use."""
    path = kept_count_path()
    return None if path is None else load_flat(path)


def is_count_right(code: int) -> bool:
    """Return True if compiled code counts the records of sample batches correctly.

    Code is cached and used only if it does. Raises StorageError if the sample file cannot be
    written.
    """
    batches = [
        _build_batch(7, 3, 0),
        _build_batch(10, 1, 32),
        _build_batch(11, 2, 4),
        _build_batch(14, 1, 0),
    ]
    sizes = [len(batch) for batch in batches]
    files = RealFiles()
    with temporary_folder("kctl-header-count-") as folder:
        files.replace_file(f"{folder}/log", b"".join(batches))
        with closing(files.open(f"{folder}/log")) as file:
            whole = HeaderRange(file.fileno() or 0, 0, sum(sizes[:3]), sum(sizes), 7, 4)
            odd = whole._replace(limit=sum(sizes))
            short = whole._replace(file_end=sum(sizes[:3]) - 1)
            found = [
                HeaderCounter(code, passes_control=passes).count(within)
                for passes, within in ((True, whole), (False, whole), (True, odd), (True, short))
            ]
    ends = [sum(sizes[:count]) for count in range(5)]
    return [(count.record_count, count.position) for count in found] == [
        (5, ends[3]), (6, ends[3]), (3, ends[1]), (0, ends[0]),
    ]  # fmt: skip


def _build_batch(base_offset: int, count: int, attributes: int) -> bytes:
    """Return a batch with `count` offsets, whose records are zeroes: only its header is read."""
    size = HEADER_BYTES + 9 * count
    return struct.pack(
        ">qiibIhiqqqhii", base_offset, size - 12, 4, 2, 0, attributes, count - 1, 0, 0, -1, -1, -1,
        count,
    ).ljust(size, b"\0")  # fmt: skip


def load_or_compile_count() -> bool:
    """Use the cached counter if it is right; without one start its compilation.

    The compilation is for later commands; only the first call does anything. Return True if a
    counter is in use.
    """
    from engine.native.compiled_walk import start_compiler

    if CountTier.is_sought or kept_count_path() is None:
        return CountTier.code is not None
    CountTier.is_sought = True
    code = load_count()
    if code is None:
        start_compiler()
        return False
    # If the code cannot be tested, records are counted without it.
    with suppress(StorageError):
        if is_count_right(code):
            CountTier.code = code
    return CountTier.code is not None
