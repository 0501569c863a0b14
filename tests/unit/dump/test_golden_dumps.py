"""Some of the golden invocations of Kafka's dump tool of each kind; all are in tests/cli."""

from __future__ import annotations

import pytest

from tests.golden_cases import CASES, case, case_dir, expected_outputs
from tests.golden_dump import difference

_EACH = 40


@pytest.mark.parametrize("name", CASES)
def test_a_sample_of_each_case_is_printed_as_kafka_does(name: str) -> None:
    invocations = case(name)["invocations"]
    outputs, folder = expected_outputs(name), case_dir(name)
    sample = invocations[:: max(len(invocations) // _EACH, 1)]
    assert [] == [m for i in sample if (m := difference(i, outputs, folder)) is not None]
