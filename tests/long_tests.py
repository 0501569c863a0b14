"""The tests that take longest: `make test` begins with them, and may run each in another process.

    make long-tests        measures all tests, and writes long_tests.txt

What is listed is a test, all its parameters together, or a group of tests that one process runs:
those that share a fixture, and the tests of a module that are not listed themselves. The longest is
first: one that begins last would have the other processes wait for it.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tests.slow_tests import name_of

LIST = Path(__file__).parent / "long_tests.txt"
#: On three processes on two cores.
LONG_S = 5.0
_DURATION = re.compile(r"([\d.]+)s (?:call|setup|teardown) +(tests/\S+?\.py::.*)$")


@cache
def long_tests() -> dict[str, int]:
    """Return the place of each name in the list."""
    return {name: place for place, name in enumerate(LIST.read_text().split())}


def group_of(node_id: str) -> str | None:
    """Return the group of a test that runs with others, None of one that runs alone."""
    group = node_id.rpartition("@")[2] if node_id.rfind("@") > node_id.rfind("]") else None
    return group or None


def long_of(report: Iterable[str], long_s: float = LONG_S) -> list[str]:
    """Return the names in what pytest prints with `--durations=0`, the longest first."""
    took_s: dict[str, float] = defaultdict(float)
    of_group: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for line in report:
        duration = _DURATION.match(line)
        if duration is None:
            continue
        name, taken_s = name_of(duration[2]), float(duration[1])
        group = group_of(duration[2])
        if group is None or group == name.partition("::")[0]:
            took_s[name] += taken_s
        of_group[group or name.partition("::")[0]][name] += taken_s
    long = {name: taken_s for name, taken_s in took_s.items() if taken_s >= long_s}
    for group, names in of_group.items():
        rest_s = sum(taken_s for name, taken_s in names.items() if name not in long)
        if rest_s >= long_s:
            long[group] = rest_s
    return sorted(long, key=lambda name: -long[name])


if __name__ == "__main__":
    LIST.write_text("".join(f"{name}\n" for name in long_of(sys.stdin)))
