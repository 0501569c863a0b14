"""Leader epochs: what an assignment contradicts goes, ends are where the next one starts."""

from __future__ import annotations

import pytest

from engine.host.memory import MemoryFiles
from engine.log.directory.leader_epoch_checkpoint import EpochStart
from engine.log.epoch_cache import EpochCache, EpochGap
from engine.log.epoch_store import EpochStore


def cache(*entries: tuple[int, int]) -> EpochCache:
    return EpochCache(EpochStart(*entry) for entry in entries)


def test_a_new_epoch_is_added_and_an_old_one_is_not_moved_up() -> None:
    epochs = cache((0, 0))
    assert epochs.assign(2, 10)
    assert not epochs.assign(2, 15)
    assert ((0, 0), (2, 10)) == epochs.entries
    assert epochs.latest_epoch == 2


@pytest.mark.parametrize(
    ("new", "left"),
    [
        ((2, 5), ((0, 0), (2, 5))),
        ((1, 12), ((0, 0), (1, 12))),
        ((3, 10), ((0, 0), (3, 10))),
        ((0, 0), ((0, 0),)),
    ],
)
def test_an_epoch_takes_the_place_of_what_it_contradicts(
    new: tuple[int, int], left: tuple[tuple[int, int], ...]
) -> None:
    epochs = cache((0, 0), (2, 10))
    assert epochs.assign(*new)
    assert left == epochs.entries


@pytest.mark.parametrize(
    ("requested", "answer"),
    [(-1, (-1, -1)), (0, (0, 10)), (1, (0, 10)), (2, (2, 20)), (4, (4, 99)), (5, (-1, -1))],
)
def test_an_epoch_ends_where_the_next_one_starts(requested: int, answer: tuple[int, int]) -> None:
    assert answer == cache((0, 0), (2, 10), (4, 20)).end_offset_for(requested, 99)


def test_an_epoch_before_all_known_ones_ends_where_they_start() -> None:
    assert cache((3, 7)).end_offset_for(1, 99) == (1, 7)


def test_truncation_at_the_end_drops_epochs_that_lost_all_records() -> None:
    epochs = cache((0, 0), (2, 10), (4, 20))
    assert epochs.truncate_from_end(10)
    assert ((0, 0),) == epochs.entries
    assert not epochs.truncate_from_end(10)


def test_truncation_at_the_start_moves_the_epoch_of_the_first_record_left() -> None:
    epochs = cache((0, 0), (2, 10), (4, 20))
    assert epochs.truncate_from_start(15)
    assert ((2, 15), (4, 20)) == epochs.entries


@pytest.mark.parametrize(("offset", "epoch"), [(6, None), (7, 1), (9, 1), (10, 3), (99, 3)])
def test_an_offset_was_written_in_the_last_epoch_that_started_by_then(
    offset: int, epoch: int | None
) -> None:
    assert epoch == cache((1, 7), (3, 10)).epoch_for_offset(offset)


def test_a_store_writes_every_change_and_nothing_else() -> None:
    files = MemoryFiles()
    files.make_dir("/d")
    files.sync_all()
    store = EpochStore(files, "/d", [EpochStart(0, 0)])
    assert not files.exists("/d/leader-epoch-checkpoint")
    assert not store.assign(-1, 5)
    store.assign(3, 8)
    assert files.after_crash().read_bytes("/d/leader-epoch-checkpoint") == b"0\n2\n0 0\n3 8\n"
    store.truncate_from_end(8)
    store.truncate_from_start(4)
    assert files.read_bytes("/d/leader-epoch-checkpoint") == b"0\n1\n0 4\n"
    store.clear()
    assert files.read_bytes("/d/leader-epoch-checkpoint") == b"0\n0\n"


