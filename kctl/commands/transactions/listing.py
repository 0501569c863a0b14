"""Implementation of `kctl transactions list`, `describe` and `producers`."""

from __future__ import annotations

from engine.client.offsets import LATEST, list_offsets
from engine.client.transactions import (
    ActiveProducer,
    describe_transaction,
    list_transactions,
    open_in,
    request_active_producers,
)
from engine.errors import EngineError
from engine.model import TopicPartition
from kctl.command_results import ItemFailures, end_with
from kctl.connect import ClusterOptions, connect
from kctl.console import notify, report_error
from kctl.durations import parse_duration_ms
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow
from kctl.selection import select_partitions

LIST_COLUMNS = (
    Column("transactional_id", "TRANSACTIONAL-ID", is_name=True),
    Column("state", "STATE"),
    Column("producer_id", "PRODUCER", right=True),
    Column("coordinator_id", "COORDINATOR", right=True),
)
DESCRIBE_COLUMNS = (
    Column("transactional_id", "TRANSACTIONAL-ID", is_name=True),
    Column("state", "STATE"),
    Column("producer_id", "PRODUCER", right=True),
    Column("producer_epoch", "EPOCH", right=True),
    Column("coordinator", "COORDINATOR"),
    Column("timeout_ms", "TIMEOUT-MS", right=True),
    Column("start_ms", "STARTED", is_time=True, kind="integer?"),
    Column("open_for_ms", "OPEN-FOR-MS", right=True, kind="integer?"),
    Column("partitions", "PARTITIONS", kind="string[]"),
)
PRODUCER_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("producer_id", "PRODUCER", right=True),
    Column("producer_epoch", "EPOCH", right=True),
    Column("last_sequence", "SEQUENCE", right=True),
    Column("last_timestamp_ms", "LAST-WRITE", is_time=True),
    Column("coordinator_epoch", "COORDINATOR-EPOCH", right=True, kind="integer?", wide=True),
    Column("transaction_start_offset", "OPEN-SINCE", right=True, kind="integer?"),
    Column("blocked_records", "HOLDS-UP", right=True, kind="integer?"),
)
_ONGOING = "Ongoing"
_NONE = -1


def print_transactions(
    options: ClusterOptions, states: list[str], longer_than: str | None, output: str
) -> int:
    """Print the transactional ids that brokers list, a row for each; returns the exit code.

    `states` limits them to these states (empty: any), `longer_than` to transactions that have run
    for longer.
    """
    check_format(output)
    longer_than_ms = (
        _NONE if longer_than is None else parse_duration_ms(longer_than, "--longer-than")
    )
    with connect(options) as client:
        found = list_transactions(client, states=states, longer_than_ms=longer_than_ms)
    for broker_id, error in found.failures.items():
        report_error(error, f"broker {broker_id}")
    rows: list[OutputRow] = [
        {
            "transactional_id": row.transactional_id,
            "state": row.state,
            "producer_id": row.producer_id,
            "coordinator_id": row.coordinator_id,
        }
        for row in sorted(found.transactions)
    ]
    return end_with(LIST_COLUMNS, rows, output, failures=len(found.failures))


def describe_transactions(
    options: ClusterOptions, transactional_ids: list[str], output: str
) -> int:
    """Print the transaction of each transactional id: state, producer, partitions.

    Returns the exit code. An error of one id is printed, and the others are still shown.
    """
    check_format(output)
    rows: list[OutputRow] = []
    failures = ItemFailures()
    with connect(options) as client:
        now_ms = client.clock.wall_ms()
        for transactional_id in dict.fromkeys(transactional_ids):
            try:
                found = describe_transaction(client, transactional_id)
            except EngineError as error:
                failures.report(error, transactional_id)
                continue
            is_open = found.state == _ONGOING
            rows.append(
                {
                    "transactional_id": found.transactional_id,
                    "state": found.state,
                    "producer_id": found.producer_id,
                    "producer_epoch": found.producer_epoch,
                    "coordinator": found.coordinator,
                    "timeout_ms": found.timeout_ms,
                    "start_ms": None if found.start_ms < 0 else found.start_ms,
                    "open_for_ms": max(now_ms - found.start_ms, 0) if is_open else None,
                    "partitions": [str(key) for key in sorted(found.partitions)],
                }
            )
    return failures.end_with(DESCRIBE_COLUMNS, rows, output)


def show_producers(
    options: ClusterOptions, topics: list[str], *, is_open: bool, output: str
) -> int:
    """Print the active producers of partitions, a row for each; returns the exit code.

    `is_open` limits them to producers with an open transaction.
    """
    check_format(output)
    with connect(options) as client:
        _, partitions, errors = select_partitions(client, topics)
        producers = request_active_producers(client, partitions)
        ends = list_offsets(client, dict.fromkeys(partitions, LATEST))
    failures = list(errors)
    rows: list[OutputRow] = []
    for key in partitions:
        found, end = producers[key], ends[key]
        for result in (found, end):
            if isinstance(result, EngineError):
                failures.append(result)
        if isinstance(found, EngineError) or isinstance(end, EngineError):
            continue
        chosen = open_in(found) if is_open else sorted(found)
        rows += [_producer_row(key, producer, end.offset) for producer in chosen]
    for error in failures:
        report_error(error)
    if is_open and not rows and not failures:
        notify("no transaction is open in these partitions")
    return end_with(PRODUCER_COLUMNS, rows, output, failures=len(failures))


def _producer_row(key: TopicPartition, producer: ActiveProducer, end_offset: int) -> OutputRow:
    """Return the row of a producer, with the number of records its open transaction blocks."""
    start = producer.transaction_start_offset
    is_open = start != _NONE
    epoch = producer.coordinator_epoch
    return {
        "topic": key.topic,
        "partition": key.partition,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "last_sequence": producer.last_sequence,
        "last_timestamp_ms": producer.last_timestamp_ms,
        "coordinator_epoch": None if epoch == _NONE else epoch,
        "transaction_start_offset": start if is_open else None,
        "blocked_records": max(end_offset - start, 0) if is_open else None,
    }
