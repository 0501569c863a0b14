"""A transaction that hangs: its records are there, and no coordinator knows of it.

The broker must have `transaction.partition.verification.enable=false`.
"""

from __future__ import annotations

import json
import time

from engine.kafka_errors import COORDINATOR_LOAD_IN_PROGRESS
from engine.model import TopicPartition
from engine.wire.structs import message_class
from tests.cli.shell import Shell
from tests.cluster.raw_client import RawClient
from tests.unit.log.writing import sent


def address(shell: Shell) -> str:
    """Return where clients reach the embedded cluster first."""
    status = json.loads(shell.ok("cluster", "status", "-o", "json"))
    (row,) = status if isinstance(status, list) else [status]
    return str(row["bootstrap_servers"])


def leader(shell: Shell, partition: TopicPartition) -> str:
    """Return the address of a partition's leader."""
    described = json.loads(shell.ok("topics", "describe", partition.topic, "-o", "json"))
    rows = [row for row in described[0]["partitions"] if row["partition"] == partition.partition]
    brokers = json.loads(shell.ok("brokers", "list", "-o", "json"))
    (found,) = [row for row in brokers if row["broker_id"] == rows[0]["leader"]]
    return f"{found['host']}:{found['port']}"


def hang(shell: Shell, partition: TopicPartition) -> int:
    """Write records of a transaction that no coordinator knows; returns where it begins."""
    with RawClient(leader(shell, partition)) as client:
        begun = client.ask("InitProducerId", 4, transaction_timeout_ms=1000, transactional_id=None)
        while begun.error_code == COORDINATOR_LOAD_IN_PROGRESS:
            begun = client.ask(
                "InitProducerId", 4, transaction_timeout_ms=1000, transactional_id=None
            )
        request = message_class("ProduceRequest")
        batch = sent(
            2,
            at_ms=int(time.time() * 1000) - 60_000,
            producer_id=begun.producer_id,
            producer_epoch=begun.producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )
        data = request.PartitionProduceData(index=partition.partition, records=batch)
        topic = request.TopicProduceData(name=partition.topic, partition_data=[data])
        answer = client.ask(
            "Produce", 9, acks=-1, timeout_ms=1000, transactional_id="x", topic_data=[topic]
        )
    (row,) = answer.responses[0].partition_responses
    assert 0 == row.error_code
    return int(row.base_offset)
