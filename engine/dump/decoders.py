"""Decoders that convert keys and values to text.

| name | Kafka's class | prints |
|---|---|---|
| string | StringDecoder | UTF-8 text, with U+FFFD for invalid bytes |
| bytes | DefaultDecoder | `[B@` and a checksum of the bytes |
| int, long | IntegerDecoder, LongDecoder | the first 4 or 8 bytes, big-endian |
| hex | – | two digits per byte |
| json | – | compact JSON; bytes that `json_text` refuses as `string` does |
| schema-id | – | the id in a schema-registry envelope, and the bytes after it |

A key or value that its decoder cannot read is printed as `undecodable`, with the reason and its
bytes in hex, and the dump continues. With the names of Kafka's classes the dump ends there, as in
Kafka's tool.

Differs: Kafka's DefaultDecoder prints an identity hash, which is another one each time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Protocol

from engine.errors import EngineError, StorageError
from engine.java_text import encode_printable
from engine.records.legacy import SizeBeyondMessage

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_ENVELOPE = struct.Struct(">bi")
#: Maximum number of undecodable bytes that are shown.
_HEX_BYTES_SHOWN = 64

Text = bytes | None


class UndecodableRecord(StorageError):
    """The decoder cannot read a key or value, which ends the dump as in Kafka's tool."""

    hint = "choose int, long or hex to see the records after it, or no decoder for bytes as text"

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"record at offset {offset} cannot be decoded: {reason}")
        self.offset = offset
        self.reason = reason


class _Undecodable(Exception):
    """A decoder cannot read the bytes; the text is the reason."""


class UnknownDecoder(EngineError):
    """The named decoder does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__(f"unknown decoder {name!r}: one of {', '.join(_BY_NAME)}")
        self.name = name


class Decoder(Protocol):
    """Returns the text to print for a key and a value; None prints nothing."""

    #: Number of keys and values shown as undecodable.
    undecodable_count: int

    def open(self) -> list[str]:
        """Prepare the decoder; return the lines to print before a log. Raises UnknownDecoder."""
        ...

    def texts(self, offset: int, key: Text, value: Text) -> tuple[Text, Text]:
        """Return the texts to print for the key and the value of the record at `offset`.

        A key or value of None is null; a text of None prints nothing.
        """
        ...

    def unreadable(
        self, offset: int, has_key: bool, key: Text, error: SizeBeyondMessage
    ) -> tuple[Text, Text]:
        """Return the texts for a message whose sizes contradict its length, or raise an error.

        `key` is None for a message without a key, or with an unreadable one.
        """
        ...


class TextDecoder:
    """Reads key and value as UTF-8 text, which is Kafka's default."""

    undecodable_count = 0

    def open(self) -> list[str]:
        """Return no lines to print: this decoder needs no preparation."""
        return []

    def texts(self, offset: int, key: Text, value: Text) -> tuple[Text, Text]:
        """Return key and value as Java prints them, None for null."""
        return (
            None if key is None else encode_printable(key),
            None if value is None else encode_printable(value),
        )

    def unreadable(
        self, offset: int, has_key: bool, key: Text, error: SizeBeyondMessage
    ) -> tuple[Text, Text]:
        """Raise the error: these bytes cannot be shown."""
        raise error


