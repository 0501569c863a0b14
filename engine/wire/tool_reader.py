"""Decode bytes as Kafka's generated Java readers do, including leniency and error texts.

Used for the output of Kafka's dump tool about a damaged record. It differs from `Reader`:

| bytes | Reader | here, as in Java |
|---|---|---|
| a version that does not exist | refused | read as the nearest; a nested struct refuses it |
| any negative length | −1 is null, others refused | null |
| a varint above 2^31 | a large number | a negative number |
| a string that is not UTF-8 | refused | U+FFFD, one per Java's malformed piece |
| a tagged field of another size than announced | refused | continued from its actual end |
| a count too large for the remaining bytes | refused | refused only above the number of bytes |

Source: MessageDataGenerator, ByteBufferAccessor, ByteUtils, VersionConditional.
"""

from __future__ import annotations

from engine.errors import EngineError
from engine.java_text import decode_java_utf8
from engine.wire.layout import FieldLayout, FieldValue, StructLayout, message_layout
from engine.wire.reader import STRING_BYTES_MAX, Reader
from engine.wire.schema import MessageSchema, message_schema
from engine.wire.structs import Struct


class ToolFailure(EngineError):
    """An exception of Kafka's tool: its Java class and its message (None without one)."""

    def __init__(self, java_class: str, java_message: str | None) -> None:
        self.java_class = java_class
        self.java_message = java_message
        super().__init__(java_class if java_message is None else f"{java_class}: {java_message}")


def runtime_failure(message: str) -> ToolFailure:
    """Return Java's RuntimeException with this message."""
    return ToolFailure("java.lang.RuntimeException", message)


def _int32(value: int) -> int:
    """Return an integer as Java's int has it, wrapped to 32 bits."""
    return (value & 0xFFFF_FFFF ^ 0x8000_0000) - 0x8000_0000


class ToolReader(Reader):
    """Decodes one message at any version, known or not; raises ToolFailure."""

    def __init__(
        self, schema: MessageSchema, buffer: bytes | memoryview, position: int, version: int
    ) -> None:
        super().__init__(schema.name, schema.release, buffer, position)
        self.schema = schema
        self.version = version

    def read(self) -> Struct:
        """Decode the message, which fills the buffer from the position on; raises ToolFailure.

        A version that the message lacks is read by the layout of the nearest one.
        """
        valid = self.schema.valid
        nearest = max(valid.lowest, min(self.version, valid.highest))
        layout = message_layout(self.schema.name, nearest, self.schema.release)
        return super().read_struct(layout)

    def read_struct(self, layout: StructLayout) -> Struct:
        """Read a nested struct, after checking its versions as Java does; raises ToolFailure."""
        struct, valid = self.schema.structs[layout.name], self.schema.valid
        below = struct.versions.lowest < valid.lowest and self.version < valid.lowest
        above = struct.versions.highest > valid.highest and self.version > valid.highest
        if (below or above) and not struct.shared:
            raise ToolFailure(
                "org.apache.kafka.common.errors.UnsupportedVersionException",
                f"Can't read version {self.version} of {layout.name}",
            )
        return super().read_struct(layout)

    # -- what differs byte by byte

    def ensure_left(self, size: int, expected: str) -> None:
        """Raise Java's BufferUnderflowException unless `size` bytes are left."""
        if size > self.end - self.position:
            raise ToolFailure("java.nio.BufferUnderflowException", None)

    def read_varint(self) -> int:
        """Read a varint as an int32, which may become negative; raises ToolFailure."""
        value = 0
        for shift in (0, 7, 14, 21):
            self.ensure_left(1, "")
            byte = self.buffer[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        self.ensure_left(1, "")
        byte = self.buffer[self.position]
        self.position += 1
        value = _int32(value | byte << 28)
        if byte >= 0x80:
            raise ToolFailure(
                "java.lang.IllegalArgumentException",
                "Varint is too long, the most significant bit in the 5th byte is set, "
                f"converted value: {value & 0xFFFF_FFFF:x}",
            )
        return value

    def read_length(self, field: FieldLayout, *, classic_is_short: bool) -> int | None:
        """Read a length or count; every negative one means null."""
        if field.compact:
            length = _int32(self.read_varint() - 1)
        else:
            length = self.read_fixed("int16" if classic_is_short else "int32")
        return None if length < 0 else length

    def take_bytes(self, start: int, size: int, expected: str) -> bytes | memoryview:
        """Return the next `size` bytes; raises ToolFailure with Java's error."""
        left = self.end - self.position
        if size > left:
            raise runtime_failure(
                f"Error reading byte array of {size} byte(s): only {left} byte(s) available"
            )
        if size < 0:
            raise ToolFailure("java.lang.NegativeArraySizeException", str(size))
        piece = self.buffer[self.position : self.position + size]
        self.position += size
        return piece

    def not_null(self, field: FieldLayout, start: int) -> None:
        """Raise ToolFailure unless the field may be null in this version."""
        if not field.nullable:
            raise runtime_failure(f"non-nullable field {field.name} was serialized as null")

    def read_string(self, field: FieldLayout, *, may_be_null: bool) -> str | None:
        """Read a string as Java does, None for null; raises ToolFailure with Kafka's text."""
        name = f"{field.name} element" if field.is_array else field.name
        size = self.read_length(field, classic_is_short=True)
        if size is None:
            if not may_be_null:
                raise runtime_failure(f"non-nullable field {name} was serialized as null")
            return None
        if size > STRING_BYTES_MAX:
            raise runtime_failure(f"string field {name} had invalid length {size}")
        return decode_java_utf8(self.take_bytes(0, size, ""))

    def check_count(self, field: FieldLayout, start: int, count: int) -> None:
        """Raise ToolFailure for more elements than bytes are left, as Java does."""
        left = self.end - self.position
        if count > left:
            raise runtime_failure(
                f"Tried to allocate a collection of size {count}, but there are only {left} "
                "bytes remaining."
            )

    def read_null_flag(self, field: FieldLayout) -> bool:
        """Read the flag before a nullable struct; return True for null."""
        if field.place == "tagged":
            return self.read_varint() <= 0
        return bool(self.read_fixed("int8") < 0)

    def read_tags(self, layout: StructLayout, made: Struct) -> None:
        """Read the tagged fields into the struct `made`; sizes of known ones are not checked."""
        tagged: dict[int, FieldLayout] = {
            field.tag: field for field in layout.fields if field.tag >= 0
        }
        for _ in range(self.read_varint()):
            tag = self.read_varint()
            size = self.read_varint()
            field = tagged.get(tag)
            if field is None:
                self.take_bytes(0, size, "")
            elif field.place == "tagged":
                value: FieldValue = self.read_value(field)
                setattr(made, field.attribute, value)
            else:
                raise runtime_failure(f"Tag {tag} is not valid for version {self.version}")


def nearest_version(message: Struct, version: int) -> int:
    """Return `version` if the message has it, else the nearest version that the message has."""
    valid = message_schema(message.message_name, message.release).valid
    return max(valid.lowest, min(version, valid.highest))


def read_as_tool(
    name: str, release: str, buffer: bytes | memoryview, *, position: int = 0, version: int
) -> tuple[Struct, int]:
    """Decode a message as Kafka's tool does; return it and the position after it.

    Trailing bytes are ignored. Raises ToolFailure.
    """
    reader = ToolReader(message_schema(name, release), buffer, position, version)
    return reader.read(), reader.position
