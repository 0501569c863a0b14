"""Coverage-guided fuzzing of the wire room, by hand (the tests run a bounded random twin of it).

    pip install atheris && python -m tests.fuzz.fuzz_wire -max_total_time=600

The first two bytes choose a message version, a header or a decoder, the rest is what it reads. Any
exception but WireError and ToolFailure is a finding, and so is a value that the other tier, or the
reader that follows Kafka's, does not give.
"""

from __future__ import annotations

import sys
from functools import cache

import atheris

with atheris.instrument_imports(include=["engine"]):
    from engine.errors import WireError
    from engine.wire.codec import message_codec
    from engine.wire.headers import read_request_header, read_response_header
    from engine.wire.json_form import json_node, json_text
    from engine.wire.layout import message_layout
    from engine.wire.read_source import Decoder, compile_decoder
    from engine.wire.reader import Reader
    from engine.wire.record_decoders import NoSuchDecoder, RecordDecoder, select_decoder
    from engine.wire.schema import RELEASES
    from engine.wire.tool_reader import ToolFailure, read_as_tool

from tests.unit.wire.questions import PARSERS
from tests.unit.wire.values import all_versions

VERSIONS = list(all_versions())
DECODER_SPACE = 64


def decoders() -> list[RecordDecoder]:
    """Return the decoders of all releases."""
    found = []
    for release in RELEASES:
        for kind in PARSERS.values():
            try:
                found.append(select_decoder(kind, release))
            except NoSuchDecoder:
                continue
    return found


DECODERS = decoders()


def headers(raw: bytes) -> None:
    """Read both headers."""
    for read in (read_request_header, lambda frame: read_response_header(frame, 3, 12)):
        try:
            read(raw)
        except WireError:
            continue


def decoder(number: int, raw: bytes) -> None:
    """Decode a record whose key ends at the first byte's count."""
    size = raw[0] if raw else 0
    try:
        DECODERS[number % len(DECODERS)](raw[1 : 1 + size], raw[1 + size :], 7)
    except ToolFailure:
        return


@cache
def compiled(name: str, version: int, release: str) -> Decoder:
    """Return the compiled decoder of a version."""
    return compile_decoder(name, release, message_layout(name, version, release))


def message(number: int, raw: bytes) -> None:
    """Decode a message in every way and compare."""
    name, version, release = VERSIONS[number % len(VERSIONS)]
    reader = Reader(name, release, memoryview(raw), 0)
    try:
        value = reader.read_struct(message_layout(name, version, release))
    except WireError:
        return
    position = reader.position
    quick, quick_end = compiled(name, version, release)(memoryview(raw), 0, len(raw))
    lenient, end = read_as_tool(name, release, raw, version=version)
    assert position == quick_end == end
    # Compared by their texts: NaN equals nothing.
    text = json_text(json_node(value, version))
    assert text == json_text(json_node(quick, version))
    assert text == json_text(json_node(lenient, version))
    again = message_codec(name, version, release).encode(value)
    assert text == json_text(
        json_node(message_codec(name, version, release).decode(again), version)
    )


def one_input(data: bytes) -> None:
    """Read one input."""
    number, raw = int.from_bytes(data[:2], "big"), data[2:]
    if number < DECODER_SPACE:
        decoder(number, raw)
    elif number == DECODER_SPACE:
        headers(raw)
    else:
        message(number, raw)


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
