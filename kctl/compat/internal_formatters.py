"""Format records of `__consumer_offsets` and `__transaction_state` as JSON.

```
{"key":{"version":1,"data":{…}},"value":{"version":3,"data":{…}}}      3.9.1
{"key":{"type":1,"data":{…}},"value":{"version":4,"data":{…}}}         4.3.0
```

Records of other types are skipped; there are no line breaks. The value of a tombstone is null, and
the data of an unknown version is "unknown".

Source: OffsetsMessageFormatter, GroupMetadataMessageFormatter, TransactionLogMessageFormatter of
3.9.1; CoordinatorRecordMessageFormatter of 4.3.0.
"""

from __future__ import annotations

from struct import Struct as Format
from typing import Final

from engine.json_text import JsonObject
from engine.wire.codec import message_codec
from engine.wire.coordinator_records import RECORD_TYPES, key_version
from engine.wire.json_form import JsonNode, json_node, json_text
from engine.wire.schema import message_schema
from kctl.compat.record_formatters import PrintedRecord
from kctl.compat.releases import Release

_INT16: Final = Format(">h")
_UNKNOWN: Final = "unknown"
#: Kind of topic and printed record types, by formatter.
_SHOWN: Final = {
    "offsets": ("offsets", (0, 1)),
    "groups": ("offsets", (2,)),
    "transactions": ("transaction_log", (0,)),
}


class InternalFormatter:
    """Formats the record types of one formatter class."""

    def __init__(self, kind: str, release: Release) -> None:
        self._topic_kind, self._types = _SHOWN[kind]
        self._release = release.value
        self._type_name = "type" if release.is_four else "version"

    def __call__(self, printed: PrintedRecord) -> bytes:
        """Return a record of an internal topic as JSON; empty for records of another kind.

        The type in its key decides. Errors: WireError.
        """
        key, value = printed.record.key, printed.record.value
        if key is None or len(key) < _INT16.size:
            return b""
        (type_id,) = _INT16.unpack_from(key)
        name = RECORD_TYPES[self._topic_kind][self._release].get(type_id)
        if name is None or type_id not in self._types:
            return b""
        key_data = self._node(f"{name}Key", key, key_version(type_id, self._release))
        document: JsonObject = {"key": {self._type_name: type_id, "data": key_data}}
        document["value"] = None if value is None else self._value(name, value)
        return json_text(document).encode("utf-8", "replace")

    def _value(self, name: str, value: bytes) -> JsonObject:
        """Return a record's value as JSON with its version.

        The data of a version that the release does not know is "unknown".
        """
        (version,) = _INT16.unpack_from(value)
        valid = message_schema(f"{name}Value", self._release).valid
        data = self._node(f"{name}Value", value, version) if valid.has(version) else _UNKNOWN
        return {"version": version, "data": data}

    def _node(self, name: str, raw: bytes, version: int) -> JsonNode:
        """Decode a key or value behind its int16 version into JSON; trailing bytes are ignored."""
        message = message_codec(name, version, self._release).decode_at(raw, _INT16.size)[0]
        return json_node(message, version)
