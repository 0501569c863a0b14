"""Transactions of one producer: started by their first partition, ended by the caller.

```
InitProducerId ── AddPartitionsToTxn, before a partition's first record ── EndTxn ──┐
                    ^─────────────────────────────────────────────────────────────┘
```

`transactional_producer.py` distinguishes the errors that end a transaction from those that end the
producer.

Source: KIP-98; TransactionManager of 3.9.1.
"""

from __future__ import annotations

from engine.client.blocking import KafkaClient
from engine.client.transaction_calls import ProducerIdentity, TransactionCalls
from engine.model import TopicPartition


class TransactionSession:
    """A transactional id, and the partitions of the open transaction."""

    def __init__(self, client: KafkaClient, transactional_id: str, timeout_ms: int) -> None:
        """Get a producer id and epoch, which aborts another producer's open transaction.

        Raises ApiError.
        """
        self._calls = TransactionCalls(client, transactional_id, timeout_ms)
        self._identity = self._calls.init()
        #: Partitions added to the open transaction; empty means that none is open.
        self._partitions: set[TopicPartition] = set()

    @property
    def transactional_id(self) -> str:
        """Return the transactional id of this producer."""
        return self._calls.transactional_id

    @property
    def transactional_identity(self) -> ProducerIdentity:
        """Return the producer id and epoch that the batches get."""
        return self._identity

    def add_partition_once(self, partition: TopicPartition) -> None:
        """Add a partition to the transaction unless it is in it.

        Raises ApiError. The producer calls this before it sends the partition's first batch.
        """
        if partition not in self._partitions:
            self._calls.add_partitions(self._identity, [partition])
            self._partitions.add(partition)

    def end(self, *, commits: bool) -> None:
        """Commit the transaction, or abort it if not `commits`; no request if it has no partition.

        Raises ApiError.
        """
        if self._partitions:
            self._calls.end(self._identity, is_commit=commits)
            self._partitions.clear()
