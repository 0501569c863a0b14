"""Transactional ids as records of `__transaction_state`.

| record | key | value |
|---|---|---|
| a state | version 0: transactional id | version 0; no list of partitions while Empty |
| expired | the same | null |

Source: TransactionLog of 3.9.1; `formats.md` §7.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.errors import EngineError, WireError
from engine.model import TopicPartition
from engine.transactions.states import STATE_OF, STATUSES, TransactionState
from engine.transactions.transaction import Transaction, Transition
from engine.wire import messages
from engine.wire.coordinator_records import (
    decode_coordinator_record,
    encode_key,
    encode_value,
)

_TYPE = 0
_VERSION = 0


class TransactionRecord(NamedTuple):
    """A record of `__transaction_state`: encoded key, and value or None for a tombstone."""

    key: bytes
    value: bytes | None


class UnknownTransactionRecord(EngineError):
    """A record of `__transaction_state` is of a kind that this broker does not keep, or damaged."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"a record of __transaction_state cannot be read: {reason}")
        self.reason = reason


def transaction_record(transactional_id: str, transition: Transition) -> TransactionRecord:
    """Return the record of a transition."""
    by_topic: dict[str, list[int]] = {}
    for partition in transition.partitions:
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    schema = messages.TransactionLogValue.PartitionsSchema
    partitions = [schema(topic=topic, partition_ids=ids) for topic, ids in by_topic.items()]
    value = messages.TransactionLogValue(
        producer_id=transition.producer_id,
        producer_epoch=transition.producer_epoch,
        transaction_timeout_ms=transition.timeout_ms,
        transaction_status=STATUSES[transition.state],
        transaction_partitions=(None if transition.state is TransactionState.EMPTY else partitions),
        transaction_last_update_timestamp_ms=transition.last_update_ms,
        transaction_start_timestamp_ms=transition.start_ms,
    )
    return TransactionRecord(_key(transactional_id), encode_value(value, _VERSION))


def transaction_tombstone(transactional_id: str) -> TransactionRecord:
    """Return the record that ends a transactional id."""
    return TransactionRecord(_key(transactional_id), None)


def decode_transaction_record(record: TransactionRecord) -> tuple[str, Transaction | None]:
    """Return a transactional id and its state, None for a tombstone.

    Raises UnknownTransactionRecord.
    """
    try:
        decoded = decode_coordinator_record(
            "transaction_log", record.key, record.value, allows_more=True
        )
    except WireError as error:
        raise UnknownTransactionRecord(str(error)) from error
    key, value = decoded.key, decoded.value
    assert isinstance(key, messages.TransactionLogKey), key.message_name
    if value is None:
        return key.transactional_id, None
    assert isinstance(value, messages.TransactionLogValue), value.message_name
    state = STATE_OF.get(value.transaction_status)
    if state is None:
        raise UnknownTransactionRecord(f"state {value.transaction_status}")
    transaction = Transaction(
        key.transactional_id,
        value.producer_id,
        value.transaction_timeout_ms,
        value.transaction_last_update_timestamp_ms,
    )
    transaction.state = state
    transaction.producer_epoch = value.producer_epoch
    transaction.start_ms = value.transaction_start_timestamp_ms
    transaction.partitions = {
        TopicPartition(topic.topic, index): None
        for topic in value.transaction_partitions or ()
        for index in topic.partition_ids
    }
    return key.transactional_id, transaction


def _key(transactional_id: str) -> bytes:
    return encode_key(messages.TransactionLogKey(transactional_id=transactional_id), _TYPE)
