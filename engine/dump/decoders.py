"""Decoders that turn keys and values into text.

| name | Kafka's class | prints |
|---|---|---|
| string | StringDecoder | UTF-8 text, U+FFFD for what is none |
| bytes | DefaultDecoder | `[B@` and a checksum of the bytes |
| int, long | IntegerDecoder, LongDecoder | the first 4 or 8 bytes, big-endian |
| hex | – | two digits a byte |
| json | – | compact JSON; other bytes, and JSON that `json_text` refuses, as `string` does |
| schema-id | – | the id of a schema-registry envelope and the bytes behind it |

A key or value that is not what its decoder reads is shown as `undecodable`, with the reason and its
bytes in hex, and the next record follows. By the names of Kafka's classes it ends the dump, as it
does there.

Differs: Kafka's DefaultDecoder prints an identity hash, another one each time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Protocol

from engine.errors import EngineError, StorageError
from engine.java_text import printable
from engine.records.legacy import SizeBeyondMessage

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_ENVELOPE = struct.Struct(">bi")
#: So many bytes of what cannot be decoded are shown.
_HEX_BYTES_SHOWN = 64

Text = bytes | None


class UndecodableRecord(StorageError):
    """The chosen decoder cannot read a key or value, which ends Kafka's tool."""

    hint = "choose int, long or hex to see the records behind it, or no decoder for bytes as text"

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"record at offset {offset} cannot be decoded: {reason}")
        self.offset = offset
        self.reason = reason


class _Undecodable(Exception):
    """Bytes are not what a decoder reads; the text is the reason."""


class UnknownDecoder(EngineError):
    """A decoder was named that does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__(f"unknown decoder {name!r}: one of {', '.join(_BY_NAME)}")
        self.name = name


class Decoder(Protocol):
    """Gives the printed key and value of a record; None prints nothing."""

    #: Keys and values that were shown as undecodable.
    undecodable_count: int

    def open(self) -> list[str]:
        """Return lines to print before a log; raises when the decoder does not exist."""
        ...

    def texts(self, offset: int, key: Text, value: Text) -> tuple[Text, Text]:
        """Return what is printed for key and value."""
        ...

    def unreadable(
        self, offset: int, has_key: bool, key: Text, error: SizeBeyondMessage
    ) -> tuple[Text, Text]:
        """Return the text for a message whose sizes contradict its length, or raise.

        `key` is None for a message without a key, or with an unreadable one.
        """
        ...


class TextDecoder:
    """Reads both as UTF-8 text, as Kafka does without options."""

    undecodable_count = 0

    def open(self) -> list[str]:
        """Return no lines: this decoder always exists."""
        return []

    def texts(self, offset: int, key: Text, value: Text) -> tuple[Text, Text]:
        """Return both as Java prints them."""
        return (
            None if key is None else printable(key),
            None if value is None else printable(value),
        )

    def unreadable(
        self, offset: int, has_key: bool, key: Text, error: SizeBeyondMessage
    ) -> tuple[Text, Text]:
        """Raise: these bytes cannot be shown."""
        raise error


class PairDecoder:
    """Reads key and value each by a decoder of its own, named as Kafka or we do."""

    def __init__(self, key: str, value: str, kafka_version: str) -> None:
        """Take the decoders' names; `open` looks them up, and raises for unknown ones."""
        #: How many keys and values could not be decoded.
        self.undecodable_count = 0
        #: The value's decoder is looked up first, as in Kafka: its error or notice comes first.
        self._names = (value, key)
        #: Kafka 4 no longer takes classes of the package before 4.0; 3.9 takes them with a notice.
        self._is_four = kafka_version == "4.3.0"
        self._key: Callable[[bytes], bytes] = printable
        self._value: Callable[[bytes], bytes] = printable

    def open(self) -> list[str]:
        """Find the two decoders; returns Kafka 3.9's notices about old names."""
        notices: list[str] = []
        self._value, self._key = (self._find(name, notices) for name in self._names)
        return notices

    def _find(self, name: str, notices: list[str]) -> Callable[[bytes], bytes]:
        """Return the decoder of a name or a class of Kafka; raises UnknownDecoder.

        Classes of the package before Kafka 4 give a notice of deprecation, in 3.9 only.
        """
        plain = _BY_CLASS.get(name.removeprefix(_NEW_PACKAGE), name)
        if name.startswith(_OLD_PACKAGE) and not self._is_four:
            bare = name.removeprefix(_OLD_PACKAGE)
            if bare in _BY_CLASS:
                notices.append(f"{name} is deprecated. Please use {_NEW_PACKAGE}{bare} instead")
                plain = _BY_CLASS[bare]
        try:
            return _BY_NAME[plain]
        except KeyError:
            raise UnknownDecoder(name) from None

    def texts(self, offset: int, key: Text, value: Text) -> tuple[Text, Text]:
        """Return key and value by their decoders; raises UndecodableRecord."""
        of_value, of_key = self._names
        return (
            None if key is None else self._text(offset, of_key, self._key, key),
            None if value is None else self._text(offset, of_value, self._value, value),
        )

    def _text(self, offset: int, name: str, decode: Callable[[bytes], bytes], raw: bytes) -> bytes:
        """Return the decoded text; undecodable bytes are marked, or raise for Kafka's classes."""
        try:
            return decode(raw)
        except _Undecodable as reason:
            if name not in _BY_NAME:
                raise UndecodableRecord(offset, str(reason)) from reason
            self.undecodable_count += 1
            shown, more = raw[:_HEX_BYTES_SHOWN].hex(), "…" if len(raw) > _HEX_BYTES_SHOWN else ""
            return f"undecodable: {reason}: {shown}{more}".encode()

    def unreadable(
        self, offset: int, has_key: bool, key: Text, error: SizeBeyondMessage
    ) -> tuple[Text, Text]:
        """Raise: these bytes cannot be decoded."""
        raise error


