"""Whether the offsets of a log's batches rise without overlap, and without gaps if they must.

```
segment base ≤ base offset ≤ last offset ≤ segment base + 2^31 − 1      each batch
last offset of one < base offset of the next                            always
last offset of one + 1 = base offset of the next                        unless compacted
```

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
    """The rules above, over the batches of a whole partition in order.

    `compacted` None means: look for signs of compaction (a delete horizon, a batch with fewer
    records than offsets) before gaps are reported, which is at the end.
    """

    def __init__(self, findings: Findings, *, compacted: bool | None) -> None:
        self._findings = findings
        self._compacted = compacted
        self._gaps: list[_Gap] = []
        self._gap_counts: dict[str, int] = {}
        self._segment_base = 0
        self._path = ""
        self._after_damage = False
        #: Whether every offset so far was there, from 0 on.
        self.is_complete = True
        #: The first offset seen, and the offset after the last one; None without any batch.
        self.first_offset: int | None = None
        self.next_offset: int | None = None

    def enter(self, path: str, base_offset: int) -> None:
        """Begin with the next segment's .log."""
        self._path = path
        self._segment_base = base_offset
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
        """Note bytes that are no batch: what was lost there is no gap of its own."""
        self._after_damage = True
        self.is_complete = False

    def follow(self, next_offset: int) -> None:
        """Note a good batch that continues the last one without a gap, up to an offset."""
        self.next_offset = next_offset
        self._after_damage = False

    def see(self, position: int, batch: RecordBatch) -> None:
        """Check the next good batch."""
        last_offset = batch.last_offset
        try:
            base_offset = batch.base_offset
        except CorruptRecord as error:
            # Only a wrapper of magic 0 or 1 is opened for its first offset.
            self._add("batch-records", f"the records inside do not decode: {error}", position)
            self.next_offset = last_offset + 1
            return
        if last_offset < base_offset:
            message = f"last offset {last_offset} lies below base offset {base_offset}"
            self._add("batch-header", message, position, base_offset)
            self.see_damage()
            return
        self._check_segment(position, base_offset, last_offset)
        self._check_order(position, base_offset)
        if _is_compacted(batch):
            self.is_complete = False
            if self._compacted is None:
                self._compacted = True
        if self.first_offset is None:
            self.first_offset = base_offset
            self.is_complete = self.is_complete and not base_offset
        self.next_offset = max(self.next_offset or 0, last_offset + 1)
        self._after_damage = False

    def finish(self) -> None:
        """Report the gaps, unless the log turned out to be compacted."""
        if self._compacted:
            return
        doubt = "" if self._compacted is False else "; or is the topic compacted?"
        for gap in self._gaps:
            self._findings.add(
                Severity.ERROR,
                "offset-gap",
                gap.path,
                f"offsets {gap.expected} to {gap.got - 1} are missing{doubt}",
                position=gap.position,
                offset=gap.got,
                expected=gap.expected,
                got=gap.got,
            )
        for path, count in self._gap_counts.items():
            self._findings.leave_out(path, "offset-gap", max(count - FINDINGS_OF_A_KIND_MAX, 0))

    def _check_segment(self, position: int, base_offset: int, last_offset: int) -> None:
        if base_offset < self._segment_base:
            message = f"base offset {base_offset} lies below the segment's, {self._segment_base}"
            self._add("offset-below-base", message, position, base_offset)
        elif last_offset - self._segment_base > _INT_MAX:
            message = f"last offset {last_offset} lies more than 2^31 above {self._segment_base}"
            self._add("offset-overflow", message, position, base_offset)

    def _check_order(self, position: int, base_offset: int) -> None:
        expected = self.next_offset
        if expected is None or base_offset == expected:
            return
        if base_offset < expected:
            message = f"base offset {base_offset} was there before; the next is {expected}"
            self._add("offset-overlap", message, position, base_offset)
            return
        self.is_complete = False
        if not self._after_damage and not self._compacted:
            self._hold(_Gap(self._path, position, expected, base_offset))

    def _hold(self, gap: _Gap) -> None:
        """Keep a gap until it is known whether the log is compacted, in bounded memory."""
        count = self._gap_counts.get(gap.path, 0) + 1
        self._gap_counts[gap.path] = count
        if count <= FINDINGS_OF_A_KIND_MAX:
            self._gaps.append(gap)

    def _add(self, code: str, message: str, position: int, offset: int | None = None) -> None:
        self._findings.add(
            Severity.ERROR, code, self._path, message, position=position, offset=offset
        )


def _is_compacted(batch: RecordBatch) -> bool:
    count = batch.record_count
    if count is None:
        return False
    return batch.has_delete_horizon or count <= batch.last_offset - batch.base_offset
