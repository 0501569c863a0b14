"""docs/compatibility.md says of each API what the broker really serves."""

from __future__ import annotations

import re
from pathlib import Path

from engine.wire.headers import apis
from tests.unit.broker.memory_broker import MemoryBroker

_PAGE = Path(__file__).parent.parent / "docs" / "compatibility.md"
_ROW = re.compile(r"^\| (\d+) \| (\w+) \| ([\d–]+) \| (full|partial|no) \| (.*?) ?\|$", re.M)


def _told() -> dict[int, tuple[str, str, str, str]]:
    return {int(row[0]): tuple(row[1:]) for row in _ROW.findall(_PAGE.read_text())}


def test_every_api_has_a_row_with_its_name() -> None:
    told = _told()
    assert {key: row[0] for key, row in told.items()} == {
        key: known.name for key, known in apis().items() if key <= 75
    }


def test_the_versions_are_those_that_are_served() -> None:
    stage = MemoryBroker().start()
    served = {}
    for row in stage.broker.table.rows():
        is_one = row.lowest == row.highest
        served[row.key] = str(row.lowest) if is_one else f"{row.lowest}–{row.highest}"
    told = {key: row[1] for key, row in _told().items() if row[1] != "–"}
    assert told == served
    stage.stop()


def test_whatever_is_not_full_has_a_reason() -> None:
    for key, (name, versions, how, reason) in _told().items():
        assert how == "full" or reason, f"{key} {name}"
        assert (how == "no") == (versions == "–"), f"{key} {name}"
