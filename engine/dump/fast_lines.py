"""The lines of a whole version 2 batch by compiled code: the tier for large files.

The contract is that of `plain_lines.py`, and a test holds the two tiers to the same bytes.
The code is compiled by numba (extra `fast`) once per machine and kept; later runs load it without
numba, which takes a tenth of the time and half the memory (see host/native_code.py).
"""

from __future__ import annotations

import ctypes
from array import array

from engine.dump.plain_lines import BatchNumbers, Lines, PlainLines
from engine.host.native_code import load_native

#: Slots of the numbers that go to and come from the compiled code.
SLOTS = (
    "raw_start", "raw_end", "base_offset", "base_ms", "append_ms", "base_sequence",
    "record_count", "print_data", "last_offset", "check_first_gap", "out_end", "gap_count",
)  # fmt: skip
_LAST_OFFSET, _OUT_END, _GAP_COUNT = 8, 10, 11
_USUAL = 0

WORDS = (
    b"| offset: ", b" CreateTime: ", b" LogAppendTime: ", b" keySize: ", b" valueSize: ",
    b" sequence: ", b" headerKeys: [", b"]", b" key: ", b" payload: ",
)  # fmt: skip

# The longest a line gets beside names, key and value: five numbers of 20 digits and its words.
_LINE_BYTES = 256
# Invalid UTF-8 grows: one byte may become the three of U+FFFD.
_GROWTH = 3

_Kernel = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p,
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p,
)  # fmt: skip
_WORDS = b"".join(WORDS)
#: Parts of the source that the compiled code comes from: another text, another code.
_SOURCES = ("line_kernel.py", "raw_memory.py", "fast_lines.py")


# One record: time 1, offset 0, key "k", value of three bytes that are no UTF-8, header "h".
_SAMPLE = b"\x1a\x00\x02\x00\x02k\x06\xed\xa0A\x02\x02h\x01"


class FastLines:
    """Makes lines with compiled code, into one arena that is reused from batch to batch."""

    def __init__(self, address: int, *, print_data: bool, check_first_gap: bool) -> None:
        self._kernel = _Kernel(address)
        self._print_data = print_data
        self._check_first_gap = check_first_gap
        self._arena = bytearray(1 << 20)
        self._gaps = array("q", bytes(16 * 1024))
        # The function's result, and the place for an exception that it never raises.
        self._result = array("q", (0, 0))

    def of(
        self, batch: BatchNumbers, raw: bytes | memoryview, start: int, last_offset: int
    ) -> Lines | None:
        """Return the lines of the records in `raw` from `start` to its end.

        The text is valid until the next call. `last_offset` is that of the record before, −1
        if there is none.
        """
        count, end = batch.record_count, len(raw)
        # A record takes seven bytes, so a larger count is a lie and is not made room for.
        if count < 0 or count * 7 > end - start:
            return None
        if batch.base_sequence >= 0 and batch.base_sequence + count > 0x7FFFFFFF:
            return None
        self._make_room(count, end - start)
        numbers = array("q", (
            start, end, batch.base_offset, batch.base_timestamp_ms, batch.append_time_ms,
            batch.base_sequence, count, self._print_data, last_offset, self._check_first_gap, 0, 0,
        ))  # fmt: skip
        self._kernel(
            self._result.buffer_info()[0], self._result.buffer_info()[0] + 8,
            _address_of(raw), _address_of(self._arena), _WORDS,
            numbers.buffer_info()[0], self._gaps.buffer_info()[0],
        )  # fmt: skip
        if self._result[0] != _USUAL:
            return None
        pairs = self._gaps[: 2 * numbers[_GAP_COUNT]]
        gaps = list(zip(pairs[::2], pairs[1::2], strict=True))
        text = memoryview(self._arena)[: numbers[_OUT_END]]
        return Lines(text, numbers[_LAST_OFFSET], gaps)

    def _make_room(self, count: int, raw_bytes: int) -> None:
        needed = count * _LINE_BYTES + raw_bytes * _GROWTH
        if needed > len(self._arena):
            self._arena = bytearray(needed)
        if 2 * count > len(self._gaps):
            self._gaps = array("q", bytes(16 * count))


def _address_of(buffer: bytes | bytearray | memoryview) -> int:
    if isinstance(buffer, bytes):
        return ctypes.cast(ctypes.c_char_p(buffer), ctypes.c_void_p).value or 0
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def load_fast_lines(*, print_data: bool, check_first_gap: bool, compile: bool) -> FastLines | None:  # noqa: A002
    """Return the tier; None where it cannot be had, or would have to be compiled first and
    `compile` is false.
    """
    address = load_native("line_kernel", __file__, _SOURCES, _compile if compile else None)
    if address is None:
        return None
    tier = FastLines(address, print_data=print_data, check_first_gap=check_first_gap)
    plain = PlainLines(print_data=print_data, check_first_gap=check_first_gap)
    sample = BatchNumbers(7, 1_767_225_600_000, -1, 3, 1, b"CreateTime")
    wanted, got = (t.of(sample, _SAMPLE, 0, -1) for t in (plain, tier))
    # Code that this machine does not run rightly is no code.
    return tier if wanted and got and bytes(got.text) == wanted.text else None


def _compile() -> tuple[bytes, str]:
    from engine.dump.line_kernel import compile_kernel

    return compile_kernel()
