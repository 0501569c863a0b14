"""Records of __transaction_state as Kafka 3.9's dump tool prints them.

```
key      transaction_metadata::transactionalId=tx1     or unknown::version=7
payload  producerId:1000,producerEpoch:0,state=Ongoing,partitions=[t-1,t-0],
         txnLastUpdateTimestamp=1732204345678,txnTimeoutMs=60000     or <DELETE>
```

Unlike the other decoders of that tool, this one lets exceptions end the tool.

Source: TransactionLog.formatRecordKeyAndValue.
"""

from __future__ import annotations

from struct import Struct as Format
from typing import Final

from engine.errors import WireError
from engine.model import TopicPartition
from engine.wire.codec import message_codec
from engine.wire.scala_set import scala_order
from engine.wire.schema import message_schema
from engine.wire.structs import Message
from engine.wire.tool_reader import ToolFailure, read_as_tool

_RELEASE: Final = "3.9.1"
_INT16: Final = Format(">h")
_NULL_POINTER: Final = "java.lang.NullPointerException"
_ILLEGAL_STATE: Final = "java.lang.IllegalStateException"

#: Names of a transaction's states, by their id.
TRANSACTION_STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)


def format_transaction_record(
    key: bytes | memoryview | None, value: bytes | memoryview | None, offset: int
) -> tuple[str | None, str | None]:
    """Return key and payload of a transaction's record as texts, as Kafka's 3.9.1 tool prints.

    Raises ToolFailure. `offset` is not used.
    """
    version = _read_version(key)
    if not message_schema("TransactionLogKey", _RELEASE).valid.has(version):
        return f"unknown::version={version}", None
    assert key is not None
    transactional_id = _decode("TransactionLogKey", key, version).transactional_id
    text = "<DELETE>" if value is None else _format_value(value)
    return f"transaction_metadata::transactionalId={transactional_id}", text


def _read_version(raw: bytes | memoryview | None) -> int:
    """Return the leading int16 of a key or value; raises ToolFailure."""
    if raw is None:
        raise ToolFailure(
            _NULL_POINTER, 'Cannot invoke "java.nio.ByteBuffer.getShort()" because "buffer" is null'
        )
    if len(raw) < _INT16.size:
        raise ToolFailure("java.nio.BufferUnderflowException", None)
    version: int
    (version,) = _INT16.unpack_from(raw)
    return version


def _decode(name: str, raw: bytes | memoryview, version: int) -> Message:
    """Decode the message after the int16 of a key or value; raises ToolFailure."""
    try:
        message, _ = message_codec(name, version, _RELEASE).decode_at(raw, _INT16.size)
    except WireError:
        message, _ = read_as_tool(name, _RELEASE, raw, position=_INT16.size, version=version)
    return message


def _format_value(raw: bytes | memoryview) -> str:
    """Return the text of a transaction's value, as Kafka's 3.9.1 tool prints it.

    Raises ToolFailure.
    """
    version = _read_version(raw)
    if not message_schema("TransactionLogValue", _RELEASE).valid.has(version):
        raise ToolFailure(
            _ILLEGAL_STATE, f"Unknown version {version} from the transaction log message value"
        )
    value = _decode("TransactionLogValue", raw, version)
    status = value.transaction_status
    if not 0 <= status < len(TRANSACTION_STATES):
        raise ToolFailure(
            _ILLEGAL_STATE,
            f"Unknown transaction state id {status} from the transaction status message",
        )
    partitions = ",".join(map(str, _ordered_partitions(value))) if status else ""
    return (
        f"producerId:{value.producer_id},producerEpoch:{value.producer_epoch}"
        f",state={TRANSACTION_STATES[status]},partitions=[{partitions}]"
        f",txnLastUpdateTimestamp={value.transaction_last_update_timestamp_ms}"
        f",txnTimeoutMs={value.transaction_timeout_ms}"
    )


def _ordered_partitions(value: Message) -> list[TopicPartition]:
    """Return the partitions of a transaction in the order of the tool's Scala set."""
    if value.transaction_partitions is None:
        raise ToolFailure(
            _NULL_POINTER,
            'Cannot invoke "java.util.List.forEach(java.util.function.Consumer)" because the '
            'return value of "org.apache.kafka.coordinator.transaction.generated.'
            'TransactionLogValue.transactionPartitions()" is null',
        )
    return scala_order(
        [TopicPartition(topic.topic, partition) for partition in topic.partition_ids]
        for topic in value.transaction_partitions
    )
