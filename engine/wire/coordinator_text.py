"""Records of coordinators' topics as JSON texts.

```
key      {"type":"1","data":{…}}
payload  {"version":"3","data":{…}}, or <DELETE> for a null value
```

For a type that the release does not know, and for bytes that cannot be decoded, a sentence replaces
the key, and there is no payload. Consumers' subscriptions and assignments in a group's metadata are
decoded if possible.

Source: OffsetsMessageParser, TransactionLogMessageParser (4.3.0), ShareGroupStateMessageParser.
"""

from __future__ import annotations

from struct import Struct as Format
from typing import Final

from engine.errors import EngineError, WireError
from engine.json_text import JsonObject
from engine.wire.codec import message_codec
from engine.wire.coordinator_records import RECORD_TYPES, key_version
from engine.wire.json_form import json_node, json_text
from engine.wire.schema import message_schema
from engine.wire.structs import Struct
from engine.wire.tool_reader import ToolFailure, nearest_version, read_as_tool, runtime_failure

_INT16: Final = Format(">h")
_CONSUMER_PROTOCOL: Final = "consumer"
_GROUP: Final = "GroupMetadataValue"


class _UnknownType(EngineError):
    """A record type that the release does not know."""


def format_record(
    kind: str,
    release: str,
    key: bytes | memoryview | None,
    value: bytes | memoryview | None,
    offset: int,
) -> tuple[str | None, str | None]:
    """Return key and payload of a coordinator's record as texts, as Kafka's dump tool prints them.

    Errors of a record become its text; raises ToolFailure for a record without key.
    """
    if key is None:
        what = "offset topic decoder" if release == "3.9.1" else "the specified decoder"
        raise runtime_failure(
            f"Failed to decode message at offset {offset} using {what} (message had a missing key)"
        )
    type_id = 0
    try:
        type_id = _read_version(key, "key")
        return _format_decodable(kind, release, type_id, key, value)
    except _UnknownType:
        return f"Unknown record type {type_id} at offset {offset}, skipping.", None
    except ToolFailure as failure:
        return f"Error at offset {offset}, skipping. {failure.java_message or 'null'}", None


def _format_decodable(
    kind: str, release: str, type_id: int, key: bytes | memoryview, value: bytes | memoryview | None
) -> tuple[str, str]:
    """Return key and payload of a coordinator's record as JSON texts, as Java's formatter prints.

    `kind` is a key of RECORD_TYPES. The payload of a tombstone is `<DELETE>`. Raises
    _UnknownType, and ToolFailure with the errors of Java's tool. The tool of 3.9.1 reads a value
    without checking its version first.
    """
    name = RECORD_TYPES[kind][release].get(type_id)
    if name is None:
        raise _UnknownType
    key_struct = _decode(f"{name}Key", release, key, key_version(type_id, release), type_id)
    version, value_struct = -1, None
    if value is not None:
        version = _read_version(value, "value")
        valid = message_schema(f"{name}Value", release).valid
        if release != "3.9.1" and not valid.has(version):
            raise runtime_failure(f"Found an unknown record version {version} for {type_id} type")
        value_struct = _decode(f"{name}Value", release, value, version, version)
    key_node = json_node(key_struct, key_version(type_id, release))
    key_text = json_text({"type": str(type_id), "data": key_node})
    if value_struct is None:
        return key_text, "<DELETE>"
    node = to_json_node(value_struct, version)
    return key_text, json_text({"version": str(version), "data": node})


def to_json_node(value: Struct, version: int) -> JsonObject:
    """Return a value as JSON nodes; decodes consumers' subscriptions and assignments, too."""
    node = json_node(value, nearest_version(value, version))
    if value.message_name == _GROUP and node["protocolType"] == _CONSUMER_PROTOCOL:
        for member in node["members"]:
            _decode_field(member, "subscription", "ConsumerProtocolSubscription", value.release)
            _decode_field(member, "assignment", "ConsumerProtocolAssignment", value.release)
    return node


def _read_version(raw: bytes | memoryview, part: str) -> int:
    """Return the leading int16 of a key or value; raises ToolFailure."""
    if len(raw) < _INT16.size:
        raise runtime_failure(f"Could not read version from {part}'s buffer.")
    version: int
    (version,) = _INT16.unpack_from(raw)
    return version


def _decode(
    name: str, release: str, raw: bytes | memoryview, version: int, shown_version: int
) -> Struct:
    """Decode the message after the int16 of a key or value; trailing bytes are ignored.

    Raises ToolFailure. `shown_version` is the number in its text.
    """
    try:
        message: Struct = message_codec(name, version, release).decode_at(raw, _INT16.size)[0]
    except WireError:
        # Kafka's classes accept some bytes that the codec refuses.
        message = _read_leniently(name, release, raw, version, shown_version)
    return message


def _read_leniently(
    name: str, release: str, raw: bytes | memoryview, version: int, shown_version: int
) -> Struct:
    """Decode a record as Kafka's dump tool does; raises ToolFailure with its error text."""
    try:
        return read_as_tool(name, release, raw, position=_INT16.size, version=version)[0]
    except ToolFailure as failure:
        part = "key" if name.endswith("Key") else "value"
        raise runtime_failure(
            f"Could not read record with version {shown_version} from {part}'s buffer due to: "
            f"{failure.java_message or 'null'}."
        ) from failure


def _decode_field(member: JsonObject, field: str, message: str, release: str) -> None:
    """Replace a member's bytes with their decoded content; keep bytes that cannot be decoded."""
    raw = member[field]
    if len(raw) < _INT16.size:
        return
    (version,) = _INT16.unpack_from(raw)
    try:
        struct, _ = read_as_tool(message, release, raw, position=_INT16.size, version=version)
    except ToolFailure:
        return
    member[field] = json_node(struct, nearest_version(struct, version))
