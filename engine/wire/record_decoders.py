"""Keys and values of Kafka's internal topics as its dump tool prints them.

    decode = decoder_for("offsets", "3.9.1")
    key_text, payload_text = decode(key, value, offset)

| kind | 3.9.1 | 4.3.0 |
|---|---|---|
| offsets | JSON | JSON, more record types |
| transaction_log | a special text | JSON |
| cluster_metadata | JSON payload, no key | the same |
| remote_log_metadata | the object's text, no key | the same |
| share_group_state | – | JSON |

A record that the tool cannot decode is not an error: like the tool, these functions return the
reason as text. If the tool itself ends with an exception, ToolFailure carries it.

Source: DumpLogSegments and the serdes it calls, of both releases.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from engine.errors import EngineError
from engine.wire.coordinator_text import format_record
from engine.wire.framed_text import format_cluster_metadata, format_remote_log_metadata
from engine.wire.json_form import json_node, json_text
from engine.wire.schema import RELEASES
from engine.wire.structs import Message
from engine.wire.tool_reader import ToolFailure, nearest_version, read_as_tool
from engine.wire.transaction_text import format_transaction_record

Raw: TypeAlias = bytes | memoryview

#: Takes key, value and offset of a record; returns the printed key and payload, each or None.
RecordDecoder: TypeAlias = Callable[[Raw | None, Raw | None, int], tuple[str | None, str | None]]

#: Control records are decoded with the newer release's tables, in version 0 as by Kafka's tool.
_CONTROL_RELEASE: Final = "4.3.0"


class NoSuchDecoder(EngineError):
    """The dump tool of the release has no decoder of this name."""

    def __init__(self, kind: str, kafka_version: str) -> None:
        self.kind = kind
        self.kafka_version = kafka_version
        super().__init__(f"Kafka {kafka_version} has no {kind} decoder")


def select_decoder(kind: str, kafka_version: str) -> RecordDecoder:
    """Return the function that prints the records of a kind of topic as Kafka's dump tool.

    It raises ToolFailure where the tool ends with an exception. Raises NoSuchDecoder if the tool of
    the release has no decoder for this kind.
    """
    if kafka_version in RELEASES:
        if kind == "cluster_metadata":
            return partial(format_cluster_metadata, kafka_version)
        if kind == "remote_log_metadata":
            return partial(format_remote_log_metadata, kafka_version)
        if kind == "transaction_log" and kafka_version == "3.9.1":
            return format_transaction_record
        if kind in ("offsets", "transaction_log") or (
            kind == "share_group_state" and kafka_version == "4.3.0"
        ):
            return partial(format_record, kind, kafka_version)
    raise NoSuchDecoder(kind, kafka_version)


def format_control_record(message: str, value: Raw | None) -> str:
    """Return the value of a KRaft control record as JSON; raises ToolFailure.

    `message` is LeaderChangeMessage, SnapshotHeaderRecord, SnapshotFooterRecord,
    KRaftVersionRecord or VotersRecord.
    """
    if value is None:
        raise ToolFailure(
            "java.lang.NullPointerException",
            'Cannot invoke "java.nio.ByteBuffer.slice()" because "data" is null',
        )
    record: Message
    record, _ = read_as_tool(message, _CONTROL_RELEASE, value, version=0)
    # The tool reads version 0, and prints the version that the record names.
    return json_text(json_node(record, nearest_version(record, record.version)))
