"""Processes that do what they are asked, and end with who started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from engine.errors import StorageError
from engine.host import side_process
from engine.host.ports import SideProcessGone
from engine.host.side_process import FilesOfOwner, PipedProcess
from engine.limits import SIDE_PRIORITY

#: A module of the tests that answers with what it is asked to evaluate.
MODULE = "tests.unit.host.answering_process"


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> PipedProcess:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    return PipedProcess(MODULE)


def test_it_answers_what_it_is_asked_however_long(process: PipedProcess) -> None:
    assert b"2" == process.request(b"1 + 1")
    assert 3_000_000 == len(process.request(b"'x' * 3_000_000"))
    assert b"3000000" == process.request(b"len('%b')" % (b"y" * 3_000_000))
    process.close()


def test_what_it_prints_is_no_answer(process: PipedProcess) -> None:
    assert b"None" == process.request(b"print('told', file=__import__('sys').stdout)")
    process.close()


def test_it_has_a_low_priority_and_ignores_the_terminal(process: PipedProcess) -> None:
    assert str(min(os.nice(0) + SIDE_PRIORITY, 19)).encode() == process.request(b"os.nice(0)")
    os.kill(process.pid, signal.SIGINT)
    assert b"2" == process.request(b"1 + 1")
    process.close()


def test_it_ends_when_it_is_closed(process: PipedProcess) -> None:
    process.close()
    process.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


class MadePipe(NamedTuple):
    """An end of a pipe that was made, by its descriptor and its name in the system."""

    descriptor: int
    link: str


def recorded_pipes(monkeypatch: pytest.MonkeyPatch, *, works: int = 99) -> list[MadePipe]:
    """Record the ends of pipes that are made; no more than `works` can be."""
    pipe, made = os.pipe, list[MadePipe]()

    def recorded() -> tuple[int, int]:
        if len(made) == 2 * works:
            raise OSError(24, "Too many open files")
        ends = pipe()
        made.extend(MadePipe(end, os.readlink(f"/proc/self/fd/{end}")) for end in ends)
        return ends

    monkeypatch.setattr(os, "pipe", recorded)
    return made


def is_open(end: MadePipe) -> bool:
    """Return True if the descriptor is still that of the pipe, and not of another one since."""
    try:
        return os.readlink(f"/proc/self/fd/{end.descriptor}") == end.link
    except FileNotFoundError:
        return False


def test_one_that_is_gone_is_noticed_each_time(process: PipedProcess) -> None:
    for _ in range(2):
        with pytest.raises(SideProcessGone) as gone:
            process.request(b"os._exit(1)")
        assert str(process.pid) in str(gone.value)
    process.close()


def test_one_that_cannot_be_started_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_process, "python_command", lambda *words: ["/no/such/program"])
    made = recorded_pipes(monkeypatch)
    with pytest.raises(StorageError, match="/no/such/program"):
        PipedProcess(MODULE)
    assert made
    assert [] == [pipe for pipe in made if is_open(pipe)]


def kill_once_it_speaks(owner: str) -> None:
    """Kill a program once its side has said something, and wait for the side's own end."""
    with subprocess.Popen(
        [sys.executable, "-c", owner],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    ) as started:
        assert started.stderr is not None
        started.stderr.readline()
        started.kill()
        # The end of what both write to: the side has ended as well.
        assert b"" == started.stderr.read()


def test_it_touches_no_file_once_its_owner_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    work = (
        "files = FilesOfOwner(owner_pid()); files.open(PATH, write=True, create=True).close()\n"
        "print(os.getpid(), flush=True, file=sys.stderr)\n"
        "while True: files.open(PATH, write=True)"
    ).replace("PATH", repr(str(path)))
    owner = (
        "from engine.host.side_process import PipedProcess\n"
        f"PipedProcess({MODULE!r}).request({work.encode()!r})"
    )
    kill_once_it_speaks(owner)
    assert path.exists()


def test_an_idle_one_ends_when_its_owner_is_killed() -> None:
    owner = (
        "from engine.host.side_process import PipedProcess\n"
        f"process = PipedProcess({MODULE!r})\n"
        "process.request(b'print(os.getpid(), flush=True)')\n"
        "__import__('time').sleep(60)"
    )
    kill_once_it_speaks(owner)


def test_files_are_those_of_the_machine_while_the_owner_is_there(tmp_path: Path) -> None:
    files, path = FilesOfOwner(os.getppid()), str(tmp_path / "file")
    files.open(path, write=True, create=True).close()
    files.set_modified_ms(path, 5000)
    assert 5000 == files.modified_ms(path)
    files.remove(path)
    assert not files.exists(path)


@pytest.mark.parametrize("works", [0, 1])
def test_a_machine_without_descriptors_is_an_error_and_loses_none(
    works: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = recorded_pipes(monkeypatch, works=works)
    with pytest.raises(StorageError, match="Too many open files"):
        PipedProcess(MODULE)
    assert [] == [pipe for pipe in made if is_open(pipe)]
