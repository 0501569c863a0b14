"""Decode a message field by field, with an error that names the wrong field.

Generated decoders are fast, but raise without a position. This reader follows the same layouts and
stops at the first wrong byte with a typed error. `codec` uses it for the first bytes of a message
(generating code costs more than interpreting the layout) and for every message that a generated
decoder refused. A property test compares the results of both.

Before memory is allocated the bytes must be available: a count must fit into the remaining bytes at
the smallest size of an element.
"""

from __future__ import annotations

from struct import Struct as Format
from typing import Final

from engine.wire.errors import (
    BadTag,
    BadUtf8,
    FrameTruncated,
    LengthOutOfBounds,
    MalformedMessage,
    NullNotAllowed,
    WireVarintTooLong,
)
from engine.wire.layout import FIXED, FieldLayout, FieldValue, StructLayout
from engine.wire.structs import Struct, struct_classes

#: The longest string that Kafka reads or writes, in bytes, in the compact form too.
STRING_BYTES_MAX: Final = 0x7FFF

VARINT_BYTES_MAX: Final = 5

_FIXED_FORMATS: Final = {name: Format(f">{code}") for name, (code, _) in FIXED.items()}
_INT16: Final = _FIXED_FORMATS["int16"]
_INT32: Final = _FIXED_FORMATS["int32"]


