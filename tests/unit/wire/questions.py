"""Questions about bytes, as text, that Apache Kafka and the engine answer alike.

    M message version bytes           reads the message, prints it, writes it again
    D message version bytes           reads the message, prints it
    R parser-class key value offset   prints a record of an internal topic

See tools/kafka_answers: the kept answers are Kafka's, `answers.engine_answer` gives the engine's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from random import Random

from engine.wire.codec import message_codec
from engine.wire.coordinator_records import RECORD_TYPES, key_version
from engine.wire.framed_records import framed_types
from engine.wire.schema import message_schema
from engine.wire.writer import varint_bytes
from tests.unit.wire.values import all_versions, drawn_message

TOOLS = {"3.9.1": "kafka.tools", "4.3.0": "org.apache.kafka.tools"}
PARSERS = {
    "OffsetsMessageParser": "offsets",
    "TransactionLogMessageParser": "transaction_log",
    "ClusterMetadataLogMessageParser": "cluster_metadata",
    "RemoteMetadataLogMessageParser": "remote_log_metadata",
    "ShareGroupStateMessageParser": "share_group_state",
}
BAD_PIECES = (
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff",
    b"\x80\x80\x80\x80\x08",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\xff\xff",
    b"\x80\x00",
    b"\xed\xa0\x80",
)


def hex_of(raw: bytes | memoryview | None) -> str:
    """Return bytes as a question spells them."""
    return "-" if raw is None else raw.hex() or "="


def damaged(rng: Random, raw: bytes) -> bytes:
    """Return bytes cut, flipped, overwritten, lengthened or with a gap."""
    out = bytearray(raw)
    if not out:
        return rng.randbytes(3)
    place = rng.randrange(len(out))
    match rng.randrange(6):
        case 0:
            del out[place:]
        case 1:
            for _ in range(rng.randint(1, 3)):
                byte = rng.choice((0, 1, 2, 127, 128, 255, rng.randrange(256)))
                out[rng.randrange(len(out))] = byte
        case 2:
            out[place] ^= 1 << rng.randrange(8)
        case 3:
            out[place : place + rng.randint(1, 4)] = rng.choice(BAD_PIECES)
        case 4:
            out += rng.randbytes(rng.randint(1, 9))
        case _:
            del out[place : place + rng.randint(1, 3)]
    return bytes(out)


def sound_messages(release: str, *, examples: int, seed: str) -> Iterator[str]:
    """Yield well-formed messages of every version."""
    for name, version, of_release in all_versions():
        for number in range(examples if of_release == release else 0):
            rng = Random(f"{seed} {release} {name} {version} {number}")
            message = drawn_message(rng, name, version, release)
            raw = message_codec(name, version, release).encode(message)
            yield f"M {name} {version} {hex_of(raw)}"


def damaged_messages(release: str, *, examples: int, seed: str) -> Iterator[str]:
    """Yield messages with wrong bytes, some in versions that do not exist."""
    for name, version, of_release in all_versions():
        for number in range(examples if of_release == release else 0):
            rng = Random(f"{seed} damaged {release} {name} {version} {number}")
            message = drawn_message(rng, name, version, release)
            raw = message_codec(name, version, release).encode(message)
            requested = version + rng.choice((-3, -1, 1, 2, 100)) if rng.random() < 0.3 else version
            raw = damaged(rng, raw) if rng.random() < 0.85 else raw
            yield f"D {name} {requested} {hex_of(raw)}"


def _body(rng: Random, name: str, version: int, release: str) -> bytes:
    """Return a value or key whose enumerations and nested bytes often make sense."""
    message = drawn_message(rng, name, version, release)
    if name == "GroupMetadataValue" and rng.random() < 0.8:
        message.protocol_type = "consumer"
        for member in message.members:
            member.subscription = _embedded(rng, "ConsumerProtocolSubscription", release)
            member.assignment = _embedded(rng, "ConsumerProtocolAssignment", release)
    if name == "TransactionLogValue":
        message.transaction_status = rng.randint(0, 7) if rng.random() < 0.9 else 9
        for topic in message.transaction_partitions or ():
            count = rng.choice((0, 1, 3, 5, 12, 13, 40))
            topic.partition_ids = [rng.randrange(60) for _ in range(count)]
    for state in ("remote_log_segment_state", "remote_partition_delete_state"):
        if state in message.__slots__ and rng.random() < 0.9:
            setattr(message, state, rng.randint(0, 3))
    if "start_offset" in message.__slots__ and name.startswith("Remote") and rng.random() < 0.9:
        message.start_offset = rng.randint(0, 100)
        message.end_offset = message.start_offset + rng.randint(0, 9)
    return message_codec(name, version, release).encode(message)


def _embedded(rng: Random, name: str, release: str) -> bytes:
    """Return a consumer's subscription or assignment behind its version, sometimes damaged."""
    version = rng.randint(0, 3)
    message = drawn_message(rng, name, version, release)
    shown = rng.choice((version, version, version, version + 1, -1, 9))
    raw = struct.pack(">h", shown) + message_codec(name, version, release).encode(message)
    return damaged(rng, raw) if rng.random() < 0.3 else raw


