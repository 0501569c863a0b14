from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.dump.rows import text_form
from engine.model import TopicPartition
from engine.records.record import Record, TimestampType
from kctl.arguments import UnreadableArgument
from kctl.escapes import decode_escapes
from kctl.record_format import RecordFormat
from tests.runs import run_of

ESCAPES = "a\\tb\\n\\r\\0\\\\\\x00\\xfF é"


def test_escapes_stand_for_bytes() -> None:
    assert b"a\tb\n\r\0\\\0\xff " + "é".encode() == decode_escapes(ESCAPES, "a text")


def test_templates_know_the_same_escapes() -> None:
    record = Record(0, 0, TimestampType.CREATE_TIME, None, None)
    filled = RecordFormat(ESCAPES).fill(TopicPartition("t", 0), run_of(record))
    assert filled == decode_escapes(ESCAPES, "a text")


@pytest.mark.parametrize("text", ["\\", "\\y", "\\x", "\\x1", "\\xz1", "\\x 1", "\\x+1"])
def test_what_is_no_escape_is_refused(text: str) -> None:
    with pytest.raises(UnreadableArgument, match="not a delimiter"):
        decode_escapes(text, "a delimiter")


@given(st.binary(max_size=30))
def test_the_escaped_form_of_a_dump_is_read_back(raw: bytes) -> None:
    text, encoding = text_form(raw)
    assert text is not None
    assert raw == (decode_escapes(text, "a text") if encoding == "escaped" else text.encode())
