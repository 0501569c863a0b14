"""What schemas make of runs, beside the bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.records.record import Record, TimestampType
from engine.schemas.decoding import SchemaDecoder
from engine.schemas.schema import NoSuchSchema, Schema, SchemaKind
from kctl.arguments import UnreadableArgument
from kctl.record_decoding import NOTHING, Decoders, RecordDecoding, create_decoders
from tests.runs import run_of

KIND = TimestampType.CREATE_TIME
ENVELOPE = b"\0\0\0\0"


class Source:
    def schema(self, schema_id: int) -> Schema:
        if schema_id == 7:
            return Schema(SchemaKind.JSON, "{}")
        raise NoSuchSchema(schema_id, "here")


def decoding() -> tuple[RecordDecoding, list[EngineError]]:
    errors: list[EngineError] = []
    decoder = SchemaDecoder(Source())
    return RecordDecoding(Decoders(decoder, decoder), errors.append), errors


RUN = run_of(
    Record(0, 1, KIND, b"plain", ENVELOPE + b'\x07{"a": "\xc3\xa9"}'),
    Record(1, 1, KIND, None, ENVELOPE + b"\x07null"),
    Record(2, 1, KIND, ENVELOPE + b"\x071", None),
    Record(3, 1, KIND, None, ENVELOPE + b"\x09x"),
    Record(4, 1, KIND, None, ENVELOPE + b"\x09y"),
)


def test_a_type_without_a_schema_is_silent_and_an_error_is_reported_once() -> None:
    decoder, errors = decoding()
    decoded = decoder.decoded(RUN)
    assert [NOTHING, NOTHING, 1, NOTHING, NOTHING] == decoded.keys
    assert [{"a": "é"}, None, NOTHING, NOTHING, NOTHING] == decoded.values
    assert ["here has no schema 9"] == [str(error) for error in errors]


def test_texts_are_json_where_something_is_said() -> None:
    decoder, _ = decoding()
    texts = decoder.decoded(RUN).texts(RUN)
    assert ['{"a": "é"}'.encode(), b"null", None] == list(texts.values)[:3]
    assert ENVELOPE + b"\x09x" == texts.values[3]
    assert [b"plain", None, b"1"] == list(texts.keys)[:3]


def test_rows_have_two_columns_more_for_the_records_that_are_left() -> None:
    decoder, _ = decoding()
    decoded = decoder.decoded(RUN).at_places([0, 2, 4]).first(2)
    assert {"decoded_key": [None, 1], "decoded_value": [{"a": "é"}, None]} == decoded.columns()


def test_without_schemas_nothing_is_decoded() -> None:
    assert create_decoders(None, None, None, {}, 5) is None


def test_a_registry_and_files_are_not_both_asked() -> None:
    with pytest.raises(UnreadableArgument, match="schema-registry"):
        create_decoders("http://r", "folder", None, {}, 5)


def test_files_come_before_a_registry_of_the_environment(tmp_path: Path) -> None:
    environment = {"KCTL_SCHEMA_REGISTRY": "http://r"}
    decoders = create_decoders("http://r", str(tmp_path), None, environment, 5)
    assert decoders is not None
    with pytest.raises(NoSuchSchema, match=str(tmp_path)):
        decoders.values.value(ENVELOPE + b"\x07{}")


def test_a_file_is_for_values_and_another_one_for_keys(tmp_path: Path) -> None:
    (tmp_path / "long.avsc").write_text('"long"')
    (tmp_path / "key.proto").write_text('syntax = "proto3"; message Key { int32 id = 1; }')
    run = run_of(Record(0, 1, KIND, b"plain", b"\x0e"), Record(1, 1, KIND, b"\x08\x05", None))
    errors: list[EngineError] = []
    values, keys = str(tmp_path / "long.avsc"), str(tmp_path / "key.proto:Key")
    for key_schema, said in ((None, [NOTHING] * 2), (keys, [NOTHING, {"id": 5}])):
        decoders = create_decoders(None, values, key_schema, {}, 5)
        assert decoders is not None
        decoded = RecordDecoding(decoders, errors.append).decoded(run)
        assert (said, [7, NOTHING]) == (decoded.keys, decoded.values)
        assert bool(key_schema) == bool(errors)
    decoders = create_decoders(None, None, keys, {}, 5)
    assert decoders is not None
    decoded = RecordDecoding(decoders, errors.append).decoded(run)
    assert (NOTHING, {"id": 5}) == (decoded.values[0], decoded.keys[1])
