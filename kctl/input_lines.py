"""Read lines of stdin in chunks, with their numbers.

A pipe that pauses is distinguished from one that ends, so that records read are sent meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from engine.errors import EngineError
from engine.limits import PRODUCE_LINE_BYTES_MAX
from kctl.interrupts import HeldInterrupts

#: Bytes per read: large enough for little overhead, small enough for steady progress.
_READ_BYTES = 1 << 17


class LineTooLong(EngineError):
    """A line is longer than the longest record."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line} is longer than {PRODUCE_LINE_BYTES_MAX} bytes")
        self.line = line


class InputLines(NamedTuple):
    """Lines without line ends; `first` is the number of the first line, from 1.

    `end_bytes` is the number of input bytes read, including these lines.
    """

    first: int
    lines: list[bytes]
    end_bytes: int = 0

    @property
    def places(self) -> range:
        """Return the numbers of these lines in the input, from `first` on."""
        return range(self.first, self.first + len(self.lines))


def input_lines(
    stream: BinaryIO, interrupts: HeldInterrupts, patience_ms: Callable[[], int | None]
) -> Iterator[InputLines | None]:
    """Yield the lines of stdin in groups, as they arrive.

    It yields None if no bytes arrived within the ms that `patience_ms` returns (None: no limit), so
    that the caller can send the records that it has.

    Errors: LineTooLong. KeyboardInterrupt is raised after the lines that have been read.
    """
    first = 1
    partial_line: list[bytes] = []
    partial_bytes = 0
    end_bytes = 0
    for chunk in _read_chunks(stream, interrupts, patience_ms):
        if chunk is None:
            yield None
            continue
        end_bytes += len(chunk)
        lines = chunk.split(b"\n")
        if len(lines) > 1:
            lines[0] = b"".join((*partial_line, lines[0]))
            partial_line, partial_bytes = [], 0
        partial_line.append(lines.pop())
        partial_bytes += len(partial_line[-1])
        if lines:
            yield InputLines(first, lines, end_bytes)
            first += len(lines)
        if partial_bytes > PRODUCE_LINE_BYTES_MAX:
            raise LineTooLong(first)
    if partial_bytes:
        yield InputLines(first, [b"".join(partial_line)], end_bytes)


def _read_chunks(
    stream: BinaryIO, interrupts: HeldInterrupts, patience_ms: Callable[[], int | None]
) -> Iterator[bytes | None]:
    """Yield the input's bytes as they can be read, up to a fixed size each time.

    It yields None after a wait of `patience_ms()` ms without any. Ctrl-C interrupts only these
    waits.
    """
    try:
        descriptor = stream.fileno()
    except OSError:
        yield from iter(lambda: stream.read(_READ_BYTES), b"")
        return
    from select import select

    _widen_pipe(descriptor)
    while True:
        wait_ms = patience_ms()
        with interrupts.allowed():
            readable, _, _ = select(
                [descriptor], [], [], None if wait_ms is None else wait_ms / 1000
            )
        if not readable:
            yield None
            continue
        chunk = os.read(descriptor, _READ_BYTES)
        if not chunk:
            return
        yield chunk


def _widen_pipe(descriptor: int) -> None:
    """Set a pipe's capacity to the size of one read, for fewer reads.

    Nothing happens if the operating system does not support it, or if it is no pipe.
    """
    from contextlib import suppress

    with suppress(ImportError, AttributeError, OSError):
        from fcntl import F_SETPIPE_SZ, fcntl

        fcntl(descriptor, F_SETPIPE_SZ, _READ_BYTES)


def input_bytes(stream: BinaryIO) -> int | None:
    """Return the size of an input in bytes, for a progress line; None unless it is a file."""
    from contextlib import suppress
    from stat import S_ISREG

    with suppress(OSError):
        status = os.fstat(stream.fileno())
        return status.st_size if S_ISREG(status.st_mode) else None
    return None
