"""The exactly-once demo: its topics, its input, and the check of its output.

```
input ── INSTANCES processes of one group: consume, transform, produce, in transactions ──> output
```

1. Check that every broker accepts a member's offsets in a transaction (TxnOffsetCommit 3, Kafka
   2.5).
2. Delete both topics and create them again; delete the group.
3. Write the input.
4. Processes copy it (`instance`), until the group has committed all of it.
5. Read the output with read_committed, and compare it record by record (`copied_records`).

Source: TXN-1, TXN-2; the exactly-once demo in Kafka's examples; KIP-447.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from engine.client.batch_sender import BatchResult
from engine.client.blocking import KafkaClient
from engine.client.cluster_admin import api_versions
from engine.client.fetching import ConsumedRecords, Fetcher, FetchOptions
from engine.client.group_admin import delete_groups
from engine.client.groups import committed_offsets
from engine.client.offsets import LATEST, list_offsets
from engine.client.producing import OutgoingRecord, Producer
from engine.client.topic_admin import NewTopic, create_topics, delete_topics
from engine.demo.copied_records import (
    INSTANCE_HEADER,
    OutputFaults,
    PartitionCheck,
    input_value,
    partition_of_number,
)
from engine.errors import ApiError, EngineError
from engine.kafka_errors import GROUP_ID_NOT_FOUND, TOPIC_ALREADY_EXISTS, UNKNOWN_TOPIC_OR_PARTITION
from engine.model import TopicPartition
from engine.wire.headers import api

_MEMBER_VERSION: Final = 3
_DELETED_MS: Final = 30_000
_WAIT_MS: Final = 500


class BrokerTooOld(EngineError):
    """A broker does not accept the offsets of a group member in a transaction."""

    hint = "exactly-once processing by a group needs brokers of Kafka 2.5 or newer (KIP-447)"

    def __init__(self, broker_id: int, version: int | None) -> None:
        """`version` is the highest that the broker supports, None if it lacks the API."""
        served = "does not serve it" if version is None else f"serves up to version {version}"
        super().__init__(
            f"broker {broker_id}: TxnOffsetCommit version too low: it {served}, "
            f"{_MEMBER_VERSION} is needed"
        )
        self.broker_id = broker_id
        self.version = version


class NotDeleted(EngineError):
    """A topic still exists `_DELETED_MS` after its deletion."""

    hint = "delete.topic.enable of the brokers may be false; --prefix NAME takes other topics"

    def __init__(self, topic: str) -> None:
        super().__init__(f"topic {topic} is still there {_DELETED_MS // 1000} s after its deletion")
        self.topic = topic


class CopyPlan(NamedTuple):
    """The names and sizes of a run."""

    prefix: str
    partition_count: int
    instance_count: int
    record_count: int

    @property
    def input_topic(self) -> str:
        """Return the name of the topic that is read."""
        return f"{self.prefix}-input"

    @property
    def output_topic(self) -> str:
        """Return the name of the topic that is written."""
        return f"{self.prefix}-output"

    @property
    def group_id(self) -> str:
        """Return the id of the group of all instances."""
        return f"{self.prefix}-group"

    def transactional_id(self, instance: int) -> str:
        """Return the transactional id of an instance, the same after a restart."""
        return f"{self.prefix}-{instance}"

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of one of the two topics."""
        return [TopicPartition(topic, number) for number in range(self.partition_count)]


class CheckedOutput(NamedTuple):
    """The result of the check: records by the instance that copied them, and faults."""

    by_instance: Counter[int]
    faults: OutputFaults


# 1. to 3. Before


def check_brokers(client: KafkaClient) -> None:
    """Raise BrokerTooOld for a broker whose TxnOffsetCommit cannot fence by generation (step 1)."""
    key = api("TxnOffsetCommit").key
    for broker_id in sorted(client.brokers_view().brokers):
        served = api_versions(client, broker_id).versions.get(key)
        if served is None or served.highest < _MEMBER_VERSION:
            raise BrokerTooOld(broker_id, None if served is None else served.highest)


def recreate_topics(client: KafkaClient, plan: CopyPlan) -> None:
    """Delete and create both topics, and delete the group (step 2).

    Raises ApiError, NotDeleted.
    """
    names = [plan.input_topic, plan.output_topic]
    for error in delete_topics(client, names).values():
        if error is not None and error.code != UNKNOWN_TOPIC_OR_PARTITION:
            raise error
    for result in delete_groups(client, [plan.group_id]).values():
        if isinstance(result, ApiError) and result.code == GROUP_ID_NOT_FOUND:
            continue
        if isinstance(result, EngineError):
            raise result
    for name in names:
        _create_when_deleted(client, NewTopic(name, partition_count=plan.partition_count))
    client.view_of_existing(names)


