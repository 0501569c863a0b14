"""From bytes to what they say, by each kind of schema."""

from __future__ import annotations

import io
import struct
from typing import Any

import fastavro
import pytest

from engine.errors import EngineError
from engine.host.http import HttpUnreachable
from engine.host.memory import MemoryFiles
from engine.records.varint import write_varint
from engine.schemas import decoding
from engine.schemas.decoding import SchemaDecoder, SchemaPackageMissing, Undecodable
from engine.schemas.envelope import WrongEnvelope, open_envelope, split_message_indexes
from engine.schemas.folder import SchemaFolder, read_schema_file
from engine.schemas.registry import RegistryRefused
from engine.schemas.schema import NoSuchSchema, Schema, SchemaKind, UnusableSchema
from engine.schemas.shape_of import shape_of

USER = """{"type": "record", "name": "User", "namespace": "n", "fields": [
  {"name": "id", "type": "long"},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "raw", "type": ["null", "bytes"]}]}"""
TEAM = """{"type": "record", "name": "Team", "namespace": "n", "fields": [
  {"name": "users", "type": {"type": "array", "items": "n.User"}}]}"""
PROTO = """syntax = "proto3"; package shop;
import "money.proto"; import "google/protobuf/timestamp.proto";
message Order { int64 id = 1; Money price = 2; google.protobuf.Timestamp at = 3;
  message Line { string name = 1; } }
message Refund { string why = 1; }"""
MONEY = 'syntax = "proto3"; package shop; message Money { int32 cents = 1; }'


class Schemas(dict[int, Schema]):
    """Schemas by id; each may be asked for once."""

    requested = 0

    def schema(self, schema_id: int) -> Schema:
        self.requested += 1
        if schema_id not in self:
            raise NoSuchSchema(schema_id, "here")
        return self[schema_id]


