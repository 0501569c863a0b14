"""What a copy is to copy, on disk before its first record."""

from __future__ import annotations

import pytest

from engine.copying.copy_journal import (
    CopyJournal,
    CopyJournalHeld,
    NoCopyJournal,
    read_copy,
)
from engine.copying.copy_plan import (
    AT_LEAST_ONCE,
    CopiedTopic,
    CopyRange,
    GroupOffset,
    TopicCopy,
)
from engine.host.memory_held_file import MemoryHeldFiles
from engine.host.process_identity import ProcessIdentity
from engine.model import TopicPartition

PATH = "/j"
ME = ProcessIdentity(1, "here", "lee")
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
PLAN = TopicCopy(
    "id",
    "asked",
    "a",
    None,
    (CopiedTopic("t", "new-t", 2, "id-of-t"),),
    {T0: CopyRange(3, 9), T1: CopyRange(0, 0)},
    (GroupOffset("g", T0, 5),),
    AT_LEAST_ONCE,
    frozenset((T0,)),
)


@pytest.fixture
def files() -> MemoryHeldFiles:
    return MemoryHeldFiles()


def begun(files: MemoryHeldFiles) -> CopyJournal:
    journal, state = CopyJournal.lock(files, PATH, ME)
    assert state is None
    journal.begin(PLAN, ME)
    return journal


def test_a_copy_that_is_not_over_is_taken_again(files: MemoryHeldFiles) -> None:
    journal = begun(files)
    journal.stored({T0: 5})
    journal.stored({T0: 7, T1: 2})
    journal.close()
    _, state = CopyJournal.lock(files, PATH, ME)
    assert state is not None
    assert (PLAN, {T0: 7, T1: 2}) == (state.plan, state.stored)
    assert {T0: TopicPartition("new-t", 0), T1: TopicPartition("new-t", 1)} == (
        state.plan.destinations()
    )


def test_a_copy_that_is_over_makes_room_for_another(files: MemoryHeldFiles) -> None:
    journal = begun(files)
    journal.over("complete")
    journal.close()
    again, state = CopyJournal.lock(files, PATH, ME)
    assert state is not None
    assert (PLAN, True) == (state.plan, state.is_over)
    again.begin(PLAN._replace(copy_id="second"), ME)
    again.close()
    found = read_copy(files, PATH)
    assert found is not None
    assert ("second", {}, False) == (found.plan.copy_id, found.stored, found.is_over)


def test_a_journal_is_held_by_one_process(files: MemoryHeldFiles) -> None:
    begun(files)
    with pytest.raises(CopyJournalHeld):
        CopyJournal.lock(files, PATH, ME)


def test_a_line_that_was_cut_short_is_as_if_it_was_not_written(files: MemoryHeldFiles) -> None:
    journal = begun(files)
    journal.stored({T0: 5})
    journal.close()
    files.append(PATH, b'{"step":"stored","off')
    again, state = CopyJournal.lock(files, PATH, ME)
    assert state is not None
    assert {T0: 5} == state.stored
    again.stored({T0: 6})
    found = read_copy(files, PATH)
    assert found is not None
    assert {T0: 6} == found.stored


def test_a_begin_that_was_cut_short_is_no_copy_yet(files: MemoryHeldFiles) -> None:
    begun(files).close()
    content = files.read_bytes(PATH)
    files.remove(PATH)
    files.hold(PATH, create=True).close()
    files.append(PATH, content[:40])
    journal, state = CopyJournal.lock(files, PATH, ME)
    assert state is None
    journal.begin(PLAN, ME)
    found = read_copy(files, PATH)
    assert found is not None
    assert PLAN == found.plan


@pytest.mark.parametrize(
    "content",
    [
        b'{"step":"begin","version":99}\n{"step":"over"}\n',
        b'{"version":1,"partitions":[]}\n{}\n',
        b"hello\nworld\n",
        b'{"step":"stored","offsets":[]}\n',
    ],
)
def test_another_file_is_no_journal(files: MemoryHeldFiles, content: bytes) -> None:
    files.hold(PATH, create=True).close()
    files.append(PATH, content)
    with pytest.raises(NoCopyJournal):
        CopyJournal.lock(files, PATH, ME)
