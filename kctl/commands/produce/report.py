"""Reports of `kctl produce`: rows of batches, errors by line, and where to continue.

| failed | stored | continue with |
|---|---|---|
| single records that are too large | every other line that was read | the line after those |
| a line that is no record | every line before it | that line |
| batches | every line before their first one, perhaps later ones of other partitions | that line |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine.client.batch_sender import BatchResult, is_too_large
from engine.errors import EngineError
from kctl import exits
from kctl.arguments import counted
from kctl.commands.produce.request import ProduceRequest
from kctl.console import notify, report_error
from kctl.render import Column, RowWriter, check_format
from kctl.render.rate_line import RateLine

BATCH_COLUMNS = (
    Column("topic", "TOPIC"),
    Column("partition", "PARTITION", right=True),
    Column("base_offset", "OFFSET", right=True, kind="integer?"),
    Column("record_count", "RECORDS", right=True),
)


class ProduceReport:
    """Counts stored records, prints a row per batch if requested, and reports failed records."""

    def __init__(
        self,
        request: ProduceRequest,
        timeout_s: float,
        *,
        skipped: Iterable[int] = (),
        rate_line: RateLine | None = None,
        limits: Callable[[], str | None] = lambda: None,
    ) -> None:
        """Create the report on which input records are stored, before any is sent.

        `skipped` are lines without a record. `limits` is called at the first record that is too
        large; it returns a note on the topic's limits, or None.
        """
        #: Writes a row per batch; None without --output.
        self._writer = None
        if request.output is not None:
            check_format(request.output)
            self._writer = RowWriter(BATCH_COLUMNS, request.output)
        self._rate_line = rate_line
        self._limits = limits
        self._request = request
        self._timeout_s = timeout_s
        self._count = 0
        self._failures = 0
        #: Printed errors with topic or partition: each is printed once.
        self._reported: set[tuple[object, str]] = set()
        #: Whether a retry was printed since the last success.
        self._is_retry_reported = False
        #: Number of the last line given to the producer.
        self._last_line = 0
        #: Lines whose record was too large; later lines are stored.
        self._single: list[int] = []
        #: First line not stored for another reason, or None.
        self._first_lost: int | None = None
        #: Whether a failed batch may be stored nevertheless.
        self._is_doubtful = False
        #: Lines without a record, which are neither stored nor lost.
        self._skipped = skipped
        self.exit_code = exits.OK

    @property
    def has_failed(self) -> bool:
        """Return True if an error was printed; the run then ends."""
        return self.exit_code != exits.OK

    def read_up_to(self, line: int, done_bytes: int) -> None:
        """Note the last line that was given to the producer, and update the progress line.

        `done_bytes` is the number of bytes read up to its end.
        """
        self._last_line = line
        if self._rate_line is not None:
            self._rate_line.update(self._count, done_bytes)

    def _make_room(self) -> None:
        """Clear the progress line on stderr, so that other text can be printed there."""
        if self._rate_line is not None:
            self._rate_line.clear()

    def count_results(self, results: Iterable[BatchResult]) -> None:
        """Count the stored records of batches, write their rows, and report failed batches."""
        for result in results:
            if result.error is not None:
                self._record_failure(result, result.error)
                continue
            self._is_retry_reported = False
            self._count += result.batch.record_count
            if self._writer is not None:
                offset = result.base_offset
                row = result.batch.partition._asdict() | {
                    "base_offset": offset if offset >= 0 else None,
                    "record_count": result.batch.record_count,
                }
                self._writer.write(row)

    def _record_failure(self, result: BatchResult, error: EngineError) -> None:
        """Note the lines of a failed batch as lost; print an error once for each partition.

        A record that is too large by itself is printed with its line; others of the input may still
        be stored.
        """
        batch = result.batch
        places = list(batch.places)
        if batch.record_count == 1 and is_too_large(error):
            self._single.append(places[0])
            self.fail(error, f"{self._place(places[0])} of {batch.size_bytes:,} bytes in its batch")
            limits = self._limits() if len(self._single) == 1 else None
            if limits is not None:
                notify(limits)
            return
        first = min(places)
        self._first_lost = first if self._first_lost is None else min(self._first_lost, first)
        self._is_doubtful |= result.is_doubtful
        key = (batch.partition, str(error))
        if key not in self._reported:
            self._reported.add(key)
            self.fail(error, str(batch.partition))

    def _place(self, place: int) -> str:
        """Return the origin of a record as text: its file, or its line (from 1) of the input."""
        files = self._request.files
        return f"file {files[place - 1]}" if files else f"line {place}"

    def stop_at(self, error: EngineError, line: int) -> None:
        """Report an error at an input line; neither it nor a later line was stored."""
        self.fail(error)
        self._first_lost = line if self._first_lost is None else min(self._first_lost, line)

    def warn_of_doubtful_commit(self, transactional_id: str) -> None:
        """Print that the last transaction may be committed, and how to check it."""
        self._is_doubtful = True
        self.note(
            "warning: no broker answered the commit of the last transaction, which may be stored: "
            f"`kctl transactions describe {transactional_id}` shows how it ended"
        )

    def fail(self, error: EngineError, about: str | None = None) -> None:
        """Print and count an error; the exit code is the highest of all errors."""
        self._make_room()
        report_error(error, about)
        self._failures += 1
        self.exit_code = max(self.exit_code, getattr(error, "exit_code", exits.FAILED))

    def note(self, text: str) -> None:
        """Print a message on stderr, in place of the progress line."""
        self._make_room()
        notify(text)

    # -- messages of the producer during the run

    def on_retry(self, error: EngineError) -> None:
        """Print that sending is retried, once until the next success."""
        if not self._is_retry_reported:
            self._is_retry_reported = True
            self._make_room()
            notify(f"warning: {error}; trying again for up to {self._timeout_s:g} s")

    def on_plain(self, error: EngineError) -> None:
        """Print that the producer continues without idempotence, as it got no producer id."""
        notify(f"warning: not idempotent, the cluster gives no producer id: {error}")

    # -- the end

    def close(self) -> None:
        """Print buffered rows, where to continue after a failure, and the number of records."""
        self._make_room()
        if self._writer is not None:
            self._writer.close(failures=self._failures)
        for line in self._resume_lines() if self.has_failed else ():
            notify(line)
        notify(counted(self._count, "record"))

    def _resume_lines(self) -> list[str]:
        """Return messages on which lines are stored, and with which --from-line to continue.

        They are empty if the input is files, or nothing is stored.
        """
        if self._request.files or not self._count:
            return []
        start = self._request.from_line
        if self._first_lost is None:
            but = ", ".join(str(line) for line in sorted(self._single))
            return [
                f"stored: every line from {start} to {self._last_line} but {but}",
                f"hint: continue after them with --from-line {self._last_line + 1}",
            ]
        first = self._first_lost
        stored = [f"every line from {start} to {first - 1}"] if first > start else []
        alone = [line for line in sorted(self._single) if line < first]
        if alone and stored:
            stored[0] += " but " + ", ".join(map(str, alone))
        not_stored = len(alone) + sum(1 for line in self._skipped if line < first)
        later = self._count - max(first - start - not_stored, 0)
        if later > 0:
            stored.append(f"{counted(later, 'record')} of later lines")
        lines = [f"stored: {' and '.join(stored)}"]
        if self._is_doubtful:
            lines.append("perhaps stored: what was on its way when the broker went away")
        again = ", which stores those again" if later > 0 else ""
        lines.append(f"hint: go on with --from-line {first}{again}")
        return lines
