"""What a repair decides, what it does, and what a crash in the middle leaves."""

from __future__ import annotations

import pytest

from engine.host.memory import MachineStopped, MemoryFiles
from engine.inspection.repair import (
    BACKUP_SUFFIX,
    OutputExists,
    lower_checkpoints,
    repair_in_place,
    repair_into,
)
from engine.inspection.repair_actions import (
    CutFile,
    RemoveFile,
    RepairOptions,
    RepairPlan,
    WriteFile,
)
from engine.inspection.repair_plan import plan_repair
from engine.inspection.verify import verify_partition
from engine.log.directory.leader_epoch_checkpoint import (
    EpochStart,
    encode_leader_epochs,
    parse_leader_epochs,
)
from engine.log.directory.offset_checkpoint import RECOVERY_POINTS, encode_offsets, read_offsets
from engine.log.producer_snapshot import encode_producer_snapshot
from engine.log.txn_index import AbortedTransaction, encode_txn_index, parse_txn_index
from engine.model import TopicPartition
from engine.naming import FileKind
from tests.unit.log.logs import (
    DIR,
    batch,
    data_of,
    get,
    log_of,
    marker_of,
    name_of,
    partition_of,
    put,
    put_segment,
)

INDEX, TIMES, ABORTED, SNAPSHOT = (
    FileKind.INDEX,
    FileKind.TIMEINDEX,
    FileKind.TXNINDEX,
    FileKind.SNAPSHOT,
)
SIZE = len(batch(0))
OPTIONS = RepairOptions(index_interval_bytes=100)


def three_segments() -> MemoryFiles:
    """Return offsets 0…29, one record a batch, ten batches a segment."""
    return log_of({base: b"".join(batch(base + n) for n in range(10)) for base in (0, 10, 20)})


def damaged() -> MemoryFiles:
    """Return the same with a wrong checksum at offset 14, a leader epoch and two snapshots."""
    files = three_segments()
    log = bytearray(get(files, name_of(10)))
    log[4 * SIZE + 30] ^= 1
    put(files, name_of(10), bytes(log))
    epochs = [EpochStart(0, 0), EpochStart(3, 30)]
    put(files, "leader-epoch-checkpoint", encode_leader_epochs(epochs))
    for offset in (10, 20, 30):
        put(files, name_of(offset, SNAPSHOT), encode_producer_snapshot([]))
    files.sync_all()
    return files


def plan(files: MemoryFiles, path: str = DIR, options: RepairOptions = OPTIONS) -> RepairPlan:
    return plan_repair(files, partition_of(files, path), options)


def problems(files: MemoryFiles, path: str = DIR) -> list[str]:
    report = verify_partition(files, partition_of(files, path))
    return [finding.code for finding in report.findings]


def content(files: MemoryFiles, path: str = DIR) -> dict[str, bytes]:
    return {name: get(files, name, path) for name in files.list_dir(path)}


def test_a_healthy_partition_needs_nothing() -> None:
    found = plan(three_segments())
    assert found.actions == ()
    assert found.end_offset == 30
    assert found.log_bytes == {0: 10 * SIZE, 10: 10 * SIZE, 20: 10 * SIZE}
    assert (found.lost_bytes, found.lost_from_offset) == (0, None)


def test_planning_touches_nothing() -> None:
    files = damaged()
    before = files.operations
    plan(files)
    assert files.operations == before


def test_damage_cuts_the_log_there_and_removes_what_follows() -> None:
    found = plan(damaged())
    assert (found.end_offset, found.lost_from_offset) == (14, 14)
    assert found.lost_bytes == 16 * SIZE
    assert found.log_bytes == {0: 10 * SIZE, 10: 4 * SIZE}
    (cut,) = [a for a in found.actions if isinstance(a, CutFile)]
    assert (cut.name, cut.size_bytes, cut.was_bytes) == (name_of(10), 4 * SIZE, 10 * SIZE)
    assert cut.reason.startswith(f"at position {4 * SIZE}: expected CRC")
    removed = {a.name for a in found.actions if isinstance(a, RemoveFile)}
    assert removed == {
        name_of(20),
        name_of(20, INDEX),
        name_of(20, TIMES),
        name_of(20, SNAPSHOT),
        name_of(30, SNAPSHOT),
    }


def test_a_repaired_partition_is_healthy_and_stays_so() -> None:
    files = damaged()
    repair_in_place(files, plan(files), backup=False)
    assert problems(files) == []
    assert plan(files).actions == ()
    assert parse_leader_epochs(get(files, "leader-epoch-checkpoint"), "x") == (EpochStart(0, 0),)


