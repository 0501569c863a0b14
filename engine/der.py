"""Reading of DER: each value is a tag, a length and the content.

```
30 0d | 06 09 2a 86 48 … | 05 00        a sequence of an object identifier and a null
```

Source: X.690. Differs: tags of more than one byte are rejected; our data have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.errors import EngineError

INTEGER: Final = 0x02
OCTET_STRING: Final = 0x04
OBJECT_IDENTIFIER: Final = 0x06
SEQUENCE: Final = 0x30
SET: Final = 0x31
_LONG_TAG: Final = 0x1F
_LONG_LENGTH: Final = 0x80
_LENGTH_BYTES_MAX: Final = 4


class MalformedDer(EngineError):
    """Raised for bytes that are not valid DER."""

    def __init__(self) -> None:
        super().__init__("bytes that are no DER")


class DerValue(NamedTuple):
    """One value; `raw` is the complete encoding with tag and length."""

    tag: int
    content: bytes
    raw: bytes


def iter_der_values(content: bytes) -> Iterator[DerValue]:
    """Yield the consecutive DER values in `content`; raises MalformedDer if one is truncated."""
    position = 0
    while position < len(content):
        value = _read_value(content, position)
        position += len(value.raw)
        yield value


def read_der_value(content: bytes, tag: int) -> DerValue:
    """Return the first DER value in `content`; raises MalformedDer if its tag is not `tag`."""
    value = _read_value(content, 0)
    if value.tag != tag:
        raise MalformedDer
    return value


def read_object_identifier(content: bytes) -> str:
    """Return the dotted form of an object identifier, from the content of its DER value.

    Raises MalformedDer if it is empty or its last number is truncated.
    """
    numbers: list[int] = []
    number = 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers or content[-1] & 0x80:
        raise MalformedDer
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - first * 40, *numbers[1:])))


def _read_value(content: bytes, position: int) -> DerValue:
    """Return the DER value that begins at `position`.

    Raises MalformedDer for a truncated value, a tag of several bytes, or an indefinite length.
    """
    if position + 2 > len(content) or content[position] & _LONG_TAG == _LONG_TAG:
        raise MalformedDer
    length, start = content[position + 1], position + 2
    if length & _LONG_LENGTH:
        size = length & ~_LONG_LENGTH
        if not 0 < size <= _LENGTH_BYTES_MAX:
            raise MalformedDer
        length, start = int.from_bytes(content[start : start + size]), start + size
    stop = start + length
    if stop > len(content):
        raise MalformedDer
    return DerValue(content[position], content[start:stop], content[position:stop])