class Reader:
    """Decodes one message from `buffer`; `position` is that of the next field."""

    def __init__(
        self, message: str, release: str, buffer: bytes | memoryview, position: int
    ) -> None:
        """Start at `position` of the buffer; `release` selects the classes of decoded structs."""
        self.message = message
        #: Classes of the message's structs, by name.
        self.classes = struct_classes(message, release)
        self.buffer = buffer
        self.position = position
        self.end = len(buffer)
        #: Whether to decode as Java does: bytes that are not UTF-8 become U+FFFD, and every
        #: negative length means null. Kafka's brokers accept both in requests.
        self.is_lenient = message.endswith("Request") or message == "RequestHeader"
        #: Names of the fields from the message to the one being read, for errors.
        self.path: list[str] = []

    def wrong(
        self, error: type[MalformedMessage], position: int, expected: str, got: object
    ) -> MalformedMessage:
        """Return an error of this class that names the field being read."""
        return error(self.message, ".".join(self.path), position, expected, got)

    # -- values of fixed and announced size

    def read_fixed(self, type_name: str) -> FieldValue:
        """Read a value of a type of fixed size; raises FrameTruncated."""
        size = FIXED[type_name].size
        self.ensure_left(size, f"{size} bytes of {type_name}")
        (value,) = _FIXED_FORMATS[type_name].unpack_from(self.buffer, self.position)
        self.position += size
        return value

    def ensure_left(self, size: int, expected: str) -> None:
        """Raise FrameTruncated unless `size` bytes are left."""
        if size > self.end - self.position:
            raise self.wrong(
                FrameTruncated, self.position, expected, f"{self.end - self.position} left"
            )

    def read_varint(self) -> int:
        """Read an unsigned varint of at most five bytes.

        Raises FrameTruncated, WireVarintTooLong.
        """
        start, value = self.position, 0
        for index in range(VARINT_BYTES_MAX):
            self.ensure_left(1, "a varint")
            byte = self.buffer[self.position]
            self.position += 1
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                return value
        raise self.wrong(WireVarintTooLong, start, f"a varint of {VARINT_BYTES_MAX} bytes", "more")

    def read_length(self, field: FieldLayout, *, classic_is_short: bool) -> int | None:
        """Read the length or count before a value; None means null.

        In versions that are not flexible it is an int16 if `classic_is_short`, else an int32.
        Raises LengthOutOfBounds.
        """
        start = self.position
        if field.compact:
            length = self.read_varint() - 1
        else:
            length = self.read_fixed("int16" if classic_is_short else "int32")
            if self.is_lenient:
                length = max(-1, length)
        if length < -1:
            raise self.wrong(LengthOutOfBounds, start, "a length of −1 or more", length)
        return None if length < 0 else length

    def take_bytes(self, start: int, size: int, expected: str) -> bytes | memoryview:
        """Return the next `size` bytes, a view if the buffer is one; raises LengthOutOfBounds.

        `start` is the position of the length, for the error.
        """
        left = self.end - self.position
        if size > left:
            raise self.wrong(LengthOutOfBounds, start, f"{expected} of at most {left} bytes", size)
        piece = self.buffer[self.position : self.position + size]
        self.position += size
        return piece

    # -- one field

    def not_null(self, field: FieldLayout, start: int) -> None:
        """Raise NullNotAllowed unless the field may be null in this version.

        `start` is the position of the null length, for the error.
        """
        if not field.nullable:
            raise self.wrong(NullNotAllowed, start, f"a {field.type}", "null")

    def read_string(self, field: FieldLayout, *, may_be_null: bool) -> str | None:
        """Read a string, None for null; raises NullNotAllowed for null unless `may_be_null`."""
        start = self.position
        size = self.read_length(field, classic_is_short=True)
        if size is None:
            if not may_be_null:
                raise self.wrong(NullNotAllowed, start, "a string", "null")
            return None
        if size > STRING_BYTES_MAX:
            raise self.wrong(
                LengthOutOfBounds, start, f"a string of at most {STRING_BYTES_MAX} bytes", size
            )
        raw = self.take_bytes(start, size, "a string")
        return self.decode_text(start, raw)

    def decode_text(self, start: int, raw: bytes | memoryview) -> str:
        """Return bytes as text; raises BadUtf8 unless `is_lenient`."""
        try:
            return str(raw, "utf-8", "replace" if self.is_lenient else "strict")
        except UnicodeDecodeError as error:
            raise self.wrong(BadUtf8, start, "UTF-8", error.reason) from error

    def read_blob(self, field: FieldLayout) -> bytes | memoryview | None:
        """Read bytes (copied) or records (a view), None for null."""
        start = self.position
        size = self.read_length(field, classic_is_short=False)
        if size is None:
            self.not_null(field, start)
            return None
        piece = self.take_bytes(start, size, field.type)
        return memoryview(piece) if field.type == "records" else bytes(piece)

    def read_one(self, field: FieldLayout, *, may_be_null: bool) -> FieldValue:
        """Read one value of the field's type; for an array, one element."""
        if field.struct:
            return self.read_struct(field.struct)
        if field.type in FIXED:
            return self.read_fixed(field.type)
        if field.type == "string":
            return self.read_string(field, may_be_null=may_be_null)
        return self.read_blob(field)

    def read_array(self, field: FieldLayout) -> list[FieldValue] | None:
        """Read an array, None for null if the field may be null."""
        start = self.position
        count = self.read_length(field, classic_is_short=False)
        if count is None:
            self.not_null(field, start)
            return None
        self.check_count(field, start, count)
        return [self.read_one(field, may_be_null=False) for _ in range(count)]

    def check_count(self, field: FieldLayout, start: int, count: int) -> None:
        """Raise LengthOutOfBounds if the remaining bytes cannot contain `count` elements."""
        left = self.end - self.position
        most = left // max(1, field.element_bytes_min)
        if count > most:
            raise self.wrong(LengthOutOfBounds, start, f"at most {most} elements", count)

    def read_value(self, field: FieldLayout) -> FieldValue:
        """Read a field's value, None for null."""
        if field.is_array:
            return self.read_array(field)
        if field.struct and field.nullable and self.read_null_flag(field):
            return None
        return self.read_one(field, may_be_null=field.nullable)

    def read_null_flag(self, field: FieldLayout) -> bool:
        """Read the flag before a nullable struct; return True for null."""
        if field.place == "tagged":
            return self.read_varint() == 0
        return bool(self.read_fixed("int8") < 0)

    # -- structs

    def read_struct(self, layout: StructLayout) -> Struct:
        """Read a struct's fields and its tagged section."""
        made = self.classes[layout.name]()
        for field in layout.fields:
            if field.place == "positional":
                self.path.append(field.name)
                setattr(made, field.attribute, self.read_value(field))
                self.path.pop()
        if layout.flexible:
            self.read_tags(layout, made)
        return made

    def read_tags(self, layout: StructLayout, made: Struct) -> None:
        """Read the tagged fields into the struct `made`; unknown tags are skipped.

        Raises BadTag.
        """
        tagged = {field.tag: field for field in layout.fields if field.tag >= 0}
        for _ in range(self.read_varint()):
            start = self.position
            tag = self.read_varint()
            size = self.read_varint()
            field = tagged.get(tag)
            if field is None:
                self.take_bytes(start, size, f"tag {tag}")
                continue
            self.path.append(field.name)
            if field.place != "tagged":
                raise self.wrong(BadTag, start, "no such tag in this version", tag)
            before = self.position
            setattr(made, field.attribute, self.read_value(field))
            self.check_tag_size(start, size, self.position - before)
            self.path.pop()

    def check_tag_size(self, start: int, announced: int, taken: int) -> None:
        """Raise BadTag if a tagged field's size differs from the announced size."""
        if announced != taken:
            raise self.wrong(BadTag, start, f"{announced} bytes", taken)
