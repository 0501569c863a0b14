"""Signals at any time of a command's life: what it leaves behind, how it ends.

    python -m tests.cli.interrupting [--every 0.1] [--only TEXT]

The whole sweep, by hand: each command of `CASES` with SIGINT once, twice and SIGTERM at every
moment of its life. The tests take a few moments of each.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.cli.shell import KCTL, Shell

#: How long a command may take to end. Kafka's own tools take as long as a JVM does.
END_S = 2.0
_OUTER_S = 60.0
#: A signal, how often it is sent, and the exit codes that it may have.
HOWS = {
    "INT": ((signal.SIGINT, 1), (130,)),
    "INT twice": ((signal.SIGINT, 2), (130,)),
    "TERM": ((signal.SIGTERM, 1), (143,)),
}


class Case(NamedTuple):
    """A command, and what it needs; `codes` are further exit codes that it may have."""

    name: str
    words: tuple[str, ...]
    #: Prepares the home once; the command gets what it returns for {}.
    prepare: Callable[[Shell], None]
    #: Names below the home that may be new when the command was interrupted.
    leaves: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()
    stdin: bytes = b""
    #: The folder below the home that the command makes: whole, or not at all.
    result: str = ""
    #: A cluster that had started when the signal came runs on, and is shown by its status.
    starts: bool = False


class Ending(NamedTuple):
    """How an interrupted command ended."""

    code: int
    told: str
    took_s: float
    was_over: bool
    left: list[str]
    #: The files of the command's result, with their sizes.
    result: dict[str, int]


def processes_naming(text: str) -> list[str]:
    """Return the processes whose command line or home names a folder."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        try:
            state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
            line = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            home = Path(f"/proc/{name}/environ").read_bytes()
        except OSError:
            continue
        if state != "Z" and (text in line or f"HOME={text}\0".encode() in home + b"\0"):
            found.append(f"{name} {line.strip()}")
    return found


def files_below(folder: Path) -> set[str]:
    """Return the paths below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def result_of(shell: Shell, case: Case) -> dict[str, int]:
    """Return the files of a command's result, with their sizes; nothing if there is none."""
    folder = shell.home / case.result
    if not case.result or not folder.exists():
        return {}
    return {name: (folder / name).stat().st_size for name in files_below(folder)}


