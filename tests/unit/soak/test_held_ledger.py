"""The ledger of the soaks finds in a process what a broker must not hold."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.soak.held_ledger import HeldLedger

#: A process of its own, for what else this one holds comes and goes with other tests.
_SUBJECT = """
import os, socket, subprocess, sys
held = {}
for line in sys.stdin:
    exec(line, globals())
    print("done", flush=True)
"""


class Subject:
    """A process that does as it is told, and its ledger."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SUBJECT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pids = {"subject": self._process.pid}
        self.ledger = HeldLedger([folder], rss_mib_max=1 << 20)
        self.do("pass")
        self.ledger.begin(self.pids)

    def do(self, statement: str) -> None:
        """Have a statement of one line carried out."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{statement}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"

    def findings(self) -> list[str]:
        return self.ledger.findings(self.pids)

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[Subject]:
    made = Subject(tmp_path)
    yield made
    made.end()


@pytest.fixture
def log(tmp_path: Path, subject: Subject) -> Path:
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(b"records")
    subject.do(f"held['log'] = open({str(path)!r}, 'rb')")
    return path


def test_the_file_of_a_live_segment_may_be_open_once(subject: Subject, log: Path) -> None:
    assert [] == subject.findings()
    subject.do(f"held['again'] = open({str(log)!r}, 'rb')")
    (found,) = subject.findings()
    assert f"open 2 times: {log}" in found


def test_a_file_that_is_deleted_may_not_be_open(subject: Subject, log: Path) -> None:
    renamed = log.rename(f"{log}.deleted")
    (found,) = subject.findings()
    assert f"open, and deleted: {renamed}" in found
    renamed.unlink()
    (found,) = subject.findings()
    assert f"open, and deleted: {renamed} (deleted)" in found


def test_the_middle_of_a_change_may_not_be_left(subject: Subject, log: Path) -> None:
    (log.parent / "5.log.cleaned").touch()
    (log.parent / "5.index.swap").touch()
    (log.parent.parent / "recovery-point-offset-checkpoint.tmp").touch()
    assert 3 == len(subject.findings())


def test_descriptors_are_where_they_began(subject: Subject) -> None:
    subject.do("held['pipe'] = os.pipe()")
    (found,) = subject.findings()
    assert "descriptors at first" in found
    subject.do("for descriptor in held['pipe']: os.close(descriptor)")
    assert [] == subject.findings()


def test_a_socket_has_another_end(subject: Subject) -> None:
    subject.do("held['server'] = socket.create_server(('127.0.0.1', 0))")
    subject.do("held['client'] = socket.create_connection(held['server'].getsockname())")
    subject.do("held['taken'], _ = held['server'].accept()")
    assert [] == subject.findings()
    subject.do("held['client'].close(); held['taken'].recv(1)")
    (found,) = subject.findings()
    assert "a socket to nobody" in found


def test_a_child_process_is_found(subject: Subject) -> None:
    subject.do("held['child'] = subprocess.Popen(['cat'], stdin=subprocess.PIPE)")
    found = subject.findings()
    assert any("a child: " in each and " cat" in each for each in found)
    subject.do("held['child'].communicate()")
    assert [] == subject.findings()


def test_memory_has_a_bound(subject: Subject, tmp_path: Path) -> None:
    (found,) = HeldLedger([tmp_path], rss_mib_max=1).findings(subject.pids)
    assert "MiB of memory, 1 at most" in found


def test_what_is_held_is_waited_for_and_said_after_the_deadline(
    subject: Subject, log: Path
) -> None:
    subject.ledger.check(subject.pids)
    log.unlink()
    with pytest.raises(AssertionError, match="open, and deleted"):
        subject.ledger.check(subject.pids, deadline_s=0)
