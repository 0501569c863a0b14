"""The views of the files beside the logs: what is in them, and what is wrong with them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from engine.analysis.local_query import run_local_query
from engine.analysis.side_rows import CHECKPOINT_KINDS
from engine.analysis.splits import Selection, plan_splits
from engine.host.real import RealFiles
from engine.log.directory.offset_checkpoint import read_offsets
from engine.log.offset_index import read_offset_index
from engine.log.producer_snapshot import read_producer_snapshot
from engine.model import TopicPartition
from tests.golden_cases import case_dir

_GOOD = ("plain/data", "txn/data", "groups/data", "epochs/rest/broker1", "kraft-430/stopped/node1")


def _ask(folder: Path, query: str) -> list[dict[str, Any]]:
    splits = plan_splits(RealFiles(), [str(folder)], Selection())
    return run_local_query(query, splits, control=False, max_rows=0).rows


def _golden(name: str) -> Path:
    case, _, folder = name.partition("/")
    return case_dir(case) / folder


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """Return a copy that a test may damage."""
    shutil.copytree(_golden("plain/data"), tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.parametrize("view", ["indexes", "checkpoints", "epochs", "producers"])
@pytest.mark.parametrize("name", _GOOD)
def test_files_of_a_broker_that_stopped_have_no_problems(name: str, view: str) -> None:
    assert [] == _ask(_golden(name), f"select * from {view} where problem is not null")


def test_entries_of_an_index_are_those_of_the_file() -> None:
    folder = _golden("plain/data")
    path = folder / "orders-0" / "00000000000000000000.index"
    rows = _ask(
        folder,
        f"""select relativeOffset, position from indexes
            where kind = 'offset' and segment = '{path.with_suffix(".log")}' order by entry""",
    )
    expected = [(e.offset, e.position) for e in read_offset_index(RealFiles(), str(path), 0)]
    assert expected
    assert expected == [(row["relativeOffset"], row["position"]) for row in rows]


def test_producers_are_those_of_the_snapshot() -> None:
    folder = _golden("txn/data")
    (path, *_) = sorted((folder / "ledger-0").glob("*.snapshot"), reverse=True)
    rows = _ask(folder, f"select * from producers where snapshot = '{path}' order by producerId")
    expected = sorted(read_producer_snapshot(RealFiles(), str(path)))
    assert expected
    assert [e.producer_id for e in expected] == [row["producerId"] for row in rows]
    assert [e.last_offset for e in expected] == [row["lastOffset"] for row in rows]
    assert [e.first_sequence for e in expected] == [row["firstSequence"] for row in rows]


@pytest.mark.parametrize(("name", "kind"), CHECKPOINT_KINDS.items())
def test_checkpoints_are_named_by_what_they_say(name: str, kind: str) -> None:
    folder = _golden("retention/before")
    rows = _ask(folder, f"select * from checkpoints where kind = '{kind}'")
    said = read_offsets(RealFiles(), str(folder / name))
    places = {TopicPartition(r["topic"], r["partition"]): r["checkpointOffset"] for r in rows}
    assert said == places


def test_epochs_end_where_the_next_begins() -> None:
    rows = _ask(
        _golden("epochs/rest/broker1"),
        """select endOffset, lead(startOffset) over (partition by topic, partition
                                                     order by leaderEpoch) n from epochs""",
    )
    assert rows
    assert all(row["endOffset"] == row["n"] for row in rows)


@pytest.mark.parametrize(
    ("name", "view"),
    [
        ("replication-offset-checkpoint", "checkpoints"),
        ("orders-0/leader-epoch-checkpoint", "epochs"),
        ("orders-0/00000000000000000000.index", "indexes"),
        ("orders-0/00000000000000000000.timeindex", "indexes"),
    ],
)
def test_a_damaged_file_is_a_row_with_a_problem(plain: Path, name: str, view: str) -> None:
    path = plain / name
    path.write_bytes(path.read_bytes()[:-1] if view == "indexes" else b"0\n7\nno offsets\n")
    rows = _ask(plain, f"select * from {view} where problem is not null")
    assert rows
    content = ("checkpointOffset", "leaderEpoch", "entry")
    whole_file = [row for row in rows if all(row.get(column) is None for column in content)]
    assert whole_file


def test_a_damaged_snapshot_is_a_row_with_a_problem(tmp_path: Path) -> None:
    shutil.copytree(_golden("txn/data"), tmp_path / "data")
    (path, *_) = sorted((tmp_path / "data" / "ledger-0").glob("*.snapshot"), reverse=True)
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    rows = _ask(tmp_path / "data", f"select * from producers where snapshot = '{path}'")
    assert [(None, True)] == [(r["producerId"], r["problem"] is not None) for r in rows]


#: Bytes of an entry, and how many of them have one right value. A time index may name any offset
#: of the batch.
@pytest.mark.parametrize(
    ("suffix", "entry_bytes", "certain"), [("index", 8, 8), ("timeindex", 12, 8)]
)
def test_every_changed_bit_of_an_index_is_a_problem(
    plain: Path, suffix: str, entry_bytes: int, certain: int
) -> None:
    path = plain / "orders-0" / f"00000000000000000000.{suffix}"
    raw = path.read_bytes()
    query = "select count(*) n from indexes where problem is not null and topic = 'orders'"
    for bit in range(0, len(raw) * 8, 13):
        if (bit >> 3) % entry_bytes >= certain:
            continue
        damaged = bytearray(raw)
        damaged[bit >> 3] ^= 1 << (bit & 7)
        path.write_bytes(damaged)
        (row,) = _ask(plain / "orders-0", query)
        assert row["n"], bit


def test_the_log_is_not_read_for_entries_alone(plain: Path) -> None:
    log = plain / "orders-0" / "00000000000000000000.log"
    before = _ask(plain, "select count(position) n from indexes where topic = 'orders'")
    log.write_bytes(b"\xff" * len(log.read_bytes()))
    assert before == _ask(plain, "select count(position) n from indexes where topic = 'orders'")
