"""Queries that DuckDB runs in the command's own process, ended by real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.cli.shell import Shell
from tests.cli.terminal import Terminal
from tests.unit.log.logs import name_of
from tests.unit.log.writing import sent

Process: TypeAlias = "subprocess.Popen[str] | subprocess.Popen[bytes]"
#: Compares each of 200,000 records with each other one: minutes inside of one call of DuckDB.
ENDLESS = "select count(*) n from records a, records b where a.value < b.value"
#: More than a query needs up to its join: this much is used in DuckDB alone.
_CPU_S = 0.5
_DEADLINE_S = 30.0
_TICKS = os.sysconf("SC_CLK_TCK")


def write_log(home: Path, values: Iterable[bytes]) -> str:
    """Write a log of 200,000 records, 2,000 of them with each value."""
    content = bytearray()
    for number, value in enumerate(values):
        batch = bytearray(sent(2000, value=value))
        batch[:8] = (2000 * number).to_bytes(8, "big")
        content += batch
    (home / "t-0").mkdir()
    (home / "t-0" / name_of(0)).write_bytes(content)
    return str(home)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_log(tmp_path_factory.mktemp("logs"), (b"%d" % number for number in range(100)))


@pytest.fixture(scope="module")
def equal_logs(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_log(tmp_path_factory.mktemp("logs"), [b"v"] * 100)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    (tmp_path / "temporary").mkdir()
    shell.environment["TMPDIR"] = str(tmp_path / "temporary")
    return shell


def _cpu_s(process: Process) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _until(
    process: subprocess.Popen[str] | subprocess.Popen[bytes], holds: Callable[[], bool]
) -> None:
    deadline_s = time.monotonic() + _DEADLINE_S
    while not holds():
        assert process.poll() is None, "it ended before the signal came"
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


def _wait_for_query(shell: Shell, process: Process, cpu_s: float = _CPU_S) -> None:
    """Wait until a query runs: it has a folder for temporary files, and has used the processor."""
    folder = Path(shell.environment["TMPDIR"])
    _until(process, lambda: any(folder.glob("kctl-sql-*")))
    before_s = _cpu_s(process)
    _until(process, lambda: _cpu_s(process) - before_s >= cpu_s)


def _ended(shell: Shell, process: subprocess.Popen[str]) -> tuple[int, str, str, list[str]]:
    """Return exit code, output and what is left in the folder for temporary files."""
    try:
        out, err = process.communicate(timeout=5)
    finally:
        process.kill()
    return process.returncode, out, err, os.listdir(shell.environment["TMPDIR"])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("cpu_s", [0.0, _CPU_S], ids=["at its start", "within DuckDB"])
def test_a_signal_ends_a_query(
    shell: Shell, logs: str, number: signal.Signals, code: int, cpu_s: float
) -> None:
    process = shell.popen("spark-sql", "--engine", "local", ENDLESS, logs)
    _wait_for_query(shell, process, cpu_s)
    process.send_signal(number)
    assert (code, "", "", []) == _ended(shell, process)


def test_two_signals_end_a_query_that_heeds_none(shell: Shell, equal_logs: str) -> None:
    """Of values that are all equal DuckDB finds no row, and asks for no interrupt meanwhile."""
    process = shell.popen("spark-sql", "--engine", "local", ENDLESS, equal_logs)
    _wait_for_query(shell, process)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    code, out, err, _ = _ended(shell, process)
    assert (130, "", "") == (code, out, err)


def test_a_signal_ends_reports(shell: Shell, logs: str) -> None:
    process = shell.popen("spark-report", "all", "--engine", "local", logs)
    _wait_for_query(shell, process, 0.2)
    process.send_signal(signal.SIGINT)
    assert (130, "", "", []) == _ended(shell, process)


@pytest.fixture
def terminal(shell: Shell, logs: str) -> Iterator[Terminal]:
    terminal = Terminal(shell, "spark-shell", logs)
    yield terminal
    terminal.close()


def test_ctrl_c_ends_a_statement_and_not_the_shell(shell: Shell, terminal: Terminal) -> None:
    terminal.wait_for(b"sql> ")
    terminal.press(ENDLESS.encode() + b";\n")
    _wait_for_query(shell, terminal.process)
    terminal.process.send_signal(signal.SIGINT)
    assert b"Traceback" not in terminal.wait_for(b"sql> ")
    terminal.press(b"select count(*) + 42 n from records;\n")
    terminal.wait_for(b"200042")
    terminal.press(b"exit\n")
    assert 0 == terminal.process.wait(timeout=5)
    assert [] == os.listdir(shell.environment["TMPDIR"])


def test_a_query_that_does_not_stop_keeps_no_process_alive(shell: Shell) -> None:
    """As code of others that DuckDB calls and that waits for something else than its connection."""
    script = """if True:
        import os, signal, threading
        from engine.analysis import interruptible
        from engine.analysis.query_thread import on_query_thread
        from kctl.__main__ import _end_process
        interruptible.END_S = 0.05
        begun = threading.Event()
        def wait_for_ever(*_):
            begun.set()
            threading.Event().wait()
        def interrupt():
            begun.wait()
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            on_query_thread(wait_for_ever, None)
        except KeyboardInterrupt:
            _end_process(130)
    """
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=shell.environment,
        capture_output=True,
        timeout=10,
        check=False,
    )
    assert (130, b"", b"") == (done.returncode, done.stdout, done.stderr)
