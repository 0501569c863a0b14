"""Up to where the logs of a directory were cleaned."""

from __future__ import annotations

from engine.host.memory import MemoryFiles
from engine.log.directory.cleaner_points import CleanerPoints
from engine.log.directory.offset_checkpoint import CLEANER_POINTS, read_offsets
from tests.unit.log.managing import T0, T1, U0

PATH = f"/a/{CLEANER_POINTS}"


def points() -> tuple[MemoryFiles, CleanerPoints]:
    files = MemoryFiles()
    files.make_dir("/a")
    return files, CleanerPoints(files, "/a")


def test_the_file_says_what_was_noted() -> None:
    files, known = points()
    known.set(T0, 5)
    known.set(U0, 7)
    known.write()
    assert {T0: 5, U0: 7} == read_offsets(files, PATH)


def test_nothing_is_written_that_has_not_changed() -> None:
    files, known = points()
    known.take({T0: 5})
    known.set(T0, 5)
    known.forget(T1)
    known.lower(T0, 9)
    known.write()
    assert not files.exists(PATH)


def test_a_cut_lowers_a_point_and_raises_none() -> None:
    _, known = points()
    known.set(T0, 5)
    known.lower(T0, 3)
    known.lower(T0, 4)
    known.lower(T1, 4)
    assert (3, None) == (known.get(T0), known.get(T1))


def test_partitions_that_are_not_there_are_forgotten() -> None:
    files, known = points()
    known.take({T0: 5, T1: 6})
    known.keep([T1])
    known.write()
    assert {T1: 6} == read_offsets(files, PATH)
