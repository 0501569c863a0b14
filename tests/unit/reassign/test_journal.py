"""What an execution has done, on disk before the next step."""

from __future__ import annotations

import pytest

from engine.client.config_admin import ConfigResourceType, Resource
from engine.host.memory_held_file import MemoryHeldFiles
from engine.host.process_identity import ProcessIdentity
from engine.model import TopicPartition
from engine.reassign import journal_state
from engine.reassign.journal import (
    ChangeTooLate,
    JournalExists,
    JournalHeld,
    MoveJournal,
    is_held,
    is_open,
    request_cancel,
    request_change,
)
from engine.reassign.journal_state import (
    Begun,
    ExecutionSettings,
    JournalRequests,
    SettingsChange,
    UnreadableJournal,
    read_journal,
)
from engine.reassign.throttles import LEADER_RATE, ThrottleRates, ThrottleSetting
from tests.unit.reassign.moved_cluster import WRITER, change

PATH = "/j"
OTHER = ProcessIdentity(9, "there", "lee")
RATE = ThrottleSetting(Resource(ConfigResourceType.BROKER, "1"), LEADER_RATE)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
SETTINGS = ExecutionSettings(
    ThrottleRates(5, None), True, 3, False, False, (1, 1), has_barriers=True
)
BEGUN = Begun("id", (change(0, (1, 2), (3, 2)), change(1, (1,), (2,))), SETTINGS)


@pytest.fixture
def files() -> MemoryHeldFiles:
    return MemoryHeldFiles()


def test_everything_is_read_back(files: MemoryHeldFiles) -> None:
    journal = MoveJournal.create(files, PATH, BEGUN, WRITER)
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
    journal, _ = MoveJournal.reopen(files, PATH, WRITER)
    journal.cancelling()
    journal.returned()
    journal.over("cancelled")
    state = read_journal(files, PATH)
    assert (True, True, True) == (state.is_cancelled, state.is_returned, state.is_over)


def test_throttles_that_are_set_again_are_to_be_taken_back_again(files: MemoryHeldFiles) -> None:
    journal = MoveJournal.create(files, PATH, BEGUN, WRITER)
    journal.throttle({RATE: "5"})
    journal.returned()
    journal.throttle({RATE: "6"})
    state = read_journal(files, PATH)
    assert not state.is_returned
    assert {RATE: ["5", "6"]} == state.ours


def test_a_line_that_a_death_cut_short_counts_for_nothing(files: MemoryHeldFiles) -> None:
    journal = MoveJournal.create(files, PATH, BEGUN, WRITER)
    journal.submit([T0])
    whole = files.read_bytes(PATH)
    journal.ended(T0, "done")
    written = files.read_bytes(PATH)
    for size in range(len(whole), len(written) - 1):
        files.replace_file(PATH, written[:size])
        cut = read_journal(files, PATH)
        assert ({}, ()) == (cut.ended, cut.damage)
        files.kill_holders()
        again, state = MoveJournal.reopen(files, PATH, WRITER)
        assert {T0} == state.submitted
        again.over("executed")
        assert read_journal(files, PATH).is_over


def test_a_journal_that_is_not_over_is_not_written_over(files: MemoryHeldFiles) -> None:
    journal = MoveJournal.create(files, PATH, BEGUN, WRITER)
    journal.submit([T0])
    journal.close()
    before = files.read_bytes(PATH)
    with pytest.raises(JournalExists, match="not over"):
        MoveJournal.create(files, PATH, BEGUN, WRITER)
    assert before == files.read_bytes(PATH)
    journal, _ = MoveJournal.reopen(files, PATH, WRITER)
    journal.over("executed")
    journal.close()
    MoveJournal.create(files, PATH, BEGUN, WRITER)
    state = read_journal(files, PATH)
    assert (False, set()) == (state.is_over, state.submitted)
    assert files.read_bytes(PATH).startswith(before)


def test_a_journal_that_has_changed_nothing_is_begun_again(files: MemoryHeldFiles) -> None:
    first = MoveJournal.create(files, PATH, BEGUN, WRITER)
    first.before({RATE: None})
    first.close()
    journal = MoveJournal.create(files, PATH, BEGUN, WRITER)
    assert {} == read_journal(files, PATH).before
    journal.throttle({RATE: "5"})
    journal.close()
    with pytest.raises(JournalExists):
        MoveJournal.create(files, PATH, BEGUN, WRITER)


