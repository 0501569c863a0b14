"""Statements on Spark, ended by real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.cli.terminal import Terminal
from tests.cli.test_interrupted_queries import ENDLESS, write_log

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

_DEADLINE_S = 60.0
#: A second for the jobs, one for the JVM, and what a busy machine takes.
_END_S = 8.0


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> str:
    home = tmp_path_factory.mktemp("logs")
    return write_log(home, (b"%d" % number for number in range(100)))


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    (tmp_path / "temporary").mkdir()
    shell.environment["TMPDIR"] = str(tmp_path / "temporary")
    yield shell


def _until(
    process: subprocess.Popen[str] | subprocess.Popen[bytes], holds: Callable[[], bool]
) -> None:
    deadline_s = time.monotonic() + _DEADLINE_S
    while not holds():
        assert process.poll() is None, "it ended before the signal came"
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def _children(number: int, word: bytes) -> list[int]:
    """Return the processes that a process has started, by a word of their command lines."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            words = (path / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == number and word in words:
            found.append(int(path.name))
    return found


def _jvm_at_work(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> int:
    """Wait until tasks run; returns the JVM that runs them."""
    jvms: list[int] = []

    def runs_tasks() -> bool:
        jvms[:] = _children(process.pid, b"SparkSubmit")
        return any(_children(jvm, b"pyspark.daemon") for jvm in jvms)

    _until(process, runs_tasks)
    (jvm,) = jvms
    return jvm


def _is_there(number: int) -> bool:
    return Path(f"/proc/{number}").exists()


@pytest.mark.parametrize(
    ("number", "code", "answers"),
    [(signal.SIGINT, 130, True), (signal.SIGTERM, 143, True), (signal.SIGINT, 130, False)],
    ids=["SIGINT", "SIGTERM", "SIGINT while the JVM does not answer"],
)
def test_a_signal_ends_a_query(
    shell: Shell, logs: str, number: signal.Signals, code: int, answers: bool
) -> None:
    process = shell.popen("spark-sql", "--engine", "spark", ENDLESS, logs)
    jvm = _jvm_at_work(process)
    if not answers:
        os.kill(jvm, signal.SIGSTOP)
    process.send_signal(number)
    try:
        out, err = process.communicate(timeout=_END_S)
    finally:
        process.kill()
        if not answers and _is_there(jvm):
            os.kill(jvm, signal.SIGKILL)
    assert (code, "", "") == (process.returncode, out, err)
    assert not _is_there(jvm)
    assert [] == os.listdir(shell.environment["TMPDIR"])


def test_ctrl_c_ends_a_statement_and_not_the_shell(shell: Shell, logs: str) -> None:
    terminal = Terminal(shell, "spark-shell", "--master", "local[2]", logs)
    try:
        terminal.wait_for(b"sql> ")
        terminal.press(ENDLESS.encode() + b";\n")
        jvm = _jvm_at_work(terminal.process)
        terminal.process.send_signal(signal.SIGINT)
        assert b"Traceback" not in terminal.wait_for(b"sql> ")
        terminal.press(b"select count(*) + 42 n from records;\n")
        terminal.wait_for(b"200042")
        terminal.press(b"exit\n")
        assert 0 == terminal.process.wait(timeout=_DEADLINE_S)
    finally:
        terminal.close()
    _ = jvm
