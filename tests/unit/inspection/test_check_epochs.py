"""Leader epochs of a checkpoint beside those of the batches: each contradiction by its words."""

from __future__ import annotations

import pytest

from engine.inspection.check_epochs import EpochRun, compare_epochs
from engine.inspection.findings import Findings
from engine.log.directory.leader_epoch_checkpoint import EpochStart

#: Offsets 0 to 4 have epoch 0, 5 to 9 epoch 2; the log ends at 10.
RUNS = (EpochRun(0, 0, 4), EpochRun(2, 5, 9))


def told(*entries: tuple[int, int]) -> list[str]:
    findings = Findings()
    starts = [EpochStart(*entry) for entry in entries]
    compare_epochs(findings, "p", runs=RUNS, entries=starts, end_offset=10)
    return [finding.message for finding in findings.all()]


@pytest.mark.parametrize("entries", [[(0, 0), (2, 5)], [(0, 0), (2, 5), (3, 10)], [(2, 5)]])
def test_entries_that_fit_are_no_finding(entries: list[tuple[int, int]]) -> None:
    assert [] == told(*entries)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([(0, 0), (2, 5), (2, 10)], "entry (2, 10) follows (2, 5)"),
        ([(0, 0), (2, 5), (1, 10)], "entry (1, 10) follows (2, 5)"),
        ([(0, 0), (1, 5), (2, 5)], "entry (2, 5) follows (1, 5)"),
        ([(0, 0), (2, 5), (3, 4)], "entry (3, 4) follows (2, 5)"),
        ([(0, 0), (2, 5), (3, 11)], "leader epoch 3 starts after the log's end, 10"),
        ([(0, 0)], "leader epoch 2 has records but no entry"),
        ([(0, 0), (2, 6)], "leader epoch 2 starts at 5, not at 6"),
        ([(0, 0), (2, 4)], "leader epoch 0 has records up to 4, past its end"),
    ],
)
def test_contradictions_of_the_batches_are_reported(
    entries: list[tuple[int, int]], message: str
) -> None:
    assert message in told(*entries)
