"""How keys and values become text.

| name | Kafka's class | prints |
|---|---|---|
| string | StringDecoder | UTF-8 text, U+FFFD for what is none |
| bytes | DefaultDecoder | `[B@` and a checksum of the bytes |
| int, long | IntegerDecoder, LongDecoder | the first 4 or 8 bytes, big-endian |
| hex | – | two digits a byte |
| json | – | compact JSON; other bytes, and JSON that `json_text` refuses, as `string` does |
| schema-id | – | the id of a schema-registry envelope and the bytes behind it |

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

Text = bytes | None


class UndecodableRecord(StorageError):
    """A key or value is not what the chosen decoder reads."""

    hint = "choose another decoder, or none to see the bytes as text"

    def __init__(self, offset: int, decoder: str, reason: str) -> None:
        super().__init__(f"record at offset {offset}: the {decoder} decoder failed: {reason}")
        self.offset = offset
        self.decoder = decoder
        self.reason = reason


class UnknownDecoder(EngineError):
    """A decoder was named that does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__(f"unknown decoder {name!r}: one of {', '.join(_BY_NAME)}")
        self.name = name


class Decoder(Protocol):
    """Gives the printed key and value of a record; None prints nothing."""

    def open(self) -> list[str]:
        """Return lines to print before a log; raises when the decoder does not exist."""
        ...

    def texts(self, offset: int, key: Text, value: Text) -> tuple[Text, Text]:
        """Return what is printed for key and value."""
        ...

    def unreadable(
        self, offset: int, has_key: bool, key: Text, error: SizeBeyondMessage
    ) -> tuple[Text, Text]:
        """Return what is printed for a message whose sizes do not hold, or raise.

        `key` is None where it has none or cannot be read itself.
        """
        ...


class TextDecoder:
    """Reads both as UTF-8 text, as Kafka does without options."""

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
        self._names = (value, key)
        self._is_four = kafka_version == "4.3.0"
        self._key: Callable[[bytes], bytes] = printable
        self._value: Callable[[bytes], bytes] = printable

    def open(self) -> list[str]:
        """Look the two decoders up; returns Kafka 3.9's notices about old names."""
        notices: list[str] = []
        self._value, self._key = (self._find(name, notices) for name in self._names)
        return notices

    def _find(self, name: str, notices: list[str]) -> Callable[[bytes], bytes]:
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
        try:
            shown_key = None if key is None else self._key(key)
            return shown_key, None if value is None else self._value(value)
        except struct.error as error:
            raise UndecodableRecord(offset, "number", str(error)) from error

    def unreadable(
        self, offset: int, has_key: bool, key: Text, error: SizeBeyondMessage
    ) -> tuple[Text, Text]:
        """Raise: these bytes cannot be decoded."""
        raise error


class InternalTopicDecoder:
    """Reads the records of one of Kafka's internal topics."""

    def __init__(self, kind: str, kafka_version: str) -> None:
        from engine.wire.record_decoders import decoder_for

        self._kind = kind
        # The older transaction decoder lets every fault end the tool.
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


def _array_text(raw: bytes) -> bytes:
    from engine.records.crc import crc32c

    return b"[B@%x" % crc32c(raw)


def _json_text(raw: bytes) -> bytes:
    from engine.json_text import json_text, read_json

    try:
        return json_text(read_json(raw), separators=(",", ":")).encode()
    except ValueError:
        return printable(raw)


def _schema_id_text(raw: bytes) -> bytes:
    magic, schema_id = _ENVELOPE.unpack_from(raw)
    if magic != 0:
        raise struct.error(f"the first byte is {magic}, not the 0 of a schema envelope")
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
    "int": lambda raw: b"%d" % _INT.unpack_from(raw)[0],
    "long": lambda raw: b"%d" % _LONG.unpack_from(raw)[0],
    "hex": lambda raw: raw.hex().encode(),
    "json": _json_text,
    "schema-id": _schema_id_text,
}
DECODER_NAMES = tuple(_BY_NAME)
