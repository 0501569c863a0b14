"""The transactions of one producer: begun, given partitions, ended.

```
InitProducerId ── begin ── AddPartitionsToTxn, before a partition's first record ── EndTxn ──┐
                    ^──────────────────────────────────────────────────────────────────────┘
```

Source: KIP-98; TransactionManager of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.topic_admin import by_topic
from engine.errors import api_error
from engine.kafka_errors import CONCURRENT_TRANSACTIONS, NONE
from engine.model import TopicPartition
from engine.wire import messages
from engine.wire.structs import Message

_TRANSACTION_KEY: Final = 1
#: Versions from 4 on are for brokers that add partitions for producers.
_ADD_HIGHEST: Final = 3
#: From version 5 on EndTxn raises the producer's epoch.
_END_HIGHEST: Final = 4
_ATTEMPTS_MAX: Final = 100


class TransactionSession:
    """A transactional id, and the partitions of the transaction that is open."""

    def __init__(self, client: KafkaClient, transactional_id: str, timeout_ms: int) -> None:
        """Get an id and epoch; ends what another producer left open. Errors: ApiError."""
        self._client = client
        self.transactional_id = transactional_id
        self._partitions: set[TopicPartition] = set()
        request = messages.InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )
        response = self._ask("InitProducerId", request, None)
        #: Producer id and epoch.
        self.identity: tuple[int, int] = (response.producer_id, response.producer_epoch)

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Take partitions into the transaction before records are sent to them."""
        missing = [key for key in partitions if key not in self._partitions]
        if not missing:
            return
        of = messages.AddPartitionsToTxnRequest
        producer_id, epoch = self.identity
        request = of(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[
                of.AddPartitionsToTxnTopic(name=name, partitions=[key.partition for key in keys])
                for name, keys in by_topic(missing).items()
            ],
        )
        self._ask("AddPartitionsToTxn", request, _ADD_HIGHEST)
        self._partitions.update(missing)

    def end(self, *, commits: bool) -> None:
        """Commit or abort what was added; nothing without a partition. Errors: ApiError."""
        if not self._partitions:
            return
        producer_id, epoch = self.identity
        request = messages.EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=commits,
        )
        self._ask("EndTxn", request, _END_HIGHEST)
        self._partitions.clear()

    def _ask(self, api: str, request: Message, highest: int | None) -> Message:
        """Ask the coordinator, again while it completes a transaction. Errors: ApiError."""
        for attempt in range(_ATTEMPTS_MAX):
            response = self._client.ask_coordinator(
                self.transactional_id,
                api,
                request,
                key_type=_TRANSACTION_KEY,
                retriable_code=_code_to_repeat,
                highest=highest,
            )
            code = _code_of(response.message)
            if code != CONCURRENT_TRANSACTIONS:
                break
            self._client.back_off(attempt)
        if code != NONE:
            raise api_error(code)
        return response.message


def _code_of(message: Message) -> int:
    """Return the first error of a response."""
    if isinstance(message, messages.AddPartitionsToTxnResponse):
        codes = [
            int(row.partition_error_code)
            for topic in message.results_by_topic_v3_and_below
            for row in topic.results_by_partition
        ]
        return next((code for code in codes if code != NONE), NONE)
    return int(message.error_code)


def _code_to_repeat(message: Message) -> int:
    """Return the error that looking up the coordinator anew may resolve."""
    code = _code_of(message)
    return NONE if code == CONCURRENT_TRANSACTIONS else code
