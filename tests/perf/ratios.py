"""Times commands side by side: interleaved runs, medians, ratios of wall and CPU time."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple


class Cost(NamedTuple):
    """What one run of a command took, its children included."""

    wall_s: float
    cpu_s: float
    rss_mb: float


def run_once(command: list[str], stdin_path: str = os.devnull) -> Cost:
    """Run a command with stdout thrown away; raises when it fails."""
    with open(stdin_path, "rb") as stdin:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status != 0:
        message = (process.stderr.read() if process.stderr else b"").decode(errors="replace")
        raise RuntimeError(f"{' '.join(command)} failed: {message[:500]}")
    if process.stderr:
        process.stderr.close()
    process.returncode = 0
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


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
