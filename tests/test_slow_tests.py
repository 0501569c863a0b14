"""What `make quick` leaves out is there, and is found in a report of durations."""

from __future__ import annotations

import re
from pathlib import Path

from tests.slow_tests import name_of, slow_of, slow_tests

ROOT = Path(__file__).parent.parent


def test_every_slow_test_is_there() -> None:
    missing = []
    for name in slow_tests():
        path, *_, function = name.split("::")
        file = ROOT / path
        if not file.exists() or not re.search(rf"def {function}\(", file.read_text()):
            missing.append(name)
    assert [] == missing


def test_slow_tests_are_found_in_a_report_of_durations_with_all_their_parameters() -> None:
    report = [
        "0.10s call     tests/unit/a/test_a.py::test_one[1 of 2]",
        "0.04s setup    tests/unit/a/test_a.py::test_one[1 of 2]",
        "0.02s call     tests/unit/a/test_a.py::test_one[2]",
        "0.10s call     tests/unit/a/test_a.py::TestB::test_two",
        "0.20s setup    tests/unit/a/test_b.py::test_three@tests/unit/a/test_b.py",
        "12 passed in 3.00s",
    ]
    slow = ["tests/unit/a/test_a.py::test_one", "tests/unit/a/test_b.py::test_three"]
    assert slow == slow_of(report, 0.15)
    assert "tests/unit/a/test_a.py::TestB::test_two" == name_of(
        "tests/unit/a/test_a.py::TestB::test_two[a-b]"
    )
