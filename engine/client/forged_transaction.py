"""Create a hanging transaction on purpose, for rehearsals on a cluster without other users.

How one arises if brokers do not verify transactions with the coordinator (before KIP-890):

```
coordinator:  begin ── partition added ── commit ── complete
partition:                     batch ──────────── marker ── a late batch of the same producer
```

The late batch opens a transaction in the partition that the coordinator does not know: it gets no
marker, and the last stable offset stays at the start of the batch.

While it is written, `transaction.partition.verification.enable` is off for the whole cluster.

Source: KIP-664, KIP-890.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.config_admin import (
    ConfigChange,
    ConfigEntry,
    ConfigOp,
    ConfigResourceType,
    ConfigSource,
    Resource,
    alter_configs,
    describe_configs,
)
from engine.client.metadata import leader_of
from engine.client.producing import OutgoingRecord, Producer
from engine.client.transaction_calls import ProducerIdentity, TransactionCalls
from engine.errors import EngineError
from engine.model import TopicPartition

_VERIFICATION: Final = "transaction.partition.verification.enable"
_TIMEOUT_MS: Final = 60_000
_ALL_BROKERS: Final = Resource(ConfigResourceType.BROKER, "")


class VerificationNotDisabled(EngineError):
    """The leader of a partition still verifies transactions with their coordinators."""

    hint = f"a static {_VERIFICATION} of this broker may be why: `kctl configs describe --broker`"

    def __init__(self, partition: TopicPartition, broker_id: int) -> None:
        super().__init__(
            f"broker {broker_id}, which leads {partition}, still verifies transactions"
        )
        self.partition = partition
        self.broker_id = broker_id


class ForgedTransaction(NamedTuple):
    """A hanging transaction of one partition; `start_offset` is that of the late batch."""

    partition: TopicPartition
    transactional_id: str
    identity: ProducerIdentity
    start_offset: int
    record_count: int


class _OneCommit:
    """A transaction that is committed before its producer writes one more batch."""

    def __init__(self, calls: TransactionCalls) -> None:
        self._calls = calls
        self.transactional_identity = calls.init()
        self._is_begun = False

    @property
    def transactional_id(self) -> str:
        """Return the transactional id that both the committed record and the late batch name."""
        return self._calls.transactional_id

    def add_partition_once(self, partition: TopicPartition) -> None:
        """Add the partition to the transaction at the first call; do nothing at later ones.

        So the late batch belongs to no transaction, which makes it hanging.
        """
        if not self._is_begun:
            self._is_begun = True
            self._calls.add_partitions(self.transactional_identity, [partition])

    def commit(self) -> None:
        """Commit the transaction of the first record."""
        self._calls.end(self.transactional_identity, is_commit=True)


def forge_hanging(
    client: KafkaClient,
    partition: TopicPartition,
    transactional_id: str,
    *,
    record_count: int,
    age_ms: int,
) -> ForgedTransaction:
    """Create a hanging transaction in a partition, to try commands that find and abort such ones.

    Its records have timestamps `age_ms` ago. First one record is stored in a transaction that is
    committed. Raises ApiError, VerificationNotDisabled, and the errors of records that are not
    stored.
    """
    timestamp_ms = client.clock.wall_ms() - age_ms
    transaction = _OneCommit(TransactionCalls(client, transactional_id, _TIMEOUT_MS))
    producer = Producer(client, transaction=transaction)

    def write(text: str, count: int) -> int:
        """Write `count` records in one batch; return its base offset, or raise its error."""
        for number in range(count):
            value = f"{text} {number}".encode()
            producer.add(
                OutgoingRecord(
                    partition.topic,
                    None,
                    value,
                    timestamp_ms=timestamp_ms,
                    partition=partition.partition,
                )
            )
        results = producer.flush()
        for result in results:
            if result.error is not None:
                raise result.error
        return results[0].base_offset

    write("committed", 1)
    transaction.commit()
    with _without_verification(client, partition):
        start_offset = write("late", record_count)
    identity = transaction.transactional_identity
    return ForgedTransaction(partition, transactional_id, identity, start_offset, record_count)


@contextmanager
def _without_verification(client: KafkaClient, partition: TopicPartition) -> Iterator[None]:
    """Disable transaction.partition.verification.enable at all brokers during the block.

    With it a leader refuses a batch whose partition is not in a transaction.
    """
    before = _request_dynamic_default(client)
    _alter(client, ConfigChange(ConfigOp.SET, _VERIFICATION, "false"))
    try:
        _wait_until_off(client, partition)
        yield
    finally:
        if before is None:
            _alter(client, ConfigChange(ConfigOp.DELETE, _VERIFICATION))
        else:
            _alter(client, ConfigChange(ConfigOp.SET, _VERIFICATION, before))


def _request_dynamic_default(client: KafkaClient) -> str | None:
    """Return the setting's value for all brokers (dynamic default), None if it is not set."""
    for entry in _request_entries(client, _ALL_BROKERS):
        if entry.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG:
            return entry.value
    return None


def _wait_until_off(client: KafkaClient, partition: TopicPartition) -> None:
    """Wait until the leader's config has verification off. Raises VerificationNotDisabled."""
    deadline_ms = client.clock.monotonic_ms() + client.timeout_ms
    attempt = 0
    while True:
        leader = leader_of(client.view([partition.topic]), partition)
        if isinstance(leader, EngineError):
            raise leader
        resource = Resource(ConfigResourceType.BROKER, str(leader))
        if any(entry.value == "false" for entry in _request_entries(client, resource)):
            return
        if client.clock.monotonic_ms() >= deadline_ms:
            raise VerificationNotDisabled(partition, leader)
        client.back_off(attempt)
        attempt += 1


def _request_entries(client: KafkaClient, resource: Resource) -> list[ConfigEntry]:
    """Return a resource's setting for transaction verification; raises the resource's error."""
    entries = describe_configs(client, [resource], names=[_VERIFICATION])[resource]
    if isinstance(entries, EngineError):
        raise entries
    return entries


def _alter(client: KafkaClient, change: ConfigChange) -> None:
    """Apply one change to the dynamic default config of all brokers; raise its error."""
    error = alter_configs(client, {_ALL_BROKERS: [change]})[_ALL_BROKERS]
    if error is not None:
        raise error