def test_a_journal_has_one_writer_who_is_named(files: MemoryHeldFiles) -> None:
    journal = MoveJournal.create(files, PATH, BEGUN, WRITER)
    journal.submit([T0])
    before = files.read_bytes(PATH)
    for attempt in (
        lambda: MoveJournal.create(files, PATH, BEGUN, OTHER),
        lambda: MoveJournal.reopen(files, PATH, OTHER),
    ):
        with pytest.raises(JournalHeld, match=r"process 7 on here \(kim\) is executing /j"):
            attempt()
    assert (before, True) == (files.read_bytes(PATH), is_held(files, PATH))
    files.kill_holders()
    assert not is_held(files, PATH)
    _, state = MoveJournal.reopen(files, PATH, OTHER)
    assert (WRITER, {T0}) == (state.writer, state.submitted)
    assert OTHER == read_journal(files, PATH).writer


def test_a_refused_journal_is_not_held(files: MemoryHeldFiles) -> None:
    files.replace_file(PATH, b"nonsense\n")
    for attempt in (
        lambda: MoveJournal.create(files, PATH, BEGUN, WRITER),
        lambda: MoveJournal.reopen(files, PATH, WRITER),
    ):
        with pytest.raises(UnreadableJournal):
            attempt()
        assert not is_held(files, PATH)


@pytest.mark.parametrize("length", [0, 3, 40])
def test_a_first_line_that_a_death_cut_short_is_begun_again(
    files: MemoryHeldFiles, length: int
) -> None:
    MoveJournal.create(files, PATH, BEGUN, WRITER).close()
    line = files.read_bytes(PATH).split(b"\n")[0]
    files.replace_file(PATH, line[:length])
    assert not is_open(files, PATH)
    MoveJournal.create(files, PATH, BEGUN, WRITER).submit([T0])
    state = read_journal(files, PATH)
    assert ({T0}, ()) == (state.submitted, state.damage)
    assert is_open(files, PATH)


def full(files: MemoryHeldFiles) -> list[bytes]:
    """Return the lines of a journal with every step."""
    journal = MoveJournal.create(files, PATH, BEGUN, WRITER)
    journal.before({RATE: None})
    journal.throttle({RATE: "5"})
    journal.submit([T0, T1])
    journal.ended(T0, "done")
    journal.cancelling()
    journal.returned()
    journal.over("cancelled")
    journal.close()
    return files.read_bytes(PATH).splitlines()


@pytest.mark.parametrize(
    "damaged", [b"", b"\0\0\0", b"{}", b"[1]", b'"x"', b'{"step":"submit"}', b"[" * 100_000]
)
def test_a_damaged_line_is_reported_and_the_others_count(
    files: MemoryHeldFiles, damaged: bytes
) -> None:
    lines = full(files)
    for position in range(1, len(lines)):
        broken = [*lines[:position], damaged, *lines[position + 1 :]]
        files.replace_file(PATH, b"\n".join(broken) + b"\n")
        state = read_journal(files, PATH)
        assert ([position + 1] if damaged else []) == [d.line_number for d in state.damage]
        without = [*lines[:position], *lines[position + 1 :]]
        files.replace_file(PATH, b"\n".join(without) + b"\n")
        assert read_journal(files, PATH) == state._replace(damage=())


def test_of_a_line_written_into_another_the_last_step_counts(files: MemoryHeldFiles) -> None:
    lines = full(files)
    lines[3:5] = [lines[3][:20] + lines[4]]
    files.replace_file(PATH, b"\n".join(lines) + b"\n")
    state = read_journal(files, PATH)
    assert ([4], {T0, T1}, {T0: "done"}) == (
        [damage.line_number for damage in state.damage],
        state.submitted,
        state.ended,
    )


def test_a_damaged_journal_is_no_journal_that_has_changed_nothing(files: MemoryHeldFiles) -> None:
    MoveJournal.create(files, PATH, BEGUN, WRITER).close()
    files.replace_file(PATH, files.read_bytes(PATH) + b"{\n")
    with pytest.raises(JournalExists):
        MoveJournal.create(files, PATH, BEGUN, WRITER)


