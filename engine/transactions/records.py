"""Encode and decode transactional ids as records of `__transaction_state`.

| record | key | value |
|---|---|---|
| a state | version 0: transactional id | version 0; no list of partitions while Empty |
| expired | the same | null |

```
key    int16 0 · string transactional id
value  int16 0 · int64 producer id · int16 epoch · int32 timeout · int8 status
       int32 count of topics, −1 while Empty · each: string name · int32 count · int32 partitions
       int64 last update · int64 start
```

Encoding is hand-written code, because each transaction writes three records; decoding uses the
table codec.

Source: TransactionLog of 3.9.1; `formats.md` §7.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct as Format
from struct import pack
from typing import Final, NamedTuple

from engine.errors import EngineError, WireError
from engine.model import TopicPartition
from engine.transactions.states import STATE_OF, STATUSES, TransactionState
from engine.transactions.transaction import Transaction, Transition
from engine.wire import messages
from engine.wire.coordinator_records import decode_coordinator_record

_VERSION: Final = 0
_NO_TOPICS: Final = -1
_KEY: Final = Format(">hh").pack
#: Version, producer id and epoch, timeout, status, count of topics.
_HEAD: Final = Format(">hqhibi").pack
_TIMES: Final = Format(">qq").pack


class TransactionRecord(NamedTuple):
    """A record of `__transaction_state`: encoded key, and value or None for a tombstone."""

    key: bytes
    value: bytes | None


class UnknownTransactionRecord(EngineError):
    """A record of `__transaction_state` is damaged, or its version or state is unknown."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"a record of __transaction_state cannot be read: {reason}")
        self.reason = reason


def build_record(transactional_id: str, transition: Transition) -> TransactionRecord:
    """Return the record of `__transaction_state` for a transition of a transactional id."""
    state, producer_id, epoch, _, timeout_ms, partitions, start_ms, last_update_ms = transition
    by_topic: dict[str, list[int]] = {}
    for topic, index in partitions:
        by_topic.setdefault(topic, []).append(index)
    count = _NO_TOPICS if state is TransactionState.EMPTY else len(by_topic)
    value = b"".join(
        (
            _HEAD(_VERSION, producer_id, epoch, timeout_ms, STATUSES[state], count),
            *_iter_encoded_topics(by_topic.items() if count > 0 else ()),
            _TIMES(last_update_ms, start_ms),
        )
    )
    return TransactionRecord(_encode_key(transactional_id), value)


def _iter_encoded_topics(by_topic: Iterable[tuple[str, list[int]]]) -> Iterable[bytes]:
    """Yield each topic with its partitions, encoded as in a record's value."""
    for topic, indexes in by_topic:
        name, count = topic.encode(), len(indexes)
        yield pack(f">h{len(name)}si{count}i", len(name), name, count, *indexes)


def transaction_tombstone(transactional_id: str) -> TransactionRecord:
    """Return the tombstone that removes an expired transactional id from the log."""
    return TransactionRecord(_encode_key(transactional_id), None)


def decode_transaction_record(record: TransactionRecord) -> tuple[str, Transaction | None]:
    """Return the transactional id of a record and its state, None for a tombstone.

    Raises UnknownTransactionRecord if its kind or state is unknown or its bytes are malformed.
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


def _encode_key(transactional_id: str) -> bytes:
    """Return the encoded record key of a transactional id."""
    content = transactional_id.encode()
    return _KEY(_VERSION, len(content)) + content
