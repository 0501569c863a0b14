"""The record type: labels, sizes, sequences that wrap."""

from __future__ import annotations

import pytest

from engine.records.record import (
    Record,
    TimestampType,
    decrement_sequence,
    increment_sequence,
)

INT32_MAX = 2_147_483_647


def test_timestamp_types_have_kafkas_labels() -> None:
    labels = [kind.label for kind in TimestampType]
    assert labels == ["NoTimestampType", "CreateTime", "LogAppendTime"]


def test_null_has_size_minus_one_and_empty_zero() -> None:
    record = Record(0, 0, TimestampType.CREATE_TIME, None, b"")
    assert (record.key_size, record.value_size) == (-1, 0)


@pytest.mark.parametrize(
    ("sequence", "increment", "expected"),
    [
        (0, 0, 0),
        (5, 3, 8),
        (INT32_MAX, 0, INT32_MAX),
        (INT32_MAX, 1, 0),
        (INT32_MAX - 1, 4, 2),
        # Damaged fields: what Java's 32-bit arithmetic makes of them.
        (0, -1, INT32_MAX),
        (5, -1, -INT32_MAX + 3),
        (-5, 3, -2),
    ],
)
def test_sequences_wrap_as_in_kafka(sequence: int, increment: int, expected: int) -> None:
    assert increment_sequence(sequence, increment) == expected


@pytest.mark.parametrize(("sequence", "decrement", "expected"), [(8, 3, 5), (0, 1, INT32_MAX)])
def test_sequences_go_back_across_the_wrap(sequence: int, decrement: int, expected: int) -> None:
    assert decrement_sequence(sequence, decrement) == expected
    assert increment_sequence(expected, decrement) == sequence