def test_a_line_behind_one_that_was_cut_short_stands_alone(files: MemoryHeldFiles) -> None:
    journal = MoveJournal.create(files, PATH, BEGUN, WRITER)
    files.append(PATH, b'{"step":"subm')
    journal.ended(T0, "done")
    state = read_journal(files, PATH)
    assert ({T0: "done"}, [3]) == (state.ended, [d.line_number for d in state.damage])


def test_a_cancel_that_another_process_requests_is_seen_until_it_is_answered(
    files: MemoryHeldFiles,
) -> None:
    journal = MoveJournal.create(files, PATH, BEGUN, WRITER)
    assert JournalRequests() == journal.read_requests()
    request_cancel(files, PATH, OTHER)
    journal.submit([T0])
    assert OTHER == journal.read_requests().cancelled_by
    state = read_journal(files, PATH)
    assert (True, False, OTHER) == (state.is_cancelled, state.is_cancelling, state.cancelled_by)
    journal.cancelling()
    assert journal.read_requests().cancelled_by is None
    assert read_journal(files, PATH).is_cancelling


def test_changes_that_others_ask_for_are_seen_until_they_are_answered(
    files: MemoryHeldFiles,
) -> None:
    journal = MoveJournal.create(files, PATH, BEGUN, WRITER)
    rate, pause = SettingsChange(replication_rate=7), SettingsChange(is_paused=True)
    assert [1, 2, 3] == [
        request_change(files, PATH, change, by)
        for change, by in ((rate, OTHER), (pause, WRITER), (SettingsChange(0, True, 9), OTHER))
    ]
    changes = journal.read_requests().changes
    assert [(1, rate, OTHER), (2, pause, WRITER)] == list(changes[:2])
    # Nothing new was written.
    assert JournalRequests() == journal.read_requests()
    journal.changed(changes[0], None)
    journal.changed(changes[2], "no")
    assert [2] == [request.number for request in journal.read_requests().changes]
    state = read_journal(files, PATH)
    # What was refused does not hold; what was not answered does, for the next process.
    assert (7, 3, WRITER) == (
        state.settings.rates.replication,
        state.settings.moves_per_broker,
        state.paused_by,
    )
    journal.change(SettingsChange(0, False, 9, is_paused=False), WRITER)
    state = read_journal(files, PATH)
    assert ((None, False, 9), None) == (
        (
            state.settings.rates.replication,
            state.settings.is_adaptive,
            state.settings.moves_per_broker,
        ),
        state.paused_by,
    )


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
def test_what_is_no_journal_is_refused(files: MemoryHeldFiles, content: bytes) -> None:
    files.replace_file(PATH, content)
    with pytest.raises(UnreadableJournal, match="no journal of a reassignment"):
        read_journal(files, PATH)


def test_the_order_is_that_of_the_batches() -> None:
    order = SETTINGS.order(2)
    assert ([[0], [1]], True) == ([list(batch) for batch in order.batches], order.has_barriers)
    alone = ExecutionSettings().order(3)
    assert ([[0, 1, 2]], False) == ([list(batch) for batch in alone.batches], alone.has_barriers)


def test_a_step_of_one_partition_copies_nothing_of_the_others(files: MemoryHeldFiles) -> None:
    full(files)
    state = read_journal(files, PATH)
    for row in (
        {"step": "ended", "partition": ["t", 7], "how": "done"},
        {"step": "submit", "partitions": [["t", 7]]},
        {"step": "throttle", "throttles": [[4, "1", LEADER_RATE, "6"]]},
    ):
        after = journal_state._after(state, row)
        assert after.ended is state.ended
        assert after.submitted is state.submitted
        assert after.ours is state.ours


class OvertakenFiles(MemoryHeldFiles):
    """Another execution begins behind a line that another process adds."""

    is_overtaken = False

    def append(self, path: str, content: bytes) -> None:
        super().append(path, content)
        if self.is_overtaken:
            self.is_overtaken = False
            MoveJournal.create(self, path, BEGUN, WRITER).close()


def test_a_change_that_another_execution_overtakes_is_reported() -> None:
    files = OvertakenFiles()
    MoveJournal.create(files, PATH, BEGUN, WRITER).close()
    files.is_overtaken = True
    with pytest.raises(ChangeTooLate, match="another one has begun"):
        request_change(files, PATH, SettingsChange(7), OTHER)
