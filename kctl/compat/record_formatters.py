"""Formatters of Kafka's console consumer.

```
CreateTime:1  Partition:0  Offset:7  [Epoch:0]  h1:a,h2:b  key  value
```

Printed fields are separated by `key.separator`, and the last is followed by `line.separator`.

Source: DefaultMessageFormatter, NoOpMessageFormatter, LoggingMessageFormatter of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from engine.records.record import Record, TimestampType
from kctl.compat.java_deserializers import Deserializer, deserializer_named
from kctl.compat.java_failures import ToolFailure
from kctl.compat.releases import Release

_TIME_TYPES: Final = {
    TimestampType.CREATE_TIME: b"CreateTime",
    TimestampType.LOG_APPEND_TIME: b"LogAppendTime",
}
_DESERIALIZERS: Final = ("key.deserializer", "value.deserializer", "headers.deserializer")


class PrintedRecord(NamedTuple):
    """A record with its topic and partition."""

    topic: str
    partition: int
    record: Record


#: Returns the bytes to print for a record.
Formatter = Callable[[PrintedRecord], bytes]


class CutShort(ToolFailure):
    """A field of a record cannot be deserialized; `text` has the fields before it."""

    def __init__(self, failure: ToolFailure, text: bytes) -> None:
        super().__init__(failure.java_class, str(failure), *failure.causes)
        self.text = text


class DefaultFormatter:
    """Formats the fields of a record that properties enable."""

    def __init__(self, properties: Mapping[str, str], release: Release) -> None:
        """Create a formatter with the properties of --property, such as print.key.

        print.epoch needs release 4.
        """
        self._release = release
        self._shows_time = _is_on(properties, "print.timestamp")
        self._shows_partition = _is_on(properties, "print.partition")
        self._shows_offset = _is_on(properties, "print.offset")
        self._shows_epoch = release.is_four and _is_on(properties, "print.epoch")
        self._shows_headers = _is_on(properties, "print.headers")
        self._shows_key = _is_on(properties, "print.key")
        self._shows_value = _is_on(properties, "print.value", default="true")
        self._separator = _text(properties, "key.separator", "\t")
        self._line_end = _text(properties, "line.separator", "\n")
        self._headers_separator = _text(properties, "headers.separator", ",")
        self._null = _text(properties, "null.literal", "null")
        #: Deserializers of key, value and headers; None prints the bytes unchanged.
        self._key, self._value, self._header = (
            _deserializer(properties, name) for name in _DESERIALIZERS
        )

    def __call__(self, printed: PrintedRecord) -> bytes:
        """Return a record as the text that kafka-console-consumer prints.

        Raises CutShort, with the fields before it, for bytes that cannot be deserialized.
        """
        fields: list[bytes] = []
        try:
            fields.extend(self._field_texts(printed))
        except ToolFailure as failure:
            raise CutShort(failure, b"".join(field + self._separator for field in fields)) from None
        return self._separator.join(fields) + self._line_end if fields else b""

    def _field_texts(self, printed: PrintedRecord) -> Iterator[bytes]:
        """Yield the enabled fields of a record in the order of the Java formatter."""
        record = printed.record
        if self._shows_time:
            yield self._time(record)
        if self._shows_partition:
            yield b"Partition:%d" % printed.partition
        if self._shows_offset:
            yield b"Offset:%d" % record.offset
        if self._shows_epoch:
            # The consumer returns records without their epoch.
            yield b"Epoch:NOT_PRESENT"
        if self._shows_headers:
            yield self._headers(record)
        if self._shows_key:
            yield self._shown(self._key, record.key)
        if self._shows_value:
            yield self._shown(self._value, record.value)

    def _time(self, record: Record) -> bytes:
        """Return the timestamp with its type, NO_TIMESTAMP if the record has none."""
        kind = _TIME_TYPES.get(record.timestamp_type)
        return b"NO_TIMESTAMP" if kind is None else kind + b":%d" % record.timestamp_ms

    def _headers(self, record: Record) -> bytes:
        """Return the headers as NAME:VALUE, NO_HEADERS without any."""
        if not record.headers:
            return b"NO_HEADERS"
        return self._headers_separator.join(
            name.encode("utf-8", "replace") + b":" + self._shown(self._header, value)
            for name, value in record.headers
        )

    def _shown(self, deserializer: Deserializer | None, raw: bytes | None) -> bytes:
        """Return a key or value as text: deserialized, unchanged, or the text for null."""
        if raw is None:
            return self._null
        return bytes(raw) if deserializer is None else deserializer(bytes(raw))


def _is_on(properties: Mapping[str, str], name: str, default: str = "false") -> bool:
    """Return True if a property is "true" in any case, like Java's Boolean.parseBoolean."""
    return properties.get(name, default).strip().lower() == "true"


def _text(properties: Mapping[str, str], name: str, default: str) -> bytes:
    """Return a property as bytes; arguments that are not UTF-8 keep their bytes."""
    return properties.get(name, default).encode("utf-8", "surrogateescape")


def _deserializer(properties: Mapping[str, str], name: str) -> Deserializer | None:
    """Return the named deserializer, None for unchanged bytes; raises ToolFailure."""
    _refuse_settings_of(properties, name)
    chosen = properties.get(name)
    return deserializer_named(chosen) if chosen else None


def _refuse_settings_of(properties: Mapping[str, str], name: str) -> None:
    """Raise ToolFailure for properties of a deserializer, which are not supported."""
    for key in properties:
        if key.startswith(f"{name}."):
            raise ToolFailure(
                "org.apache.kafka.common.config.ConfigException",
                f"{key}: deserializers have no settings here",
            )


def no_op(_printed: PrintedRecord) -> bytes:
    """Return nothing to print for a record, as NoOpMessageFormatter does."""
    return b""
