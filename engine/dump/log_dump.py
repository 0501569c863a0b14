"""Dumps a `.log` or `.checkpoint` file as Kafka's tool prints it.

The steps for each batch are in this order, because an error in one leaves the earlier ones printed:

1, 2. the frame of the batch (`frames.py`)
3. first part of the batch line; 4. its tail with CRC check; 5. its records, when `deep`

Source: DumpLogSegments.dumpLog, FileLogInputStream.nextBatch (3.9.1; 4.3.0 differs only in the
check for gaps).
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.dump import batch_line
from engine.dump.batch_line import ShallowBatch, batch_numbers
from engine.dump.decoders import TextDecoder
from engine.dump.frames import read_frame
from engine.dump.options import INT_MAX, DumpOptions
from engine.dump.output import Output
from engine.dump.plain_lines import Lines, LineTier, PlainLines
from engine.dump.problems import Problems
from engine.dump.record_line import write_record
from engine.dump.window_batches import select_printable, window_tier_of
from engine.errors import CorruptRecord
from engine.host.ports import File
from engine.limits import COMPILE_BYTES_MIN, FAST_TIER_BYTES_MIN, FAST_TIER_RECORDS_MIN
from engine.log.window import Window
from engine.records.batch import BatchView
from engine.records.batch_header import (
    HEADER_BYTES,
    LENGTH_OVERHEAD_BYTES,
    read_header,
    read_offset_and_length,
)
from engine.records.compression import Codec, decompress
from engine.records.legacy import LegacyBatch, LegacyMessage
from engine.records.record import Record


class InvalidReadSize(CorruptRecord):
    """The number of bytes to read is negative."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__("a size of at least 0 bytes", size_bytes)


