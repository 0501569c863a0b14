"""Keys and values of coordinators' topics."""

from __future__ import annotations

import pytest

from engine.wire.coordinator_records import (
    RECORD_TYPES,
    decode_coordinator_record,
    encode_key,
    encode_value,
    key_version,
)
from engine.wire.errors import FrameTruncated, TrailingBytes, UnknownMessage, UnsupportedVersion
from engine.wire.schema import message_schema
from engine.wire.structs import message_class

KEY = bytes.fromhex("0001 0001 67 0001 74 00000003")
VALUE = bytes.fromhex("0003 0000000000000007 ffffffff 0000 0000000000000009")


def test_offset_commit() -> None:
    record = decode_coordinator_record("offsets", KEY, VALUE)
    assert (1, 3) == (record.type, record.value_version)
    assert record.key == message_class("OffsetCommitKey")(group="g", topic="t", partition=3)
    assert record.value == message_class("OffsetCommitValue")(offset=7, commit_timestamp=9)


def test_tombstone_has_no_value() -> None:
    record = decode_coordinator_record("offsets", KEY, None)
    assert (record.value, record.value_version) == (None, -1)


def test_records_go_there_and_back() -> None:
    record = decode_coordinator_record("offsets", KEY, VALUE)
    assert record.value is not None
    assert KEY == encode_key(record.key, record.type)
    assert VALUE == encode_value(record.value, record.value_version)


def test_newer_keys_have_one_version() -> None:
    key = message_class("GroupMetadataKey", "4.3.0")(group="g")
    raw = encode_key(key, 2)
    assert raw == bytes.fromhex("0002 0001 67")
    assert decode_coordinator_record("offsets", raw, None, "4.3.0").key == key


def test_unknown_type_is_refused() -> None:
    with pytest.raises(UnknownMessage, match="offsets record type 9"):
        decode_coordinator_record("offsets", b"\x00\x09", None)
    with pytest.raises(UnknownMessage):
        decode_coordinator_record("share_group_state", b"\x00\x00", None, "3.9.1")


def test_unknown_value_version_is_refused() -> None:
    with pytest.raises(UnsupportedVersion):
        decode_coordinator_record("offsets", KEY, b"\x00\x05" + VALUE[2:])


def test_bytes_too_many_or_too_few_are_refused() -> None:
    with pytest.raises(TrailingBytes):
        decode_coordinator_record("offsets", KEY, VALUE + b"!")
    with pytest.raises(FrameTruncated):
        decode_coordinator_record("offsets", b"\x00", VALUE)
    with pytest.raises(FrameTruncated):
        decode_coordinator_record("offsets", KEY, b"")


def test_type_table_names_messages_that_exist() -> None:
    for by_release in RECORD_TYPES.values():
        for release, types in by_release.items():
            for type_id, name in types.items():
                key = message_schema(f"{name}Key", release)
                assert key.valid.has(key_version(type_id, release)), name
                assert message_schema(f"{name}Value", release)


def test_type_table_is_complete() -> None:
    listed = {n for kinds in RECORD_TYPES.values() for n in kinds["4.3.0"].values()}
    from engine.wire.schema import message_names

    schemas = [message_schema(name, "4.3.0") for name in message_names("4.3.0")]
    assert listed == {s.name.removesuffix("Key") for s in schemas if s.kind == "key"}
