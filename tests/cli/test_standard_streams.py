"""Closed and full standard streams: an error in a line or none, never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kctl.app import NOUNS
from tests.cli.shell import KCTL

ROOT = Path(__file__).parent.parent.parent
SEGMENT = ROOT / "tests/golden/plain/data/clicks-0/00000000000000000000.log"
NOWHERE = "-b 127.0.0.1:1"
PRINTING = [
    "--help",
    "--version",
    "completions bash",
    "context list",
    "context list -o json",
    "cluster status",
    "cluster list",
    f"logs dirs {ROOT}/tests/golden/plain/data",
    f"dump-log --files {SEGMENT}",
    "topics --help",
]
#: As Kafka's tool does, dump-log writes its help to stderr.
HELPS = [f"{noun} --help" for noun in NOUNS if noun != "dump-log"]
FAILING = {
    "nope": 2,
    "topics list --nope": 2,
    "topics": 2,
    f"topics list {NOWHERE}": 3,
    f"topics delete t {NOWHERE}": 3,
    f"produce t {NOWHERE}": 3,
    f"consume t {NOWHERE}": 3,
    "znode ls -z 127.0.0.1:1 --timeout 0.3": 3,
    "context use none": 2,
    "cluster destroy": 1,
}
REASONS = {">&-": "Bad file descriptor", ">/dev/full": "No space left on device"}
Run = Callable[[str, str], tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))

    def call(words: str, redirection: str) -> tuple[int, str]:
        line = f"{' '.join(KCTL)} {words} {redirection}"
        done = subprocess.run(
            ["bash", "-c", line],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        hold_no_traceback(line, done.stdout + done.stderr)
        return done.returncode, done.stderr

    return call


def hold_no_traceback(line: str, told: str) -> None:
    for word in ("Traceback", "Exception ignored", "internal error"):
        assert word not in told, line


@pytest.fixture(scope="module")
def helps() -> dict[str, tuple[int, str]]:
    """Return how the help of each noun ends where stdout is closed, or full."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.forked_streams", *HELPS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    endings: dict[str, tuple[int, str]] = json.loads(done.stdout)
    return endings


@pytest.mark.parametrize("words", PRINTING)
def test_what_cannot_be_printed_is_one_clear_error(run: Run, words: str) -> None:
    for redirection, reason in REASONS.items():
        code, err = run(words, redirection)
        assert (1, True) == (code, f"error: the output cannot be written: {reason}" in err), err


@pytest.mark.parametrize("words", HELPS)
def test_help_that_cannot_be_printed_is_one_clear_error(
    helps: dict[str, tuple[int, str]], words: str
) -> None:
    for redirection, reason in REASONS.items():
        code, err = helps[f"{words} {redirection}"]
        hold_no_traceback(words, err)
        assert (1, True) == (code, f"error: the output cannot be written: {reason}" in err), err


@pytest.mark.parametrize("words", FAILING)
def test_an_error_keeps_its_exit_code_wherever_it_is_reported(run: Run, words: str) -> None:
    for redirection in (">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full"):
        assert FAILING[words] == run(words, redirection)[0], redirection


@pytest.mark.parametrize("words", ["--help", "completions zsh", "context list", "cluster list"])
def test_a_command_needs_neither_stdin_nor_stderr(run: Run, words: str) -> None:
    for redirection in ("<&-", "2>&-", "2>/dev/full", "<&- 2>&-"):
        assert 0 == run(words, redirection)[0], redirection


def test_no_file_takes_the_place_of_a_closed_stream(run: Run, tmp_path: Path) -> None:
    run("context set here -b 127.0.0.1:1", "<&- >&- 2>&-")
    kept = (tmp_path / "kctl" / "config.yaml").read_text()
    assert kept == "current: here\ncontexts:\n  here:\n    bootstrap_servers: 127.0.0.1:1\n"