class LogDump:
    """Prints the batches and records of one log file."""

    def __init__(
        self, file: File, shown_path: str, options: DumpOptions, out: Output, problems: Problems
    ) -> None:
        """`shown_path` is the path in messages. Raises InvalidReadSize for a negative limit."""
        if options.max_bytes < 0:
            raise InvalidReadSize(options.max_bytes)
        self._options = options
        self._out = out
        self._problems = problems
        self._path = shown_path
        self._size_bytes = file.size_bytes()
        #: Position at which the dump ends, by default the file's end.
        self._end = min(self._size_bytes, options.max_bytes)
        #: True if the user has set a limit: bytes after it are then not reported as trailing.
        self._limited = options.max_bytes != INT_MAX
        #: Offset of the previous record. Kafka 4.3 starts with −1, so that a first offset above 0
        #: is a gap.
        self._last_offset = -1
        self._window = Window(file, self._end)
        #: The filters, None if none is set.
        self._filters = options.filters if options.filters.any_set else None
        records = _estimate_records(self._window, self._end) if options.deep else 0
        self.use_tier(_select_tier(options, records, self._end))
        #: Number of records written so far, for --max-records.
        self.shown_count = 0
        #: Number of batches with a wrong CRC.
        self.bad_batch_count = 0

    def use_tier(self, tier: LineTier | None) -> None:
        """Print batches with this tier where possible; with None, all of them record by record."""
        self._lines = tier
        self._window_tier = window_tier_of(tier)

    def run(self, start: int = 0) -> int:
        """Print the batches from the position `start` on, until the end or the limit of records.

        Returns the position after the last batch printed.
        """
        position = self._print_compiled(start)
        while (frame := read_frame(self._window, self._path, position, self._end)) is not None:
            _, size = frame
            if not self._print_batch(position, size):
                return position
            position += size
            if self._is_done():
                return position
            position = self._print_compiled(position)
        trailing = self._end - position
        if trailing > 0 and not self._limited:
            name = self._path.rsplit("/", 1)[-1]
            self._out.line(f"Found {trailing} invalid bytes at the end of {name}")
        return position

    def _print_compiled(self, position: int) -> int:
        """Print the batches at a position as long as compiled code can.

        Return where the next one starts.
        """
        tier = self._window_tier
        if tier is None:
            return position
        while True:
            view = self._window.read_ahead(position)
            batches = select_printable(view, position, with_records=self._options.deep)
            first = 0
            while first < len(batches.positions):
                done, lines = tier.write_batches(self._out, view, batches, first, self._last_offset)
                if not done:
                    return position
                self._note_lines(lines)
                self.bad_batch_count += batches.valid.count(0, first, first + done)
                first += done
                position = batches.base_position + batches.ends[first - 1]
            if not first:
                return position

    def _note_lines(self, lines: Lines) -> None:
        """Take the last offset from the tier, and note the gaps that it found."""
        self._last_offset = lines.last_offset
        for last_offset, offset in lines.gaps:
            self._problems.gap(self._path, last_offset, offset)

    def _is_done(self) -> bool:
        """Return True if as many records (or batches) were printed as the options allow."""
        limit = self._options.filters.max_records
        return limit is not None and self.shown_count >= limit

    def _print_batch(self, position: int, size: int) -> bool:
        """Print the batch at a position.

        Return False if the filters exclude it and all later ones.
        """
        batch = self._window.read_exactly(position, size, "a record batch")
        magic = batch[16]
        if magic >= 128:
            offset, _ = read_offset_and_length(batch)
            self._out.add(b"offset: %d" % offset)
            raise CorruptRecord(
                "magic 0 or above", magic - 256, path=self._path, position=position + 16
            )
        shallow, crc = self._parse_header(position, size, batch, magic)
        if self._filters is not None:
            if self._filters.is_past_end(shallow.base_offset):
                return False
            self._print_filtered(shallow, position, batch, crc)
            return True
        self._out.add(shallow.first)
        batch = self._print_tail(shallow, position, batch, crc)
        if self._options.deep:
            self._print_records(shallow, batch, position)
        return True

    def _parse_header(
        self, position: int, size: int, batch: memoryview, magic: int
    ) -> tuple[ShallowBatch, int]:
        """Return a batch's header fields and its stored CRC.

        Raises if the file ends in the header.
        """
        needed = HEADER_BYTES if magic >= 2 else 18 if magic == 0 else 26
        # The header of a batch that is shorter is read on into the bytes after it, as by Kafka.
        if size < needed:
            batch = self._window.read_exactly(position, needed, "a batch header")
        if magic >= 2:
            return batch_line.parse_v2_header(batch)
        return batch_line.parse_legacy_header(batch, magic)

    def _print_tail(
        self, shallow: ShallowBatch, position: int, batch: memoryview, crc: int
    ) -> memoryview:
        """Print the second part of the batch's line, with the CRC and whether it is valid.

        Returns the batch, which may have been read again.
        """
        if shallow.size_bytes < HEADER_BYTES:
            # Reading the header may have moved the window.
            batch = self._window.read(position, shallow.size_bytes)
        if shallow.magic >= 2:
            valid = batch_line.is_valid_v2(batch, crc)
        else:
            valid = batch_line.is_valid_legacy(batch, crc)
        self.bad_batch_count += not valid
        try:
            self._out.add(shallow.format_tail(position, crc, valid))
        except CorruptRecord as error:
            raise error.at(self._path, position) from error
        return batch

    def _print_records(self, shallow: ShallowBatch, batch: memoryview, position: int) -> None:
        """Print the records of a batch, with a tier if one can print it, else one by one."""
        out, options = self._out, self._options
        if self._lines is not None and shallow.magic >= 2 and not shallow.is_control:
            lines = self._print_by_tier(shallow, batch)
            if lines is not None:
                self._note_lines(lines)
                return
        for record in self._read_records(shallow, batch, position):
            self._check_gap(record.offset)
            write_record(out, shallow, record, options)
            self.shown_count += 1

    def _print_by_tier(self, shallow: ShallowBatch, batch: memoryview) -> Lines | None:
        """Print a batch's records with the tier.

        Return None, with nothing printed, if it cannot.
        """
        if self._lines is None or len(batch) < HEADER_BYTES:
            return None
        numbers = batch_numbers(shallow)
        # For the tiers an append time below 0 means create times.
        if numbers.record_count <= 0 or (shallow.appended and numbers.append_time_ms < 0):
            return None
        if not shallow.codec:
            return self._lines.write(self._out, numbers, batch, HEADER_BYTES, self._last_offset)
        try:
            raw = decompress(Codec(shallow.codec), batch[HEADER_BYTES:])
        except CorruptRecord:
            return None
        return self._lines.write(self._out, numbers, raw, 0, self._last_offset)

    def _read_records(
        self, shallow: ShallowBatch, batch: memoryview, position: int
    ) -> Iterator[Record | LegacyMessage]:
        """Yield the records of a batch; a CorruptRecord names file and position."""
        try:
            if shallow.magic >= 2:
                yield from BatchView(batch).records()
            else:
                yield from LegacyBatch(batch).iter_messages()
        except CorruptRecord as error:
            raise error.at(self._path, position) from error

    def _check_gap(self, offset: int) -> None:
        """Note a gap if `offset` does not follow the last one; then keep it as the last one.

        With the lines of 3.9.1 no gap is noted before the first record.
        """
        last = self._last_offset
        if offset != last + 1 and (last != -1 or self._options.is_four):
            self._problems.gap(self._path, last, offset)
        self._last_offset = offset

    def _print_filtered(
        self, shallow: ShallowBatch, position: int, batch: memoryview, crc: int
    ) -> None:
        """Print a batch with its matching records; print nothing if none matches."""
        filters, options = self._options.filters, self._options
        if not filters.may_match_batch(
            shallow.last_offset, shallow.max_timestamp_ms, shallow.producer_id
        ):
            return
        wanted: list[Record | LegacyMessage] = []
        if options.deep or filters.opens_batches:
            wanted = [r for r in self._read_records(shallow, batch, position) if filters.matches(r)]
            if not wanted:
                return
        self._out.add(shallow.first)
        self._print_tail(shallow, position, batch, crc)
        if filters.max_records is not None:
            wanted = wanted[: filters.max_records - self.shown_count]
        self.shown_count += len(wanted) if options.deep else 1
        if options.deep:
            for record in wanted:
                write_record(self._out, shallow, record, options)


