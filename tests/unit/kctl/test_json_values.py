"""Whole numbers of JSON files as Kafka's tools take them: of the size of their Java type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kctl.compat.java_failures import ToolFailure
from kctl.compat.json_values import long_of, whole_of

INT_MAX, LONG_MAX = (1 << 31) - 1, (1 << 63) - 1


@pytest.mark.parametrize(
    ("read", "value"),
    [
        *((whole_of, value) for value in (0, -1, INT_MAX, -INT_MAX - 1)),
        *((long_of, value) for value in (0, -1, LONG_MAX, -LONG_MAX - 1)),
    ],
)
def test_numbers_of_the_size_are_read(read: Callable[[Any], int], value: int) -> None:
    assert value == read(value)


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (whole_of, INT_MAX + 1, "Expected `Integer` value, received 2147483648"),
        (whole_of, -INT_MAX - 2, "Expected `Integer` value, received -2147483649"),
        (whole_of, 1.0, "Expected `Integer` value, received 1.0"),
        (whole_of, True, "Expected `Integer` value, received true"),
        (long_of, LONG_MAX + 1, "Expected `Long` value, received 9223372036854775808"),
        (long_of, "1", 'Expected `Long` value, received "1"'),
    ],
)
def test_others_are_refused(read: Callable[[Any], int], value: object, message: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        read(value)
    assert message in str(caught.value)
