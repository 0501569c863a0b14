"""Every message in every version: round trips, equal tiers, hostile bytes."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.errors import WireError
from engine.wire.codec import MessageCodec, message_codec
from engine.wire.json_form import json_node, json_text
from engine.wire.layout import FieldLayout, StructLayout, message_layout
from engine.wire.read_source import compile_decoder
from engine.wire.reader import Reader
from engine.wire.schema import RELEASES
from engine.wire.structs import Struct
from engine.wire.tool_reader import read_as_tool
from engine.wire.write_source import compile_encoder
from engine.wire.writer import Writer
from tests.unit.wire.questions import damaged
from tests.unit.wire.values import Drawer, all_versions, drawn_message

VERSIONS = list(all_versions())
EXAMPLES = 3


class Tiers:
    """The walking and the compiled codec of one version, side by side."""

    def __init__(self, name: str, version: int, release: str) -> None:
        self.codec = MessageCodec(name, version, release)
        self.layout = self.codec.layout
        self.decoder = compile_decoder(name, release, self.layout)
        self.encoder = compile_encoder(name, release, self.layout)

    def walk(self, raw: bytes) -> tuple[Struct, int]:
        """Decode field by field."""
        reader = Reader(self.codec.name, self.codec.release, memoryview(raw), 0)
        return reader.read_struct(self.layout), reader.position

    def written(self, message: Struct) -> bytes:
        """Encode field by field."""
        out = bytearray()
        writer = Writer(self.codec.name, self.codec.release, self.codec.version, out)
        writer.write_struct(self.layout, message)
        return bytes(out)

    def encoded(self, message: Struct) -> bytes:
        """Encode by the compiled encoder."""
        out = bytearray()
        self.encoder(message, out)
        return bytes(out)


@cache
def tiers(name: str, version: int, release: str) -> Tiers:
    return Tiers(name, version, release)


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_every_version_goes_there_and_back_in_both_tiers(release: str) -> None:
    for name, version, of in VERSIONS:
        for number in range(EXAMPLES if of == release else 0):
            both = tiers(name, version, release)
            message = drawn_message(Random(f"{name} {version} {number}"), name, version, release)
            raw = both.encoded(message)
            assert raw == both.written(message), (name, version)
            assert (message, len(raw)) == both.decoder(memoryview(raw), 0, len(raw)), name
            assert (message, len(raw)) == both.walk(raw), (name, version)


@given(which=st.sampled_from(VERSIONS), rng=st.randoms(use_true_random=False))
def test_a_drawn_message_goes_there_and_back(which: tuple[str, int, str], rng: Random) -> None:
    message = drawn_message(rng, *which)
    codec = message_codec(*which)
    assert message == codec.decode(codec.encode(message))


def hold(which: tuple[str, int, str], raw: bytes) -> None:
    """Decode bytes by every reader: equal values, or an error, and nothing else."""
    both = tiers(*which)
    try:
        walked = both.walk(raw)
    except WireError as error:
        with pytest.raises(type(error)):
            both.codec.decode_at(raw, 0)
        with pytest.raises(Exception):  # noqa: B017 - what it raises, the codec maps
            both.decoder(memoryview(raw), 0, len(raw))
        return
    assert walked == both.codec.decode_at(raw, 0)
    name, version, release = which
    try:
        compiled = both.decoder(memoryview(raw), 0, len(raw))
    except Exception:
        # Odd requests are read by the walk alone, in the way of Java.
        assert name.endswith("Request")
        return
    assert walked == compiled
    lenient, position = read_as_tool(name, release, raw, version=version)
    # Texts, because NaN equals nothing.
    assert json_text(json_node(walked[0], version)) == json_text(json_node(lenient, version))
    assert walked[1] == position


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_damaged_bytes_give_a_value_or_a_typed_error(release: str) -> None:
    for name, version, of in VERSIONS:
        if of == release:
            rng = Random(f"damaged {name} {version}")
            raw = message_codec(name, version, of).encode(drawn_message(rng, name, version, of))
            hold((name, version, of), damaged(rng, raw))


@given(which=st.sampled_from(VERSIONS), raw=st.binary(max_size=200))
@example(which=("MetadataRequest", 12, "3.9.1"), raw=b"\xff\xff\xff\xff\x0f")
def test_any_bytes_give_a_value_or_a_typed_error(which: tuple[str, int, str], raw: bytes) -> None:
    hold(which, raw)


@pytest.mark.parametrize(
    "which",
    [
        ("MetadataResponse", 12, "3.9.1"),
        ("FetchResponse", 16, "3.9.1"),
        ("OffsetCommitRequest", 2, "3.9.1"),
        ("StreamsGroupDescribeResponse", 0, "4.3.0"),
        ("GroupMetadataValue", 3, "3.9.1"),
        ("RegisterBrokerRecord", 3, "3.9.1"),
    ],
    ids=lambda which: f"{which[0]}-{which[1]}",
)
def test_every_cut_and_every_flipped_byte_is_held(which: tuple[str, int, str]) -> None:
    rng = Random("cuts")
    raw = min(
        (message_codec(*which).encode(drawn_message(rng, *which)) for _ in range(9)), key=len
    )[:300]
    for place in range(len(raw)):
        hold(which, raw[:place])
        hold(which, raw[:place] + bytes((raw[place] ^ 0xFF,)) + raw[place + 1 :])


def nested(layout: StructLayout) -> list[FieldLayout]:
    """Return all fields of a layout, those of nested structs too."""
    return [f for own in layout.fields for f in (own, *(nested(own.struct) if own.struct else ()))]


def test_fewest_bytes_are_never_more_than_a_value_takes() -> None:
    for name, version, release in VERSIONS:
        layout = message_layout(name, version, release)
        for field in nested(layout):
            assert field.element_bytes_min >= 0
        empty = message_codec(name, version, release).encode(
            Empty(Random(0), name, release).struct(layout)
        )
        assert layout.bytes_min == len(empty), (name, version)


class Empty(Drawer):
    """Draws the shortest value of every field."""

    def field(self, field: FieldLayout) -> Any:
        if field.nullable:
            return None
        return [] if field.is_array else self.one(field)

    def one(self, field: FieldLayout) -> Any:
        if field.struct:
            return self.struct(field.struct)
        return {"string": "", "bytes": b"", "records": b"", "uuid": bytes(16)}.get(field.type, 0)

    def struct(self, layout: StructLayout) -> Struct:
        made = self.classes[layout.name]()
        for field in layout.placed("positional"):
            setattr(made, field.attribute, self.field(field))
        return made
