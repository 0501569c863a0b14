r"""Parse lines into records like the line reader of Kafka's console producer.

```
h1:v1,h2:v2 \t key \t value        parse.headers, parse.key
```

Source: ConsoleProducer.LineMessageReader of 3.9.1, LineMessageReader of 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, NoReturn

from engine.client.producing import OutgoingRecord
from engine.java_text import decode_java_utf8
from engine.records.record import Header
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_split import java_split

KAFKA_EXCEPTION = "org.apache.kafka.common.KafkaException"
_DISTINCT = (
    ("headers.delimiter", "headers.separator"),
    ("headers.separator", "headers.key.separator"),
    ("null.marker", "key.separator"),
    ("null.marker", "headers.separator"),
    ("null.marker", "headers.delimiter"),
    ("null.marker", "headers.key.separator"),
)


class LineFormat(NamedTuple):
    """Parts and separators of a line; `null_marker` None means that no text is null."""

    has_key: bool = False
    has_headers: bool = False
    key_separator: str = "\t"
    headers_delimiter: str = "\t"
    headers_separator: str = ","
    header_key_separator: str = ":"
    is_lenient: bool = False
    null_marker: str | None = None


def parse_line_format(properties: Mapping[str, str]) -> LineFormat:
    """Return how kafka-console-producer splits lines, by the reader's properties.

    Errors: ToolFailure if separators are equal.
    """
    texts = {
        "key.separator": properties.get("key.separator", "\t"),
        "headers.delimiter": properties.get("headers.delimiter", "\t"),
        "headers.separator": properties.get("headers.separator", ","),
        "headers.key.separator": properties.get("headers.key.separator", ":"),
        "null.marker": properties.get("null.marker"),
    }
    for first, second in _DISTINCT:
        if texts[first] is not None and texts[first] == texts[second]:
            raise ToolFailure(KAFKA_EXCEPTION, f"{first} and {second} may not be equal")
    return LineFormat(
        has_key=_is_true(properties, "parse.key"),
        has_headers=_is_true(properties, "parse.headers"),
        key_separator=texts["key.separator"] or "",
        headers_delimiter=texts["headers.delimiter"] or "",
        headers_separator=texts["headers.separator"] or "",
        header_key_separator=texts["headers.key.separator"] or "",
        is_lenient=_is_true(properties, "ignore.error"),
        null_marker=texts["null.marker"],
    )


def _is_true(properties: Mapping[str, str], name: str) -> bool:
    """Return True if a property is "true" in any case, like Java's Boolean.parseBoolean."""
    return properties.get(name, "").strip().lower() == "true"


class LineReader:
    """Parses lines, counted from 1, into records."""

    def __init__(self, topic: str, how: LineFormat) -> None:
        self._topic = topic
        self._format = how
        self._line_number = 0

    def parse_line(self, line: bytes) -> OutgoingRecord:
        """Return the record of the next line: optional headers and key, then the value.

        Errors: ToolFailure if a separator is missing, unless ignore.error is true.
        """
        how, text = self._format, decode_java_utf8(line)
        self._line_number += 1
        headers = self._part_before(
            how.has_headers, text, 0, how.headers_delimiter, "headers delimiter"
        )
        start = 0 if headers is None else len(headers) + len(how.headers_delimiter)
        key = self._part_before(how.has_key, text, start, how.key_separator, "key separator")
        start += 0 if key is None else len(key) + len(how.key_separator)
        return OutgoingRecord(
            self._topic,
            self._bytes(key),
            self._bytes(text[start:]),
            () if headers is None or headers == how.null_marker else self._headers(headers),
        )

    def _part_before(
        self, is_there: bool, text: str, start: int, separator: str, name: str
    ) -> str | None:
        """Return the text from `start` up to a separator; None if the format lacks the part.

        A lenient format also returns None if the separator is missing.
        """
        if not is_there:
            return None
        end = text.find(separator, start)
        if end < 0:
            if self._format.is_lenient:
                return None
            self._refuse(f"No {name} found on line number {self._line_number}: '{text}'")
        return text[start:end]

    def _bytes(self, text: str | None) -> bytes | None:
        """Return a text as UTF-8, None for None and for the null marker."""
        if text is None or text == self._format.null_marker:
            return None
        return text.encode("utf-8", "replace")

    def _headers(self, text: str) -> tuple[Header, ...]:
        """Return the headers of their text `key:value,key:value`."""
        return tuple(
            self._parse_header(pair) for pair in java_split(text, self._format.headers_separator)
        )

    def _parse_header(self, pair: str) -> Header:
        """Parse a header; if lenient, a text without a separator is a key with a null value."""
        how = self._format
        name, separator, value = pair.partition(how.header_key_separator)
        if not separator:
            if how.is_lenient:
                return pair, None
            self._refuse(
                f"No header key separator found in pair '{pair}' on line number {self._line_number}"
            )
        if name == how.null_marker:
            self._refuse(
                f"Header keys should not be equal to the null marker '{name}' as they can't be null"
            )
        return name, self._bytes(value)

    def _refuse(self, message: str) -> NoReturn:
        """Raise the KafkaException of a malformed line."""
        raise ToolFailure(KAFKA_EXCEPTION, message)
