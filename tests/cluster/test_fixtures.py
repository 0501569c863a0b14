"""The fixtures of `kctl.pytest_plugin` as tests of other programs use them."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from engine.cluster.broker_processes import BrokerNotRunning, BrokersShareProcess, NoSuchBroker
from engine.embedded import (
    AlreadyStarted,
    BadLogin,
    EmbeddedCluster,
    KafkaAccess,
    Login,
    NotEnoughRecords,
    NotInSync,
    NotStarted,
)
from engine.errors import ApiError
from kctl.testing import ClusterFactory, IsolatedKafka

#: The run's broker is started by one process of the tests alone.
pytestmark = pytest.mark.xdist_group("kafka-fixtures")

_GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "testing.md"
_TIMEOUT_S = 30
_VALUES = [b"one", b"two", b"three"]


# -- a broker of the whole run


def test_confluent_kafka_writes_and_reads_in_a_group(kafka: IsolatedKafka) -> None:
    topic, group = kafka.topic("orders"), kafka.unique_name()
    _by_confluent(kafka, topic, group)
    assert {0: 0} == kafka.lag(group, topic)
    assert _VALUES == [record.value for record in kafka.consume(topic)]


def _by_confluent(kafka: KafkaAccess, topic: str, group: str) -> None:
    producer = Producer(kafka.librdkafka_settings)
    for value in _VALUES:
        producer.produce(topic, value)
    assert 0 == producer.flush(_TIMEOUT_S)
    consumer = Consumer(
        {**kafka.librdkafka_settings, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    read = consumer.consume(len(_VALUES), _TIMEOUT_S)
    consumer.commit(asynchronous=False)
    consumer.close()
    assert _VALUES == [message.value() for message in read]


def test_kafka_python_writes_and_reads(kafka: IsolatedKafka) -> None:
    topic = kafka.topic("orders")
    _by_kafka_python(kafka.python_settings, topic)
    assert _VALUES == [record.value for record in kafka.consume(topic, len(_VALUES))]


def _by_kafka_python(settings: Mapping[str, Any], topic: str) -> None:
    with closing(KafkaProducer(**settings)) as producer:
        for value in _VALUES:
            producer.send(topic, value).get(_TIMEOUT_S)
    consumer = KafkaConsumer(
        topic, auto_offset_reset="earliest", consumer_timeout_ms=_TIMEOUT_S * 1000, **settings
    )
    with closing(consumer):
        assert _VALUES == [next(consumer).value for _ in _VALUES]


def test_aiokafka_writes_and_reads(kafka: IsolatedKafka) -> None:
    topic = kafka.topic("orders")
    assert _VALUES == asyncio.run(_by_aiokafka(kafka.python_settings, topic))


async def _by_aiokafka(settings: Mapping[str, Any], topic: str) -> list[bytes | None]:
    async with AIOKafkaProducer(**settings) as producer:
        for value in _VALUES:
            await producer.send_and_wait(topic, value)
    async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **settings) as consumer:
        return [(await consumer.getone()).value for _ in _VALUES]


def test_topics_and_groups_are_a_tests_own(kafka: IsolatedKafka) -> None:
    one, other = kafka.topic("orders", 2), kafka.topic("orders")
    assert one != other
    assert [0, 1] == kafka.produce(one, "text", None, key="key", partition=1)
    assert [] == kafka.consume(other)
    read = kafka.consume(one, 2)
    assert [(1, 0, b"key", b"text"), (1, 1, b"key", None)] == [
        (record.partition, record.offset, record.key, record.value) for record in read
    ]
    assert {0: 0, 1: 2} == kafka.lag(kafka.unique_name(), one)
    kafka.delete_topics()
    with pytest.raises(ApiError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        kafka.delete_topic(one)


def test_records_that_do_not_come_are_an_error_with_those_that_came(kafka: IsolatedKafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, "only")
    with pytest.raises(NotEnoughRecords, match="1 of 2 records") as caught:
        kafka.consume(topic, 2, timeout_s=0.1)
    assert [b"only"] == [record.value for record in caught.value.records]


def test_one_broker_has_no_process_that_could_be_killed_alone(kafka: IsolatedKafka) -> None:
    with pytest.raises(BrokersShareProcess):
        kafka.cluster.kill(1)
    with pytest.raises(AlreadyStarted):
        kafka.cluster.start()


# -- the guide


def test_the_examples_of_the_guide_run(kafka: IsolatedKafka, kafka_cluster: ClusterFactory) -> None:
    fixtures = {"kafka": kafka, "kafka_cluster": kafka_cluster}
    blocks = re.findall(r"^```python\n(.*?)^```", _GUIDE.read_text(), re.M | re.S)
    ran = []
    for block in blocks:
        if "def test_" not in block:
            continue
        names: dict[str, Any] = {}
        exec(block, names)
        for name, function in names.items():
            if name.startswith("test_"):
                function(**{key: fixtures[key] for key in inspect.signature(function).parameters})
                ran.append(name)
    assert 3 == len(ran)


# -- clusters


def test_a_cluster_of_three_is_killed_paused_cut_off_and_healed(
    kafka_cluster: ClusterFactory,
) -> None:
    cluster = kafka_cluster(brokers=3, settings={"replica.lag.time.max.ms": "1000"})
    cluster.create_topic("orders")
    leader = cluster.leader("orders")
    one, other = (broker_id for broker_id in cluster.broker_ids if broker_id != leader)
    address = cluster.address(one)
    cluster.kill(one)
    assert "crashed" == cluster.broker_states[one].value
    with pytest.raises(BrokerNotRunning):
        cluster.pause(one)
    with pytest.raises(NoSuchBroker):
        cluster.restart(4)
    cluster.restart(one)
    assert address == cluster.address(one)
    cluster.wait_in_sync()
    cluster.pause(other)
    assert "paused" == cluster.broker_states[other].value
    cluster.resume(other)
    # A follower that is cut off fetches nothing, and leaves the in-sync replicas.
    cluster.isolate(other)
    assert [0, 1] == cluster.produce("orders", b"a", b"b")
    # Whichever broker answers first, and the one that is cut off knows nothing of it.
    for broker_id in cluster.broker_ids:
        with pytest.raises(NotInSync):
            KafkaAccess(cluster.address(broker_id)).wait_in_sync(timeout_s=0)
    cluster.heal()
    cluster.wait_in_sync()
    assert [b"a", b"b"] == [record.value for record in cluster.consume("orders")]


def test_data_stays_over_a_stop_and_goes_at_the_end(kafka_cluster: ClusterFactory) -> None:
    cluster = kafka_cluster(brokers=1)
    cluster.create_topic("orders")
    cluster.produce("orders", "kept")
    cluster.stop()
    with pytest.raises(NotStarted):
        cluster.produce("orders", "lost")
    cluster.start()
    assert [b"kept"] == [record.value for record in cluster.consume("orders")]
    cluster.close()
    cluster.close()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_clients_log_in_where_a_login_is_wanted(
    kafka_cluster: ClusterFactory, mechanism: str
) -> None:
    login = Login("app", 'se"cr\\et', mechanism)
    cluster = kafka_cluster(brokers=1, login=login)
    assert "cr" not in repr(login)
    cluster.create_topic("orders")
    _by_confluent(cluster, "orders", "readers")
    asyncio.run(_by_aiokafka(cluster.python_settings, "orders"))
    assert login.mechanism == cluster.java_properties["sasl.mechanism"]
    assert 6 == len(cluster.consume("orders", 6))
    with pytest.raises(AlreadyStarted):
        EmbeddedCluster(cluster.path).start()


@pytest.mark.parametrize(
    "login",
    [Login("broker", "x"), Login("two words", "x"), Login("app", ""), Login("app", "x", "GSSAPI")],
)
def test_a_login_that_no_cluster_can_have_is_refused_before_the_start(
    kafka_cluster: ClusterFactory, login: Login
) -> None:
    with pytest.raises(BadLogin):
        kafka_cluster(login=login)
