"""Every golden invocation of Kafka's dump tool, 3.9.1 and 4.3.0: same stdout, same exit code."""

from __future__ import annotations

import pytest

from tests.golden_cases import CASES, case, case_dir, expected_outputs
from tests.golden_dump import difference

# Groups of a size that two test processes can share evenly.
_GROUP = 250
_GROUPS = [
    (name, start) for name in CASES for start in range(0, len(case(name)["invocations"]), _GROUP)
]


@pytest.mark.parametrize(("name", "start"), _GROUPS)
def test_stdout_and_exit_code_are_those_of_kafka(name: str, start: int) -> None:
    outputs, folder = expected_outputs(name), case_dir(name)
    group = case(name)["invocations"][start : start + _GROUP]
    misses = [m for i in group if (m := difference(i, outputs, folder)) is not None]
    assert misses == []


def test_no_invocation_is_left_out() -> None:
    assert sum(len(case(name)["invocations"]) for name in CASES) == 4249
