"""`kctl audit`: which decisions of logs are shown, and how often."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.commands.audit.decisions import AuditFilter, AuditRequest, DamagedLog, show_audit


def line(
    second: int, user: str, result: str, operation: str, resource: str, host: str = "10.0.0.1"
) -> str:
    return (
        f"[2026-01-31 12:00:{second:02},000] INFO Principal = {user} is {result} Operation = "
        f"{operation} from host = {host} on resource = {resource} for request = Fetch with "
        "resourceRefCount = 1 (kafka.authorizer.logger)\n"
    )


LINES = [
    line(3, "User:bob", "Denied", "Read", "Topic:LITERAL:orders"),
    "[2026-01-31 12:00:04,000] INFO something else (x)\n",
    line(1, "User:ann", "Allowed", "Write", "Topic:LITERAL:orders"),
    line(2, "User:bob", "Denied", "Read", "Topic:LITERAL:orders", "10.0.0.2"),
    line(5, "User:bob", "Denied", "Describe", "Group:LITERAL:g"),
]


def shown(
    capsys: pytest.CaptureFixture[str], path: Path, *, summary: bool = False, **wanted: Any
) -> list[dict[str, Any]]:
    is_denied_alone = wanted.pop("denied", False)
    words = ("principals", "operations", "resources", "since", "until")
    chosen = AuditFilter.from_options(
        *(wanted.get(word) for word in words), is_denied_alone=is_denied_alone
    )
    request = AuditRequest([str(path)], None, chosen, True, summary, "json")
    assert exits.OK == show_audit(request)
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "kafka-authorizer.log"
    path.write_text("".join(LINES))
    return path


@pytest.mark.parametrize(
    ("wanted", "seconds"),
    [
        ({}, [1, 2, 3, 5]),
        ({"denied": True}, [2, 3, 5]),
        ({"principals": ["ann"]}, [1]),
        ({"principals": ["User:bob", "ann"]}, [1, 2, 3, 5]),
        ({"operations": ["read", "WRITE"]}, [1, 2, 3]),
        ({"resources": ["topic"]}, [1, 2, 3]),
        ({"resources": ["topic:orders", "group"]}, [1, 2, 3, 5]),
        ({"resources": ["topic:other"]}, []),
        ({"since": "2026-01-31T12:00:02Z", "until": "2026-01-31T12:00:05Z"}, [2, 3]),
    ],
)
def test_decisions_are_chosen_and_come_by_time(
    capsys: pytest.CaptureFixture[str], log: Path, wanted: dict[str, Any], seconds: list[int]
) -> None:
    found = shown(capsys, log, **wanted)
    assert seconds == [row["time_ms"] // 1000 % 60 for row in found]


def test_decisions_are_counted(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    first, *others = shown(capsys, log, summary=True)
    assert (2, "denied", "User:bob", "Read") == (
        first["count"],
        first["result"],
        first["principal"],
        first["operation"],
    )
    assert ["10.0.0.1", "10.0.0.2"] == first["hosts"]
    assert 1_000 == first["last_ms"] - first["first_ms"]
    assert [1, 1] == [row["count"] for row in others]


def test_a_compressed_log_is_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "kafka-authorizer.log.1.gz"
    content = gzip.compress("".join(LINES).encode())
    path.write_bytes(content)
    assert 4 == len(shown(capsys, path))
    for damaged in (content[:-9], content[:20] + b"\0" * 40 + content[60:]):
        path.write_bytes(damaged)
        with pytest.raises(DamagedLog, match="cannot be unpacked"):
            shown(capsys, path)


@pytest.mark.parametrize("wanted", [{"operations": ["reed"]}, {"resources": ["topics:x"]}])
def test_words_that_name_nothing_are_refused(
    capsys: pytest.CaptureFixture[str], log: Path, wanted: dict[str, Any]
) -> None:
    with pytest.raises(UnreadableArgument):
        shown(capsys, log, **wanted)
