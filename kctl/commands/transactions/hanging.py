"""Implementation of `kctl transactions find-hanging` and `abort`."""

from __future__ import annotations

from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.transactions import (
    ActiveProducer,
    HangingTransaction,
    abort_in_partition,
    find_hanging,
    open_in,
    request_active_producers,
)
from engine.errors import EngineError
from engine.model import TopicPartition
from kctl import exits
from kctl.command_results import end_with
from kctl.commands.transactions.partition_argument import one_partition
from kctl.connect import ClusterOptions, cluster_named, connect
from kctl.console import confirm, notify, report_error
from kctl.durations import parse_duration_ms
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow
from kctl.selection import select_partitions

HANGING_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("transaction_start_offset", "START-OFFSET", right=True),
    Column("producer_id", "PRODUCER", right=True),
    Column("producer_epoch", "EPOCH", right=True),
    Column("coordinator_epoch", "COORDINATOR-EPOCH", right=True, kind="integer?"),
    Column("last_timestamp_ms", "LAST-WRITE", is_time=True),
    Column("idle_for_ms", "IDLE-FOR-MS", right=True),
    Column("transactional_id", "TRANSACTIONAL-ID", kind="string?"),
)
ABORT_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("transaction_start_offset", "START-OFFSET", right=True),
    Column("producer_id", "PRODUCER", right=True),
    Column("producer_epoch", "EPOCH", right=True),
    Column("result", "RESULT"),
)
_NONE = -1


class NoSuchTransaction(EngineError):
    """No open transaction of the partition starts at this offset."""

    hint = "`kctl transactions producers TOPIC:PARTITION --open` shows where open ones begin"

    def __init__(self, partition: TopicPartition, start_offset: int) -> None:
        super().__init__(f"no transaction of {partition} is open since offset {start_offset}")
        self.partition = partition
        self.start_offset = start_offset


class TransactionNotHanging(EngineError):
    """The transaction is open at its coordinator, which will end it."""

    hint = (
        "wait until its time-out has passed, or begin another producer of its transactional id: "
        "both abort it everywhere. `kctl transactions list --state Ongoing` shows the ids"
    )

    def __init__(self, partition: TopicPartition, producer_id: int) -> None:
        super().__init__(
            f"the transaction of producer {producer_id} in {partition} does not hang: its "
            "coordinator has it open"
        )
        self.partition = partition
        self.producer_id = producer_id


class AbortRequest(NamedTuple):
    """The options of `kctl transactions abort`."""

    partition: str
    start_offset: int
    dry_run: bool
    yes: bool
    output: str


def print_hanging(options: ClusterOptions, topics: list[str], idle_for: str, output: str) -> int:
    """Print the transactions that are open in partitions although no coordinator knows them.

    They block read_committed consumers. Returns the exit code: PROBLEMS_FOUND if there are any.
    """
    check_format(output)
    idle_for_ms = parse_duration_ms(idle_for, "--idle-for")
    with connect(options) as client:
        producers, failures = _request_producers(client, topics)
        hanging = find_hanging(client, producers, idle_for_ms=idle_for_ms)
        now_ms = client.clock.wall_ms()
    for error in failures:
        report_error(error)
    rows = [_hanging_row(found, now_ms) for found in hanging]
    code = end_with(HANGING_COLUMNS, rows, output, failures=len(failures))
    if hanging:
        first = hanging[0].producer
        notify(
            f"readers of committed records of {first.partition} wait at offset "
            f"{first.transaction_start_offset}; `kctl transactions abort "
            f"{first.partition.topic}:{first.partition.partition} --start-offset "
            f"{first.transaction_start_offset}` lets them go on"
        )
    elif not failures:
        notify("no transaction hangs")
    return code or (exits.PROBLEMS_FOUND if hanging else exits.OK)


def _request_producers(
    client: KafkaClient, topics: list[str]
) -> tuple[list[ActiveProducer], list[EngineError]]:
    """Return the active producers of the topics, and the errors of partitions.

    No `topics` means all topics.
    """
    names = topics or sorted(client.view(None).topics)
    _, partitions, failures = select_partitions(client, names)
    producers: list[ActiveProducer] = []
    for found in request_active_producers(client, partitions).values():
        if isinstance(found, EngineError):
            failures.append(found)
        else:
            producers += found
    return producers, failures


def _hanging_row(found: HangingTransaction, now_ms: int) -> OutputRow:
    """Return the row of a hanging transaction; the transactional id is None if unknown."""
    producer = found.producer
    epoch = producer.coordinator_epoch
    return {
        "topic": producer.partition.topic,
        "partition": producer.partition.partition,
        "transaction_start_offset": producer.transaction_start_offset,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": None if epoch == _NONE else epoch,
        "last_timestamp_ms": producer.last_timestamp_ms,
        "idle_for_ms": max(now_ms - producer.last_timestamp_ms, 0),
        "transactional_id": found.transactional_id,
    }


def abort_hanging(options: ClusterOptions, request: AbortRequest) -> int:
    """Abort a hanging transaction in one partition, after confirmation; returns the exit code.

    Errors: NoSuchTransaction; TransactionNotHanging if its coordinator knows it.
    """
    check_format(request.output)
    key = one_partition(request.partition)
    with connect(options) as client:
        producer = _producer_with_open(client, key, request.start_offset)
        if not find_hanging(client, [producer], idle_for_ms=_NONE):
            raise TransactionNotHanging(key, producer.producer_id)
        if not request.dry_run:
            what = (
                f"Abort the transaction of producer {producer.producer_id} in {key} of "
                f"{cluster_named(client)}, from offset {request.start_offset} on"
            )
            confirm(what, yes=request.yes)
            abort_in_partition(client, producer)
    row: OutputRow = {
        "topic": key.topic,
        "partition": key.partition,
        "transaction_start_offset": request.start_offset,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "result": "would be aborted" if request.dry_run else "aborted",
    }
    return end_with(ABORT_COLUMNS, [row], request.output)


def _producer_with_open(
    client: KafkaClient, key: TopicPartition, start_offset: int
) -> ActiveProducer:
    """Return the producer whose open transaction starts at the offset.

    Errors: NoSuchTransaction.
    """
    found = request_active_producers(client, [key])[key]
    if isinstance(found, EngineError):
        raise found
    for producer in open_in(found):
        if producer.transaction_start_offset == start_offset:
            return producer
    raise NoSuchTransaction(key, start_offset)
