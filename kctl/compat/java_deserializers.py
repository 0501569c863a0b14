r"""Convert bytes to the text of the object that a deserializer of Kafka returns.

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

Differs: Java prints an array's identity hash, which varies, instead of a checksum.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Final

from engine.java_text import encode_printable, java_length
from engine.records.crc import crc32c
from kctl.compat.java_failures import ToolFailure

Deserializer = Callable[[bytes], bytes]

_PACKAGE: Final = "org.apache.kafka.common.serialization."
_UUID_CHARS: Final = 36
#: Hexadecimal digits of each part of a UUID.
_UUID_DIGITS: Final = (8, 4, 4, 4, 12)
#: Number that Long.parseLong accepts, with decimal digits of any script.
_HEX_NUMBER: Final = re.compile(r"\+?[\da-fA-F]+")
#: Java accepts fullwidth letters as digits, but no characters above 16 bits.
_FULL_WIDTH: Final = {0xFF21 + upper: ord("A") + upper for upper in range(6)} | {
    0xFF41 + lower: ord("a") + lower for lower in range(6)
}
_LONG_MAX: Final = (1 << 63) - 1
_NO_UUID: Final = "Error parsing data into UUID"
_SERIALIZATION: Final = "org.apache.kafka.common.errors.SerializationException"


def deserializer_named(name: str) -> Deserializer:
    """Return the function that converts a key or value to text as a Java deserializer does.

    `name` is its class. Errors: ToolFailure for an unknown class.
    """
    known = _BY_CLASS.get(name.removeprefix(_PACKAGE)) if name.startswith(_PACKAGE) else None
    if known is None:
        raise ToolFailure("java.lang.ClassNotFoundException", name)
    return known


def _number_deserializer(form: str, name: str, text: Callable[[float], str] = str) -> Deserializer:
    """Return a deserializer for numbers in this `struct` format.

    `name` is that of the Java class in errors; `text` formats a number.
    """
    layout = struct.Struct(form)

    def read(raw: bytes) -> bytes:
        """Return the number as text; raises ToolFailure for a wrong number of bytes."""
        if len(raw) != layout.size:
            message = f"Size of data received by {name}Deserializer is not {layout.size}"
            raise ToolFailure(_SERIALIZATION, message)
        return text(layout.unpack(raw)[0]).encode()

    return read


def _double_text(number: float) -> str:
    """Return a double as Java prints it, with NaN and Infinity."""
    from engine.wire.json_form import json_text

    return json_text(number).strip('"')


def _float_text(number: float) -> str:
    """Return the shortest decimal text that parses to the same 32-bit float."""
    for digits in range(1, 10):
        text = f"{number:.{digits}g}"
        if struct.pack(">f", float(text)) == struct.pack(">f", number):
            return _double_text(float(text))
    return _double_text(number)


def _read_boolean(raw: bytes) -> bytes:
    """Return `true` or `false`; raises ToolFailure unless the data is one byte, 0 or 1."""
    if len(raw) != 1:
        message = "Size of data received by BooleanDeserializer is not 1"
        raise ToolFailure(_SERIALIZATION, message)
    (value,) = struct.unpack("b", raw)
    if value not in (0, 1):
        message = f"Unexpected byte received by BooleanDeserializer: {value}"
        raise ToolFailure(_SERIALIZATION, message)
    return b"true" if value else b"false"


def _read_uuid(raw: bytes) -> bytes:
    """Return a UUID in lower case; raises ToolFailure for text that is not a UUID.

    Like Java, it accepts numbers of fewer digits, and keeps only the low bits of longer ones.

    Source: java.util.UUID.fromString.
    """
    text = raw.decode(errors="replace").translate(_FULL_WIDTH)
    words = text.split("-")
    if java_length(text) > _UUID_CHARS or len(words) != len(_UUID_DIGITS) or not words[0]:
        raise ToolFailure(_SERIALIZATION, _NO_UUID)
    numbers = [int(word, 16) for word in words if _HEX_NUMBER.fullmatch(word)]
    if len(numbers) < len(words) or max(numbers) > _LONG_MAX or max(text) > "\uffff":
        raise ToolFailure(_SERIALIZATION, _NO_UUID)
    sized = zip(numbers, _UUID_DIGITS, strict=True)
    return "-".join(f"{number & 16**digits - 1:0{digits}x}" for number, digits in sized).encode()


def _bytes(raw: bytes) -> bytes:
    """Return bytes as Java's Bytes prints them: printable ASCII, and hex escapes otherwise."""
    shown = (
        chr(byte) if 0x20 <= byte < 0x7F and byte != 0x5C else f"\\x{byte:02X}" for byte in raw
    )
    return "".join(shown).encode()


def _void(raw: bytes) -> bytes:
    """Raise the exception of Java's VoidDeserializer, which accepts only null.

    Deserializers are not called for null.
    """
    raise ToolFailure(
        "java.lang.IllegalArgumentException",
        "Data should be null for a VoidDeserializer.",
    )


_BY_CLASS: Final[dict[str, Deserializer]] = {
    "StringDeserializer": encode_printable,
    "ShortDeserializer": _number_deserializer(">h", "Short"),
    "IntegerDeserializer": _number_deserializer(">i", "Integer"),
    "LongDeserializer": _number_deserializer(">q", "Long"),
    "FloatDeserializer": _number_deserializer(">f", "Float", _float_text),
    "DoubleDeserializer": _number_deserializer(">d", "Double", _double_text),
    "BooleanDeserializer": _read_boolean,
    "UUIDDeserializer": _read_uuid,
    "BytesDeserializer": _bytes,
    "ByteArrayDeserializer": lambda raw: b"[B@%x" % crc32c(raw),
    "ByteBufferDeserializer": lambda raw: (
        f"java.nio.HeapByteBuffer[pos=0 lim={len(raw)} cap={len(raw)}]".encode()
    ),
    "VoidDeserializer": _void,
}
