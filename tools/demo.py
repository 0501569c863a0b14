"""The demo of `make demo`: dump a log that real Kafka wrote, export a log directory, ask it SQL.

    python tools/demo.py OUT

Every step is a kctl command; it is shown before it runs, so that it can be typed again.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
DATA = "tests/golden/plain/data"
_LINES_SHOWN = 6
_COLUMNS_SHOWN = 150


def main() -> int:
    """Run every step; returns the first exit code that is not 0."""
    out = sys.argv[1] if len(sys.argv) > 1 else "demo-out"
    segment = f"{DATA}/clicks-0/00000000000000000000.log"
    steps = [
        ["logs", "dirs", DATA],
        ["logs", "verify", DATA],
        ["dump-log", "--print-data-log", "--files", segment],
        ["dump-log", f"{DATA}/clicks-0", "--key", "quarry-1", "-o", "ndjson"],
        ["spark-export", DATA, "--out", out],
        ["spark-sql", "select topic, count(*) records, sum(value_size) bytes, min(timestamp) first"
         " from records group by topic order by topic", DATA],
    ]  # fmt: skip
    for step in steps:
        code = _show(step)
        if code:
            return code
    return 0


def _show(arguments: list[str]) -> int:
    print(f"\n$ kctl {shlex.join(arguments)}", flush=True)
    kctl = Path(sys.executable).parent / "kctl"
    run = subprocess.run(
        [kctl, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    lines = run.stdout.split("\n")
    for line in lines[:_LINES_SHOWN] if arguments[0] == "dump-log" else lines:
        print(line if len(line) <= _COLUMNS_SHOWN else f"{line[:_COLUMNS_SHOWN]}…")
    if arguments[0] == "dump-log" and len(lines) > _LINES_SHOWN:
        print(f"… {len(lines) - _LINES_SHOWN} more lines")
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