def test_what_is_cut_and_removed_is_kept_beside_it() -> None:
    files = damaged()
    first, second = get(files, name_of(10)), get(files, name_of(20))
    backups = repair_in_place(files, plan(files))
    assert backups == [name_of(20) + BACKUP_SUFFIX, name_of(10) + BACKUP_SUFFIX]
    assert get(files, name_of(10) + BACKUP_SUFFIX) == first
    assert get(files, name_of(20) + BACKUP_SUFFIX) == second


def test_a_second_backup_takes_another_name() -> None:
    files = damaged()
    put(files, name_of(10) + BACKUP_SUFFIX, b"earlier")
    backups = repair_in_place(files, plan(files))
    assert backups[1] == f"{name_of(10)}{BACKUP_SUFFIX}.1"
    assert get(files, name_of(10) + BACKUP_SUFFIX) == b"earlier"


def test_a_copy_is_the_same_as_a_repair_in_place() -> None:
    files = damaged()
    untouched = content(files)
    found = plan(files)
    repair_into(files, found, "/out/t-0")
    assert content(files) == untouched
    repair_in_place(files, found, backup=False)
    assert content(files, "/out/t-0") == content(files)


def test_a_copy_goes_only_where_nothing_is() -> None:
    files = damaged()
    with pytest.raises(OutputExists):
        repair_into(files, plan(files), DIR)
    with pytest.raises(OutputExists):
        repair_into(files, plan(files), f"{DIR}/{name_of(0)}")
    files.make_dir("/out")
    repair_into(files, plan(files), "/out")
    assert name_of(10) in files.list_dir("/out")


@pytest.mark.parametrize("tail", [bytes(5), bytes(400), b"\xff" * 300, batch(30)[:-1], b"x"])
def test_tails_that_are_no_batch_are_cut(tail: bytes) -> None:
    files = three_segments()
    put(files, name_of(20), get(files, name_of(20)) + tail)
    found = plan(files)
    assert [a for a in found.actions if not isinstance(a, CutFile)] == []
    assert found.end_offset == 30
    repair_in_place(files, found)
    assert problems(files) == ["unknown-file"]


@pytest.mark.parametrize("kind", [INDEX, TIMES])
@pytest.mark.parametrize("damage", ["missing", "odd", "wrong", "empty"])
def test_wrong_indexes_are_rebuilt(kind: FileKind, damage: str) -> None:
    files = three_segments()
    name = name_of(10, kind)
    right = get(files, name)
    if damage == "missing":
        files.remove(f"{DIR}/{name}")
    else:
        wrong = {"odd": right + b"\0", "wrong": right[:-1] + b"\x7f", "empty": b""}
        put(files, name, wrong[damage])
    found = plan(files)
    if damage == "empty" and kind is INDEX:
        # An index with fewer entries is right; it only costs look-ups.
        assert found.actions == ()
        found = plan(files, options=OPTIONS._replace(rebuild_all=True))
    assert [a.name for a in found.actions] == [name]
    repair_in_place(files, found)
    assert get(files, name) == right


def test_preallocated_indexes_that_are_right_are_left_alone() -> None:
    files = three_segments()
    for kind in (INDEX, TIMES):
        put(files, name_of(20, kind), get(files, name_of(20, kind)) + bytes(240))
    assert plan(files).actions == ()
    # Nor does an open time index have its last entry yet.
    put(files, name_of(20, TIMES), get(files, name_of(20, TIMES))[: -240 - 12] + bytes(240))
    assert plan(files).actions == ()
    trimmed = plan(files, options=OPTIONS._replace(rebuild_all=True))
    assert [a.name for a in trimmed.actions] == [name_of(20, INDEX), name_of(20, TIMES)]


def test_what_a_truncation_left_in_an_open_index_is_cleared() -> None:
    files = three_segments()
    right = get(files, name_of(20, INDEX))
    put(files, name_of(20, INDEX), right + right[:8] + bytes(240))
    found = plan(files)
    assert [a.name for a in found.actions] == [name_of(20, INDEX)]
    repair_in_place(files, found)
    assert get(files, name_of(20, INDEX)) == right


def test_an_empty_last_segment_needs_no_indexes() -> None:
    files = log_of({0: batch(0), 1: b""})
    for kind in (INDEX, TIMES):
        files.remove(f"{DIR}/{name_of(1, kind)}")
    assert plan(files).actions == ()
    assert plan(files).end_offset == 1


