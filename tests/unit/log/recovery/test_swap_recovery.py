"""What becomes of .deleted, .cleaned and .swap files at start."""

from __future__ import annotations

import pytest

from engine.host.memory import MemoryFiles
from engine.log.recovery.swap_recovery import SwapPlan, plan_swaps
from engine.log.segment_files import list_partition_files
from tests.unit.log.logs import DIR, name_of, put

LOG, INDEX, TIMES = ".log", ".index", ".timeindex"


def plan(*names: str, ends: dict[str, int] | None = None) -> SwapPlan:
    files = MemoryFiles()
    files.make_dir(DIR)
    for name in names:
        base, _, suffix = name.partition(".")
        put(files, f"{int(base):020d}.{suffix}", b"x")
    ends = ends or {}

    def end_of(name: str) -> int:
        base, _, suffix = name.partition(".")
        return ends.get(f"{int(base)}.{suffix}", int(base))

    return plan_swaps(list_partition_files(files, DIR), end_of)


def short(name: str) -> str:
    base, _, suffix = name.partition(".")
    return f"{int(base)}.{suffix}"


def removed(found: SwapPlan) -> list[str]:
    return sorted(short(name) for name, _ in found.removed)


def renamed(found: SwapPlan) -> list[str]:
    return sorted(short(target) for _, target in found.renamed)


def test_a_quiet_partition_needs_nothing() -> None:
    found = plan("0.log", "0.index", "10.log", "10.snapshot")
    assert (found.removed, found.renamed) == ((), ())
    assert found.logs == {0: (name_of(0), 1), 10: (name_of(10), 1)}
    assert len(found.present) == 4


def test_deleted_and_cleaned_files_go() -> None:
    found = plan("0.log", "5.log.deleted", "0.log.cleaned", "0.index.cleaned")
    assert removed(found) == ["0.index.cleaned", "0.log.cleaned", "5.log.deleted"]
    assert list(found.logs) == [0]


def test_a_deleted_raft_snapshot_stays() -> None:
    files = MemoryFiles()
    files.make_dir(DIR)
    put(files, f"{5:020d}-0000000001.checkpoint.deleted", b"x")
    found = plan_swaps(list_partition_files(files, DIR), lambda _: 0)
    assert found.removed == ()


def test_a_finished_swap_replaces_every_segment_it_covers() -> None:
    found = plan(
        "0.log", "0.index", "5.log", "5.timeindex", "7.snapshot", "20.log",
        "0.log.swap", "0.index.swap", "0.timeindex.swap",
        ends={"0.log.swap": 20},
    )  # fmt: skip
    assert removed(found) == ["5.log", "5.timeindex", "7.snapshot"]
    assert renamed(found) == ["0.index", "0.log", "0.timeindex"]
    assert found.logs == {0: (name_of(0) + ".swap", 1), 20: (name_of(20), 1)}


def test_a_swap_above_an_unfinished_cleaning_is_dropped() -> None:
    # A segment split in two: only the upper half was renamed when it stopped.
    found = plan("0.log", "0.log.cleaned", "10.log.swap", ends={"10.log.swap": 20})
    assert removed(found) == ["0.log.cleaned", "10.log.swap"]
    assert (renamed(found), list(found.logs)) == ([], [0])


def test_a_swap_below_an_unfinished_cleaning_is_finished() -> None:
    found = plan("0.log", "0.log.swap", "30.log", "30.log.cleaned", ends={"0.log.swap": 20})
    assert removed(found) == ["30.log.cleaned"]
    assert renamed(found) == ["0.log"]


def test_indexes_left_as_swap_are_finished_behind_their_log() -> None:
    found = plan("0.log", "0.index.swap", "0.timeindex.swap")
    assert removed(found) == []
    assert renamed(found) == ["0.index", "0.timeindex"]


def test_an_index_without_a_log_goes_unless_its_log_comes() -> None:
    assert removed(plan("5.index", "5.txnindex")) == ["5.index", "5.txnindex"]
    found = plan("5.index", "5.log.swap", ends={"5.log.swap": 5})
    assert (removed(found), renamed(found)) == ([], ["5.log"])


def test_a_swapped_index_without_a_log_goes_with_the_one_it_would_replace() -> None:
    assert removed(plan("5.index.swap")) == ["5.index.swap"]
    found = plan("5.index", "5.index.swap")
    assert (removed(found), renamed(found)) == (["5.index", "5.index.swap"], [])
    assert found.present == {}


@pytest.mark.parametrize("suffix", ["index", "log"])
def test_an_unfinished_replacement_goes(suffix: str) -> None:
    found = plan("0.log", f"0.{suffix}.tmp")
    assert removed(found) == [f"0.{suffix}.tmp"]
