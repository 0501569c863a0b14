"""The packed tables and their parser."""

from __future__ import annotations

import pytest

from engine.wire.errors import UnknownMessage
from engine.wire.schema import (
    NO_VERSIONS,
    RELEASES,
    Versions,
    message_names,
    message_schema,
    parse_message,
    parse_versions,
    schema_head,
)

SAMPLE = """\
request 99 1-7 5+ unstable
Name string 1+ null=3+ default=null ignorable mapKey
Rows []Row 2-6
 Id uuid 2+
 Inner Inner 2+ null=4+ tag=3:5+ default=null
  Size uint16 2+ default=0x10
Total int64 1+ default=-1
Flag bool 1+ default=true
Rate float64 1+
Plain string 1+ plain
Batches records 1+
Others []Shared 1+
= Shared 1+
Kind int8 1+
 """.rstrip(" ")


def test_versions_are_one_a_range_or_open() -> None:
    assert Versions(3, 3) == parse_versions("3")
    assert Versions(2, 5) == parse_versions("2-5")
    assert Versions(2, 0x7FFF) == parse_versions("2+")
    assert parse_versions("none") == NO_VERSIONS
    assert NO_VERSIONS.is_empty


def test_head_gives_kind_key_and_versions() -> None:
    message = parse_message("Sample", "x", SAMPLE)
    assert ("request", 99) == (message.kind, message.api_key)
    assert (Versions(1, 7), Versions(5, 0x7FFF)) == (message.valid, message.flexible)
    assert message.latest_unstable


def test_nested_and_shared_structs_are_found_by_name() -> None:
    message = parse_message("Sample", "x", SAMPLE)
    assert {"Sample", "Row", "Inner", "Shared"} == set(message.structs)
    assert ["Id", "Inner"] == [field.name for field in message.structs["Row"].fields]
    assert [False, True] == [message.structs[name].shared for name in ("Row", "Shared")]
    assert Versions(2, 6) == message.structs["Row"].versions


def test_fields_carry_their_options() -> None:
    fields = {f.name: f for f in parse_message("Sample", "x", SAMPLE).root.fields}
    name = fields["Name"]
    assert name.nullable == Versions(3, 0x7FFF)
    assert name.ignorable
    assert name.map_key
    assert name.null_by_default
    assert fields["Plain"].plain
    assert fields["Rows"].is_array
    assert fields["Rows"].is_struct


def test_defaults_have_the_fields_type() -> None:
    message = parse_message("Sample", "x", SAMPLE)
    defaults = {f.name: f.default for f in message.root.fields}
    assert (-1, True, 0.0, "") == tuple(defaults[n] for n in ("Total", "Flag", "Rate", "Plain"))
    assert message.structs["Inner"].fields[0].default == 16


def test_records_start_as_null() -> None:
    fields = {f.name: f for f in parse_message("Sample", "x", SAMPLE).root.fields}
    assert fields["Batches"].null_by_default


@pytest.mark.parametrize("release", RELEASES)
def test_every_struct_that_a_field_names_is_there(release: str) -> None:
    for name in message_names(release):
        schema = message_schema(name, release)
        named = {f.type for s in schema.structs.values() for f in s.fields if f.is_struct}
        assert named <= set(schema.structs), name


def test_releases_have_the_messages_of_their_jars() -> None:
    assert [240, 272] == [len(message_names(release)) for release in RELEASES]


def test_newer_tables_know_what_is_gone_new_and_changed() -> None:
    with pytest.raises(UnknownMessage):
        message_schema("LeaderAndIsrRequest", "4.3.0")
    with pytest.raises(UnknownMessage):
        message_schema("StreamsGroupHeartbeatRequest", "3.9.1")
    assert message_schema("ProduceRequest", "3.9.1").valid == Versions(0, 11)
    assert message_schema("ProduceRequest", "4.3.0").valid == Versions(3, 13)
    assert message_schema("NoOpRecord", "4.3.0").root == message_schema("NoOpRecord").root


def test_unknown_release_is_refused() -> None:
    with pytest.raises(UnknownMessage):
        message_schema("MetadataRequest", "2.8.0")


def test_head_is_read_without_the_fields() -> None:
    assert ["request", "3", "0-12", "9+"] == schema_head("MetadataRequest")
    with pytest.raises(UnknownMessage):
        schema_head("NoSuchRequest")
