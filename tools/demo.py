"""The demo of `make demo`: logs that real Kafka wrote, dumped and asked; a cluster of our own.

    python tools/demo.py OUT

Every step is a kctl command; it is shown before it runs, so that it can be typed again.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
DATA = "tests/golden/plain/data"
_LINES_SHOWN = 6
_COLUMNS_SHOWN = 150


class Step(NamedTuple):
    """A kctl command, what it reads, and how many lines of its output are shown."""

    arguments: list[str]
    stdin: str = ""
    lines: int | None = None


def of_logs(out: str) -> list[Step]:
    """Return the steps on log directories."""
    segment = f"{DATA}/clicks-0/00000000000000000000.log"
    by_key = ["dump-log", f"{DATA}/clicks-0", "--key", "quarry-1", "-o", "ndjson"]
    question = (
        "select topic, count(*) records, sum(value_size) bytes, min(timestamp) first"
        " from records group by topic order by topic"
    )
    return [
        Step(["logs", "dirs", DATA]),
        Step(["logs", "verify", DATA]),
        Step(["dump-log", "--print-data-log", "--files", segment], lines=_LINES_SHOWN),
        Step(by_key, lines=_LINES_SHOWN),
        Step(["spark-export", DATA, "--out", out]),
        Step(["spark-sql", question, DATA]),
    ]


def of_cluster(address: str, data: str) -> list[Step]:
    """Return the steps on a cluster that runs."""
    records = "".join(f"user-{n % 7}:click {n}\n" for n in range(1000))
    segment = f"{data}/broker-1/clicks-1/00000000000000000000.log"
    return [
        Step(["topics", "create", "clicks", "-p", "3", "-b", address]),
        Step(["produce", "clicks", "-k", ":", "-z", "zstd", "-b", address], records),
        Step(["topics", "describe", "clicks", "--offsets", "-b", address]),
        Step(["consume", "clicks", "-e", "-f", "%p %o %k %s\\n", "-b", address], lines=3),
        Step(["demo", "produce-consume", "sync", "--records", "3", "-b", address]),
        Step(["demo", "exactly-once", "4", "2", "2000", "-b", address, "-y"]),
        Step(["znode", "tree", "/brokers/topics/clicks", "--data", data]),
        Step(["dump-log", "--print-data-log", "--files", segment], lines=3),
    ]


def main() -> int:
    """Run every step; returns the first exit code that is not 0."""
    out = sys.argv[1] if len(sys.argv) > 1 else "demo-out"
    code = _show_all(of_logs(out))
    if code:
        return code
    with tempfile.TemporaryDirectory() as folder:
        data = ["--data", f"{folder}/cluster"]
        try:
            code = _show_all([Step(["cluster", "start", *data, "--port", "0"])])
            if not code:
                found = json.loads(_run(Step(["cluster", "status", *data, "-o", "json"])).stdout)
                code = _show_all(of_cluster(found["bootstrap_servers"], found["data"]))
        finally:
            _run(Step(["cluster", "destroy", *data, "-y"]))
    return code


def _show_all(steps: list[Step]) -> int:
    return next((code for code in map(_show, steps) if code), 0)


def _run(step: Step) -> subprocess.CompletedProcess[str]:
    kctl = Path(sys.executable).parent / "kctl"
    return subprocess.run(
        [kctl, *step.arguments],
        cwd=ROOT,
        input=step.stdin,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )


def _show(step: Step) -> int:
    print(f"\n$ kctl {shlex.join(step.arguments)}", flush=True)
    run = _run(step)
    lines = run.stdout.split("\n")
    for line in lines[: step.lines]:
        print(line if len(line) <= _COLUMNS_SHOWN else f"{line[:_COLUMNS_SHOWN]}…")
    if step.lines is not None and len(lines) > step.lines:
        print(f"… {len(lines) - step.lines} more lines")
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
