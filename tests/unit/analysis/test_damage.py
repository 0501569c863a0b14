"""What a query says of damage in the logs that it read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.analysis.batch_order import missing_offsets
from engine.analysis.columns import VIEWS
from engine.analysis.damage import (
    DamageCount,
    DamagedData,
    ReadDamage,
    count_damage,
    refuse_damage,
)
from engine.analysis.local_query import run_local_query
from engine.analysis.problem import Problem
from engine.analysis.splits import Selection, plan_splits
from engine.host.real import RealFiles
from kctl.log_damage import damage_text
from tests.golden_cases import case_dir
from tests.unit.log.logs import name_of
from tests.unit.log.writing import sent

COUNT = "select count(value) from records"


def _batch(base_offset: int) -> bytes:
    batch = bytearray(sent(10))
    batch[:8] = base_offset.to_bytes(8, "big")
    return bytes(batch)


def _write(home: Path, *segments: tuple[int, ...]) -> None:
    """Write a log of batches of ten records, with these base offsets."""
    (home / "t-0").mkdir(exist_ok=True)
    for offsets in segments:
        content = b"".join(map(_batch, offsets))
        (home / "t-0" / name_of(offsets[0])).write_bytes(content)


def _found(
    home: Path, query: str, *, is_strict: bool = False, size: int = 1 << 27
) -> list[Problem]:
    damage = ReadDamage(is_strict=is_strict)
    splits = plan_splits(RealFiles(), [str(home)], Selection(), size)
    run_local_query(query, splits, control=False, max_rows=0, damage=damage)
    return damage.problems(RealFiles())


@pytest.mark.parametrize(
    "query",
    [
        COUNT,
        "select count(*) from records",
        "select sum(size) from batches",
        "select max(nextOffset) from segments",
        "select count(logOffset) from transactions",
        "select a.offset from records a join batches b on a.offset = b.baseOffset",
        "select count(value) from records union all select count(*) from batches",
    ],
)
def test_a_segment_that_is_gone_is_missing_in_each_view_of_batches(
    query: str, tmp_path: Path
) -> None:
    _write(tmp_path, (0, 10), (40, 50))
    (problem,) = _found(tmp_path, query)
    assert ("gap", "offsets 20 to 39 are missing") == (problem.code, problem.message)
    _write(tmp_path, (20, 30))
    assert [] == _found(tmp_path, query)


@pytest.mark.parametrize(
    "query",
    [
        "select value from records limit 1",
        "select value from records where offset < 20",
        "select count(value) from records where offset >= 40 and offset < 60",
        "select count(value) from records where topic = 'other'",
        "select count(*) from checkpoints",
        "select 1",
    ],
)
def test_what_a_query_does_not_read_is_not_missing(query: str, tmp_path: Path) -> None:
    _write(tmp_path, (0, 10), (40, 50))
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nt 0 100\n")
    assert [] == _found(tmp_path, query)
    assert ["gap", "short"] == [problem.code for problem in _found(tmp_path, COUNT)]


@pytest.mark.parametrize("query", [COUNT, "select count(*) from records"])
@pytest.mark.parametrize("case", ["v2", "v1gzip"])
def test_pieces_of_a_segment_have_the_damage_of_the_whole(query: str, case: str) -> None:
    home = case_dir("corrupt") / case
    assert [] != _found(home, query)
    assert _found(home, query, size=1) == _found(home, query)


def test_headers_hide_damage_of_records_alone(tmp_path: Path) -> None:
    _write(tmp_path, (0, 10, 20))
    path = tmp_path / "t-0" / name_of(0)
    content = bytearray(path.read_bytes())
    content[len(_batch(0)) + 100] ^= 1
    path.write_bytes(content)
    query = "select topic, count(*) from records group by topic"
    assert [] == _found(tmp_path, query)
    for found in (_found(tmp_path, query, is_strict=True), _found(tmp_path, COUNT)):
        assert ["bad_crc", "lost"] == [problem.code for problem in found]


def _replace_first(home: Path) -> None:
    """Replace the first segment as the broker's cleaner does: by one without the old values."""
    (home / "t-0" / name_of(0)).write_bytes(b"".join(map(_batch, (5, 18))))


def _remove_second(home: Path) -> None:
    """Remove a segment that is read, as retention does once it is open."""
    (home / "t-0" / name_of(40)).unlink()


@pytest.mark.parametrize("change", [_replace_first, _remove_second])
def test_what_changes_while_it_is_read_is_not_called_damage(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    _write(tmp_path, (0, 10, 20, 30), (40, 50), (60,))
    splits = plan_splits(RealFiles(), [str(tmp_path)], Selection(), 1)
    damage = ReadDamage()
    if change is _replace_first:
        change(tmp_path)
    else:
        path = tmp_path / "t-0" / name_of(40)
        path.write_bytes(b"\0" + path.read_bytes()[1:-9] + b"\0" * 9)
    run_local_query(COUNT, splits, control=False, max_rows=0, damage=damage)
    if change is _remove_second:
        change(tmp_path)
    (problem,) = damage.problems(RealFiles())
    assert ("t", 0, "changed") == (problem.topic, problem.partition, problem.code)
    text = "1 segment that was replaced or removed while it was read in t-0"
    assert text == damage_text([problem])
    with pytest.raises(DamagedData):
        refuse_damage([problem])


def test_a_log_that_grows_while_it_is_read_has_its_damage(tmp_path: Path) -> None:
    _write(tmp_path, (0, 10), (40, 50))
    splits = plan_splits(RealFiles(), [str(tmp_path)], Selection())
    damage = ReadDamage()
    run_local_query(COUNT, splits, control=False, max_rows=0, damage=damage)
    with (tmp_path / "t-0" / name_of(40)).open("ab") as file:
        file.write(_batch(60))
    assert ["gap"] == [problem.code for problem in damage.problems(RealFiles())]


@pytest.mark.parametrize(
    ("case", "folder"),
    [("plain", "data"), ("txn", "data"), ("compact", "after3"), ("formats", "data")],
)
def test_logs_of_kafka_have_no_damage(case: str, folder: str) -> None:
    for view, columns in VIEWS.items():
        names = ", ".join(f"count({column.name})" for column in columns)
        query = f"select {names} from {view}"
        assert [] == _found(case_dir(case) / folder, query, is_strict=True)


def _problem(code: str, message: str = "", size: int = 0, partition: int = 0) -> Problem:
    return Problem("t", partition, "0.log", 7, size, code, message)


def test_damage_is_counted_by_what_was_lost() -> None:
    problems = [
        _problem("bad_crc", size=100),
        _problem("bad_batch", size=20),
        _problem(
            "lost", missing_offsets(5, 15, is_compacted=False) + ", lost to the damage before"
        ),
        _problem("torn_tail", size=9),
        _problem("overlap", size=50),
        _problem("gap", missing_offsets(20, 22, is_compacted=True), partition=1),
    ]
    assert DamageCount(2, 120, 12, True, 1, 9, 0, 1, ("t-0", "t-1")) == count_damage(problems)
    assert (
        "2 damaged batches (120 bytes), up to 12 offsets missing, 1 unfinished last write"
        " (9 bytes), 1 other problem in t-0, t-1"
    ) == damage_text(problems)


def test_many_partitions_are_a_number() -> None:
    problems = [_problem("bad_crc", size=1000, partition=number) for number in range(8)]
    assert (
        "8 damaged batches (8,000 bytes) in t-0, t-1, t-2, t-3, t-4 and 3 more partitions"
        == damage_text(problems)
    )
