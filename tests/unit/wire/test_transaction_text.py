"""Records of __transaction_state in 3.9's words; see also Kafka's kept answers."""

from __future__ import annotations

import pytest

from engine.wire.tool_reader import ToolFailure
from engine.wire.transaction_text import format_transaction_record

KEY = bytes.fromhex("0000 0002 7431")


def value(status: int, partitions: str) -> bytes:
    head = "0000 0000000000000005 0002 0000ea60" + f"{status:02x}"
    return bytes.fromhex(head + partitions + "0000000000000007 0000000000000006")


def test_ongoing_transaction() -> None:
    raw = value(1, "00000001 0001 61 00000002 00000000 00000001")
    assert format_transaction_record(KEY, raw, 0) == (
        "transaction_metadata::transactionalId=t1",
        "producerId:5,producerEpoch:2,state=Ongoing,partitions=[a-1,a-0],"
        "txnLastUpdateTimestamp=7,txnTimeoutMs=60000",
    )


def test_empty_transaction_may_have_null_partitions() -> None:
    text = format_transaction_record(KEY, value(0, "ffffffff"), 0)[1]
    assert text is not None
    assert "state=Empty,partitions=[]" in text


def test_null_value_is_a_deletion() -> None:
    assert format_transaction_record(KEY, None, 0)[1] == "<DELETE>"


def test_unknown_key_version_is_shown() -> None:
    assert format_transaction_record(b"\x00\x07rest", b"", 0) == ("unknown::version=7", None)


@pytest.mark.parametrize(
    ("key", "raw", "java_class"),
    [
        (None, b"", "java.lang.NullPointerException"),
        (b"\x00", b"", "java.nio.BufferUnderflowException"),
        (KEY, b"\x00\x09", "java.lang.IllegalStateException"),
        (KEY, value(8, "ffffffff"), "java.lang.IllegalStateException"),
        (KEY, value(1, "ffffffff"), "java.lang.NullPointerException"),
        (KEY, value(1, "")[:20], "java.nio.BufferUnderflowException"),
    ],
)
def test_wrong_records_end_the_tool(key: bytes | None, raw: bytes, java_class: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        format_transaction_record(key, raw, 0)
    assert java_class == caught.value.java_class