def test_the_transaction_index_is_rebuilt_from_the_markers() -> None:
    log = data_of(1, 0) + data_of(2, 1) + marker_of(2, 2) + marker_of(1, 3)
    files = log_of({0: log})
    found = plan(files)
    assert [a.name for a in found.actions] == [name_of(0, ABORTED)]
    repair_in_place(files, found)
    assert parse_txn_index(get(files, name_of(0, ABORTED)), "x").entries == (
        AbortedTransaction(2, 1, 2, 0),
        AbortedTransaction(1, 0, 3, 4),
    )
    put(files, name_of(0, ABORTED), b"\0\7" + bytes(40))
    repair_in_place(files, plan(files))
    assert problems(files) == []


def test_an_entry_whose_data_is_before_the_log_start_is_kept() -> None:
    entry = AbortedTransaction(1, 3, 11, 12)
    files = log_of({10: data_of(1, 10) + marker_of(1, 11)}, epochs=(EpochStart(0, 10),))
    put(files, name_of(10, ABORTED), encode_txn_index([entry]))
    assert plan(files).actions == ()


def test_an_abort_that_was_cut_off_leaves_the_index() -> None:
    files = log_of({0: data_of(1, 0) + marker_of(1, 1)})
    put(files, name_of(0, ABORTED), encode_txn_index([AbortedTransaction(1, 0, 1, 2)]))
    put(files, name_of(0), get(files, name_of(0))[:-1])
    repair_in_place(files, plan(files), backup=False)
    assert get(files, name_of(0, ABORTED)) == b""


@pytest.mark.parametrize(
    "present", [None, b"0\n9\n", b"", b"0\n1\n0 0\n", b"0\n2\n0 0\n2 7\n", b"0\n2\n2 5\n0 0\n"]
)
def test_leader_epochs_are_completed_from_the_batches(present: bytes | None) -> None:
    files = log_of({0: batch(0, 5, epoch=0) + batch(5, 5, epoch=2)})
    if present is None:
        files.remove(f"{DIR}/leader-epoch-checkpoint")
    else:
        put(files, "leader-epoch-checkpoint", present)
    repair_in_place(files, plan(files))
    assert get(files, "leader-epoch-checkpoint") == b"0\n2\n0 0\n2 5\n"


def test_an_epoch_at_the_end_of_a_whole_log_stays() -> None:
    epochs = (EpochStart(0, 0), EpochStart(4, 10))
    assert plan(log_of({0: batch(0, 10)}, epochs=epochs)).actions == ()


def test_a_log_of_old_messages_needs_no_epochs() -> None:
    files = log_of({0: b""}, epochs=())
    files.remove(f"{DIR}/leader-epoch-checkpoint")
    assert plan(files).actions == ()


def test_damaged_snapshots_go() -> None:
    files = three_segments()
    put(files, name_of(10, SNAPSHOT), b"damaged")
    (action,) = plan(files).actions
    assert isinstance(action, RemoveFile)
    assert action.name == name_of(10, SNAPSHOT)


def test_a_finished_cleaning_is_completed() -> None:
    files = three_segments()
    merged = batch(0) + batch(19)
    put(files, name_of(0) + ".swap", merged)
    put(files, "leader-epoch-checkpoint.tmp", b"0")
    found = plan(files)
    repair_in_place(files, found)
    assert get(files, name_of(0)) == merged
    assert [n for n in files.list_dir(DIR) if n.endswith(".log")] == [name_of(0), name_of(20)]
    assert found.end_offset == 30
    # The gaps that cleaning left are no damage.
    assert set(problems(files)) <= {"offset-gap"}


def test_a_batch_below_its_segment_is_cut_although_a_broker_would_not_start() -> None:
    files = three_segments()
    put(files, name_of(20), batch(1) + batch(21))
    found = plan(files)
    assert (found.end_offset, found.log_bytes[20]) == (20, 0)


def test_below_the_recovery_point_damage_is_left_as_a_broker_leaves_it() -> None:
    options = OPTIONS._replace(recovery_point=25)
    found = plan(damaged(), options=options)
    assert found.end_offset == 30
    assert found.log_bytes == {0: 10 * SIZE, 10: 10 * SIZE, 20: 10 * SIZE}
    assert found.actions == ()
    # The segment that holds the recovery point is looked at.
    assert plan(damaged(), options=OPTIONS._replace(recovery_point=19)).end_offset == 14


def test_bytes_that_decode_to_nothing_do_not_stop_a_repair() -> None:
    marker = bytearray(marker_of(1, 1))
    files = log_of({0: data_of(1, 0)})
    # A control record without its key: the checksum fits, the record says nothing.
    marker[57:61] = bytes(4)
    from engine.records.crc import crc32c

    marker[17:21] = crc32c(marker[21:]).to_bytes(4, "big")
    put(files, name_of(0), get(files, name_of(0)) + marker)
    assert plan(files).end_offset == 2