def _create_when_deleted(client: KafkaClient, topic: NewTopic) -> None:
    """Create a topic, repeating it until the deletion of the earlier topic is complete.

    Raises NotDeleted if that takes too long, ApiError.
    """
    deadline_ms = client.clock.monotonic_ms() + _DELETED_MS
    attempt = 0
    while True:
        made = create_topics(client, [topic])[topic.name]
        if not isinstance(made, ApiError):
            return
        if made.code != TOPIC_ALREADY_EXISTS:
            raise made
        if client.clock.monotonic_ms() >= deadline_ms:
            raise NotDeleted(topic.name)
        client.back_off(attempt)
        attempt += 1


def fill_input(client: KafkaClient, plan: CopyPlan, on_count: Callable[[int], None]) -> None:
    """Write the numbered records of the input (step 3); raises the error of a record not stored."""
    producer = Producer(client)
    stored_count = 0
    for number in range(plan.record_count):
        partition = partition_of_number(number, plan.partition_count)
        key = b"%d" % number
        producer.add(
            OutgoingRecord(plan.input_topic, key, input_value(number), partition=partition)
        )
        if number % 1000 == 0:
            stored_count += _count_stored(producer.poll())
            on_count(stored_count)
    _count_stored(producer.flush())


def _count_stored(results: list[BatchResult]) -> int:
    """Return the number of stored records; raises the first error."""
    for result in results:
        if result.error is not None:
            raise result.error
    return sum(result.batch.record_count for result in results)


# 4. Meanwhile


def committed_count(client: KafkaClient, plan: CopyPlan) -> int:
    """Return the sum of the group's committed offsets in the input topic.

    It is the number of copied records, as each partition begins at offset 0.
    """
    committed = committed_offsets(client, plan.group_id)
    return sum(offset for key, offset in committed.items() if key.topic == plan.input_topic)


# 5. Afterwards


def check_output(
    client: KafkaClient, plan: CopyPlan, on_count: Callable[[int], None]
) -> CheckedOutput:
    """Read the output with read_committed and compare it with the input (step 5).

    `on_count` is called with the number of records read so far. Errors: those of reading,
    UnexpectedRecord.
    Source: TXN-2.
    """
    partitions = plan.partitions(plan.output_topic)
    checks = {
        key: PartitionCheck(key, plan.partition_count, plan.record_count) for key in partitions
    }
    found: Counter[int] = Counter()
    ends = _await_stable_ends(client, partitions)
    starts = {key: 0 for key in partitions if ends[key] > 0}
    fetcher = Fetcher(client, starts, FetchOptions(read_committed=True))
    while fetcher.partitions:
        for consumed in fetcher.poll(_WAIT_MS):
            if consumed.error is not None:
                raise consumed.error
            _check_consumed(checks[consumed.partition], consumed, found)
            if consumed.next_offset >= ends[consumed.partition]:
                fetcher.stop(consumed.partition)
        on_count(found.total())
    faults = [check.count_faults() for check in checks.values()]
    return CheckedOutput(found, OutputFaults(*map(sum, zip(*faults, strict=True))))


def _await_stable_ends(
    client: KafkaClient, partitions: list[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the high watermark of each partition, once its last stable offset has reached it.

    After acknowledging a commit, the coordinator still writes markers for a moment. Raises
    TransactionStillOpen at the timeout.
    """
    deadline_ms = client.clock.monotonic_ms() + client.timeout_ms
    attempt = 0
    while True:
        latest = dict.fromkeys(partitions, LATEST)
        found = list_offsets(client, latest)
        stable = list_offsets(client, latest, read_committed=True)
        ends: dict[TopicPartition, int] = {}
        for key in partitions:
            end, stable_end = found[key], stable[key]
            if isinstance(end, EngineError):
                raise end
            if isinstance(stable_end, EngineError):
                raise stable_end
            if stable_end.offset == end.offset:
                ends[key] = end.offset
        open_ones = [key for key in partitions if key not in ends]
        if not open_ones:
            return ends
        if client.clock.monotonic_ms() >= deadline_ms:
            raise TransactionStillOpen(open_ones[0])
        client.back_off(attempt)
        attempt += 1


class TransactionStillOpen(EngineError):
    """A transaction in the output is still open long after all instances have ended."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"a transaction is still open in {partition}")
        self.hint = f"`kctl transactions producers {partition.topic}:{partition.partition} --open`"
        self.partition = partition


def _check_consumed(check: PartitionCheck, consumed: ConsumedRecords, found: Counter[int]) -> None:
    """Check consumed records, and count them in `found` by the instance that copied them.

    The instance's number is in a header; -1 counts records without it.
    """
    for run in consumed.runs:
        rows = zip(run.offsets, run.keys, run.values, run.headers, strict=True)
        for offset, key, value, headers in rows:
            check.check_record(offset, key, value)
            found[int(dict(headers).get(INSTANCE_HEADER) or b"-1")] += 1
