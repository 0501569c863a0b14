"""Counts by headers are those of a full read, or of the log before its damage."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from engine.analysis import header_rows
from engine.analysis.columns import VIEWS, arrow_schema, choose_columns
from engine.analysis.header_rows import HeaderRows, are_of_split, dictionary_schema
from engine.analysis.local_query import run_local_query
from engine.analysis.pruning import ALL_RECORDS
from engine.analysis.record_batches import ViewReader
from engine.analysis.splits import Selection, Split, plan_splits
from engine.host.memory import MemoryFiles
from engine.host.real import RealFiles
from engine.native import compiled_walk, header_counts
from engine.native.header_counts import CountTier
from tests.compiled_walk import compiled_count_here
from tests.golden_cases import case_dir
from tests.unit.native.test_header_counts import batch, log

CODE = compiled_count_here()
TIERS = [None] if CODE is None else [None, CODE]
_OF_SPLIT = ("topic", "partition", "segment")


@pytest.fixture(autouse=True, params=TIERS, ids=lambda code: "compiled" if code else "plain")
def tier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int | None:
    """Count by the plain tier, and by compiled code, small splits too."""
    code: int | None = request.param
    monkeypatch.setattr(CountTier, "code", code)
    monkeypatch.setattr(CountTier, "is_sought", False)
    return code


def _counts(splits: list[Split], *, control: bool, by_headers: bool) -> Counter[object]:
    names = _OF_SPLIT if by_headers else (*_OF_SPLIT, "offset")
    reader = ViewReader(
        RealFiles(), "records", choose_columns(VIEWS["records"], list(names)), control=control
    )
    assert by_headers is (reader._headers is not None)
    found: Counter[object] = Counter()
    for split in splits:
        for rows in reader.batches_of(split):
            found.update(zip(*(rows.column(name).to_pylist() for name in _OF_SPLIT), strict=True))
    return found


@pytest.mark.parametrize("control", [False, True])
@pytest.mark.parametrize("case", ["plain", "txn", "formats", "groups", "stamps", "epochs"])
def test_logs_of_kafka_are_counted_as_they_are_read(case: str, *, control: bool) -> None:
    folder = case_dir(case) / ("data" if case != "epochs" else "divergent/broker1")
    splits = plan_splits(RealFiles(), [str(folder)], Selection(), 4_096)
    full = _counts(splits, control=control, by_headers=False)
    assert full == _counts(splits, control=control, by_headers=True)


def test_compacted_logs_are_counted_as_they_are_read() -> None:
    splits = plan_splits(RealFiles(), [str(case_dir("compact") / "after1")], Selection())
    full = _counts(splits, control=False, by_headers=False)
    assert full == _counts(splits, control=False, by_headers=True)


def test_no_flipped_byte_gives_another_count_than_a_full_read_or_the_whole_log(
    tmp_path: Path,
) -> None:
    home = tmp_path / "t-0"
    home.mkdir()
    path, content = home / f"{0:020}.log", log(4)
    path.write_bytes(content)
    splits = plan_splits(RealFiles(), [str(tmp_path)], Selection())
    wrong = []
    for place in range(len(content)):
        for bit in (0, 3, 7):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            full = _counts(splits, control=False, by_headers=False).total()
            by_headers = _counts(splits, control=False, by_headers=True).total()
            if by_headers not in (full, 12):
                wrong.append((place, bit, full, by_headers))
    assert [] == wrong


@pytest.mark.parametrize("cut", range(0, 400, 7))
def test_a_log_that_is_cut_off_is_counted_as_it_is_read(cut: int, tmp_path: Path) -> None:
    home = tmp_path / "t-0"
    home.mkdir()
    (home / f"{0:020}.log").write_bytes(log(4)[:-cut] if cut else log(4))
    splits = plan_splits(RealFiles(), [str(tmp_path)], Selection())
    full = _counts(splits, control=False, by_headers=False)
    assert full == _counts(splits, control=False, by_headers=True)


def _split(path: Path, **more: object) -> Split:
    size = path.stat().st_size
    split = Split(str(path), str(path.parent), "t", 0, 0, 0, size, True, 0)
    return split._replace(**more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("more", "is_counted"),
    [
        ({}, True),
        ({"log_start_offset": 1}, False),
        ({"aborted": ((7, 0, 2),)}, False),
        ({"end_offset": 5}, False),
        ({"base_offset": 1}, False),
        ({"next_base": 12}, True),
        ({"next_base": 13}, True),
        ({"next_base": 11}, False),
    ],
)
def test_only_splits_that_give_all_their_records_are_counted(
    more: dict[str, object], tmp_path: Path, *, is_counted: bool
) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(log(4))
    split = _split(path, **more)
    count, left = HeaderRows(RealFiles(), include_control=False).count(split)
    assert (12, None) == (count, left) if is_counted else (0, split) == (count, left)


@pytest.mark.parametrize(
    ("second", "following", "end"),
    [(3, 3, 0), (6, 3, 0), (3, 6, -50)],
    ids=["twice", "swapped", "wrong length"],
)
def test_a_piece_that_the_next_one_contradicts_is_left(
    second: int, following: int, end: int, tmp_path: Path
) -> None:
    """Its last batch has no header behind it: that is the first one of the next piece."""
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(batch(0) + batch(second) + batch(following))
    size = len(batch(0))
    split = _split(path, start=size, end=2 * size + end, is_last=False)
    assert (0, split) == HeaderRows(RealFiles(), include_control=False).count(split)


def test_a_piece_that_the_next_one_goes_on_from_is_counted(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    size = len(batch(0))
    for following in (6, 9):
        path.write_bytes(batch(0) + batch(3) + batch(following))
        split = _split(path, start=size, end=2 * size, is_last=False)
        assert (3, None) == HeaderRows(RealFiles(), include_control=False).count(split)


def test_the_part_from_two_good_batches_on_is_left(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(log(4) + batch(99))
    split = _split(path)
    count, left = HeaderRows(RealFiles(), include_control=False).count(split)
    assert (6, split._replace(start=len(log(2)))) == (count, left)


def test_files_without_a_descriptor_are_left() -> None:
    files = MemoryFiles()
    files.make_dir("t-0")
    files.replace_file("t-0/0.log", log(2))
    split = Split("t-0/0.log", "", "t", 0, 0, 0, len(log(2)), True, 0)
    assert (0, split) == HeaderRows(files, include_control=False).count(split)


@pytest.mark.skipif(CODE is None, reason="no compiled code on this machine")
def test_small_splits_bring_no_compiled_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CountTier, "code", None)
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(log(4))
    split = _split(path)
    for bytes_min, code in ((split.end + 1, None), (split.end, CODE)):
        monkeypatch.setattr(header_rows, "COUNTED_SPLIT_BYTES_MIN", bytes_min)
        assert (12, None) == HeaderRows(RealFiles(), include_control=False).count(split)
        assert (CountTier.code is None) is (code is None)


def test_one_compiler_is_started_by_many_splits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process for each would be thousands, on a machine's first query of a large log."""
    started = []
    monkeypatch.setattr(CountTier, "code", None)
    monkeypatch.setattr(header_counts, "kept_count_path", lambda: "count.so")
    monkeypatch.setattr(header_counts, "load_count", lambda: None)
    monkeypatch.setattr(compiled_walk, "start_compiler", lambda: started.append(1))
    monkeypatch.setattr(header_rows, "COUNTED_SPLIT_BYTES_MIN", 1)
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(log(4))
    for _ in range(2):
        counting = HeaderRows(RealFiles(), include_control=False)
        assert [(12, None)] * 3 == [counting.count(_split(path)) for _ in range(3)]
    assert [1] == started