def _coordinator_record(rng: Random, kind: str, release: str) -> tuple[bytes | None, bytes | None]:
    """Return the key and value of a coordinator's record, often damaged."""
    type_id, name = rng.choice(list(RECORD_TYPES[kind][release].items()))
    if kind == "offsets" and rng.random() < 0.3:
        type_id, name = 2, "GroupMetadata"
    key: bytes | None = struct.pack(">h", type_id) + _body(
        rng, f"{name}Key", key_version(type_id, release), release
    )
    valid = message_schema(f"{name}Value", release).valid
    version = rng.randint(valid.lowest, valid.highest)
    shown = version if rng.random() < 0.9 else version + rng.choice((-1, 1, 5, -200))
    value: bytes | None = struct.pack(">h", shown) + _body(rng, f"{name}Value", version, release)
    assert key is not None
    assert value is not None
    harm = rng.random()
    if harm < 0.1:
        value = None
    elif harm < 0.12:
        key = None
    elif harm < 0.2:
        key = damaged(rng, key)
    elif harm < 0.4:
        value = damaged(rng, value)
    elif harm < 0.42:
        key = b""
    elif harm < 0.44:
        value = b""
    elif harm < 0.47:
        key = struct.pack(">h", rng.choice((9, 18, 24, -1, 99, 5, 2))) + key[2:]
    return key, value


def _framed_record(rng: Random, kind: str, release: str) -> bytes | None:
    """Return a framed value, often damaged."""
    type_id, name = rng.choice(list(framed_types(kind, release).items()))
    valid = message_schema(name, release).valid
    version = rng.randint(valid.lowest, valid.highest)
    frame = 1 if rng.random() < 0.95 else rng.choice((0, 2, 200, 70000, 2**32 - 1, 2**31))
    type_shown = type_id if rng.random() < 0.95 else rng.choice((6, 99, 70000, 2**32 - 3))
    wrong_version = rng.choice((version + 1, version + 7, 40000, 2**32 - 1))
    version_shown = version if rng.random() < 0.9 else wrong_version
    head = b"".join(map(varint_bytes, (frame, type_shown, version_shown)))
    value = head + _body(rng, name, version, release)
    if rng.random() < 0.25:
        value = damaged(rng, value)
    return rng.choice((value,) * 30 + (None, b""))


def records(release: str, *, examples: int, seed: str) -> Iterator[str]:
    """Yield records of internal topics for each parser of the release's dump tool."""
    for parser, kind in PARSERS.items():
        if kind == "share_group_state" and release == "3.9.1":
            continue
        for number in range(examples):
            rng = Random(f"{seed} {release} {kind} {number}")
            if kind in RECORD_TYPES:
                key, value = _coordinator_record(rng, kind, release)
            else:
                key, value = None, _framed_record(rng, kind, release)
            offset = rng.choice((0, 1, 77, 10**12))
            name = f"{TOOLS[release]}.DumpLogSegments${parser}"
            yield f"R {name} {hex_of(key)} {hex_of(value)} {offset}"
