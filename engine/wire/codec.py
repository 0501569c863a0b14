"""Codec of a message for one version: it interprets its layout first, and is compiled if much used.

    codec = message_codec("MetadataRequest", 12)
    frame = codec.encode(message_class("MetadataRequest")(topics=None))
    request = codec.decode(frame)

A codec interprets its layout (`reader`, `writer`) until it has processed WALKED_BYTES, then it
compiles code for the used direction: a command that sends three requests never compiles, a broker
does almost immediately. Both tiers return the same values, bytes and errors.

A struct of another release than the codec's is encoded by its attributes: only the codec's fields
are read.

Source: D3.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Final, TypeAlias

from engine.limits import WALKED_BYTES, WALKED_ROWS
from engine.wire.errors import TrailingBytes, UnencodableValue
from engine.wire.layout import StructLayout, message_layout
from engine.wire.read_parts import Refused
from engine.wire.read_source import Decoder, compile_decoder
from engine.wire.reader import Reader
from engine.wire.schema import ENGINE_RELEASE
from engine.wire.structs import Message
from engine.wire.write_source import Encoder, Unwritable, compile_encoder
from engine.wire.writer import Writer

Buffer: TypeAlias = bytes | bytearray | memoryview

_BAD_BYTES: Final = (Refused, struct.error, IndexError, UnicodeDecodeError)
_BAD_VALUE: Final = (Unwritable, struct.error, AttributeError, TypeError, ValueError)


def _has_records(layout: StructLayout) -> bool:
    """Return True if a message contains records, at any depth; records must not be copied."""
    return any(
        field.type == "records" or (field.struct is not None and _has_records(field.struct))
        for field in layout.fields
    )


class MessageCodec:
    """Encodes and decodes one version of one message. Shared: it keeps no state of a message."""

    __slots__ = (
        "_decoder",
        "_encoder",
        "_keeps_view",
        "_read_bytes",
        "_written_bytes",
        "layout",
        "name",
        "release",
        "version",
    )

    def __init__(self, name: str, version: int, release: str) -> None:
        """Resolve the layout; code is generated only after WALKED_BYTES were processed."""
        self.name = name
        self.version = version
        self.release = release
        self.layout = message_layout(name, version, release)
        #: Whether decoded records are views of the buffer, so that it is not copied.
        self._keeps_view = _has_records(self.layout)
        #: Generated code, faster than interpreting the layout. Each is None until WALKED_BYTES were
        #: processed in its direction.
        self._decoder: Decoder | None = None
        self._encoder: Encoder | None = None
        #: Bytes read and written by walks so far.
        self._read_bytes = 0
        self._written_bytes = 0

    def __repr__(self) -> str:
        return f"Codec({self.name} v{self.version} of {self.release})"

    @property
    def has_compiled(self) -> tuple[bool, bool]:
        """Return (True if the decoder is compiled, True if the encoder is compiled).

        Both are compiled only once a codec has processed many bytes.
        """
        return self._decoder is not None, self._encoder is not None

    # -- bytes → message

    def decode(self, buffer: Buffer) -> Message:
        """Decode a message that fills `buffer`; raises MalformedMessage.

        Decoded records are views of `buffer`; all other values are copies.
        """
        message, position = self.decode_at(buffer, 0)
        if position != len(buffer):
            left = len(buffer) - position
            raise TrailingBytes(self.name, "", position, "the end", f"{left} bytes more")
        return message

    def decode_at(self, buffer: Buffer, position: int) -> tuple[Message, int]:
        """Decode a message that starts at `position`; return it and the position after it."""
        # Slices of bytes are quicker than those of a memoryview, and a copy of a small message
        # costs less than both.
        raw = memoryview(buffer) if self._keeps_view else bytes(buffer)
        decoder = self._decoder
        if decoder is None:
            decoder = self._count_decoded(len(raw) - position)
            if decoder is None:
                return self._walk(raw, position)
        try:
            return decoder(raw, position, len(raw))
        except _BAD_BYTES:
            # The reader says what is wrong and where. Should it find nothing, it is the judge: a
            # peer's bytes must never end a broker because two of our readers disagree.
            return self._walk(raw, position)

    def _count_decoded(self, size: int) -> Decoder | None:
        """Count bytes to decode; return the compiled decoder, which is made above WALKED_BYTES.

        None below: the message is decoded by interpreting the layout.
        """
        self._read_bytes += size
        if self._read_bytes > WALKED_BYTES:
            self._decoder = compile_decoder(self.name, self.release, self.layout)
        return self._decoder

    def _walk(self, raw: bytes | memoryview, position: int) -> tuple[Message, int]:
        """Decode by interpreting the layout; return the message and the position after it.

        Slower than the compiled decoder, but its errors name the field.
        """
        reader = Reader(self.name, self.release, raw, position)
        return reader.read_struct(self.layout), reader.position

    # -- message → bytes

    def encode(self, message: Message) -> bytes:
        """Encode a message; raises UnencodableValue."""
        out = bytearray()
        self.append(message, out)
        return bytes(out)

    def append(self, message: Message, out: bytearray) -> None:
        """Encode a message at the end of `out`, which is unchanged after an error."""
        start = len(out)
        if self._encoder is None and _count_rows(self.layout, message) >= WALKED_ROWS:
            # Compile before the first bytes of a large message.
            self._encoder = compile_encoder(self.name, self.release, self.layout)
        if self._encoder is None:
            self._encode_generally(message, out)
            self._count_encoded(len(out) - start)
            return
        try:
            self._encoder(message, out)
        except _BAD_VALUE:
            del out[start:]
            self._encode_generally(message, out)

    def _count_encoded(self, size: int) -> None:
        """Count bytes; compile the encoder above WALKED_BYTES."""
        self._written_bytes += size
        if self._written_bytes > WALKED_BYTES:
            self._encoder = compile_encoder(self.name, self.release, self.layout)

    def _encode_generally(self, message: Message, out: bytearray) -> None:
        """Encode with the general writer, whose error names a field that cannot be encoded."""
        start = len(out)
        try:
            Writer(self.name, self.release, self.version, out).write_struct(self.layout, message)
        except UnencodableValue:
            del out[start:]
            raise


def _count_rows(layout: StructLayout, message: Message) -> int:
    """Count the structs in the arrays of a message; stop soon after WALKED_ROWS."""
    count = 0
    for field in layout.fields:
        if field.struct is None or not field.is_array:
            continue
        # The writer refuses a value of another type.
        rows = getattr(message, field.attribute, None)
        if isinstance(rows, list | tuple):
            count += len(rows)
            for row in rows:
                if count >= WALKED_ROWS:
                    return count
                count += _count_rows(field.struct, row)
    return count


@cache
def message_codec(name: str, version: int, release: str = ENGINE_RELEASE) -> MessageCodec:
    """Return the codec of one version of a message; raises UnknownMessage, UnsupportedVersion."""
    return MessageCodec(name, version, release)