def test_rows_are_as_many_as_were_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(header_rows, "COUNTED_ROWS_MAX", 5)
    (tmp_path / "log").touch()
    split = _split(tmp_path / "log")
    plain = arrow_schema(choose_columns(VIEWS["records"], list(_OF_SPLIT)))
    for schema in (plain, dictionary_schema(plain)):
        for count in (0, 1, 5, 11):
            rows = HeaderRows(RealFiles(), include_control=False).rows(split, count, schema)
            sizes = [batch.num_rows for batch in rows if batch.schema == schema]
            assert count == sum(sizes)
            assert all(size <= 5 for size in sizes)


@pytest.mark.parametrize(
    ("names", "is_enough"),
    [(("topic",), True), (_OF_SPLIT, True), (("topic", "offset"), False), (("codec",), False)],
)
def test_only_columns_of_a_split_follow_from_headers(
    names: tuple[str, ...], *, is_enough: bool
) -> None:
    columns = choose_columns(VIEWS["records"], list(names))
    assert is_enough is are_of_split(columns, None, ALL_RECORDS)
    assert not are_of_split(columns, None, ALL_RECORDS._replace(first_offset=1))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select count(*) n from records", [{"n": 1186}]),
        ("select count(*) n from records where topic = 'clicks'", [{"n": 400}]),
        ("select count(*) n from records where topic = 'none'", [{"n": 0}]),
        (
            "select topic, count(*) n from records group by topic having n > 399 order by topic",
            [{"topic": "clicks", "n": 400}, {"topic": "orders", "n": 780}],
        ),
        ("select distinct topic from records order by topic limit 1", [{"topic": "bulk"}]),
        ("select upper(topic) t from records where topic = 'solo'", [{"t": "SOLO"}]),
    ],
)
def test_queries_count_by_headers(query: str, expected: list[dict[str, object]]) -> None:
    splits = plan_splits(RealFiles(), [str(case_dir("plain") / "data")], Selection())
    assert expected == run_local_query(query, splits, control=False, max_rows=0).rows
