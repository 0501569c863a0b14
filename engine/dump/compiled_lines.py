"""The lines of whole version 2 batches by compiled code: the fast tier, for large files.

The contract is that of `plain_lines.py`; a test compares the bytes of the two tiers.

The code is compiled by numba (extra `fast`) once per machine and kept; later processes load it
without numba, in a tenth of the time and with half the memory (see native/native_code.py).
"""

from __future__ import annotations

import ctypes
from array import array
from enum import IntEnum

from engine.dump.output import Output
from engine.dump.plain_lines import BatchNumbers, Lines, LineTier, PlainLines
from engine.dump.window_batches import WindowBatches
from engine.native import line_layout
from engine.native.line_layout import SLOTS, WORDS
from engine.native.native_code import load_native

_LAST_OFFSET, _OUT_END, _GAP_COUNT, _BATCHES_DONE = 8, 10, 11, 16
_FAST = 0

# Maximum length of a line without names, key and value: five numbers of 20 digits, and its words.
_LINE_BYTES = 256
# Growth of invalid UTF-8: one byte may become the three bytes of U+FFFD.
_GROWTH = 3
# Maximum length of a batch's line: twelve numbers and its words.
_BATCH_LINE_BYTES = 640
# Two int64 for each gap.
_GAP_BYTES = 16

_Kernel = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p,
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p,
    ctypes.c_void_p, ctypes.c_char_p,
)  # fmt: skip
_WORDS = b"".join(WORDS)
#: Sources of the compiled code, which is compiled again after any of them changed.
_SOURCES = ("line_kernel.py", "raw_memory.py", "line_layout.py")


# One record: time 1, offset 0, key "k", value of three bytes that are not UTF-8, header "h".
_SAMPLE = b"\x1a\x00\x02\x00\x02k\x06\xed\xa0A\x02\x02h\x01"


class Level(IntEnum):
    """How much of each batch is printed."""

    BATCHES = -1
    RECORDS = 0
    DATA = 1