def whole_result(shell: Shell, case: Case) -> dict[str, int]:
    """Return the result of a command that nobody interrupts, and remove it."""
    if not case.result:
        return {}
    subprocess.run(
        [*KCTL, *case.words],
        cwd=shell.home,
        env=shell.environment,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    found = result_of(shell, case)
    shutil.rmtree(shell.home / case.result)
    return found


def interrupt(shell: Shell, case: Case, how: str, delay_s: float) -> Ending:
    """Run a command, send a signal after a time, and return how it ended."""
    (number, count), _ = HOWS[how]
    before, running = files_below(shell.home), set(processes_naming(str(shell.home)))
    process = subprocess.Popen(
        [*KCTL, *case.words],
        cwd=shell.home,
        env=shell.environment | {"TMPDIR": str(shell.home / "tmp")},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(case.stdin)
        process.stdin.flush()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=delay_s)
    was_over = process.poll() is not None
    began_s = time.monotonic()
    for _ in range(count):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        time.sleep(0.02)
    try:
        _, told = process.communicate(timeout=_OUTER_S)
    except subprocess.TimeoutExpired:
        process.kill()
        _, told = process.communicate()
        told += b"NEVER ENDED"
    took_s = time.monotonic() - began_s
    deadline_s = time.monotonic() + END_S
    while True:
        left = [line for line in processes_naming(str(shell.home)) if line not in running]
        if not left or time.monotonic() > deadline_s:
            break
        time.sleep(0.01)
    new = sorted(files_below(shell.home) - before)
    # Compiled code is kept for the next command, even if this one fails.
    allowed = (*case.leaves, ".cache")
    result = result_of(shell, case)
    if result:
        allowed = (*allowed, case.result)
        shutil.rmtree(shell.home / case.result)
    kept = [name for name in new if not name.startswith(allowed)]
    # It says so, or was at its very end.
    notifies_peer = b"runs; `kctl cluster stop`" in told or process.returncode <= 0
    if left and case.starts and notifies_peer and shell.status()["state"] == "running":
        left = []
    text = told.decode(errors="replace")
    return Ending(process.returncode, text, took_s, was_over, left + kept, result)


def problems(case: Case, how: str, ending: Ending, whole: dict[str, int]) -> list[str]:
    """Return what is wrong with an ending, nothing if all is well.

    `whole` is the result of a command that nobody interrupts: that of one whose work was done when
    the signal came.
    """
    if ending.was_over:
        failed = ending.code not in (0, *case.codes)
        return [f"failed before the signal came: {ending.told}"] if failed else []
    found = []
    _, codes = HOWS[how]
    # A command may have been at its end: its interpreter then dies of the signal, as any does.
    dying = [-(code - 128) for code in codes]
    if ending.code not in (*codes, *dying, *case.codes, 0):
        found.append(f"exit code {ending.code}")
    if "Traceback" in ending.told or "NEVER ENDED" in ending.told:
        found.append(ending.told)
    if ending.result not in ({}, whole):
        found.append(f"left half of its result: {len(ending.result)} of {len(whole)} files")
    if ending.took_s > END_S:
        found.append(f"took {ending.took_s:.1f} s")
    return found + [f"left {one}" for one in ending.left]


def _nothing(shell: Shell) -> None:
    (shell.home / "tmp").mkdir(exist_ok=True)


def with_cluster(shell: Shell) -> None:
    """Have a cluster with records, and what commands want from it."""
    _nothing(shell)
    words = ("--brokers", "3", "--port", "0", "--set", "log.segment.bytes=1048576")
    shell.ok("cluster", "start", *words)
    shell.ok("topics", "create", "t", "-p", "4", "-r", "2")
    shell.ok("topics", "create", "other", "-p", "4", "-r", "1")
    compacted = ("-c", "cleanup.policy=compact")
    shell.ok("topics", "create", "c", "-p", "2", "-r", "1", *compacted)
    lines = "".join(f"{number:099}\n" for number in range(20_000))
    shell.ok("produce", "t", stdin=lines)
    keyed = "".join(f"{number % 99}:{number:080}\n" for number in range(20_000))
    shell.ok("produce", "c", "-k", ":", stdin=keyed)
    shell.ok("reassign", "plan", "--drain", "3", "--out", str(shell.home / "plan.json"))


def with_logs(shell: Shell) -> None:
    """Have copied log directories of a cluster that is gone."""
    with_cluster(shell)
    data = Path(shell.status()["data"])
    shell.ok("cluster", "stop")
    shutil.copytree(data / "broker-1", shell.home / "logs")


def with_cluster_and_logs(shell: Shell) -> None:
    """Have a cluster that runs, and copies of the log directories of one of its brokers."""
    with_logs(shell)
    shell.ok("cluster", "start")


CASES = (
    Case(
        "cluster start",
        ("cluster", "start", "--port", "0"),
        _nothing,
        ("data", "config", "state", ".local"),
        starts=True,
    ),
    Case(
        "cluster start --processes",
        ("cluster", "start", "--port", "0", "--brokers", "2", "--processes"),
        _nothing,
        ("data", "config", "state", ".local"),
        starts=True,
    ),
    Case(
        "cluster start --foreground",
        ("cluster", "start", "--port", "0", "--foreground"),
        _nothing,
        ("data", "config", "state", ".local"),
        # A stop in order; the second signal ends it as a kill would.
        (0, 137, -signal.SIGINT),
    ),
    Case("consume", ("consume", "t"), with_cluster, ("data",)),
    Case("consume group", ("consume", "t", "-o", "json", "-n", "19000"), with_cluster, ("data",)),
    Case("produce", ("produce", "t"), with_cluster, ("data",), stdin=b"line\n" * 1000),
    Case("check --wait", ("check", "--wait"), with_cluster, ("data",)),
    Case(
        "replay",
        ("replay", "logs", "--topic", "t", "--to", "t", "--speed", "0.01x"),
        with_cluster_and_logs,
        ("data",),
    ),
    Case(
        "reassign rehearse",
        ("reassign", "rehearse", "plan.json"),
        with_cluster,
        ("data",),
    ),
    Case("compact run", ("compact", "run", "c"), with_cluster, ("data",)),
    Case(
        "compact run --dir",
        ("compact", "run", "--dir", "logs", "--out", "out"),
        with_logs,
        result="out",
    ),
    Case("retention run", ("retention", "run", "t", "-y"), with_cluster, ("data",)),
    Case(
        "retention run --dir",
        ("retention", "run", "--dir", "logs", "--out", "out"),
        with_logs,
        result="out",
    ),
    Case("logs verify", ("logs", "verify", "logs"), with_logs),
    Case("logs repair", ("logs", "repair", "logs", "-y"), with_logs),
    Case("dump-log", ("dump-log", "--print-data-log", "logs/t-0"), with_logs),
    Case("spark-export", ("spark-export", "logs", "--out", "out"), with_logs),
    Case("spark-sql", ("spark-sql", "select count(*) from records", "logs"), with_logs),
    Case("cluster logs -f", ("cluster", "logs", "-f"), with_cluster, ("data",)),
    Case("cluster restart", ("cluster", "restart", "2"), with_cluster, ("data",)),
    Case("sim run", ("sim", "run", "--seeds", "100", "--jobs", "2"), _nothing),
)


def moments(every_s: float, longest_s: float) -> Iterator[float]:
    """Yield the times after a start at which signals come."""
    # Before that it is the interpreter which starts: what it says is not ours.
    at_s = 0.3
    while at_s < longest_s:
        yield at_s
        at_s += every_s


def main() -> int:
    """Sweep; returns 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=float, default=0.1, help="seconds between the moments")
    parser.add_argument("--only", default="", help="commands whose name has this")
    parser.add_argument("--longest", type=float, default=6.0, help="seconds of a command's life")
    options = parser.parse_args()
    # A shell that starts the sweep in the background has it ignore SIGINT, and so its commands.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    wrong = 0
    for case in CASES:
        if options.only not in case.name:
            continue
        folder = Path(tempfile.mkdtemp(prefix="interrupting-"))
        shell = Shell(folder)
        os.chdir(folder)
        case.prepare(shell)
        whole = whole_result(shell, case)
        count, slowest_s = 0, 0.0
        for how in HOWS:
            for at_s in moments(options.every, options.longest):
                ending = interrupt(shell, case, how, at_s)
                count += 1
                slowest_s = max(slowest_s, 0.0 if ending.was_over else ending.took_s)
                for problem in problems(case, how, ending, whole):
                    wrong += 1
                    sys.stdout.write(f"{case.name}, {how} at {at_s:.2f} s: {problem}\n")
                for name in ending.left:
                    path = folder / name
                    shutil.rmtree(path, ignore_errors=True)
                    path.unlink(missing_ok=True)
                if case.name.startswith("cluster start"):
                    shell.run("cluster", "destroy", "-y")
                if ending.was_over:
                    break
        sys.stdout.write(f"{case.name}: {count} runs, the slowest end took {slowest_s:.2f} s\n")
        sys.stdout.flush()
        shell.run("cluster", "destroy", "-y")
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
