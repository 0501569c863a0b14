"""The tests that `make quick` leaves out: those that took longest when all were last measured.

    make slow-tests        measures the tests of `make portable`, and writes slow_tests.txt

A test is slow from SLOW_S on, all its parameters together; it is listed with its file and function.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

LIST = Path(__file__).parent / "slow_tests.txt"
#: On two cores that do nothing else.
SLOW_S = 0.15
_DURATION = re.compile(r"([\d.]+)s (?:call|setup|teardown) +(tests/\S+?\.py::[^\[\s@]+)")


def slow_tests() -> frozenset[str]:
    """Return the names of the slow tests, without their parameters."""
    return frozenset(LIST.read_text().split())


def name_of(node_id: str) -> str:
    """Return the name of a test without its parameters and its group of tests."""
    return node_id.partition("[")[0].partition("@")[0]


def slow_of(report: Iterable[str], slow_s: float = SLOW_S) -> list[str]:
    """Return the names of slow tests in what pytest prints with `--durations=0`."""
    took_s: dict[str, float] = defaultdict(float)
    for line in report:
        duration = _DURATION.match(line)
        if duration is not None:
            took_s[duration[2]] += float(duration[1])
    return sorted(name for name, taken_s in took_s.items() if taken_s >= slow_s)


if __name__ == "__main__":
    LIST.write_text("".join(f"{name}\n" for name in slow_of(sys.stdin)))
