r"""Bytes as the text of the object that a deserializer of Kafka's makes of them.

| class in org.apache.kafka.common.serialization | text |
|---|---|
| StringDeserializer | UTF-8 |
| ShortDeserializer, IntegerDeserializer, LongDeserializer | the number; big-endian |
| FloatDeserializer, DoubleDeserializer | the number, as Java prints it |
| BooleanDeserializer | true or false |
| UUIDDeserializer | the text itself, which is the UUID |
| BytesDeserializer | printable bytes, the others as \xNN |
| ByteArrayDeserializer | `[B@` and a checksum of the bytes |
| ByteBufferDeserializer | java.nio.HeapByteBuffer[pos=0 lim=5 cap=5] |
| VoidDeserializer | null; bytes are refused |

Source: the classes named; Bytes.toString.
Differs: Java prints an identity hash of an array, another one each time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from engine.java_text import printable
from engine.records.crc import crc32c
from kctl.compat.java_failures import ToolFailure

Deserializer = Callable[[bytes], bytes]

_PACKAGE: Final = "org.apache.kafka.common.serialization."
_SERIALIZATION: Final = "org.apache.kafka.common.errors.SerializationException"


def deserializer_named(name: str) -> Deserializer:
    """Return the function of a deserializer's class; raises ToolFailure for another class."""
    known = _BY_CLASS.get(name.removeprefix(_PACKAGE)) if name.startswith(_PACKAGE) else None
    if known is None:
        raise ToolFailure("java.lang.ClassNotFoundException", name)
    return known


def _number(form: str, name: str, text: Callable[[float], str] = str) -> Deserializer:
    """Return a deserializer of numbers in a `struct` format."""
    layout = struct.Struct(form)

    def read(raw: bytes) -> bytes:
        """Return the number as text; raises ToolFailure unless the size is right."""
        if len(raw) != layout.size:
            message = f"Size of data received by {name}Deserializer is not {layout.size}"
            raise ToolFailure(_SERIALIZATION, message)
        return text(layout.unpack(raw)[0]).encode()

    return read


def _double_text(number: float) -> str:
    from engine.wire.json_form import json_text

    return json_text(number).strip('"')


def _float_text(number: float) -> str:
    """Return the shortest text that reads as the same float of 32 bits."""
    for digits in range(1, 10):
        text = f"{number:.{digits}g}"
        if struct.pack(">f", float(text)) == struct.pack(">f", number):
            return _double_text(float(text))
    return _double_text(number)


def _boolean(raw: bytes) -> bytes:
    """Return the text of a boolean; raises ToolFailure for other bytes."""
    if raw not in (b"\x00", b"\x01"):
        raise ToolFailure(
            _SERIALIZATION,
            f"Unexpected byte received by BooleanDeserializer: {raw[0] if raw else ''}",
        )
    return b"true" if raw == b"\x01" else b"false"


def _uuid(raw: bytes) -> bytes:
    """Return a UUID in lower case; raises ToolFailure for other texts."""
    # The module inspects the machine, which takes longer than all the rest of a short call.
    from uuid import UUID

    try:
        return str(UUID(raw.decode())).encode()
    except ValueError as error:
        raise ToolFailure(_SERIALIZATION, "Error parsing data into UUID") from error


def _bytes(raw: bytes) -> bytes:
    """Return bytes as Java's Bytes prints them: with hex escapes but for printable ASCII."""
    shown = (
        chr(byte) if 0x20 <= byte < 0x7F and byte != 0x5C else f"\\x{byte:02X}" for byte in raw
    )
    return "".join(shown).encode()


def _void(raw: bytes) -> bytes:
    """Raise the exception of Java's VoidDeserializer, which takes only null."""
    raise ToolFailure(
        "java.lang.IllegalArgumentException",
        "Data should be null for a VoidDeserializer.",
    )


_BY_CLASS: Final[dict[str, Deserializer]] = {
    "StringDeserializer": printable,
    "ShortDeserializer": _number(">h", "Short"),
    "IntegerDeserializer": _number(">i", "Integer"),
    "LongDeserializer": _number(">q", "Long"),
    "FloatDeserializer": _number(">f", "Float", _float_text),
    "DoubleDeserializer": _number(">d", "Double", _double_text),
    "BooleanDeserializer": _boolean,
    "UUIDDeserializer": _uuid,
    "BytesDeserializer": _bytes,
    "ByteArrayDeserializer": lambda raw: b"[B@%x" % crc32c(raw),
    "ByteBufferDeserializer": lambda raw: (
        f"java.nio.HeapByteBuffer[pos=0 lim={len(raw)} cap={len(raw)}]".encode()
    ),
    "VoidDeserializer": _void,
}