def enveloped(schema_id: int, content: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + content


def avro(schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, value)
    return stream.getvalue()


def indexes(*numbers: int) -> bytes:
    out = bytearray()
    for number in numbers:
        write_varint(out, number)
    return bytes(out)


def test_avro_is_read_with_times_and_bytes() -> None:
    decoder = SchemaDecoder(Schemas({3: Schema(SchemaKind.AVRO, USER)}))
    schema = fastavro.parse_schema(__import__("json").loads(USER))
    for raw, text in ((None, None), (b"abc", "abc"), (b"\xff", "/w==")):
        bytes_ = enveloped(3, avro(schema, {"id": 5, "at": 1_767_225_600_123, "raw": raw}))
        assert decoder.decodes(bytes_)
        assert {"id": 5, "at": "2026-01-01T00:00:00.123000+00:00", "raw": text} == decoder.value(
            bytes_
        )


def test_avro_references_may_come_in_any_order() -> None:
    references = (("b", TEAM.replace('"Team"', '"Club"')), ("a", USER))
    schema = Schema(SchemaKind.AVRO, TEAM, references)
    decoder = SchemaDecoder(Schemas({3: schema}))
    assert {"users": []} == decoder.value(enveloped(3, b"\0"))


@pytest.mark.parametrize(
    ("text", "content", "expected"),
    [
        ('["n.User", "n.Team"]', b"\x02\0", {"users": []}),
        ('["null", "n.Team"]', b"\x02\0", {"users": []}),
        ('{"type": "array", "items": "n.Team"}', b"\x02\0\0", [{"users": []}]),
        ('{"type": "map", "values": "n.Team"}', b"\x02\x02a\0\0", {"a": {"users": []}}),
        ('"n.Team"', b"\0", {"users": []}),
    ],
)
def test_types_of_references_need_no_record_around_them(
    text: str, content: bytes, expected: object
) -> None:
    schema = Schema(SchemaKind.AVRO, text, (("a", TEAM), ("b", USER)))
    decoder = SchemaDecoder(Schemas({3: schema}))
    assert expected == decoder.value(enveloped(3, content))
    with pytest.raises(Undecodable, match="bytes after"):
        decoder.value(enveloped(3, content + b"\0"))


def test_avro_schemas_that_are_no_concern_of_another_are_not_read() -> None:
    for other in ("{", '{"type": "record", "name": "n.User", "fields": [{"name": "a"}]}'):
        decoder = SchemaDecoder(Schemas({3: Schema(SchemaKind.AVRO, '"long"', (("a", other),))}))
        assert 5 == decoder.value(enveloped(3, b"\x0a"))


@pytest.mark.parametrize("is_used", [True, False])
def test_an_avro_reference_that_lacks_a_type_is_none(is_used: bool) -> None:
    lacking = TEAM.replace("n.User", "n.Nobody")
    kind = "n.Team" if is_used else "n.User"
    text = f'{{"type": "record", "name": "R", "fields": [{{"name": "of", "type": "{kind}"}}]}}'
    schema = Schema(SchemaKind.AVRO, text, (("a", lacking), ("b", USER)))
    if is_used:
        with pytest.raises(UnusableSchema, match="Team"):
            shape_of(schema, "schema 3", is_enveloped=True)
    else:
        assert ["of"] == [name for name, _ in shape_of(schema, "", is_enveloped=True).fields]
        assert isinstance(SchemaDecoder(None, schema).value(b"\x0a\0\0"), dict)


def test_a_protobuf_value_says_which_message_it_is() -> None:
    schema = Schema(SchemaKind.PROTOBUF, PROTO, (("money.proto", MONEY),))
    decoder = SchemaDecoder(Schemas({4: schema}))
    order = b"\x08\x07\x12\x02\x08\x63\x1a\x02\x08\x01"
    said = {"id": "7", "price": {"cents": 99}, "at": "1970-01-01T00:00:01Z"}
    assert said == decoder.value(enveloped(4, b"\0" + order))
    assert said == decoder.value(enveloped(4, indexes(1, 0) + order))
    assert {"why": "x"} == decoder.value(enveloped(4, indexes(1, 1) + b"\x0a\x01x"))
    assert {"name": "x"} == decoder.value(enveloped(4, indexes(2, 0, 0) + b"\x0a\x01x"))
    for wrong in (indexes(1, 9), indexes(2, 1, 0), b"", indexes(99), b"\0\x0a\x09x"):
        with pytest.raises(Undecodable, match="schema 4"):
            decoder.value(enveloped(4, wrong))


WELL_KNOWN = """syntax = "proto3"; package shop;
import "google/protobuf/any.proto"; import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto"; import "google/protobuf/field_mask.proto";
import "google/protobuf/struct.proto";
message Seen { google.protobuf.Any any = 1; google.protobuf.Timestamp at = 2;
  google.protobuf.FieldMask mask = 3; google.protobuf.Duration took = 4;
  google.protobuf.Value value = 5; string name = 6; }"""
_NAN_VALUE = b"\x2a\x09\x11" + struct.pack("<d", float("nan"))


@pytest.mark.parametrize(
    "content",
    [
        b"\x0a\x06\x0a\x04a/No",
        b"\x12\x0b\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
        b"\x12\x07\x08\x80\x80\xe0\xc5\xed\x7f",
        b"\x1a\x05\x0a\x03aBc",
        b"\x22\x07\x08\x80\x80\xe0\xc5\xed\x7f",
        _NAN_VALUE,
    ],
    ids=["Any", "Timestamp before", "Timestamp beyond", "FieldMask", "Duration", "Value"],
)
def test_a_protobuf_value_without_a_form_is_said_and_the_next_one_is_read(content: bytes) -> None:
    decoder = SchemaDecoder(Schemas({4: Schema(SchemaKind.PROTOBUF, WELL_KNOWN)}))
    with pytest.raises(Undecodable, match=r"schema 4: a shop\.Seen that cannot be shown: \S"):
        decoder.value(enveloped(4, b"\0" + content))
    assert {"name": "x"} == decoder.value(enveloped(4, b"\0\x32\x01x"))


@pytest.mark.parametrize("schema", ['"bytes"', '{"type": "bytes"}'])
def test_bytes_behind_an_envelope_have_no_length_as_confluent_writes_them(schema: str) -> None:
    decoder = SchemaDecoder(Schemas({3: Schema(SchemaKind.AVRO, schema)}))
    for content in (b"", b"\x04abcd", b"x" * 100):
        assert content.decode() == decoder.value(enveloped(3, content))
    # By a file of Avro alone they have one.
    one = SchemaDecoder(None, Schema(SchemaKind.AVRO, schema))
    assert "ab" == one.value(b"\x04ab")


@pytest.mark.parametrize("kind", ["float", "double", "string", "bytes"])
def test_avro_bytes_that_end_too_early_say_nothing_else(kind: str) -> None:
    with pytest.raises(Undecodable) as failed:
        SchemaDecoder(None, Schema(SchemaKind.AVRO, f'"{kind}"')).value(b"\x04a")
    assert "not of this Avro schema: the bytes end too early" == failed.value.reason


@pytest.mark.parametrize("kind", ['"bytes"', '"fixed", "name": "F", "size": 4097'])
def test_a_decimal_of_very_many_bytes_is_refused(kind: str) -> None:
    schema = f'{{"type": {kind}, "logicalType": "decimal", "precision": 9, "scale": 2}}'
    decoder = SchemaDecoder(None, Schema(SchemaKind.AVRO, schema))
    head = bytearray()
    if "bytes" in kind:
        assert decoder.value(b"\x04\x01\x00") == "2.56"
        write_varint(head, 4097)
    with pytest.raises(Undecodable, match="a decimal has 4097 bytes"):
        decoder.value(bytes(head) + b"\x11" * 4097)


def test_avro_text_that_is_no_utf_8_is_not_shown() -> None:
    with pytest.raises(Undecodable, match=r"Avro schema: .* byte 0xff") as failed:
        SchemaDecoder(None, Schema(SchemaKind.AVRO, '"string"')).value(b"\x0esecret\xff")
    assert "secret" not in str(failed.value)


def test_avro_numbers_that_json_lacks_are_text() -> None:
    decoder = SchemaDecoder(Schemas({3: Schema(SchemaKind.AVRO, '"double"')}))
    for number, text in (("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")):
        assert text == decoder.value(enveloped(3, struct.pack("<d", float(number))))
    assert 0.5 == decoder.value(enveloped(3, struct.pack("<d", 0.5)))


@pytest.mark.parametrize("logical", ["timestamp-millis", "timestamp-micros", "time-micros"])
def test_an_avro_time_that_no_calendar_has_is_said(logical: str) -> None:
    schema = f'{{"type": "long", "logicalType": "{logical}"}}'
    decoder = SchemaDecoder(Schemas({3: Schema(SchemaKind.AVRO, schema)}))
    with pytest.raises(Undecodable, match="schema 3"):
        decoder.value(enveloped(3, avro("long", 1 << 62)))


@pytest.mark.parametrize("content", [b"\0\0\0\x31", b"\0\x31", b"\x31\0"])
def test_numbers_of_java_are_no_json_in_another_coding(content: bytes) -> None:
    decoder = SchemaDecoder(None, Schema(SchemaKind.JSON, "{}"))
    with pytest.raises(Undecodable):
        decoder.value(content)
    # A mark of UTF-8 is none.
    assert 1 == decoder.value(b"\xef\xbb\xbf1")


@pytest.mark.parametrize("content", [b"[" * 100_000, b"NaN", b'{"a": -Infinity}', b"\xff"])
def test_json_that_is_none_is_said_and_the_next_value_is_read(content: bytes) -> None:
    decoder = SchemaDecoder(Schemas({5: Schema(SchemaKind.JSON, "{}")}))
    with pytest.raises(Undecodable, match="schema 5"):
        decoder.value(enveloped(5, content))
    assert {"a": 1} == decoder.value(enveloped(5, b'{"a": 1}'))


@pytest.mark.parametrize("kind", [SchemaKind.AVRO, SchemaKind.PROTOBUF])
def test_a_schema_that_is_nested_without_end_is_unusable(kind: SchemaKind) -> None:
    decoder = SchemaDecoder(Schemas({3: Schema(kind, '{"type": ["null", ' * 100_000)}))
    with pytest.raises(UnusableSchema):
        decoder.value(enveloped(3, b""))


def test_json_behind_an_envelope_is_json() -> None:
    decoder = SchemaDecoder(Schemas({5: Schema(SchemaKind.JSON, "{}")}))
    assert [1] == decoder.value(enveloped(5, b"[1]"))
    with pytest.raises(Undecodable):
        decoder.value(enveloped(5, b"["))


@pytest.mark.parametrize("content", [b"", b"\x02", b"\x02\x02\x00\x00"])
def test_bytes_that_are_not_of_the_schema_are_reported(content: bytes) -> None:
    decoder = SchemaDecoder(Schemas({3: Schema(SchemaKind.AVRO, USER)}))
    with pytest.raises(Undecodable, match="schema 3: not of this Avro schema"):
        decoder.value(enveloped(3, content + b"\0" * 9 if len(content) > 2 else content))


def test_a_schema_is_requested_once_also_when_it_cannot_be_used() -> None:
    schemas = Schemas({3: Schema(SchemaKind.AVRO, "{")})
    decoder = SchemaDecoder(schemas)
    for schema_id, error in ((3, UnusableSchema), (3, UnusableSchema), (9, NoSuchSchema)):
        with pytest.raises(error):
            decoder.value(enveloped(schema_id, b""))
    assert 2 == schemas.requested


def test_bytes_without_an_envelope_have_no_schema() -> None:
    decoder = SchemaDecoder(Schemas())
    assert [False] * 4 == [decoder.decodes(raw) for raw in (None, b"", b"\0\0\0\0", b"plain")]
    assert open_envelope(b"\0\0\0\0\x07x") == (7, b"x")


def test_one_schema_reads_all_bytes() -> None:
    files = MemoryFiles()
    files.make_dir("/s")
    files.replace_file("/s/long.avsc", b'"long"')
    files.replace_file("/s/shop.proto", MONEY.encode())
    assert 7 == SchemaDecoder(None, read_schema_file(files, "/s/long.avsc")).value(b"\x0e")
    for path in ("/s/shop.proto", "/s/shop.proto:shop.Money"):
        decoder = SchemaDecoder(None, read_schema_file(files, path))
        assert {"cents": 5} == decoder.value(b"\x08\x05")
    with pytest.raises(UnusableSchema, match=r"no message shop\.Nope"):
        SchemaDecoder(None, read_schema_file(files, "/s/shop.proto:shop.Nope"))
    with pytest.raises(UnusableSchema, match="its name must end in"):
        read_schema_file(files, "/s/x.txt")


def test_a_folder_has_schemas_by_id_and_what_they_refer_to() -> None:
    files = MemoryFiles()
    files.make_dir("/s")
    for name, text in (
        ("7.avsc", TEAM),
        ("user.avsc", USER),
        ("8.proto", PROTO),
        ("money.proto", MONEY),
    ):
        files.replace_file(f"/s/{name}", text.encode())
    files.replace_file("/s/9.json", b"\xff")
    folder = SchemaFolder(files, "/s")
    decoder = SchemaDecoder(folder)
    assert {"users": []} == decoder.value(enveloped(7, b"\0"))
    assert {"id": "1"} == decoder.value(enveloped(8, b"\0\x08\x01"))
    with pytest.raises(NoSuchSchema, match="has no schema 6"):
        folder.schema(6)
    with pytest.raises(UnusableSchema, match="no UTF-8"):
        folder.schema(9)


def test_a_schema_that_reaches_out_of_its_folder_is_refused() -> None:
    schema = Schema(SchemaKind.PROTOBUF, PROTO, (("../money.proto", MONEY),))
    with pytest.raises(UnusableSchema, match="it imports"):
        SchemaDecoder(None, schema)
    with pytest.raises(UnusableSchema, match="no protobuf schema"):
        SchemaDecoder(None, Schema(SchemaKind.PROTOBUF, "nonsense"))
    with pytest.raises(UnusableSchema, match="no message"):
        SchemaDecoder(None, Schema(SchemaKind.PROTOBUF, 'syntax = "proto3";'))


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "find_spec", lambda name: None)
    for kind, name in ((SchemaKind.AVRO, "fastavro"), (SchemaKind.PROTOBUF, "grpc_tools")):
        with pytest.raises(SchemaPackageMissing, match=name) as missing:
            SchemaDecoder(None, Schema(kind, "{}"))
        assert missing.value.hint is not None
    assert SchemaDecoder(None, Schema(SchemaKind.JSON, "{}")).value(b"1") == 1


