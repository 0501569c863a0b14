"""What is wrong with the output of a copy, by its records."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.demo.copied_records import (
    OutputFaults,
    PartitionCheck,
    UnexpectedRecord,
    input_value,
    transformed,
)
from engine.model import TopicPartition


def faults_of(numbers: Iterable[int], record_count: int = 10) -> OutputFaults:
    """Return the faults of partition 1 of 2, which should have the odd numbers."""
    check = PartitionCheck(TopicPartition("out", 1), 2, record_count)
    for offset, number in enumerate(numbers):
        check.check_record(offset, b"%d" % number, transformed(input_value(number)))
    return check.count_faults()


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([1, 3, 5, 7, 9], OutputFaults()),
        ([], OutputFaults(missing=5)),
        ([1, 3, 7], OutputFaults(missing=2)),
        ([1, 3, 3, 5, 7, 9], OutputFaults(doubled=1)),
        ([1, 5, 3, 7, 9], OutputFaults(out_of_order=1)),
        ([1, 9, 3, 3], OutputFaults(missing=2, doubled=1, out_of_order=1)),
        ([1, 3, 5, 7, 9, 1, 9], OutputFaults(doubled=2)),
    ],
)
def test_records_are_missing_doubled_or_out_of_order(
    numbers: list[int], expected: OutputFaults
) -> None:
    assert expected == faults_of(numbers)
    assert expected.is_clean == (not any(expected))


def test_a_partition_beyond_the_records_expects_none() -> None:
    check = PartitionCheck(TopicPartition("out", 5), 6, 3)
    assert check.count_faults().is_clean


@given(st.lists(st.sampled_from(range(1, 40, 2)), max_size=60))
def test_faults_are_those_of_a_list_of_all(numbers: list[int]) -> None:
    expected = list(range(1, 40, 2))
    found = faults_of(numbers, 40)
    assert len(set(expected) - set(numbers)) == found.missing
    assert len(numbers) - len(set(numbers)) == found.doubled
    first = list(dict.fromkeys(numbers))
    late = sum(number < max(first[:place], default=0) for place, number in enumerate(first))
    assert late == found.out_of_order


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, transformed(input_value(1))),
        (b"x", transformed(input_value(1))),
        (b"1", input_value(1)),
        (b"2", transformed(input_value(2))),
        (b"11", transformed(input_value(11))),
    ],
)
def test_a_record_of_somebody_else_is_refused(key: bytes | None, value: bytes) -> None:
    check = PartitionCheck(TopicPartition("out", 1), 2, 10)
    with pytest.raises(UnexpectedRecord, match="out-1 has a record at offset 7"):
        check.check_record(7, key, value)
