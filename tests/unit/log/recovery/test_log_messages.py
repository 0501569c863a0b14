"""What a broker's log says of a recovery: which file, how many bytes, which offsets, why."""

from __future__ import annotations

import logging

import pytest

from engine.host.memory import MemoryFiles
from engine.log.log_config import LogConfig
from engine.log.recovery.segment_replay import SegmentOffsetsDisordered
from engine.naming import FileKind
from tests.unit.log.logs import DIR, batch, get, log_of, name_of, put
from tests.unit.log.writing import open_log

CONFIG = LogConfig(index_interval_bytes=100)
HEAD = "[LogLoader partition=t-0, dir=/data]"
SIZE = len(batch(0))


def lines(
    caplog: pytest.LogCaptureFixture, files: MemoryFiles, **known: int
) -> list[tuple[str, str]]:
    with caplog.at_level(logging.INFO):
        open_log(files, CONFIG, **known)
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def three_segments() -> MemoryFiles:
    return log_of({base: b"".join(batch(base + n) for n in range(5)) for base in (0, 5, 10)})


def test_a_truncation_is_reported_with_its_file_bytes_offset_and_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = three_segments()
    path = f"{DIR}/{name_of(5)}"
    put(files, name_of(5), get(files, name_of(5))[:-7])
    assert lines(caplog, files, recovery_point=5) == [
        ("INFO", f"{HEAD} Recovering unflushed segment 5. 0/2 recovered for t-0."),
        (
            "WARNING",
            f"Found invalid messages in log segment {path} at byte offset {4 * SIZE}:"
            f" {SIZE - 7} bytes of a batch that does not end in the file.",
        ),
        (
            "INFO",
            f"{HEAD} Deleting segments as part of log truncation:"
            f" LogSegment(baseOffset=10, size={5 * SIZE}), after the damage in segment 5",
        ),
        (
            "WARNING",
            f"{HEAD} Corruption found in segment 5, truncating to offset 9: cut {SIZE - 7} bytes"
            f" of {path}, {4 * SIZE} are left",
        ),
        ("INFO", f"{HEAD} Rebuilt the indexes of segment 5: 1 entries by offset, 2 by time"),
    ]


def test_an_emptied_segment_is_reported_with_the_batch_that_no_index_holds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = b"".join(batch(n) for n in range(3)) + batch(2) * 3
    files = log_of({0: log})
    warnings = [text for level, text in lines(caplog, files) if level == "WARNING"]
    path = f"{DIR}/{name_of(0)}"
    assert warnings == [
        f"{HEAD} Found invalid offset during recovery. Deleting the corrupt segment and creating"
        f" an empty one with starting offset 0: {path} at position {4 * SIZE},"
        f" index entry (2, {4 * SIZE}): not above offset 2",
        f"{HEAD} Corruption found in segment 0, truncating to offset 0: cut {6 * SIZE} bytes of"
        f" {path}, 0 are left",
    ]


def test_a_lost_index_is_reported_and_rebuilt(caplog: pytest.LogCaptureFixture) -> None:
    files = three_segments()
    files.remove(f"{DIR}/{name_of(0, FileKind.INDEX)}")
    files.remove(f"{DIR}/{name_of(5, FileKind.TIMEINDEX)}")
    path, other = f"{DIR}/{name_of(0)}", f"{DIR}/{name_of(5)}"
    told = lines(caplog, files, recovery_point=10)
    assert told[0] == (
        "ERROR",
        f"{HEAD} Could not find offset index file corresponding to log file {path}, recovering"
        " segment and rebuilding index files...",
    )
    assert told[1][1].startswith(f"{HEAD} Rebuilt the indexes of segment 0: ")
    assert told[2][0] == "WARNING"
    assert f"Found a corrupted index file corresponding to log file {other}" in told[2][1]
    assert told[3][1].startswith(f"{HEAD} Rebuilt the indexes of segment 5: ")


def test_a_lost_index_that_cannot_be_built_is_one_error_with_its_file() -> None:
    files = log_of({0: b"".join(batch(n) for n in range(3)) + batch(2) * 3})
    files.remove(f"{DIR}/{name_of(0, FileKind.INDEX)}")
    with pytest.raises(SegmentOffsetsDisordered) as caught:
        open_log(files, CONFIG)
    assert (f"{DIR}/{name_of(0)}", 4 * SIZE) == (caught.value.path, caught.value.position)


def test_an_odd_index_of_a_flushed_segment_empties_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = log_of(
        {0: b"".join(batch(n) for n in range(3)) + batch(2) * 3, 3: batch(3)},
    )
    files.remove(f"{DIR}/{name_of(0, FileKind.TIMEINDEX)}")
    assert "WARNING" in {level for level, _ in lines(caplog, files, recovery_point=3)}
    assert len(get(files, name_of(0))) == 6 * SIZE


def test_a_log_that_ends_below_its_start_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    told = lines(caplog, three_segments(), log_start_offset=100)
    assert (
        "WARNING",
        f"{HEAD} Deleting all segments because logEndOffset (15) is smaller than logStartOffset"
        " 100. This could happen if segment files were deleted from the file system.",
    ) in told


def test_leftovers_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    files = three_segments()
    put(files, f"{name_of(0)}.deleted", b"")
    told = lines(caplog, files, recovery_point=10)
    assert ("INFO", f"{HEAD} Removed {DIR}/{name_of(0)}.deleted: deleted already") in told
