"""Errors of messages that cannot be decoded or encoded.

```
WireError
├─ MalformedMessage      bytes of a peer that violate the message's layout
│  ├─ FrameTruncated        a value extends beyond the end
│  ├─ LengthOutOfBounds     a length or count that is negative, or too large for the bytes left
│  ├─ NullNotAllowed        null where the version has no null
│  ├─ BadUtf8               a string that is not UTF-8
│  ├─ WireVarintTooLong     more than five bytes of an unsigned varint
│  ├─ BadTag                a tagged field of another version, or of another size than announced
│  └─ TrailingBytes         bytes left after the message
├─ UnsupportedVersion    a message has no such version
├─ UnknownMessage        no message of that name or API key
└─ UnencodableValue      an own value that the version cannot represent
   └─ FieldNotInVersion     a field that is set, but absent from the version and not ignorable
```
"""

from __future__ import annotations

from engine.errors import WireError


class MalformedMessage(WireError):
    """Bytes violate a message's layout.

    `field` is the path inside `message` (empty for the message itself), `position` the byte in the
    buffer at which the wrong value starts.
    """

    def __init__(self, message: str, field: str, position: int, expected: str, got: object) -> None:
        """Build the error text; `expected` and `got` are its last parts."""
        self.message = message
        self.field = field
        self.position = position
        self.expected = expected
        self.got = got
        place = f"{message}.{field}" if field else message
        super().__init__(f"{place} at byte {position}: expected {expected}, got {got}")


class FrameTruncated(MalformedMessage):
    """A value extends beyond the end of the buffer."""


class LengthOutOfBounds(MalformedMessage):
    """A length or count is negative, or larger than the remaining bytes allow."""


class NullNotAllowed(MalformedMessage):
    """A null in a field that cannot be null in this version of the message."""


class BadUtf8(MalformedMessage):
    """A string is not UTF-8."""


class WireVarintTooLong(MalformedMessage):
    """An unsigned varint has more than five bytes."""


class BadTag(MalformedMessage):
    """A tagged field is not allowed here, or its size differs from the announced one."""


class TrailingBytes(MalformedMessage):
    """Bytes are left after the end of the message."""


class UnsupportedVersion(WireError):
    """A message does not have this version; `lowest` and `highest` are inclusive."""

    def __init__(self, message: str, version: int, lowest: int, highest: int) -> None:
        self.message = message
        self.version = version
        self.lowest = lowest
        self.highest = highest
        super().__init__(f"{message} has versions {lowest} to {highest}, not {version}")


class UnknownMessage(WireError):
    """No message has this name, or no API has this key."""

    def __init__(self, name: object, release: str) -> None:
        self.name = name
        self.release = release
        super().__init__(f"Kafka {release} has no message {name}")


class UnencodableValue(WireError):
    """A value that a message version cannot represent (a wrong type, range or length)."""

    def __init__(self, message: str, field: str, version: int, expected: str, got: object) -> None:
        """Build the error text; `expected` is its last part, `got` the value itself."""
        self.message = message
        self.field = field
        self.version = version
        self.expected = expected
        self.got = got
        place = f"{message}.{field}" if field else message
        super().__init__(f"{place} in version {version}: expected {expected}, got {got!r}")


class FieldNotInVersion(UnencodableValue):
    """A field is set that the version lacks and that must not be left out silently.

    Source: the UnsupportedVersionException of Kafka's generated writers.
    """

    def __init__(self, message: str, field: str, version: int, got: object) -> None:
        super().__init__(message, field, version, "its default, as the version lacks it", got)