def _select_tier(options: DumpOptions, record_count: int, size_bytes: int) -> LineTier | None:
    """Return the fastest tier available, None if the options need printing record by record.

    Compiled code is used only for logs with enough records or bytes.
    """
    if options.filters.any_set or (options.deep and options.skip_record_metadata):
        return None
    if options.print_data and not isinstance(options.decoder, TextDecoder):
        return None
    tier: LineTier | None = None
    if record_count >= FAST_TIER_RECORDS_MIN or size_bytes >= FAST_TIER_BYTES_MIN:
        from engine.dump.compiled_lines import Level, load_compiled_lines

        level = Level.RECORDS if options.deep else Level.BATCHES
        tier = load_compiled_lines(
            level=Level.DATA if options.print_data else level,
            check_first_gap=options.is_four,
            compile=size_bytes >= COMPILE_BYTES_MIN,
        )
    if tier is None and options.deep:
        tier = PlainLines(print_data=options.print_data, check_first_gap=options.is_four)
    return tier


def _estimate_records(window: Window, end: int) -> int:
    """Return an estimate of the number of records in a log, from its first batch.

    It decides whether loading compiled code is worthwhile.
    """
    header = window.read(0, HEADER_BYTES)
    if len(header) < HEADER_BYTES or header[16] != 2:
        return 0
    (_, length, _, _, _, _, _, _, _, _, _, _, count) = read_header(header)
    return end // (LENGTH_OVERHEAD_BYTES + length) * count if length > 0 < count else 0
