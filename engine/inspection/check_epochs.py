"""Check the leader epochs of a log's batches against each other and the epoch checkpoint.

```
batches     epoch 0 0 0 … 39 | 2 2 … 60 | 3 …       never falling
checkpoint  (0, 0)  (2, 40)  (3, 61)                start ≤ first offset of the epoch's batches,
                                                    start of the next > their last offset
```

The start of the first entry may be above the first offset of its batches, since it is raised to the
log start offset. A leader that has not written anything yet has its entry at the end of the log.

Source: L4, REPL-1; Kafka's LeaderEpochFileCache.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from engine.inspection.findings import Findings, Severity
from engine.log.directory.leader_epoch_checkpoint import EpochStart
from engine.records.view import RecordBatch


class EpochRun(NamedTuple):
    """Consecutive batches with the same leader epoch; both offsets are inclusive."""

    epoch: int
    first_offset: int
    last_offset: int


class EpochCheck:
    """Checks that the leader epochs of a partition's batches never fall."""

    def __init__(self, findings: Findings) -> None:
        """Problems are added to `findings`."""
        self._findings = findings
        self._path = ""
        #: Offsets of each leader epoch, in order; batches whose epoch fell are left out.
        self.runs: list[EpochRun] = []

    def enter(self, path: str) -> None:
        """Start the check of the next segment, whose .log is at `path`; findings name this path."""
        self._path = path

    def follow(self, last_offset: int) -> None:
        """Extend the last run of batches with one leader epoch up to `last_offset` (inclusive).

        It is called for batches with the same epoch that were checked on the fast path.
        """
        self.runs[-1] = self.runs[-1]._replace(last_offset=last_offset)

    def see(self, position: int, batch: RecordBatch) -> None:
        """Record the leader epoch of the next valid batch, and report an epoch below the last one.

        Batches must be passed in log order. A batch of magic 0 or 1 has no epoch (-1): it is
        ignored.
        """
        epoch = batch.leader_epoch
        if epoch < 0:
            return
        runs = self.runs
        last_offset = batch.last_offset
        if runs and epoch == runs[-1].epoch:
            runs[-1] = EpochRun(epoch, runs[-1].first_offset, last_offset)
        elif not runs or epoch > runs[-1].epoch:
            runs.append(EpochRun(epoch, batch.base_offset, last_offset))
        else:
            self._findings.add(
                Severity.ERROR,
                "epoch-order",
                self._path,
                f"leader epoch {epoch} follows {runs[-1].epoch}",
                position=position,
                offset=batch.base_offset,
                expected=runs[-1].epoch,
                got=epoch,
            )


def compare_epochs(
    findings: Findings,
    path: str,
    *,
    runs: Sequence[EpochRun],
    entries: Sequence[EpochStart],
    end_offset: int,
) -> None:
    """Report entries of `leader-epoch-checkpoint` that contradict the epochs of the batches.

    `runs` are the runs of consecutive batches with one leader epoch, in log order; `end_offset` is
    the log end offset (exclusive). Every run must lie between the start of its epoch's entry and
    the start of the next entry.
    """
    wrong = _Report(findings, path)
    _compare_order(wrong, entries, end_offset)
    starts = {epoch_start.epoch: epoch_start.start_offset for epoch_start in entries}
    ends = {
        epoch_start.epoch: following.start_offset for epoch_start, following in pairwise(entries)
    }
    for run in runs:
        if entries and run.last_offset < entries[0].start_offset:
            continue  # below the log start offset
        start = starts.get(run.epoch)
        end = ends.get(run.epoch, end_offset)
        if start is None:
            message = f"leader epoch {run.epoch} has records but no entry"
            wrong.add(message, run.first_offset, None, run.first_offset)
        elif start > run.first_offset and run.epoch != entries[0].epoch:
            message = f"leader epoch {run.epoch} starts at {run.first_offset}, not at {start}"
            wrong.add(message, run.first_offset, start, run.first_offset)
        elif run.last_offset >= end:
            message = f"leader epoch {run.epoch} has records up to {run.last_offset}, past its end"
            wrong.add(message, f"above {run.last_offset}", end, run.last_offset)


def _compare_order(wrong: _Report, entries: Sequence[EpochStart], end_offset: int) -> None:
    """Report epochs and start offsets that do not rise, or are after the log's end."""
    for earlier, later in pairwise(entries):
        if later.epoch <= earlier.epoch or later.start_offset <= earlier.start_offset:
            message = f"entry {tuple(later)} follows {tuple(earlier)}"
            wrong.add(message, f"above {tuple(earlier)}", tuple(later))
    for epoch_start in entries:
        if epoch_start.start_offset > end_offset:
            message = f"leader epoch {epoch_start.epoch} starts after the log's end, {end_offset}"
            wrong.add(message, f"at most {end_offset}", epoch_start.start_offset)


class _Report(NamedTuple):
    findings: Findings
    path: str

    def add(self, message: str, expected: object, got: object, offset: int | None = None) -> None:
        """Add a warning about the leader epoch checkpoint.

        `offset` is that of the batch which contradicts it, None if the entries contradict each
        other.
        """
        self.findings.add(
            Severity.WARNING,
            "epochs-wrong",
            self.path,
            message,
            offset=offset,
            expected=expected,
            got=got,
        )
