"""What `make test` begins with is there, and is found in a report of durations."""

from __future__ import annotations

import re
from pathlib import Path

from tests.long_tests import group_of, long_of, long_tests

ROOT = Path(__file__).parent.parent
#: Groups that have a name of their own.
_NAMED = re.compile(r'xdist_group\("([\w-]+)"\)')


def test_every_long_test_and_group_is_there() -> None:
    groups = {name for path in ROOT.rglob("tests/**/*.py") for name in named_groups(path)}
    missing = [name for name in long_tests() if name not in groups and not is_there(name)]
    assert [] == missing


def named_groups(path: Path) -> list[str]:
    return _NAMED.findall(path.read_text())


def is_there(name: str) -> bool:
    path, *_, function = name.split("::") if "::" in name else (name, "")
    file = ROOT / path
    return file.is_file() and (not function or f"def {function}(" in file.read_text())


def test_the_longest_are_found_in_a_report_of_durations() -> None:
    a, b, c = "tests/unit/test_a.py", "tests/unit/test_b.py", "tests/cli/test_c.py"
    report = [
        f"3.00s call     {a}::test_one[1 of @2]",
        f"3.00s call     {a}::test_one[2]",
        f"0.50s setup    {a}::test_two@{a}",
        f"5.50s call     {a}::test_three@{a}",
        f"3.00s call     {b}::test_four@{b}",
        f"4.00s call     {b}::test_five@{b}",
        f"4.00s call     {c}::test_six@named",
        f"4.50s teardown {c}::test_seven@named",
        f"2.00s call     {c}::test_eight",
        "12 passed in 3.00s",
    ]
    expected = ["named", b, f"{a}::test_one", f"{a}::test_three"]
    assert expected == long_of(report, 5.0)


def test_the_group_of_a_test_is_behind_its_parameters() -> None:
    assert group_of("tests/test_a.py::test_one[a@b]") is None
    assert group_of("tests/test_a.py::test_one") is None
    assert "named" == group_of("tests/test_a.py::test_one[a@b]@named")
