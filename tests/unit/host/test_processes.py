"""Processes that outlive the one that starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.host.processes import (
    Started,
    is_running,
    kill,
    python_command,
    start_detached,
    start_in_session,
    terminate,
)

_READY = "from engine.host.processes import report_ready; report_ready('here'); "


def started(tmp_path: Path, code: str) -> Started:
    return start_detached([sys.executable, "-c", code], str(tmp_path / "out.log"))


def wait_for_end(process: Started) -> None:
    while is_running(process.pid):
        pass


def test_a_process_says_when_it_is_ready_and_goes_on(tmp_path: Path) -> None:
    process = started(tmp_path, _READY + "import time; time.sleep(60)")
    assert process.wait_until_ready(60) == b"here\n"
    assert is_running(process.pid)
    assert terminate(process.pid)
    wait_for_end(process)
    assert not terminate(process.pid)


def test_a_process_that_ends_before_it_is_ready_is_noticed(tmp_path: Path) -> None:
    process = started(tmp_path, "print('no luck', flush=True)")
    assert process.wait_until_ready(60) == b""
    wait_for_end(process)
    assert (tmp_path / "out.log").read_text() == "no luck\n"


def test_a_process_that_is_not_ready_in_time_is_given_up(tmp_path: Path) -> None:
    process = started(tmp_path, "import time; time.sleep(60)")
    assert process.wait_until_ready(0.01) is None
    assert kill(process.pid)
    wait_for_end(process)


def test_a_zombie_that_its_parent_does_not_reap_is_not_running() -> None:
    code = "import os; p = os.posix_spawn('/bin/true', ['true'], {}); print(p, flush=True); input()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        zombie_pid = int(parent.stdout.readline())
        stat = Path(f"/proc/{zombie_pid}/stat")
        if stat.exists():
            while b") Z" not in stat.read_bytes():
                pass
            assert not is_running(zombie_pid)
            assert stat.exists()
        parent.communicate(b"\n")


def test_a_process_with_a_thread_left_is_running_though_its_first_thread_has_ended() -> None:
    code = (
        "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); "
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        stat = Path(f"/proc/{process.pid}/stat")
        if stat.exists():
            while b") Z" not in stat.read_bytes():
                pass
            assert is_running(process.pid)
        process.kill()


def test_its_session_is_its_own(tmp_path: Path) -> None:
    process = started(
        tmp_path, _READY + "import os; print(os.getsid(0) == os.getpid(), flush=True)"
    )
    assert process.wait_until_ready(60) == b"here\n"
    wait_for_end(process)
    assert (tmp_path / "out.log").read_text() == "True\n"


def test_modules_are_not_imported_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "this.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    ended = subprocess.run(python_command("this"), stdout=subprocess.DEVNULL, check=False)
    assert 0 == ended.returncode


def test_a_module_runs_beside_until_it_has_ended() -> None:
    pid = start_in_session("this")
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert not is_running(pid)


def test_a_process_that_was_ready_keeps_nothing_open_for_that() -> None:
    code = (
        "import os; from engine.host import processes;"
        "ends = os.pipe(); os.dup2(ends[0], 10); os.dup2(ends[1], processes._READY_DESCRIPTOR);"
        "os.environ[processes._READY_VARIABLE] = '1'; processes.report_ready('ready');"
        "os.fstat(processes._READY_DESCRIPTOR)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "Bad file descriptor" in done.stderr
