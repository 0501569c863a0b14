"""Bytes that are no UTF-8, as a Java program shows them (values taken from JDK 17)."""

from __future__ import annotations

import pytest

from engine.java_text import encode_printable

REPLACED = "\ufffd".encode()


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"plain", b"plain"),
        ("caf\u00e9 \U0001f600".encode(), "caf\u00e9 \U0001f600".encode()),
        (b"\x80a", REPLACED + b"a"),
        (b"\xc3", REPLACED),
        (b"\xe2\x82", REPLACED),
        (b"\xe2\x82A", REPLACED + b"A"),
        (b"\xed\xa0\x80A", REPLACED + b"A"),
        (b"\xed\xb0A", REPLACED + b"A"),
        (b"\xed\xb0", REPLACED),
        (b"\xf0\x9f\x98", REPLACED),
        (b"\xf4\x90\x80\x80", REPLACED * 4),
        (b"\xf5\x80", REPLACED * 2),
        (b"\xc0\xaf", REPLACED * 2),
        (b"\xe0\x80\x80", REPLACED * 3),
    ],
)
def test_invalid_bytes_are_replaced_by_javas_rules(raw: bytes, shown: bytes) -> None:
    assert shown == encode_printable(raw)
