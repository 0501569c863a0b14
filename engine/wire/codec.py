"""Codec of a message for one version: it walks its layout at first, and is compiled once busy.

    codec = message_codec("MetadataRequest", 12)
    frame = codec.encode(message_class("MetadataRequest")(topics=None))
    request = codec.decode(frame)

A codec walks its layout (`reader`, `writer`) until it has handled WALKED_BYTES, then compiles the
direction that is in use: a command that asks a broker three things never compiles, a broker does
almost at once. Both tiers give the same values, bytes and errors.

A struct whose release differs from the codec's is encoded by its attributes: nothing but the
fields is looked at.

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
    """Return whether a message carries records, which must not be copied."""
    return any(
        field.type == "records" or (field.struct is not None and _has_records(field.struct))
        for field in layout.fields
    )


class MessageCodec:
    """Turns one version of one message into bytes and back. Shared: holds no state of a message."""

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
        """Take the layout; code is generated only after enough bytes were walked."""
        self.name = name
        self.version = version
        self.release = release
        self.layout = message_layout(name, version, release)
        #: Whether decoded records are views of the buffer, so that it is not copied.
        self._keeps_view = _has_records(self.layout)
        #: Generated code, faster than a walk over the layout. Each of both is None until
        #: WALKED_BYTES were walked.
        self._decoder: Decoder | None = None
        self._encoder: Encoder | None = None
        #: Bytes read and written by walks so far.
        self._read_bytes = 0
        self._written_bytes = 0

    def __repr__(self) -> str:
        return f"Codec({self.name} v{self.version} of {self.release})"

    @property
    def has_compiled(self) -> tuple[bool, bool]:
        """Return whether the decoder and the encoder are compiled."""
        return self._decoder is not None, self._encoder is not None

    # -- bytes → message

    def decode(self, buffer: Buffer) -> Message:
        """Decode a message that fills `buffer`; raises MalformedMessage.

        Records stay views of `buffer`; everything else is copied out of it.
        """
        message, position = self.decode_at(buffer, 0)
        if position != len(buffer):
            left = len(buffer) - position
            raise TrailingBytes(self.name, "", position, "the end", f"{left} bytes more")
        return message

    def decode_at(self, buffer: Buffer, position: int) -> tuple[Message, int]:
        """Decode a message that starts at `position`; returns it and the position after it."""
        # Slices of bytes are quicker than those of a memoryview, and a copy of a small message
        # costs less than both.
        raw = memoryview(buffer) if self._keeps_view else bytes(buffer)
        decoder = self._decoder
        if decoder is None:
            decoder = self._warm_decoder(len(raw) - position)
            if decoder is None:
                return self._walk(raw, position)
        try:
            return decoder(raw, position, len(raw))
        except _BAD_BYTES:
            # The reader says what is wrong and where. Should it find nothing, it is the judge: a
            # peer's bytes must never end a broker because two of our readers disagree.
            return self._walk(raw, position)

    def _warm_decoder(self, size: int) -> Decoder | None:
        """Count bytes; compile once they are worth it."""
        self._read_bytes += size
        if self._read_bytes > WALKED_BYTES:
            self._decoder = compile_decoder(self.name, self.release, self.layout)
        return self._decoder

    def _walk(self, raw: bytes | memoryview, position: int) -> tuple[Message, int]:
        """Decode without a compiled decoder."""
        reader = Reader(self.name, self.release, raw, position)
        return reader.struct(self.layout), reader.position

    # -- message → bytes

    def encode(self, message: Message) -> bytes:
        """Encode a message; raises UnencodableValue."""
        out = bytearray()
        self.append(message, out)
        return bytes(out)

    def append(self, message: Message, out: bytearray) -> None:
        """Encode a message at the end of `out`, which is left as it was on an error."""
        start = len(out)
        if self._encoder is None and _row_count(self.layout, message) >= WALKED_ROWS:
            # Its first bytes are too many already.
            self._encoder = compile_encoder(self.name, self.release, self.layout)
        if self._encoder is None:
            self._write(message, out)
            self._warm_encoder(len(out) - start)
            return
        try:
            self._encoder(message, out)
        except _BAD_VALUE:
            del out[start:]
            self._write(message, out)

    def _warm_encoder(self, size: int) -> None:
        """Count bytes; compile once they are worth it."""
        self._written_bytes += size
        if self._written_bytes > WALKED_BYTES:
            self._encoder = compile_encoder(self.name, self.release, self.layout)

    def _write(self, message: Message, out: bytearray) -> None:
        """Encode with the general writer, whose error names a field that cannot be encoded."""
        start = len(out)
        try:
            Writer(self.name, self.release, self.version, out).struct(self.layout, message)
        except UnencodableValue:
            del out[start:]
            raise


def _row_count(layout: StructLayout, message: Message) -> int:
    """Count the structs in the arrays of a message, to WALKED_ROWS or a few more."""
    count = 0
    for field in layout.fields:
        if field.struct is None or not field.is_array:
            continue
        # A value of another form is for the writer to refuse.
        rows = getattr(message, field.attribute, None)
        if isinstance(rows, list | tuple):
            count += len(rows)
            for row in rows:
                if count >= WALKED_ROWS:
                    return count
                count += _row_count(field.struct, row)
    return count


@cache
def message_codec(name: str, version: int, release: str = ENGINE_RELEASE) -> MessageCodec:
    """Return the codec of one version of a message; raises UnknownMessage, UnsupportedVersion."""
    return MessageCodec(name, version, release)