def test_indexes_are_read_to_their_end() -> None:
    assert ((0,), b"x") == split_message_indexes(b"\0x")
    assert ((3, 1), b"x") == split_message_indexes(indexes(2, 3, 1) + b"x")
    for wrong in (b"", indexes(-1), indexes(33), indexes(2, 1)):
        with pytest.raises(WrongEnvelope):
            split_message_indexes(wrong)


class Failing(Schemas):
    """Schemas of a registry that fails so many times first."""

    def __init__(self, failures: int, error: EngineError) -> None:
        super().__init__({7: Schema(SchemaKind.JSON, "{}")})
        self.failures = failures
        self.error = error

    def schema(self, schema_id: int) -> Schema:
        found = super().schema(schema_id)
        if self.requested <= self.failures:
            raise self.error
        return found


BUSY = RegistryRefused("http://r", 503, "busy")


@pytest.mark.parametrize("error", [BUSY, HttpUnreachable("http://r", "reset")])
def test_one_failure_that_passes_costs_no_value(error: EngineError) -> None:
    decoder = SchemaDecoder(Failing(1, error))
    assert 1 == decoder.value(enveloped(7, b"1"))


def test_a_registry_that_comes_back_is_heard_and_one_that_is_down_not_asked_each_time() -> None:
    source = Failing(6, BUSY)
    decoder = SchemaDecoder(source)
    failed = 0
    for _ in range(20):
        try:
            decoder.value(enveloped(7, b"1"))
        except RegistryRefused:
            failed += 1
    # Two tries each at the first, second and fourth value.
    assert (7, 7) == (failed, source.requested)
    down = Failing(10_000, BUSY)
    decoder = SchemaDecoder(down)
    for _ in range(1_000):
        with pytest.raises(RegistryRefused):
            decoder.value(enveloped(7, b"1"))
    assert 20 == down.requested


def test_a_failure_that_lasts_is_requested_once() -> None:
    for status in (401, 403, 422):
        source = Failing(10, RegistryRefused("http://r", status, "no"))
        decoder = SchemaDecoder(source)
        for _ in range(5):
            with pytest.raises(RegistryRefused):
                decoder.value(enveloped(7, b"1"))
        assert 1 == source.requested
