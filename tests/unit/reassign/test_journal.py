"""What an execution has done, on disk before the next step."""

from __future__ import annotations

import pytest

from engine.client.config_admin import ConfigResourceType, Resource
from engine.host.memory import MemoryFiles
from engine.model import TopicPartition
from engine.reassign.journal import (
    Begun,
    ExecutionSettings,
    JournalThere,
    MoveJournal,
    UnreadableJournal,
    read_journal,
)
from engine.reassign.throttles import LEADER_RATE, ThrottleRates, ThrottleSetting
from tests.unit.reassign.moved_cluster import change

PATH = "/j"
RATE = ThrottleSetting(Resource(ConfigResourceType.BROKER, "1"), LEADER_RATE)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
SETTINGS = ExecutionSettings(
    ThrottleRates(5, None), True, 3, False, False, (1, 1), has_barriers=True
)
BEGUN = Begun("id", (change(0, (1, 2), (3, 2)), change(1, (1,), (2,))), SETTINGS)


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


def test_everything_is_read_back(files: MemoryFiles) -> None:
    journal = MoveJournal.create(files, PATH, BEGUN)
    journal.before({RATE: None})
    journal.throttle({RATE: "5"})
    journal.submit([T0, T1])
    journal.ended(T0, "done")
    journal.close()
    state = read_journal(files, PATH)
    assert BEGUN == state.begun
    assert ({RATE: None}, {RATE: ["5"]}) == (state.before, state.ours)
    assert ({T0, T1}, {T0: "done"}) == (state.submitted, state.ended)
    assert (False, False, False) == (state.is_cancelled, state.is_returned, state.is_over)
    journal, _ = MoveJournal.reopen(files, PATH)
    journal.cancel()
    journal.returned()
    journal.over("cancelled")
    state = read_journal(files, PATH)
    assert (True, True, True) == (state.is_cancelled, state.is_returned, state.is_over)


def test_throttles_that_are_set_again_are_to_be_taken_back_again(files: MemoryFiles) -> None:
    journal = MoveJournal.create(files, PATH, BEGUN)
    journal.throttle({RATE: "5"})
    journal.returned()
    journal.throttle({RATE: "6"})
    state = read_journal(files, PATH)
    assert not state.is_returned
    assert {RATE: ["5", "6"]} == state.ours


def test_a_line_that_a_death_cut_short_counts_for_nothing(files: MemoryFiles) -> None:
    journal = MoveJournal.create(files, PATH, BEGUN)
    journal.submit([T0])
    whole = files.read_bytes(PATH)
    journal.ended(T0, "done")
    for size in range(len(whole), len(files.read_bytes(PATH)) - 1):
        files.replace_file(PATH, (whole + b'{"step":"ended","partition":["t",0]}')[:size])
        assert {} == read_journal(files, PATH).ended
        again, state = MoveJournal.reopen(files, PATH)
        assert {T0} == state.submitted
        again.over("executed")
        assert read_journal(files, PATH).is_over


def test_a_journal_that_is_not_over_is_not_written_over(files: MemoryFiles) -> None:
    journal = MoveJournal.create(files, PATH, BEGUN)
    journal.submit([T0])
    with pytest.raises(JournalThere, match="not over"):
        MoveJournal.create(files, PATH, BEGUN)
    journal.over("executed")
    MoveJournal.create(files, PATH, BEGUN)
    assert not read_journal(files, PATH).is_over


def test_a_journal_that_has_changed_nothing_is_written_over(files: MemoryFiles) -> None:
    MoveJournal.create(files, PATH, BEGUN).before({RATE: None})
    journal = MoveJournal.create(files, PATH, BEGUN)
    assert {} == read_journal(files, PATH).before
    journal.throttle({RATE: "5"})
    with pytest.raises(JournalThere):
        MoveJournal.create(files, PATH, BEGUN)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"[]\n",
        b"{}\n",
        b"nonsense\n",
        b'{"step":"over"}\n',
        b'{"step":"begin","version":9}\n',
        b'{"step":"begin","version":1}\n',
        b'{"step":"begin","version":1,"cluster_id":null,"changes":[{}],"settings":{"rates":{}}}\n',
        b"\xff\xfe\n",
    ],
)
def test_what_is_no_journal_is_refused(files: MemoryFiles, content: bytes) -> None:
    files.replace_file(PATH, content)
    with pytest.raises(UnreadableJournal, match="no journal of a reassignment"):
        read_journal(files, PATH)


def test_the_order_is_that_of_the_batches() -> None:
    order = SETTINGS.order(2)
    assert ([[0], [1]], True) == ([list(batch) for batch in order.batches], order.has_barriers)
    alone = ExecutionSettings().order(3)
    assert ([[0, 1, 2]], False) == ([list(batch) for batch in alone.batches], alone.has_barriers)