class PairDecoder:
    """Reads key and value each by its own decoder, given by our name or that of Kafka's class."""

    def __init__(self, key: str, value: str, kafka_version: str) -> None:
        """`key` and `value` are names of decoders, which `open` looks up."""
        #: Number of keys and values shown as undecodable.
        self.undecodable_count = 0
        #: The value's decoder is looked up first, as in Kafka: its error or notice comes first.
        self._names = (value, key)
        #: Kafka 4 does not accept classes of the package before 4.0; 3.9 does, with a notice.
        self._is_four = kafka_version == "4.3.0"
        self._key: Callable[[bytes], bytes] = encode_printable
        self._value: Callable[[bytes], bytes] = encode_printable

    def open(self) -> list[str]:
        """Look up both decoders; return Kafka 3.9's notices about old names.

        Errors: UnknownDecoder.
        """
        notices: list[str] = []
        self._value, self._key = (self._find_decoder(name, notices) for name in self._names)
        return notices

    def _find_decoder(self, name: str, notices: list[str]) -> Callable[[bytes], bytes]:
        """Return the decoder with our name or Kafka's class name; raises UnknownDecoder.

        With the lines of 3.9, a class of the package before Kafka 4 adds a deprecation notice.
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
        """Return key and value, each as text by its own decoder; raises UndecodableRecord."""
        of_value, of_key = self._names
        return (
            None if key is None else self._decode_text(offset, of_key, self._key, key),
            None if value is None else self._decode_text(offset, of_value, self._value, value),
        )

    def _decode_text(
        self, offset: int, name: str, decode: Callable[[bytes], bytes], raw: bytes
    ) -> bytes:
        """Return a key or value as decoded text.

        For undecodable bytes the reason and the bytes as hex. Errors: UndecodableRecord for a
        decoder with the name of Kafka's class.
        """
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
        """Raise the error: these bytes cannot be decoded."""
        raise error


class InternalTopicDecoder:
    """Reads the records of one of Kafka's internal topics."""

    undecodable_count = 0

    def __init__(self, kind: str, kafka_version: str) -> None:
        """`kind` is the kind of records, for instance `transaction_log`."""
        from engine.wire.record_decoders import select_decoder

        self._kind = kind
        #: True if an error ends the dump: the older transaction decoder does not catch it.
        self._dies = kind == "transaction_log" and kafka_version == "3.9.1"
        self._decode = select_decoder(kind, kafka_version)

    def open(self) -> list[str]:
        """Return no lines to print: this decoder needs no preparation."""
        return []

    def texts(self, offset: int, key: Text, value: Text) -> tuple[Text, Text]:
        """Return key and value as JSON (or older text), None to print nothing.

        Raises an error where Kafka's tool fails.
        """
        shown_key, shown_value = self._decode(key, value, offset)
        return (
            None if shown_key is None else shown_key.encode("utf-8", "replace"),
            None if shown_value is None else shown_value.encode("utf-8", "replace"),
        )

    def unreadable(
        self, offset: int, has_key: bool, key: Text, error: SizeBeyondMessage
    ) -> tuple[Text, Text]:
        """Return the line "skipping" for a topic where Kafka's tool then continues.

        Else raise the error. `has_key` and `key` are as in `Decoder.unreadable`.
        """
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
            # If the key has an unknown version, the value is not read.
            if shown is not None and shown.startswith(b"unknown::"):
                return shown, None
        raise error


def _integer_decoder(form: struct.Struct, name: str) -> Callable[[bytes], bytes]:
    """Return a decoder that prints the first bytes as one integer of the given form."""

    def text(raw: bytes) -> bytes:
        """Return the integer as text; raises _Undecodable if there are fewer bytes."""
        _require(raw, form.size, name)
        return b"%d" % form.unpack_from(raw)[0]

    return text


def _require(raw: bytes, size_bytes: int, name: str) -> None:
    """Raise _Undecodable, with the decoder's name, if there are fewer bytes than `size_bytes`."""
    if len(raw) < size_bytes:
        raise _Undecodable(f"{name} has {size_bytes} bytes, here are {len(raw)}")


def _array_text(raw: bytes) -> bytes:
    """Return a byte array as Java prints one, but with a CRC as its hash, so that dumps repeat."""
    from engine.records.crc import crc32c

    return b"[B@%x" % crc32c(raw)


def _compact_json(raw: bytes) -> bytes:
    """Return JSON without blanks; bytes that are not JSON as text."""
    from engine.json_text import json_text, read_json

    try:
        return json_text(read_json(raw), separators=(",", ":")).encode()
    except ValueError:
        return encode_printable(raw)


def _decode_envelope(raw: bytes) -> bytes:
    """Return the text for a schema registry's envelope: schema id, size, content as hex.

    Raises _Undecodable if the bytes are no envelope.
    """
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
    "string": encode_printable,
    "bytes": _array_text,
    "int": _integer_decoder(_INT, "an int"),
    "long": _integer_decoder(_LONG, "a long"),
    "hex": lambda raw: raw.hex().encode(),
    "json": _compact_json,
    "schema-id": _decode_envelope,
}
DECODER_NAMES = tuple(_BY_NAME)
