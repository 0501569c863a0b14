"""Numbers as Java reads them: digits of any script, but single units, and no limit of Python's."""

from __future__ import annotations

import pytest

from kctl.compat.java_numbers import LONG_BITS, is_java_number


@pytest.mark.parametrize(
    ("text", "is_number"),
    [
        ("7", True),
        ("+7", True),
        ("-2147483648", True),
        ("2147483648", False),
        ("0" * 3000 + "1", True),
        ("9" * 5000, False),
        ("\u0661", True),
        ("\U0001d7d8", False),
        ("", False),
        ("1_0", False),
        (" 1", False),
    ],
)
def test_whole_numbers_of_32_bits_are_read(text: str, is_number: bool) -> None:
    assert is_number == is_java_number(text)


def test_a_long_has_64_bits() -> None:
    assert is_java_number("9223372036854775807", LONG_BITS)
    assert not is_java_number("9223372036854775808", LONG_BITS)
