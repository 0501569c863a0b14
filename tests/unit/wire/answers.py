"""The engine's answers to the questions of `questions`, spelt as Apache Kafka's are."""

from __future__ import annotations

from engine.wire.codec import message_codec
from engine.wire.json_form import json_node, json_text
from engine.wire.record_decoders import select_decoder
from engine.wire.tool_reader import ToolFailure, nearest_version, read_as_tool
from tests.unit.wire.questions import PARSERS, hex_of


def unhex(text: str) -> bytes | None:
    """Return the bytes that a question spells."""
    return None if text == "-" else bytes.fromhex(text.strip("="))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def _sound(name: str, version: int, raw: bytes, release: str) -> str:
    codec = message_codec(name, version, release)
    message = codec.decode(raw)
    text = _escaped(json_text(json_node(message, version)))
    return f"OK\t{text}\t{len(raw)}\t{hex_of(codec.encode(message))}"


def _damaged(name: str, version: int, raw: bytes, release: str) -> str:
    message, position = read_as_tool(name, release, raw, version=version)
    node = json_node(message, nearest_version(message, version))
    return f"OK\t{_escaped(json_text(node))}\t{position}"


def _record(parser: str, key: str, value: str, offset: str, release: str) -> str:
    decode = select_decoder(PARSERS[parser.rpartition("$")[2]], release)
    texts = decode(unhex(key), unhex(value), int(offset))
    return "\t".join(["OK", *("N" if text is None else f"S{_escaped(text)}" for text in texts)])


def engine_answer(release: str, question: str) -> str:
    """Return the engine's answer."""
    kind, *words = question.split(" ")
    try:
        if kind == "R":
            parser, key, value, offset = words
            return _record(parser, key, value, offset, release)
        name, version, raw = words
        answer = _sound if kind == "M" else _damaged
        return answer(name, int(version), unhex(raw) or b"", release)
    except ToolFailure as failure:
        message = "~" if failure.java_message is None else _escaped(failure.java_message)
        return f"ERR\t{failure.java_class}\t{message}"
