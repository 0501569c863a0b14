"""What holds up readers: rules on plain values, and what is asked of brokers in memory."""

from __future__ import annotations

import pytest

from engine.client.findings import CRITICAL, NOTICE, WARNING
from engine.client.forged_transaction import forge_hanging
from engine.client.group_admin import set_offsets
from engine.client.producing import OutgoingRecord
from engine.client.reader_findings import ReaderFacts, ReaderThresholds, reader_findings
from engine.client.reader_gathering import gather_reader_facts
from engine.client.transactional_producer import TransactionalProducer
from engine.client.transactions import ActiveProducer
from engine.model import TopicPartition
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.reassign.memory_streams import client_of

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NOW_MS = 10_000_000
OLD_MS = NOW_MS - 3_600_000


def open_transaction(last_ms: int = OLD_MS, start: int = 5) -> ActiveProducer:
    return ActiveProducer(T0, 7, 0, 0, 3, last_ms, start)


def found(facts: ReaderFacts, **thresholds: int) -> list[tuple[str, str, str]]:
    rows = reader_findings(facts, ReaderThresholds(**thresholds))
    return [(row.severity, row.kind, row.subject) for row in rows]


def facts_of(
    producer: ActiveProducer, hanging: frozenset[tuple[TopicPartition, int]] | None = frozenset()
) -> ReaderFacts:
    return ReaderFacts({T0: [producer]}, hanging, {}, NOW_MS)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (facts_of(open_transaction(start=-1)), []),
        (facts_of(open_transaction(last_ms=NOW_MS)), []),
        (facts_of(open_transaction()), [(WARNING, "long-transaction", "t-0")]),
        (facts_of(open_transaction(), None), [(WARNING, "long-transaction", "t-0")]),
        (
            facts_of(open_transaction(), frozenset(((T0, 7),))),
            [(CRITICAL, "hanging-transaction", "t-0")],
        ),
    ],
)
def test_a_transaction_counts_once_its_producer_is_idle(
    facts: ReaderFacts, expected: list[tuple[str, str, str]]
) -> None:
    assert expected == found(facts)


def test_a_hanging_transaction_comes_with_the_command_that_ends_it() -> None:
    (finding,) = reader_findings(
        facts_of(open_transaction(), frozenset(((T0, 7),))), ReaderThresholds()
    )
    assert "`kctl transactions abort t:0 --start-offset 5`" in finding.cause


def test_a_group_without_members_counts_from_a_lag_on() -> None:
    facts = ReaderFacts({}, None, {"g": {T0: 2, T1: 3}, "done": {T0: 0}}, NOW_MS)
    assert [(NOTICE, "idle-group", "group g")] == found(facts)
    assert [] == found(facts, group_lag=6)
    (finding,) = reader_findings(facts, ReaderThresholds(group_lag=5))
    assert "it has no members, and 5 records to read, 3 of t-1" == finding.cause


def test_producers_coordinators_and_lags_are_requested_from_brokers() -> None:
    cluster = MemoryCluster(
        is_one_process=True,
        offsets_topic_num_partitions="1",
        transaction_state_log_num_partitions="1",
        transaction_state_log_min_isr="1",
    )
    cluster.create_topic("t", ((1, 2), (2, 1)))
    cluster.pass_time(1_000)
    client = client_of(cluster)
    forge_hanging(client, T0, "x", record_count=1, age_ms=3_600_000)
    producer = TransactionalProducer(client, "open")
    producer.begin()
    producer.add(OutgoingRecord("t", None, b"v", timestamp_ms=0, partition=1))
    producer.flush()
    set_offsets(client, "g", {T0: 1})
    deadline_ms = client.clock.monotonic_ms() + 10_000
    view = client.view(["t"])
    thresholds = ReaderThresholds()
    facts = gather_reader_facts(client, view, (), thresholds, deadline_ms)
    assert {"g": {T0: 2}} == facts.lags
    kinds = {row.subject: row.kind for row in reader_findings(facts, thresholds)}
    assert {
        "t-0": "hanging-transaction",
        "t-1": "long-transaction",
        "group g": "idle-group",
    } == kinds
    # A broker that is silent may be the one that has it open.
    facts = gather_reader_facts(client, view, (3,), thresholds, deadline_ms)
    assert facts.hanging is None
    late = gather_reader_facts(client, view, (), thresholds, client.clock.monotonic_ms())
    assert ({}, {}) == (late.producers, late.lags)