class CompiledLines:
    """Writes lines by compiled code, directly into the output's arena."""

    def __init__(self, address: int, *, level: Level, check_first_gap: bool) -> None:
        """`address` is that of the compiled function."""
        self._kernel = _Kernel(address)
        self._level = level
        self._check_first_gap = check_first_gap
        #: Room for the gaps that a call finds: the last offset before each and the first after it.
        self._gaps = array("q", bytes(_GAP_BYTES * 1024))
        #: Parameters and results of a call, each in its slot.
        self._numbers = array("q", [0] * len(SLOTS))
        self._numbers_at, _ = self._numbers.buffer_info()
        #: Result of the call, and room for an exception, which it never raises.
        self._result = array("q", (0, 0))
        self._result_at, _ = self._result.buffer_info()
        #: The output's arena at the last call, and its address.
        self._arena: bytearray | None = None
        self._arena_at = 0

    def write(
        self, out: Output, batch: BatchNumbers, raw: bytes | memoryview, start: int, last: int
    ) -> Lines | None:
        """Write the lines of the records in `raw` from `start` to its end, as `LineTier.write`.

        `last` is the offset of the record before, −1 without one. Returns None, with nothing
        written, if the compiled code does not support the records.
        """
        base_offset, base_ms, append_ms, base_sequence, count, _ = batch
        end = len(raw)
        # A record has at least seven bytes: a count that is too large gets no room.
        if count < 0 or count * 7 > end - start:
            return None
        if base_sequence >= 0 and base_sequence + count > 0x7FFFFFFF:
            return None
        self._make_room(out, count, end - start)
        numbers = self._numbers
        numbers[:] = array("q", (
            start, end, base_offset, base_ms, append_ms, base_sequence, count,
            self._level, last, self._check_first_gap, 0, 0, 0, 0, 0, 0, 0,
        ))  # fmt: skip
        self._call_kernel(out, raw, self._numbers_at, b"")
        if self._result[0] != _FAST:
            return None
        out.commit(numbers[_OUT_END])
        return self._read_results()

    def write_batches(
        self, out: Output, raw: memoryview, batches: WindowBatches, first: int, last: int
    ) -> tuple[int, Lines]:
        """Write the lines of batches from index `first` on, as `WindowTier.write_batches`.

        Returns the number of batches written, and the last offset with the gaps found in them.
        """
        self._make_room(out, batches.record_count_max, batches.size_bytes_max + _BATCH_LINE_BYTES)
        positions, valid = batches.positions, bytes(batches.valid[first:])
        self._numbers[:] = array("q", (
            0, 0, 0, 0, 0, 0, 0, self._level, last, self._check_first_gap, 0, 0,
            len(positions) - first, batches.base_position, len(out.arena) - out.end,
            len(self._gaps) // 2, 0,
        ))  # fmt: skip
        positions_at, _ = positions.buffer_info()
        self._call_kernel(out, raw, positions_at + positions.itemsize * first, valid)
        out.commit(self._numbers[_OUT_END])
        return self._numbers[_BATCHES_DONE], self._read_results()

    def _call_kernel(
        self, out: Output, raw: bytes | memoryview, positions_at: int, valid: bytes
    ) -> None:
        """Call the compiled code, which fills the arena and puts its results into `_numbers`."""
        gaps_at, _ = self._gaps.buffer_info()
        self._kernel(
            self._result_at, self._result_at + 8, _address_of(raw), self._arena_at + out.end,
            _WORDS, self._numbers_at, gaps_at, positions_at, valid,
        )  # fmt: skip

    def _read_results(self) -> Lines:
        """Return the last offset and the gaps that the compiled code found."""
        numbers = self._numbers
        gap_count = numbers[_GAP_COUNT]
        if not gap_count:
            return Lines(numbers[_LAST_OFFSET], [])
        pairs = self._gaps[: 2 * gap_count]
        return Lines(numbers[_LAST_OFFSET], list(zip(pairs[::2], pairs[1::2], strict=True)))

    def _make_room(self, out: Output, record_count: int, raw_bytes: int) -> None:
        """Reserve room for the lines of records, and for as many gaps as records.

        This may replace the output's arena, whose address is then determined again.
        """
        out.reserve(record_count * _LINE_BYTES + raw_bytes * _GROWTH)
        if out.arena is not self._arena:
            self._arena = out.arena
            self._arena_at = _address_of(out.arena)
        if 2 * record_count > len(self._gaps):
            self._gaps = array("q", bytes(_GAP_BYTES * record_count))


def _address_of(buffer: bytes | bytearray | memoryview) -> int:
    """Return the address of a buffer; the caller has to keep the buffer alive."""
    if isinstance(buffer, bytes):
        return ctypes.cast(ctypes.c_char_p(buffer), ctypes.c_void_p).value or 0
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def load_compiled_lines(
    *,
    level: Level,
    check_first_gap: bool,
    compile: bool,  # noqa: A002
) -> CompiledLines | None:
    """Load the tier of compiled code, None if it is unavailable or wrong on this machine.

    Without `compile` it is also None if the code is not compiled yet.
    """
    address = load_native(
        "line_kernel", line_layout.__file__, _SOURCES, _compile if compile else None
    )
    if address is None:
        return None
    tier = CompiledLines(address, level=level, check_first_gap=check_first_gap)
    plain = PlainLines(print_data=level is Level.DATA, check_first_gap=check_first_gap)
    sample = BatchNumbers(7, 1_767_225_600_000, -1, 3, 1, b"CreateTime")
    # Compiled code that gives another result on this machine is not used.
    return tier if _run_sample(tier, sample) == _run_sample(plain, sample) else None


def _run_sample(tier: LineTier, sample: BatchNumbers) -> tuple[Lines | None, bytes]:
    """Return a tier's result and its output for the sample: equal for all tiers that are right."""
    shown: list[bytes] = []
    out = Output(lambda block: shown.append(bytes(block)))
    lines = tier.write(out, sample, _SAMPLE, 0, -1)
    out.flush()
    return lines, b"".join(shown)


def _compile() -> tuple[bytes, str]:
    """Compile the code that writes lines; return its object code and its name.

    The import is late because numba is slow to load.
    """
    from engine.native.line_kernel import compile_kernel

    return compile_kernel()
