"""`kctl offsets committed`: who committed what and when, from what brokers of Kafka wrote."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.errors import WireError
from engine.host.real import RealFiles
from engine.inspection.replay import SourceRecord
from kctl.commands.offsets.committed import CommittedRequest, decode_commit, show_committed

_GOLDEN = Path(__file__).parents[2] / "golden"
_DATA = _GOLDEN / "groups" / "data"
_REQUEST = CommittedRequest(str(_DATA), (), (), history=False, output="json")


def rows(
    request: CommittedRequest, capsys: pytest.CaptureFixture[str]
) -> Sequence[Mapping[str, Any]]:
    assert 0 == show_committed(request, RealFiles())
    found: Sequence[Mapping[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_the_last_commit_of_each_partition_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(_REQUEST._replace(groups=("g-simple",)), capsys)
    assert [
        ("tickets", 0, 0, "2026-11-21T13:26:46.372Z"),
        ("tickets", 2, 14, "2026-11-21T13:26:46.385Z"),
    ] == [
        (row["topic"], row["partition"], row["committed_offset"], row["committed_at"])
        for row in found
    ]


def test_offsets_that_were_deleted_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(_REQUEST, capsys)
    assert {"tickets"} == {row["topic"] for row in found}
    assert ["g-coop", "g-multi", "g-range", "g-simple", "g-sticky"] == sorted(
        {row["group"] for row in found}
    )


def test_the_history_has_every_commit_and_deletion_in_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    request = _REQUEST._replace(groups=("g-range",), topics=("alerts",), history=True)
    found = rows(request, capsys)
    assert [10, 10, 10, 10, None, None] == [row["committed_offset"] for row in found]
    assert ["", "", "note ü", "note ü", None, None] == [row["metadata"] for row in found]
    offsets = [row["log_offset"] for row in found]
    assert offsets == sorted(offsets)


def test_a_damaged_batch_is_an_error_after_what_came_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "__consumer_offsets-0"
    shutil.copytree(_DATA / folder.name, folder)
    log = folder / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    request = _REQUEST._replace(path=str(tmp_path))
    assert 1 == show_committed(request, RealFiles())
    printed = capsys.readouterr()
    assert json.loads(printed.out)
    assert "error: " in printed.err
    assert "later commits may be missing" in printed.err


@pytest.mark.parametrize("key", [None, b"", b"\0"])
def test_a_record_without_a_type_is_refused(key: bytes | None) -> None:
    with pytest.raises(WireError):
        decode_commit(SourceRecord(0, "__consumer_offsets", 0, 0, 0, key, None, ()))


def test_other_records_are_no_commits() -> None:
    assert (
        decode_commit(SourceRecord(0, "__consumer_offsets", 0, 0, 0, b"\0\x02\0\1g", None, ()))
        is None
    )
    assert (
        decode_commit(SourceRecord(0, "__consumer_offsets", 0, 0, 0, b"\0\x0b", b"\0", ())) is None
    )
