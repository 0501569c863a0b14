"""Answers as plain values, without what two brokers can never have in common.

| field | becomes |
|---|---|
| topic ids | the topic's name, or the order of first appearance |
| the broker's own port | `<port>` |
| cluster ids, broker epochs, sizes of the disk | a word that says whether there is one |
| session ids | 0, or the order of first appearance |
| producer ids that a broker gave out | a word, or that of the case |
| member ids of groups | their random part a word |
| settings of the place where a broker is | a word |
| paths of log directories | `<directory>` |
| documentation of a key | `<words>` |
| records | their bytes in hex; a time that the broker sets is blanked, and with it the checksum; |
| | snappy is opened, for two libraries compress to different bytes |
"""

from __future__ import annotations

import re
import struct
from typing import Any, Final

from engine.errors import CorruptRecord
from engine.records.codec import Codec
from engine.records.compression import decompress
from engine.records.legacy import LegacyMessage
from engine.records.view import batches_in
from engine.wire.layout import NO_UUID, StructLayout

_DISK: Final = ("total_bytes", "usable_bytes")
_OWN_SETTINGS: Final = frozenset(
    ("listeners", "advertised.listeners", "log.dir", "log.dirs", "zookeeper.connect")
)
_MEMBERS: Final = ("member_id", "leader")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_GOES_ON: Final = b"\xff" * 8
_APPEND_TIME: Final = 8
_TRANSACTIONAL: Final = 16
_CONTROL: Final = 32
_V2_HEADER_BYTES: Final = 61
_ENTRY: Final = struct.Struct(">qi")


class Masks:
    """What one broker gave out, in order of appearance."""

    def __init__(self, port: int) -> None:
        #: What stands for the port of a broker.
        self.ports = {port: "<port>"}
        #: Whether the last name of a log directory is the same in both.
        self.shows_directories = False
        self.topic_ids: dict[bytes, str] = {NO_UUID: "<no id>"}
        self.sessions: dict[int, int] = {0: 0}
        #: Producer ids that a case has asked for, with its word for each.
        self.producer_ids: dict[int, str] = {}

    def value(self, attribute: str, value: Any) -> Any:
        """Return a scalar field's value, masked where it must be."""
        if attribute == "topic_id":
            return self.topic_ids.setdefault(bytes(value), f"<id {len(self.topic_ids)}>")
        if attribute in ("cluster_id", "broker_epoch"):
            return f"<{attribute}>" if value not in (None, -1, 0) else value
        if attribute in _MEMBERS and value:
            return _UUID.sub("<uuid>", value)
        if attribute in ("producer_id", "port"):
            known = self.producer_ids if attribute == "producer_id" else self.ports
            return known.get(value, value)
        if attribute in _DISK:
            return "<some>" if value > 0 else value
        if attribute == "session_id":
            return self.sessions.setdefault(value, len(self.sessions))
        if attribute == "log_dir" and value:
            return (
                f"<directory {value.rpartition('/')[2]}>"
                if self.shows_directories
                else "<directory>"
            )
        if attribute == "documentation" and value:
            return "<words>"
        if attribute == "records" and value is not None:
            return masked_records(bytes(value))
        return bytes(value).hex() if isinstance(value, bytes | memoryview) else value


def plain(layout: StructLayout, value: Any, masks: Masks) -> dict[str, Any]:
    """Return a decoded struct as a dict of the fields that its version has."""
    out: dict[str, Any] = {}
    for field in layout.fields:
        if field.place == "absent":
            continue
        found = getattr(value, field.attribute)
        if field.struct is not None and found is not None:
            inner = field.struct
            found = (
                [plain(inner, one, masks) for one in found]
                if field.is_array
                else plain(inner, found, masks)
            )
        elif field.is_array and found is not None:
            found = [masks.value(field.attribute, one) for one in found]
        else:
            found = masks.value(field.attribute, found)
        out[field.attribute] = found
    if layout.name == "InitProducerIdResponse" and out["producer_id"] not in (-1, 0):
        out["producer_id"] = "<producer id>"
    if out.get("name") in _OWN_SETTINGS and "value" in out:
        out |= {"value": "<its own>", "config_source": None, "synonyms": None}
    return out


def masked_records(raw: bytes) -> list[str]:
    """Return the entries of records in hex, the last one as far as it goes."""
    out, at = [], 0
    while at < len(raw):
        size = 12 + _ENTRY.unpack_from(raw, at)[1] if at + 12 <= len(raw) else len(raw)
        if size < 12:
            size = len(raw)
        entry = raw[at : at + size]
        # What stands for records that were not converted is as long as those are compressed.
        out.append("<goes on>" if entry[:8] == _GOES_ON else _masked_entry(bytearray(entry)))
        at += size
    return out


def _masked_entry(entry: bytearray) -> str:
    if len(entry) < 26:
        return entry.hex()
    magic = entry[16]
    if magic == 2 and len(entry) >= _V2_HEADER_BYTES and entry[22] & 7 == Codec.SNAPPY:
        entry = _opened(entry)
    elif magic in (0, 1) and entry[17] & 7 and (entry[17] & 7 == Codec.SNAPPY or entry[17] & 8):
        return _opened_wrapper(entry, magic)
    if magic == 2 and len(entry) >= _V2_HEADER_BYTES and entry[22] & _TRANSACTIONAL:
        # Of a producer id that the broker gave out.
        entry[17:21] = bytes(4)
        entry[43:51] = bytes(8)
    if magic == 2 and len(entry) >= _V2_HEADER_BYTES and entry[22] & _CONTROL:
        # Brokers write markers, each at a time of its own.
        entry[17:21] = bytes(4)
        entry[27:43] = bytes(16)
    elif magic == 2 and len(entry) >= _V2_HEADER_BYTES and entry[22] & _APPEND_TIME:
        entry[17:21] = bytes(4)
        entry[35:43] = bytes(8)
    elif magic == 1 and entry[17] & _APPEND_TIME:
        entry[12:16] = bytes(4)
        entry[18:26] = bytes(8)
    return entry.hex()


def _opened(entry: bytearray) -> bytearray:
    """Return a batch without its length and checksum, its records no longer compressed."""
    try:
        payload = decompress(Codec.SNAPPY, bytes(entry[_V2_HEADER_BYTES:]))
    except CorruptRecord:
        return entry
    entry[8:12] = entry[17:21] = bytes(4)
    return entry[:_V2_HEADER_BYTES] + payload


def _opened_wrapper(entry: bytearray, magic: int) -> str:
    """Return the messages in one of magic 0 or 1, without sizes, checksums and append times."""
    try:
        wrapper = LegacyMessage(memoryview(entry))
        opened = decompress(wrapper.codec, wrapper.value or b"", magic=magic)
    except CorruptRecord:
        return entry.hex()
    has_append_time = entry[17] & _APPEND_TIME
    inner = []
    for message in batches_in(memoryview(opened), allow_partial_tail=True):
        raw = bytearray(message.raw)
        if has_append_time and magic:
            raw[12:16], raw[18:26] = bytes(4), bytes(8)
        inner.append(raw.hex())
    return f"{bytes(entry[:8]).hex()} {entry[17]} {inner}"
