"""The views of decoded records say what Kafka's own tool prints, and never hide damage."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from engine.analysis.local_query import run_local_query
from engine.analysis.splits import Selection, plan_splits
from engine.host.real import RealFiles
from engine.records.builder import BatchBuilder, BatchSettings
from tests.golden_cases import case, case_dir, expected_outputs

_RECORD = re.compile(
    r"\| offset: (\d+) CreateTime: (\d+) .*?(?:key: (\{.*?\})?)? ?payload: (.*)$", re.S
)
_CONTROL = re.compile(r"\| offset: (\d+) .*? (LeaderChange|KRaftVersion|KRaftVoters): (\{.*)$")
_STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")


class Printed(NamedTuple):
    """What Kafka's tool of 4.3.0 printed of one log with a decoder."""

    case: str
    path: str
    output: str


def _printed(decoder: str) -> list[Printed]:
    found: dict[tuple[str, str], Printed] = {}
    for name in ("groups", "txn", "kraft-391", "kraft-430"):
        for call in case(name)["invocations"]:
            path = call["args"][-1]
            is_printed = call["kafka"] == "4.3.0" and path.endswith(".log")
            if not is_printed or call["args"] != [decoder, "--files", path]:
                continue
            if (case_dir(name) / path).exists():
                found[name, path] = Printed(name, path, call["stdout"])
    return list(found.values())


def _rows(printed: Printed, query: str) -> list[dict[str, Any]]:
    folder = (case_dir(printed.case) / printed.path).parent
    splits = plan_splits(RealFiles(), [str(folder)], Selection())
    return run_local_query(query, splits, control=False, max_rows=0).rows


def _payloads(printed: Printed) -> Iterator[tuple[int, Any, Any]]:
    """Yield (offset, key, payload) of each printed record with a payload in JSON."""
    text = expected_outputs(printed.case)[printed.output].decode("utf-8", "replace")
    for line in text.splitlines():
        match = _RECORD.match(line)
        if match and match[4].startswith(("{", "<DELETE>")):
            payload = json.loads(match[4]) if match[4].startswith("{") else None
            yield int(match[1]), json.loads(match[3]) if match[3] else None, payload


@pytest.mark.parametrize("printed", _printed("--offsets-decoder"), ids=lambda p: p.path)
def test_commits_are_those_that_the_tool_prints(printed: Printed) -> None:
    rows = {r["logOffset"]: r for r in _rows(printed, "select * from offsets")}
    commits = {o: (k, v) for o, k, v in _payloads(printed) if k and k["type"] in ("0", "1")}
    assert commits.keys() == rows.keys()
    for offset, (key, payload) in commits.items():
        row = rows[offset]
        place = {"group": row["groupId"], "topic": row["topic"], "partition": row["partition"]}
        assert key["data"] == place
        assert row["isTombstone"] is (payload is None)
        if payload is not None:
            said = payload["data"]
            assert said["offset"] == row["committedOffset"]
            assert said["metadata"] == row["metadata"]
            assert said["commitTimestamp"] == row["commitTimestampMs"]
            assert said.get("leaderEpoch", -1) == row["leaderEpoch"]


@pytest.mark.parametrize("printed", _printed("--offsets-decoder"), ids=lambda p: p.path)
def test_groups_are_those_that_the_tool_prints(printed: Printed) -> None:
    rows = {r["logOffset"]: r for r in _rows(printed, "select * from groups")}
    groups = {o: (k, v) for o, k, v in _payloads(printed) if k and k["type"] not in ("0", "1")}
    assert groups.keys() == rows.keys()
    for offset, (key, payload) in groups.items():
        row = rows[offset]
        assert key["data"] == json.loads(row["keyFields"])
        assert (None if payload is None else payload["data"]) == (
            None if row["fields"] is None else json.loads(row["fields"])
        )


@pytest.mark.parametrize("printed", _printed("--transaction-log-decoder"), ids=lambda p: p.path)
def test_transactions_are_those_that_the_tool_prints(printed: Printed) -> None:
    rows = {
        r["logOffset"]: r for r in _rows(printed, "select * from transactions where kind = 'state'")
    }
    states = {o: (k, v["data"]) for o, k, v in _payloads(printed) if v is not None}
    assert states.keys() <= rows.keys()
    for offset, (key, said) in states.items():
        row = rows[offset]
        assert key["data"]["transactionalId"] == row["transactionalId"]
        assert said["producerId"] == row["producerId"]
        assert said["producerEpoch"] == row["producerEpoch"]
        assert _STATES[said["transactionStatus"]] == row["state"]
        assert said["transactionStartTimestampMs"] == row["startTimestampMs"]
        partitions = [
            {"topic": p["topic"], "partitions": p["partitionIds"]}
            for p in said["transactionPartitions"] or ()
        ]
        assert partitions == json.loads(row["partitions"])


