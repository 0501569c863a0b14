"""Check that the offsets of a log's batches rise without overlap, and without gaps if required.

```
segment base ≤ base offset ≤ last offset ≤ segment base + 2^31 − 1      each batch
last offset of one < base offset of the next                            always
last offset of one + 1 = base offset of the next                        unless compacted
name of the first segment = its first base offset                       unless compacted
last offset + 1 ≥ name of the last segment                              unless compacted
```

Offsets missing after damaged bytes are reported in every log; in a compacted one some of them may
have been missing before. So are those missing before the very last batch if the checkpoints of the
log do not go that far: the last segment is not compacted, so the batch's base offset, which no
checksum covers, may be wrong. A base offset is wrong if it leaves a gap or an overlap although the
batch would fit exactly between its neighbours.

Source: L1.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.errors import CorruptRecord
from engine.inspection.findings import Findings, Severity
from engine.limits import FINDINGS_OF_A_KIND_MAX
from engine.records.view import RecordBatch

_INT_MAX = (1 << 31) - 1


class _Gap(NamedTuple):
    path: str
    position: int
    expected: int
    got: int


class OffsetCheck:
    """Checks the rules above for the batches of a partition, in order.

    With `compacted` None, gaps are reported at the end unless the batches show signs of compaction:
    a delete horizon, or fewer records than offsets.
    """

    def __init__(self, findings: Findings, *, compacted: bool | None) -> None:
        """Problems are added to `findings`."""
        self._findings = findings
        self._compacted = compacted
        #: Gaps kept until it is known if the log is compacted, a limited number for each path; and
        #: the number found, by path.
        self._gaps: list[_Gap] = []
        self._gap_counts: dict[str, int] = {}
        #: Base offset and path of the present segment.
        self._segment_base = 0
        self._path = ""
        #: True if damaged bytes precede the next batch: offsets missing before it were lost there.
        self._after_damage = False
        #: Number of offsets of the batch with the highest offset so far, and the batch itself if it
        #: overlaps an earlier one.
        self._last_span = 0
        self._last_overlap: _Gap | None = None
        #: The gap before that batch, None without one.
        self._last_gap: _Gap | None = None
        #: The expected next offset, None before the first segment.
        self._expected: int | None = None
        #: True while no offset from 0 on is missing.
        self.is_complete = True
        #: The first offset, and the offset after the last one. None without a batch.
        self.first_offset: int | None = None
        self.next_offset: int | None = None

    def enter(self, path: str, base_offset: int) -> None:
        """Start the check of the next segment, whose .log is at `path`.

        A base offset below the end of the segment before it is reported.
        """
        self._path = path
        self._segment_base = base_offset
        if self._expected is None:
            self._expected = base_offset
        if self.next_offset is not None and base_offset < self.next_offset:
            self._findings.add(
                Severity.ERROR,
                "offset-overlap",
                path,
                f"the segment starts below offset {self.next_offset}, where the one before ends",
                offset=base_offset,
                expected=self.next_offset,
                got=base_offset,
            )

    def see_damage(self) -> None:
        """Note damaged bytes: a gap in the offsets right after them is reported as lost there."""
        self._after_damage = True
        self.is_complete = False

    def follow(self, next_offset: int) -> None:
        """Take over the next expected offset after batches that were checked on the fast path.

        These batches continue the last one without a gap, up to `next_offset` (exclusive).
        """
        self.next_offset = self._expected = next_offset
        self._after_damage = False
        self._last_gap = self._last_overlap = None

    def see(self, position: int, batch: RecordBatch) -> None:
        """Check the offsets of the next valid batch, at `position` in its segment's .log.

        They must continue those of the batch before it, and lie within the range of the segment.
        """
        last_offset = batch.last_offset
        try:
            base_offset = batch.base_offset
        except CorruptRecord as error:
            # Only wrapper messages of magic 0 or 1 are opened, for their first offset.
            self._add("batch-records", f"the records inside do not decode: {error}", position)
            self.next_offset = self._expected = last_offset + 1
            return
        if last_offset < base_offset:
            message = f"last offset {last_offset} lies below base offset {base_offset}"
            self._add("batch-header", message, position, base_offset)
            self.see_damage()
            return
        self._check_segment(position, base_offset, last_offset)
        self._check_order(position, base_offset)
        self._last_span = last_offset - base_offset + 1
        if _is_compacted(batch):
            self.is_complete = False
            if self._compacted is None:
                self._compacted = True
        if self.first_offset is None:
            self.first_offset = base_offset
            self.is_complete = self.is_complete and not base_offset
        self.next_offset = self._expected = max(self.next_offset or 0, last_offset + 1)
        self._after_damage = False

    def finish(self, reached_offset: int | None = None) -> None:
        """Report the gaps, unless the log turned out to be compacted.

        By its checkpoints the log had all offsets below `reached_offset`.
        """
        if self._expected is not None and self._segment_base > self._expected:
            # The name of a last segment without a valid batch tells how far the log went.
            self._record_gap(_Gap(self._path, 0, self._expected, self._segment_base))
        if self._compacted:
            last = self._last_gap
            if last is not None and reached_offset is not None and reached_offset <= last.got:
                self._report_gap(last, ", or the base offset of the log's last batch is wrong")
            return
        doubt = "" if self._compacted is False else "; or is the topic compacted?"
        for gap in self._gaps:
            self._report_gap(gap, doubt)
        for path, count in self._gap_counts.items():
            self._findings.leave_out(path, "offset-gap", max(count - FINDINGS_OF_A_KIND_MAX, 0))

    def _check_segment(self, position: int, base_offset: int, last_offset: int) -> None:
        """Report offsets of a batch below its segment's base, or more than 2^31 - 1 above it.

        Index entries store an offset as a signed 32-bit difference from the base.
        """
        if base_offset < self._segment_base:
            message = f"base offset {base_offset} lies below the segment's, {self._segment_base}"
            self._add("offset-below-base", message, position, base_offset)
        elif last_offset - self._segment_base > _INT_MAX:
            message = f"last offset {last_offset} lies more than 2^31 above {self._segment_base}"
            self._add("offset-overflow", message, position, base_offset)

    def _check_order(self, position: int, base_offset: int) -> None:
        """Report a batch whose base offset is not the one expected after the last batch.

        It is higher in a gap and lower in an overlap. A single wrong base offset makes both, in
        either order: it is reported once, as a wrong base offset of the batch before.
        """
        expected = self._expected
        before, self._last_gap = self._last_gap, None
        overlap, self._last_overlap = self._last_overlap, None
        if expected is None or base_offset == expected:
            return
        if base_offset < expected:
            if before is not None and base_offset == before.expected + expected - before.got:
                self._report_wrong_base(before, base_offset)
                return
            # Nothing precedes the first segment that could overlap.
            if self.next_offset is not None:
                message = f"base offset {base_offset} was there before; the next is {expected}"
                self._add("offset-overlap", message, position, base_offset)
                self._last_overlap = _Gap(self._path, position, expected, base_offset)
            return
        self.is_complete = False
        if overlap is not None and base_offset - overlap.expected == self._last_span:
            self._report_wrong_base(overlap, base_offset)
            return
        self._record_gap(_Gap(self._path, position, expected, base_offset))

    def _record_gap(self, gap: _Gap) -> None:
        """Report a gap after damage at once; keep any other until `finish`.

        A compacted log has gaps that are no damage: they are reported only if it turns out not to
        be compacted.
        """
        if self._after_damage:
            doubt = ", if they were not compacted away before" if self._compacted else ""
            self._report_gap(gap, f": they were in the damaged bytes before it{doubt}")
            return
        self._last_gap = gap
        if not self._compacted:
            self._keep_gap(gap)

    def _report_gap(self, gap: _Gap, reason: str) -> None:
        """Report a gap as an error; `reason` is appended to the message."""
        self._findings.add(
            Severity.ERROR,
            "offset-gap",
            gap.path,
            f"offsets {gap.expected} to {gap.got - 1} are missing{reason}",
            position=gap.position,
            offset=gap.got,
            expected=gap.expected,
            got=gap.got,
        )

    def _report_wrong_base(self, gap: _Gap, base_offset: int) -> None:
        """Report that the batch before has a wrong base offset.

        `gap` is the gap or overlap that it caused; `base_offset` is that of the current batch, from
        which the check continues.
        """
        self.next_offset = base_offset
        if self._gaps and self._gaps[-1] == gap:
            self._gaps.pop()
            self._gap_counts[gap.path] -= 1
        self._findings.add(
            Severity.ERROR,
            "offset-wrong",
            gap.path,
            f"base offset {gap.got} cannot be right: the batches around it leave"
            f" offsets {gap.expected} to {base_offset - 1} to it",
            position=gap.position,
            offset=gap.got,
            expected=gap.expected,
            got=gap.got,
        )

    def _keep_gap(self, gap: _Gap) -> None:
        """Keep a gap until it is known if the log is compacted.

        Only the first `FINDINGS_OF_A_KIND_MAX` of a file are kept; the others are counted.
        """
        count = self._gap_counts.get(gap.path, 0) + 1
        self._gap_counts[gap.path] = count
        if count <= FINDINGS_OF_A_KIND_MAX:
            self._gaps.append(gap)

    def _add(self, code: str, message: str, position: int, offset: int | None = None) -> None:
        """Report an error in the current segment, at a byte position in its .log."""
        self._findings.add(
            Severity.ERROR, code, self._path, message, position=position, offset=offset
        )


def _is_compacted(batch: RecordBatch) -> bool:
    """Return True if a batch shows that its log was compacted, False also if that is unknown.

    Compaction removes records but keeps the batch's offset range, or sets its delete horizon.
    """
    count = batch.record_count
    if count is None:
        return False
    return batch.has_delete_horizon or count <= batch.last_offset - batch.base_offset
