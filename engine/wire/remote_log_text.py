"""Records of __remote_log_metadata as the text of Kafka's own objects, which its dump tool prints.

Source: RemoteLogMetadataSerde and the toString of RemoteLogSegmentMetadata,
RemoteLogSegmentMetadataUpdate, RemotePartitionDeleteMetadata, RemoteLogSegmentMetadataSnapshot.
"""

from __future__ import annotations

from typing import Final

from engine.ids import uuid_text
from engine.wire.structs import Message, Struct
from engine.wire.tool_reader import ToolFailure

_SEGMENT_STATES: Final = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
_DELETE_STATES: Final = (
    "DELETE_PARTITION_MARKED",
    "DELETE_PARTITION_STARTED",
    "DELETE_PARTITION_FINISHED",
)


def remote_log_text(record: Struct) -> str:
    """Return the text of a record of remote log metadata, as its Java class prints it.

    Raises ToolFailure if Kafka's object refuses the values.
    """
    made: str = _TEXTS[record.message_name](record)
    return made


def _state(names: tuple[str, ...], number: int, message: str | None) -> str:
    """Return the name of the state with this number.

    For an unknown one, raises Java's NullPointerException with `message`.
    """
    if not 0 <= number < len(names):
        raise ToolFailure("java.lang.NullPointerException", message)
    return names[number]


def _segment_state(number: int) -> str:
    """Return the name of a segment's state; raises ToolFailure for an unknown number."""
    return _state(_SEGMENT_STATES, number, "state can not be null")


def _custom_metadata(raw: bytes | None) -> str:
    """Return the text of Java's Optional of custom metadata."""
    return "Optional.empty" if raw is None else f"Optional[CustomMetadata{{{len(raw)} bytes}}]"


def _topic_id_partition(partition: Message) -> str:
    """Return the text of Java's TopicIdPartition."""
    return f"{uuid_text(partition.id)}:{partition.name}-{partition.partition}"


def _segment_id(segment: Message) -> str:
    """Return the text of Java's RemoteLogSegmentId."""
    place = _topic_id_partition(segment.topic_id_partition)
    return f"RemoteLogSegmentId{{topicIdPartition={place}, id={uuid_text(segment.id)}}}"


def _leader_epochs(rows: list[Message]) -> str:
    """Return the text of the map from leader epoch to start offset, sorted by epoch."""
    if not rows:
        raise _illegal("segmentLeaderEpochs can not be null or empty")
    by_epoch = {row.leader_epoch: row.offset for row in rows}
    return f"{{{', '.join(f'{epoch}={by_epoch[epoch]}' for epoch in sorted(by_epoch))}}}"


def _illegal(message: str) -> ToolFailure:
    """Return Java's IllegalArgumentException with this message."""
    return ToolFailure("java.lang.IllegalArgumentException", message)


def _transaction_index_text(record: Message) -> str:
    """Return the part of the text about the transaction index.

    Releases before 3.9.1 have no such field, and 3.9.1 does not print it.
    """
    if "txn_index_empty" not in record.__slots__ or record.release == "3.9.1":
        return ""
    return f", txnIdxEmpty={'true' if record.txn_index_empty else 'false'}"


def _segment_text(record: Message) -> str:
    """Return the text of a segment's metadata."""
    start, end = record.start_offset, record.end_offset
    if start < 0:
        raise _illegal(
            f"Unexpected start offset = {start}. StartOffset for a remote segment cannot be "
            "negative"
        )
    if end < start:
        raise _illegal(
            f"Unexpected end offset = {end}. EndOffset for a remote segment cannot be less than "
            f"startOffset = {start}"
        )
    epochs = _leader_epochs(record.segment_leader_epochs)
    return (
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={_segment_id(record.remote_log_segment_id)}"
        f", startOffset={start}, endOffset={end}, brokerId={record.broker_id}"
        f", maxTimestampMs={record.max_timestamp_ms}, eventTimestampMs={record.event_timestamp_ms}"
        f", segmentLeaderEpochs={epochs}, segmentSizeInBytes={record.segment_size_in_bytes}"
        f", customMetadata={_custom_metadata(record.custom_metadata)}"
        f", state={_segment_state(record.remote_log_segment_state)}"
        f"{_transaction_index_text(record)}}}"
    )


def _update_text(record: Message) -> str:
    """Return the text of an update of a segment's state."""
    return (
        "RemoteLogSegmentMetadataUpdate{"
        f"remoteLogSegmentId={_segment_id(record.remote_log_segment_id)}"
        f", customMetadata={_custom_metadata(record.custom_metadata)}"
        f", state={_segment_state(record.remote_log_segment_state)}"
        f", eventTimestampMs={record.event_timestamp_ms}, brokerId={record.broker_id}}}"
    )


def _delete_text(record: Message) -> str:
    """Return the text of a partition's deletion."""
    return (
        "RemotePartitionDeleteMetadata{"
        f"topicPartition={_topic_id_partition(record.topic_id_partition)}"
        f", state={_state(_DELETE_STATES, record.remote_partition_delete_state, None)}"
        f", eventTimestampMs={record.event_timestamp_ms}, brokerId={record.broker_id}}}"
    )


def _snapshot_text(record: Message) -> str:
    """Return the text of a segment's metadata in a snapshot."""
    state = _segment_state(record.remote_log_segment_state)
    epochs = _leader_epochs(record.segment_leader_epochs)
    return (
        f"RemoteLogSegmentMetadataSnapshot{{segmentId={uuid_text(record.segment_id)}"
        f", startOffset={record.start_offset}, endOffset={record.end_offset}"
        f", maxTimestampMs={record.max_timestamp_ms}, segmentLeaderEpochs={epochs}"
        f", segmentSizeInBytes={record.segment_size_in_bytes}"
        f", customMetadata={_custom_metadata(record.custom_metadata)}"
        f", state={state}{_transaction_index_text(record)}}}"
    )


_TEXTS: Final = {
    "RemoteLogSegmentMetadataRecord": _segment_text,
    "RemoteLogSegmentMetadataUpdateRecord": _update_text,
    "RemotePartitionDeleteMetadataRecord": _delete_text,
    "RemoteLogSegmentMetadataSnapshotRecord": _snapshot_text,
}