@pytest.mark.parametrize("printed", _printed("--cluster-metadata-decoder"), ids=lambda p: p.path)
def test_metadata_is_what_the_tool_prints(printed: Printed) -> None:
    rows = {r["logOffset"]: r for r in _rows(printed, "select * from metadata")}
    records = {o: v for o, _, v in _payloads(printed) if v is not None}
    assert records
    for offset, said in records.items():
        assert _constant(said["type"]) == rows[offset]["type"]
        assert said["data"] == json.loads(rows[offset]["fields"])
    assert all(row["problem"] is None for row in rows.values())
    text = expected_outputs(printed.case)[printed.output].decode("utf-8", "replace")
    controls = [match for line in text.splitlines() if (match := _CONTROL.match(line))]
    assert controls
    for match in controls:
        assert json.loads(match[3]) == json.loads(rows[int(match[1])]["fields"])


def _constant(name: str) -> str:
    """Return a message's name for the name that the tool prints: TOPIC_RECORD."""
    return "".join({"ACCESS": "Access"}.get(word, word.capitalize()) for word in name.split("_"))


def test_markers_of_every_log_are_shown() -> None:
    printed = Printed("txn", "data/ledger-0/00000000000000000000.log", "")
    counts = _rows(
        printed,
        """select state, count(*) n, count(transactionalId) ids, min(logTopic) t from transactions
           group by state order by state""",
    )
    assert ["ABORT", "COMMIT"] == [row["state"] for row in counts]
    assert {(0, "ledger")} == {(row["ids"], row["t"]) for row in counts}
    (controls,) = _rows(printed, "select count(*) n from batches where isControl")
    assert controls["n"] == sum(row["n"] for row in counts)


def _made(tmp_path: Path, topic: str, pairs: list[tuple[bytes | None, bytes | None]]) -> Path:
    builder = BatchBuilder(BatchSettings(base_offset=0, leader_epoch=0))
    for key, value in pairs:
        builder.append(1, key, value)
    folder = tmp_path / f"{topic}-0"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(bytes(builder.build()))
    return folder


def _ask(folder: Path, query: str) -> list[dict[str, Any]]:
    splits = plan_splits(RealFiles(), [str(folder)], Selection())
    return run_local_query(query, splits, control=False, max_rows=0).rows


@pytest.mark.parametrize(
    ("topic", "view"),
    [
        ("__consumer_offsets", "offsets"),
        ("__consumer_offsets", "groups"),
        ("__transaction_state", "transactions"),
        ("__cluster_metadata", "metadata"),
    ],
)
def test_records_that_cannot_be_decoded_are_rows_with_a_problem(
    tmp_path: Path, topic: str, view: str
) -> None:
    pairs = [(None, None), (b"", b"x"), (b"\0\x63rest", b"\0\0"), (b"\0", b"\x01\x7f\0")]
    rows = _ask(_made(tmp_path, topic, list(pairs)), f"select * from {view}")
    # A key of an unknown type is no commit.
    assert len(pairs) - (view == "offsets") == len(rows)
    assert all(row["problem"] for row in rows)
    names = ("groupId", "committedOffset", "fields", "state", "transactionalId")
    assert all(row.get(name) is None for row in rows for name in names)


def test_damage_in_the_log_is_a_row_with_a_problem(tmp_path: Path) -> None:
    folder = _made(tmp_path, "__consumer_offsets", [(b"\0\x01", b"")])
    log = folder / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[-1] ^= 1
    log.write_bytes(content)
    for view in ("offsets", "groups"):
        (row,) = _ask(folder, f"select * from {view}")
        assert row["problem"].startswith("bad_crc: ")
        assert None is row["groupId"] is row["logOffset"]


def test_aborted_commits_are_hidden_from_those_who_read_committed() -> None:
    from engine.analysis.isolation import hide_uncommitted_here

    folder = case_dir("txn") / "data"
    splits = plan_splits(RealFiles(), [str(folder)], Selection())
    query = "select count(*) n from offsets"
    (every,) = run_local_query(query, splits, control=False, max_rows=0).rows
    committed = hide_uncommitted_here(RealFiles(), splits).splits
    (some,) = run_local_query(query, committed, control=False, max_rows=0).rows
    assert 0 < some["n"] <= every["n"]
