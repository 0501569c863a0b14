"""Reading as Kafka's tool does; most of it is among Kafka's kept answers."""

from __future__ import annotations

import pytest

from engine.wire.tool_reader import ToolFailure, decode_java_utf8, nearest_version, read_as_tool


def failure(name: str, raw: str, version: int = 0) -> tuple[str, str | None]:
    with pytest.raises(ToolFailure) as caught:
        read_as_tool(name, "3.9.1", bytes.fromhex(raw), version=version)
    return caught.value.java_class.rpartition(".")[2], caught.value.java_message


def test_versions_outside_the_known_ones_are_read_as_the_nearest() -> None:
    raw = bytes.fromhex("0000000000000007 ffffffff 01 0000000000000009 00")
    message, position = read_as_tool("OffsetCommitValue", "3.9.1", raw, version=77)
    assert (7, len(raw)) == (message.offset, position)
    assert (4, 0) == tuple(nearest_version(message, version) for version in (77, -5))


def test_nested_structs_refuse_versions_that_do_not_exist() -> None:
    raw = "0000000000000001 0002 00000003 04 02 00"
    assert failure("TransactionLogValue", raw, 9) == (
        "UnsupportedVersionException",
        "Can't read version 9 of PartitionsSchema",
    )


def test_any_negative_length_is_null() -> None:
    assert failure("TransactionLogKey", "8000") == (
        "RuntimeException",
        "non-nullable field transactionalId was serialized as null",
    )


def test_short_buffers_have_no_message() -> None:
    assert failure("OffsetCommitValue", "00") == ("BufferUnderflowException", None)


def test_strings_are_replaced_as_java_replaces_them() -> None:
    replaced = [
        decode_java_utf8(bytes.fromhex(raw)) for raw in ("41ff42", "eda080", "eda041", "f0908041")
    ]
    assert ["A�B", "�", "�A", "�A"] == replaced
    assert decode_java_utf8("é😀".encode()) == "é😀"
