r"""JSON as Kafka writes it into nodes, and a reader that checks the types of fields.

No spaces; letters beyond ASCII as they are; control characters as \b \t \n \f \r or \u00XX
with capital digits. The keys of an object come in the order of the map that Kafka's writer
happens to use:

```
scala_map_order   a mutable Scala map: buckets 8 or more, at most 3/4 full, sorted by hash inside
java_order        java.util.Properties (`engine.config.java_properties`)
```

Source: Jackson as called by kafka.utils.Json; scala.collection.mutable.HashMap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from json import dumps, loads
from typing import TypeAlias

from engine.errors import ZnodeError
from engine.java_text import java_string_hash

Json: TypeAlias = "Mapping[str, Json] | list[Json] | tuple[Json, ...] | str | int | float | None"

_ESCAPE = re.compile(r"\\(?:u00([01][0-9a-f])|.)")
_BUCKETS_MIN = 16
_SHOWN_CHARS = 80


class InvalidZnodeValue(ZnodeError):
    """The data of a node is not valid for its path."""

    def __init__(self, path: str, expected: str, got: object) -> None:
        self.path = path
        self.expected = expected
        # A node may hold a megabyte, too long for a message.
        self.got = str(got)[:_SHOWN_CHARS]
        super().__init__(f"{path}: expected {expected}, got {self.got}")


def encode_json(value: Json) -> bytes:
    """Return the JSON text of a value; mappings keep their order."""
    text = dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if "\\u00" in text:
        text = _ESCAPE.sub(_with_capital_digits, text)
    return text.encode()


def scala_map_order(keys: Iterable[str], *, buckets: int = _BUCKETS_MIN) -> list[str]:
    """Return keys in the order of a mutable Scala map that was created with `buckets` buckets.

    Kafka's brokers write their JSON from such maps.
    """
    hashes: dict[str, int] = {}
    for key in keys:
        if len(hashes) + 1 >= buckets * 3 // 4:
            buckets *= 2
        plain = java_string_hash(key)
        hashes[key] = plain ^ (plain & 0xFFFF_FFFF) >> 16
    return sorted(hashes, key=lambda key: (hashes[key] & buckets - 1, hashes[key]))


def is_int32(value: int) -> bool:
    """Return True if an integer fits into 32 bits, as ids, epochs and ports in requests do."""
    return -1 << 31 <= value < 1 << 31


class JsonObject:
    """A decoded object; reading a field of another type raises InvalidZnodeValue."""

    __slots__ = ("_fields", "path")

    def __init__(self, fields: Mapping[str, object], path: str) -> None:
        self._fields = fields
        self.path = path

    def has(self, name: str) -> bool:
        """Return True if a field is present and not null."""
        return self._fields.get(name) is not None

    def integer(self, name: str) -> int:
        """Return an integer field of 32 bits; raise InvalidZnodeValue for another value.

        As in Kafka, the integer may be written as a string.
        """
        value = self.long(name)
        if not is_int32(value):
            raise InvalidZnodeValue(self.path, f"an integer {name} of 32 bits", repr(value))
        return value

    def long(self, name: str) -> int:
        """Return an integer field of up to 19 digits; raise InvalidZnodeValue for another value.

        As in Kafka, the integer may be written as a string.
        """
        value = self._fields.get(name)
        if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,19}", value, re.A):
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidZnodeValue(self.path, f"an integer {name}", repr(value))
        return value

    def text(self, name: str) -> str:
        """Return a string field; raise InvalidZnodeValue if it is absent or of another type."""
        value = self._fields.get(name)
        if not isinstance(value, str):
            raise InvalidZnodeValue(self.path, f"a text {name}", repr(value))
        return value

    def inner(self, name: str) -> JsonObject:
        """Return a field that is an object; raise InvalidZnodeValue for another value."""
        return JsonObject(_require_mapping(self._fields.get(name), self.path, name), self.path)

    def inners(self, name: str) -> list[JsonObject]:
        """Return a field that is a list of objects; raise InvalidZnodeValue for another value."""
        return [
            JsonObject(_require_mapping(item, self.path, name), self.path)
            for item in self._list(name)
        ]

    def integers(self, name: str) -> tuple[int, ...]:
        """Return a field that is a list of 32-bit integers; raise InvalidZnodeValue otherwise."""
        values = self._list(name)
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int) or not is_int32(value):
                raise InvalidZnodeValue(self.path, f"integers of 32 bits in {name}", repr(value))
        return tuple(values)  # type: ignore[arg-type]  # each was checked

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a field that is a list of strings; raise InvalidZnodeValue otherwise."""
        values = self._list(name)
        for value in values:
            if not isinstance(value, str):
                raise InvalidZnodeValue(self.path, f"texts in {name}", repr(value))
        return tuple(values)  # type: ignore[arg-type]  # each was checked

    def names(self) -> list[str]:
        """Return the names of the object's fields, in the order of the JSON text."""
        return list(self._fields)

    def _list(self, name: str) -> list[object]:
        """Return a list field; raise InvalidZnodeValue if it is absent or of another type."""
        value = self._fields.get(name)
        if not isinstance(value, list):
            raise InvalidZnodeValue(self.path, f"a list {name}", repr(value))
        return value


def decode_object(data: bytes | None, path: str) -> JsonObject:
    """Return the JSON object in a node's data; raises InvalidZnodeValue."""
    if data is None:
        raise InvalidZnodeValue(path, "a JSON object", "no data")
    try:
        value = loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidZnodeValue(path, "a JSON object", f"{data[:80]!r}") from error
    return JsonObject(_require_mapping(value, path, "JSON"), path)


def _require_mapping(value: object, path: str, name: str) -> dict[str, object]:
    """Return a JSON object's fields; raises InvalidZnodeValue for any other value."""
    if not isinstance(value, dict):
        raise InvalidZnodeValue(path, f"an object {name}", repr(value))
    return value


def _with_capital_digits(match: re.Match[str]) -> str:
    """Return an escape with capital hex digits, as Jackson writes it; other text unchanged."""
    digits = match.group(1)
    return match.group() if digits is None else f"\\u00{digits.upper()}"