def test_a_log_written_again_keeps_its_size() -> None:
    found = plan(damaged())
    writes = [a for a in found.actions if isinstance(a, WriteFile)]
    assert {w.name for w in writes} == {
        name_of(10, INDEX),
        name_of(10, TIMES),
        "leader-epoch-checkpoint",
    }


def everything_wrong() -> MemoryFiles:
    """Return damage, leftovers of a cleaning, a lost index: one of each kind of action."""
    files = damaged()
    put(files, name_of(0) + ".swap", batch(0) + batch(9))
    put(files, name_of(5) + ".deleted", b"x")
    put_segment(files, 30, batch(30))
    files.sync_all()
    return files


@pytest.mark.parametrize("backup", [True, False])
def test_a_crash_at_any_point_leaves_what_the_next_repair_finishes(backup: bool) -> None:
    whole = everything_wrong()
    first = whole.operations
    repair_in_place(whole, plan(whole), backup=backup)
    expected = {n: c for n, c in content(whole).items() if BACKUP_SUFFIX not in n}
    originals = content(everything_wrong())
    for operation in range(first, whole.operations):
        files = everything_wrong()
        files.stop_at(operation)
        with pytest.raises(MachineStopped):
            repair_in_place(files, plan(files), backup=backup)
        changes = files.unsynced_changes()
        for kept in {0, changes // 2, changes}:
            crashed = files.after_crash(kept_changes=kept, torn_bytes=7)
            repair_in_place(crashed, plan(crashed), backup=backup)
            found = content(crashed)
            assert {n: c for n, c in found.items() if BACKUP_SUFFIX not in n} == expected
            if backup:
                kept_logs = [c for n, c in found.items() if BACKUP_SUFFIX in n]
                assert originals[name_of(10)] in kept_logs
                assert originals[name_of(20)] in kept_logs


@pytest.mark.parametrize(("cuts", "expected"), [(False, (11 * SIZE, 1)), (True, (10 * SIZE, 0))])
def test_a_repeat_that_a_broker_keeps_is_cut_where_that_is_requested(
    cuts: bool, expected: tuple[int, int]
) -> None:
    files = log_of({0: b"".join(batch(n) for n in range(10)) + batch(9)}, interval_bytes=100_000)
    options = RepairOptions(index_interval_bytes=100_000, cuts_overlaps=cuts)
    found = plan(files, options=options)
    assert expected == (found.log_bytes[0], found.overlaps)
    assert found.end_offset == 10


def test_a_whole_log_has_no_overlaps_to_cut() -> None:
    found = plan(three_segments(), options=RepairOptions(100, cuts_overlaps=True))
    assert (found.actions, found.overlaps) == ((), 0)


def test_checkpoints_above_the_end_of_a_log_are_lowered_and_others_stay() -> None:
    files = log_of({0: batch(0)})
    content = encode_offsets({TopicPartition("t", 0): 9, TopicPartition("u", 0): 7})
    put(files, RECOVERY_POINTS, content, "/data")
    changes = lower_checkpoints(files, "/data", {TopicPartition("t", 0): 4})
    assert {TopicPartition("t", 0): 4, TopicPartition("u", 0): 7} == read_offsets(
        files, f"/data/{RECOVERY_POINTS}"
    )
    assert [f"{RECOVERY_POINTS}: t-0 from 9 to 4, the end of its log"] == changes
    assert [] == lower_checkpoints(files, "/data", {TopicPartition("t", 0): 4})


def test_a_segment_that_an_index_cannot_hold_is_cut_with_the_place_and_the_rule() -> None:
    files = log_of({0: b"".join(batch(n) for n in (*range(6), *range(3)))}, interval_bytes=100_000)
    (cut,) = [a for a in plan(files).actions if isinstance(a, CutFile)]
    assert (name_of(0), 0, 9 * SIZE) == (cut.name, cut.size_bytes, cut.was_bytes)
    assert (
        f"at position 0: offsets do not rise at position {6 * SIZE} "
        f"(index entry (0, {6 * SIZE}): not above offset 4): a broker empties the segment"
    ) == cut.reason


def test_the_size_of_each_log_that_was_read_is_reported() -> None:
    told: list[int] = []
    plan_repair(three_segments(), partition_of(three_segments()), OPTIONS, on_read=told.append)
    assert [10 * SIZE] * 3 == told
    # Behind damage nothing is read.
    told.clear()
    plan_repair(damaged(), partition_of(damaged()), OPTIONS, on_read=told.append)
    assert [10 * SIZE] * 2 == told