@pytest.mark.parametrize(
    ("end_offset", "batch", "entries", "gap"),
    [
        (20, (4, 20), ((0, 0), (2, 10), (4, 20)), None),
        (20, (4, 25), ((0, 0), (2, 10), (4, 20)), EpochGap(2, 4, 20, 25)),
        # Epoch 2 has no records here yet: it does not go.
        (10, (4, 15), ((0, 0), (2, 10), (4, 11)), EpochGap(2, 4, 11, 15)),
        (10, (4, 11), ((0, 0), (2, 10), (4, 11)), None),
        # Back to an epoch before, as damaged logs may go.
        (20, (1, 25), ((0, 0), (1, 25)), None),
    ],
)
def test_an_epoch_behind_a_gap_starts_where_the_log_ended(
    end_offset: int,
    batch: tuple[int, int],
    entries: tuple[tuple[int, int], ...],
    gap: EpochGap | None,
) -> None:
    epochs = cache((0, 0), (2, 10))
    epochs.assign_next_batch(end_offset, *batch)
    assert entries == epochs.entries
    assert gap == epochs.first_gap


@pytest.mark.parametrize(
    ("end_offset", "batch", "start", "gap"),
    [
        (7, (3, 7), 7, None),
        (0, (3, 7), 0, EpochGap(2, 3, 0, 7, is_first=True)),
        (229, (8, 362), 229, EpochGap(7, 8, 229, 362, is_first=True)),
        # Nobody wrote in an epoch before 0.
        (0, (0, 7), 7, None),
    ],
)
def test_the_first_epoch_behind_a_gap_starts_where_the_log_does(
    end_offset: int, batch: tuple[int, int], start: int, gap: EpochGap | None
) -> None:
    epochs = cache()
    epochs.assign_next_batch(end_offset, *batch)
    epoch, _ = batch
    assert (((epoch, start),), gap) == (epochs.entries, epochs.first_gap)


@pytest.mark.parametrize(("told", "start"), [(266, 266), (229, 229), (100, 229), (400, 362)])
def test_the_gap_before_the_first_epoch_is_closed_within_its_bounds(told: int, start: int) -> None:
    epochs = cache()
    epochs.assign_next_batch(229, 8, 362)
    epochs.assign_next_batch(400, 11, 404)
    gap = epochs.first_gap
    assert gap is not None
    assert epochs.close_gap(gap, told) == (start != 229)
    assert epochs.entries == ((8, start), (11, 400))
    assert epochs.first_gap == EpochGap(8, 11, 400, 404)


@pytest.mark.parametrize(("told", "start"), [(22, 22), (20, 20), (25, 25), (19, 20), (26, 25)])
def test_a_gap_is_closed_within_its_bounds(told: int, start: int) -> None:
    epochs = cache((2, 10))
    epochs.assign_next_batch(20, 4, 25)
    gap = epochs.first_gap
    assert gap is not None
    assert epochs.close_gap(gap, told) == (start != 20)
    assert (((2, 10), (4, start)), None) == (epochs.entries, epochs.first_gap)


def test_gaps_come_in_the_order_of_their_epochs() -> None:
    epochs = cache((2, 10))
    epochs.assign_next_batch(20, 4, 25)
    epochs.assign(5, 30)
    epochs.assign_next_batch(40, 6, 45)
    first = epochs.first_gap
    assert first == EpochGap(2, 4, 20, 25)
    epochs.close_gap(first, 21)
    assert epochs.first_gap == EpochGap(5, 6, 40, 45)


def test_after_a_cut_epochs_start_where_they_do() -> None:
    for cut, offset in (("truncate_from_end", 22), ("truncate_from_start", 12)):
        epochs = cache((2, 10))
        epochs.assign_next_batch(20, 4, 25)
        getattr(epochs, cut)(offset)
        assert 20 == epochs.entries[-1].start_offset
        assert epochs.first_gap is None
    epochs = cache((2, 10))
    epochs.assign_next_batch(20, 4, 25)
    epochs.clear()
    epochs.assign(3, 5)
    epochs.assign(4, 20)
    assert epochs.first_gap is None


def test_a_gap_that_is_closed_is_written() -> None:
    files = MemoryFiles()
    files.make_dir("/data")
    epochs = EpochStore(files, "/data", (EpochStart(2, 10),))
    epochs.assign_next_batch(20, 4, 25)
    gap = epochs.first_gap
    assert gap is not None
    assert epochs.close_gap(gap, 22)
    assert b"0\n2\n2 10\n4 22\n" == files.read_bytes("/data/leader-epoch-checkpoint")
