"""How far an execution is, told on stderr."""

from __future__ import annotations

import io
import re
import sys

import pytest

from engine.reassign.change_status import ChangeStatus, ExecutionStatus
from engine.reassign.phases import MovePhase
from kctl.commands.reassign.progress import MoveProgress
from tests.unit.reassign.moved_cluster import change


class Terminal(io.StringIO):
    """Somebody who looks."""

    def isatty(self) -> bool:
        return True


def seen(now_ms: int, copied: int, *, pause: str | None = None, missed: int = 0) -> ExecutionStatus:
    moving = change(0, (1, 2), (3, 2))
    phase = MovePhase.A2_COPYING
    now = ChangeStatus(moving, phase, copied, 10_000_000, (1, 2), 1)
    return ExecutionStatus([now], frozenset((1, 2)), pause, [missed] if missed else [], now_ms)


def test_a_terminal_sees_bytes_rate_and_what_is_left_of_each_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "160")
    with MoveProgress() as progress:
        progress.show(seen(1000, 0))
        progress.show(seen(3000, 4_000_000))
    said = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", terminal.getvalue())
    assert "0 of 1 partitions" in said
    assert re.search(r"t-0 .*A2 3\.81 MiB of 9\.54 MiB, 1\.91 MiB/s, 3 s left", said)


def test_a_pipe_gets_pauses_once_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with MoveProgress() as progress:
        progress.show(seen(1000, 0))
        for _ in range(2):
            progress.show(seen(2000, 1, pause="t-1 fell under min.insync.replicas", missed=3))
        progress.show(seen(3000, 2))
        progress.show(seen(4000, 2, missed=3))
    assert [
        "nothing new begins: t-1 fell under min.insync.replicas; "
        "broker 3 is not alive: what it is to get waits",
        "broker 3 is not alive: what it is to get waits",
    ] == pipe.getvalue().splitlines()
