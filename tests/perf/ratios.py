"""Times commands side by side: interleaved runs, medians, ratios of wall and CPU time."""

from __future__ import annotations

import ctypes
import os
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

#: Of <linux/prctl.h>.
_PR_SET_CHILD_SUBREAPER: Final = 36


class Cost(NamedTuple):
    """What one run of a command took, its children included."""

    wall_s: float
    cpu_s: float
    rss_mb: float


def run_once(
    command: list[str], stdin_path: str = os.devnull, *, waits_for_orphans: bool = False
) -> Cost:
    """Run a command with stdout thrown away; raises when it fails.

    The wall time is that of the command, the CPU time that of all processes that it has waited
    for. With `waits_for_orphans` those that outlive it for a while, as Spark's JVM does, are waited
    for, and the CPU time is that of the whole machine, which must do nothing else: a process that
    nobody waits for takes its own away with it.
    """
    if waits_for_orphans:
        _adopt_orphans()
    busy_s = _busy_s()
    with open(stdin_path, "rb") as stdin:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = 0
    cpu_s = usage.ru_utime + usage.ru_stime
    if waits_for_orphans:
        _await_orphans()
        cpu_s = _busy_s() - busy_s
    message = (process.stderr.read() if process.stderr else b"").decode(errors="replace")
    if process.stderr:
        process.stderr.close()
    if status != 0:
        raise RuntimeError(f"{' '.join(command)} failed: {message[:500]}")
    return Cost(wall, cpu_s, usage.ru_maxrss / 1024)


def _adopt_orphans() -> None:
    """Become the parent of the processes whose own parent ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _await_orphans() -> None:
    """Wait for the processes that a command has left."""
    with suppress(ChildProcessError):
        while True:
            os.wait3(0)


def _busy_s() -> float:
    """Return the CPU seconds of all processors of this machine since it has started."""
    user, nice, system, _, _, *interrupts = map(
        int, Path("/proc/stat").read_text().partition("\n")[0].split()[1:8]
    )
    ticks: int = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + sum(interrupts)) / ticks


def median(costs: list[Cost]) -> Cost:
    """Return the median of each column."""
    return Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))


def compare(ours: list[str], peer: list[str], rounds: int) -> tuple[Cost, Cost]:
    """Run both in turn, `rounds` times, after one run of each that is not counted."""
    run_once(ours)
    run_once(peer)
    mine, theirs = [], []
    for _ in range(rounds):
        mine.append(run_once(ours))
        theirs.append(run_once(peer))
    return median(mine), median(theirs)


def table_line(label: str, ours: Cost, peer: Cost, target: str) -> str:
    """Return one line of the report."""
    return (
        f"| {label} | {ours.wall_s:.2f} s, {ours.cpu_s:.2f} CPU-s, {ours.rss_mb:.0f} MB "
        f"| {peer.wall_s:.2f} s, {peer.cpu_s:.2f} CPU-s, {peer.rss_mb:.0f} MB "
        f"| {peer.wall_s / ours.wall_s:.1f}x | {target} |"
    )


def machine_line() -> str:
    """Return what the figures were measured on."""
    import platform

    cpu = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return f"{os.cpu_count()} x {cpu}, Python {sys.version.split()[0]}, {platform.system()}"