class InternalTopicDecoder:
    """Reads the records of one of Kafka's internal topics."""

    undecodable_count = 0

    def __init__(self, kind: str, kafka_version: str) -> None:
        """`kind` names the internal topic's records."""
        from engine.wire.record_decoders import decoder_for

        self._kind = kind
        #: Whether a fault ends the tool: the older transaction decoder does not catch it.
        self._dies = kind == "transaction_log" and kafka_version == "3.9.1"
        self._decode = decoder_for(kind, kafka_version)

    def open(self) -> list[str]:
        """Return no lines: these decoders always exist."""
        return []

    def texts(self, offset: int, key: Text, value: Text) -> tuple[Text, Text]:
        """Return the JSON (or older text) of key and value; raises where Kafka's tool dies."""
        shown_key, shown_value = self._decode(key, value, offset)
        return (
            None if shown_key is None else shown_key.encode("utf-8", "replace"),
            None if shown_value is None else shown_value.encode("utf-8", "replace"),
        )

    def unreadable(
        self, offset: int, has_key: bool, key: Text, error: SizeBeyondMessage
    ) -> tuple[Text, Text]:
        """Return why a record is passed over, where Kafka's tool goes on; else raise."""
        why = f"newLimit > capacity: ({error.size_bytes} > {error.left_bytes})"
        if self._kind == "cluster_metadata":
            return None, f"Error at {offset}, skipping. {why}".encode()
        passed_over = f"Error at offset {offset}, skipping. {why}".encode()
        if self._kind == "remote_log_metadata":
            return None, passed_over
        if has_key and not self._dies:
            return passed_over, None
        if key is not None and self._dies:
            shown, _ = self.texts(offset, key, None)
            # A key of an unknown version is shown without a look at the value.
            if shown is not None and shown.startswith(b"unknown::"):
                return shown, None
        raise error


def _number(form: struct.Struct, name: str) -> Callable[[bytes], bytes]:
    """Return a decoder that prints the first bytes as an integer."""

    def text(raw: bytes) -> bytes:
        """Return the integer as text; raises _Undecodable if there are fewer bytes."""
        _require(raw, form.size, name)
        return b"%d" % form.unpack_from(raw)[0]

    return text


def _require(raw: bytes, size_bytes: int, name: str) -> None:
    """Raise _Undecodable for fewer bytes than a value begins with."""
    if len(raw) < size_bytes:
        raise _Undecodable(f"{name} has {size_bytes} bytes, here are {len(raw)}")


def _array_text(raw: bytes) -> bytes:
    """Return bytes as Java prints an array: `[B@` and a hash, here the CRC for repeatable dumps."""
    from engine.records.crc import crc32c

    return b"[B@%x" % crc32c(raw)


def _json_text(raw: bytes) -> bytes:
    """Return compact JSON; bytes that are no JSON are printed as text."""
    from engine.json_text import json_text, read_json

    try:
        return json_text(read_json(raw), separators=(",", ":")).encode()
    except ValueError:
        return printable(raw)


def _schema_id_text(raw: bytes) -> bytes:
    """Return schema id, size and content of an envelope; raises _Undecodable."""
    _require(raw, _ENVELOPE.size, "the head of a schema envelope")
    magic, schema_id = _ENVELOPE.unpack_from(raw)
    if magic != 0:
        raise _Undecodable(f"the first byte is {raw[0]}, not the 0 of a schema envelope")
    return b"schema %d, %d bytes: %s" % (schema_id, len(raw) - 5, raw[5:].hex().encode())


_NEW_PACKAGE = "org.apache.kafka.tools.api."
_OLD_PACKAGE = "kafka.serializer."
_BY_CLASS = {
    "StringDecoder": "string",
    "DefaultDecoder": "bytes",
    "IntegerDecoder": "int",
    "LongDecoder": "long",
}
_BY_NAME: dict[str, Callable[[bytes], bytes]] = {
    "string": printable,
    "bytes": _array_text,
    "int": _number(_INT, "an int"),
    "long": _number(_LONG, "a long"),
    "hex": lambda raw: raw.hex().encode(),
    "json": _json_text,
    "schema-id": _schema_id_text,
}
DECODER_NAMES = tuple(_BY_NAME)
