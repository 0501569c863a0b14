"""A hanging transaction made on purpose, on brokers in memory."""

from __future__ import annotations

import pytest

from engine.client.config_admin import (
    ConfigResourceType,
    Resource,
    describe_configs,
)
from engine.client.forged_transaction import VerificationNotDisabled, forge_hanging
from engine.client.offsets import LATEST, list_offsets
from engine.client.transactions import (
    abort_in_partition,
    find_hanging,
    open_in,
    request_active_producers,
)
from engine.errors import ApiError, EngineError
from engine.model import TopicPartition
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.reassign.memory_streams import client_of

T0 = TopicPartition("t", 0)
_SETTING = "transaction.partition.verification.enable"


def stage(**settings: str) -> MemoryCluster:
    cluster = MemoryCluster(
        is_one_process=True,
        transaction_state_log_num_partitions="1",
        transaction_state_log_min_isr="1",
        **settings,
    )
    cluster.create_topic("t", ((1, 2), (2, 1)))
    cluster.pass_time(1_000)
    return cluster


def test_a_forged_transaction_hangs_until_it_is_aborted() -> None:
    cluster = stage()
    client = client_of(cluster)
    forged = forge_hanging(client, T0, "x", record_count=3, age_ms=3_600_000)
    assert (T0, "x", 2, 3) == (forged[0], forged[1], forged.start_offset, forged.record_count)
    producers = request_active_producers(client, [T0])[T0]
    assert not isinstance(producers, EngineError)
    (hanging,) = find_hanging(client, producers, idle_for_ms=900_000)
    assert ("x", 2) == (hanging.transactional_id, hanging.producer.transaction_start_offset)
    stable = list_offsets(client, {T0: LATEST}, read_committed=True)[T0]
    assert not isinstance(stable, EngineError)
    assert 2 == stable.offset
    abort_in_partition(client, hanging.producer)
    producers = request_active_producers(client, [T0])[T0]
    assert not isinstance(producers, EngineError)
    assert [] == open_in(producers)


def test_the_check_of_transactions_is_as_before() -> None:
    cluster = stage()
    client = client_of(cluster)
    forge_hanging(client, T0, "x", record_count=1, age_ms=0)
    cluster.pass_time(1_000)
    broker = Resource(ConfigResourceType.BROKER, "1")
    entries = describe_configs(client, [broker], names=[_SETTING])[broker]
    assert not isinstance(entries, EngineError)
    assert ["true"] == [entry.value for entry in entries]


def test_a_topic_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ApiError):
        forge_hanging(client_of(stage()), TopicPartition("no", 0), "x", record_count=1, age_ms=0)


def test_an_error_names_the_broker_that_goes_on_asking() -> None:
    error = VerificationNotDisabled(T0, 2)
    assert "broker 2, which leads t-0, still verifies transactions" == str(error)
