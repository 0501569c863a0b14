"""What two readings of a partition tell is what a cleaning of its files leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.client.batch_reading import StoredBatches
from engine.client.fetched_records import AbortedProducer
from engine.forecast.dirtiness import CompactedLog
from engine.forecast.record_trial import RecordTrial, TrialRange, try_records
from engine.log.batch_scan import scan_batches
from engine.log.cleaner.cleaning_facts import CleaningSettings
from engine.log.txn_index import parse_txn_index
from engine.records.batch import BatchView
from engine.records.batch_header import HEADER_BYTES
from tests.golden_cases import case
from tests.unit.forecast.compacted_dirs import FILES, NOW_MS, cleaned, config, golden_directory
from tests.unit.forecast.compacted_dirs import tried as tried_directory
from tests.unit.log.cleaner.cleaned_logs import batch_of

TOPICS = tuple(sorted(case("compact")["topics"]))


class FilesRead:
    """A partition's batches as a leader would send them, a few at a time."""

    def __init__(self, path: str) -> None:
        names = sorted(file.name for file in Path(path).glob("*.log"))
        self._logs = [f"{path}/{name}" for name in names]
        indexes = sorted(str(file) for file in Path(path).glob("*.txnindex"))
        self.aborted = [
            AbortedProducer(entry.producer_id, entry.first_offset)
            for index in indexes
            for entry in parse_txn_index(Path(index).read_bytes(), index).entries
        ]

    def __call__(self, start: int, end: int) -> Iterator[StoredBatches]:
        for path in self._logs:
            file = FILES.open(path)
            for _, batch in scan_batches(file, start=0):
                if start <= batch.last_offset and batch.base_offset < end:
                    # Each fetch names those that it touches, again and again.
                    yield StoredBatches([batch], self.aborted)
            file.close()


def tried(directory: str, log: CompactedLog, map_bytes: int = 1 << 20) -> RecordTrial:
    read = FilesRead(f"{directory}/{log.topic_partition}")
    first = Path(directory, str(log.topic_partition)).glob("*.log")
    offsets = TrialRange(
        min(int(path.stem) for path in first), log.first_dirty_offset, log.log_end_offset
    )
    return try_records(read, offsets, config(), CleaningSettings(map_bytes), NOW_MS)


@pytest.mark.parametrize("topic", TOPICS)
def test_as_much_is_freed_as_by_a_cleaning(topic: str, tmp_path: Path) -> None:
    directory = golden_directory(tmp_path)
    (log,) = cleaned(golden_directory(tmp_path / "other"), topic)
    trial = tried(directory, log)
    assert (log.freed_bytes, log.freed_records) == (
        trial.read_bytes - trial.kept_bytes,
        trial.read_records - trial.kept_records,
    )
    assert log.first_dirty_offset == trial.mapped_offset


def test_holes_show_up_to_where_a_log_is_clean(tmp_path: Path) -> None:
    directory = golden_directory(tmp_path)
    (log,) = cleaned(directory, "kv-keep")
    trial = tried(directory, log)
    segments = sorted(Path(directory, "kv-keep-0").glob("*.log"))
    # All that is cleaned lacks something but its last batches, which may be whole.
    assert 0 < trial.first_dirty_offset <= log.first_dirty_offset
    assert 0 < trial.clean_bytes <= trial.read_bytes <= sum(s.stat().st_size for s in segments)
    assert (trial.kept_bytes, trial.kept_records) == (trial.read_bytes, trial.read_records)
    assert trial.dirty_bytes == trial.read_bytes - trial.clean_bytes
    assert trial.dirty_ratio == trial.dirty_bytes / trial.read_bytes
    # Also where nobody knew that so much had been closed.
    low = tried(directory, log._replace(first_dirty_offset=10))
    assert (trial.first_dirty_offset, trial.clean_bytes) == (
        low.first_dirty_offset,
        low.clean_bytes,
    )
    assert (0, 0.0) == (low.dirty_bytes, low.dirty_ratio)


def test_a_log_that_was_never_cleaned_has_no_holes(tmp_path: Path) -> None:
    directory = golden_directory(tmp_path)
    (log,) = cleaned(golden_directory(tmp_path / "other"), "kv-keep")
    trial = tried(directory, log)
    assert (0, 0, 1.0) == (trial.first_dirty_offset, trial.clean_bytes, trial.dirty_ratio)


def test_keys_that_do_not_fit_are_reported_and_free_less(tmp_path: Path) -> None:
    directory = golden_directory(tmp_path)
    (log,) = cleaned(golden_directory(tmp_path / "other"), "kv-drop")
    whole, narrow = tried(directory, log), tried(directory, log, 24 * 20)
    assert 0 < narrow.mapped_offset < log.first_dirty_offset == whole.mapped_offset
    assert narrow.kept_records > whole.kept_records
    assert whole.read_bytes == narrow.read_bytes


def test_a_full_map_ends_where_that_of_a_cleaning_does(tmp_path: Path) -> None:
    directory = golden_directory(tmp_path)
    (log,) = cleaned(golden_directory(tmp_path / "other"), "kv-drop")
    (first_pass,) = tried_directory(directory, tmp_path / "trial", "kv-drop", map_bytes=24 * 20)
    narrow = tried(directory, log, 24 * 20)
    assert first_pass.first_dirty_offset == narrow.mapped_offset
    assert first_pass.freed_records == narrow.read_records - narrow.kept_records


def test_no_room_for_any_key_maps_nothing() -> None:
    batch = BatchView(batch_of([(b"a", b"1"), (b"a", b"2")], base_offset=5))

    def read(_start: int, _end: int) -> Iterator[StoredBatches]:
        yield StoredBatches([batch], [])

    offsets = TrialRange(5, 7, 7)
    trial = try_records(read, offsets, config(), CleaningSettings(0), NOW_MS)
    assert (5, 2, 2) == (trial.mapped_offset, trial.read_records, trial.kept_records)
    roomy = try_records(read, offsets, config(), CleaningSettings(1024), NOW_MS)
    assert (7, 2, 1) == (roomy.mapped_offset, roomy.read_records, roomy.kept_records)


def test_the_last_batch_of_a_producer_stays_while_it_may_come_back() -> None:
    """Without its records: its sequence is what the producer goes on from."""
    producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}

    def kept_bytes(at_ms: int) -> int:
        first = BatchView(batch_of([(b"a", b"1")], at_ms, base_offset=0, **producer))
        second = BatchView(batch_of([(b"a", b"2")], at_ms, base_offset=1))

        def read(_start: int, _end: int) -> Iterator[StoredBatches]:
            yield StoredBatches([first, second], [])

        trial = try_records(read, TrialRange(0, 2, 2), config(), CleaningSettings(1024), NOW_MS)
        assert 1 == trial.kept_records
        return trial.kept_bytes - second.size_bytes

    assert HEADER_BYTES == kept_bytes(NOW_MS - 86_399_999)
    assert 0 == kept_bytes(NOW_MS - 86_400_000)


def test_an_empty_partition_has_nothing() -> None:
    trial = try_records(
        lambda _start, _end: iter(()), TrialRange(5, 5, 5), config(), CleaningSettings(1024), NOW_MS
    )
    assert (5, 5, 0, 0.0) == (
        trial.first_dirty_offset,
        trial.mapped_offset,
        trial.read_bytes,
        trial.dirty_ratio,
    )
