"""Groups and transactions of one embedded broker against real ones.

    python -m tests.perf.coordinators --peer "Kafka 3.9.1=127.0.0.1:9092=PID" [--rounds 3]
                                      [--only TEXT] --settings group.initial.rebalance.delay.ms=0 …

Peers have the same settings: one replica of the internal topics, and a
`group.initial.rebalance.delay.ms` of 0. Commits, heartbeats and joins are frames that are encoded
before, so that a client costs the same on all. Transactions are librdkafka's, and so are the
commits of two more cases.
"""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.perf.broker import Case, Kind, measure
from tests.perf.group_load import (
    Joining,
    OpenConnection,
    commit_frame,
    coordinator_is_ready,
    heartbeat_frame,
)
from tests.perf.load import Broker, Outcome
from tests.perf.transaction_load import EncodedTransactions

_CONNECTIONS: Final = 8
_IN_FLIGHT: Final = 4
_COMMITS: Final = 20_000
#: How a response of one partition ends: its error code and three counts of tags.
_CODE_AND_TAGS_BYTES: Final = 5
_JOIN_MEMBERS: Final = 50
_HEARTBEAT_MEMBERS: Final = 2_000
_MEMBERS_A_GROUP: Final = 50
_HEARTBEAT_INTERVAL_S: Final = 3.0
_HEARTBEATS_S: Final = 15.0
_TIMEOUT_S: Final = 60.0


def _unique(name: str) -> str:
    return f"{name}-{time.monotonic_ns()}"


def _topic(broker: Broker, partitions: int = 1) -> str:
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    name = _unique("perf")
    for created in admin.create_topics([NewTopic(name, partitions, broker.replicas)]).values():
        created.result(_TIMEOUT_S)
    return name


def commits(broker: Broker, _size: int) -> Outcome:
    """Commit one offset a request, of 8 groups by 8 connections, 4 requests in flight on each."""
    topic = _topic(broker)
    groups = [_unique(f"commits-{number}") for number in range(_CONNECTIONS)]
    coordinator_is_ready(broker.address, groups)
    connections = [OpenConnection(broker.address) for _ in groups]
    frames = [commit_frame(group, topic, 5) for group in groups]
    for connection, frame in zip(connections, frames, strict=True):
        # Each group is there now, and its responses have one size.
        connection.send(frame)
    responses = [connection.response() for connection in connections]
    assert all(
        response[-_CODE_AND_TAGS_BYTES:] == bytes(_CODE_AND_TAGS_BYTES) for response in responses
    )
    sizes = [len(response) + 4 for response in responses]
    each = _COMMITS // _CONNECTIONS
    cpu_s, begun_s = broker.cpu_s(), time.perf_counter()
    left = [each] * _CONNECTIONS
    for connection, frame in zip(connections, frames, strict=True):
        connection.send(frame * _IN_FLIGHT)
    while any(left):
        for at, connection in enumerate(connections):
            if not left[at]:
                continue
            count = connection.responses_of(sizes[at])
            left[at] -= count
            # Those in flight are left out of it: the rest has not been sent yet.
            due = min(count, max(left[at] + count - _IN_FLIGHT, 0))
            if due:
                connection.send(frames[at] * due)
    took_s = time.perf_counter() - begun_s
    cpu = (broker.cpu_s() - cpu_s) / _COMMITS * 1e6
    for connection in connections:
        connection.close()
    return Outcome(_COMMITS / took_s, "commits/s", cpu)


def librdkafka_commits(consumers: int, count: int, broker: Broker, _size: int) -> Outcome:
    """Commit one offset after the other by consumers of librdkafka, each of its own group.

    Each waits for the response before its next commit; `count` is of each consumer.
    """
    topic = _topic(broker)
    groups = [_unique(f"commits-{number}") for number in range(consumers)]
    coordinator_is_ready(broker.address, groups)
    common = {"bootstrap.servers": broker.address, "enable.auto.commit": False, "log_level": 0}
    opened = [Consumer({**common, "group.id": group}) for group in groups]

    def commit_all(consumer: Consumer, offsets: range) -> None:
        for offset in offsets:
            consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)

    with ThreadPoolExecutor(consumers) as pool:
        # Each has found its coordinator and is connected to it.
        list(pool.map(partial(commit_all, offsets=range(10)), opened))
        cpu_s, begun_s = broker.cpu_s(), time.perf_counter()
        list(pool.map(partial(commit_all, offsets=range(10, 10 + count)), opened))
        took_s = time.perf_counter() - begun_s
    total = consumers * count
    cpu = (broker.cpu_s() - cpu_s) / total * 1e6
    for consumer in opened:
        consumer.close()
    return Outcome(total / took_s, "commits/s", cpu)


def join(broker: Broker, _size: int) -> Outcome:
    """Have 50 members join a new group at once, until each has an assignment of one generation."""
    topic = _topic(broker)
    group = _unique("join")
    coordinator_is_ready(broker.address, [group])
    joining = Joining(broker.address, group, topic, _JOIN_MEMBERS)
    cpu_s = broker.cpu_s()
    took_s = joining.run()
    cpu = (broker.cpu_s() - cpu_s) / _JOIN_MEMBERS * 1e6
    joining.leave()
    return Outcome(took_s * 1000, "ms", cpu)


def heartbeats(broker: Broker, _size: int) -> Outcome:
    """Keep 2,000 members of 40 groups by a heartbeat each 3 s, and see what the broker uses."""
    topic = _topic(broker)
    groups = [_unique(f"beat-{n}") for n in range(_HEARTBEAT_MEMBERS // _MEMBERS_A_GROUP)]
    coordinator_is_ready(broker.address, groups)
    joined = [Joining(broker.address, group, topic, _MEMBERS_A_GROUP) for group in groups]
    frames = []
    for joining in joined:
        joining.run()
        frames.append(b"".join(heartbeat_frame(joining.group, m) for m in joining.members))
    connections = [OpenConnection(broker.address) for _ in groups]
    cpu_s, begun_s = broker.cpu_s(), time.perf_counter()
    count = 0
    step_s = _HEARTBEAT_INTERVAL_S / len(groups)
    while time.perf_counter() - begun_s < _HEARTBEATS_S:
        index = count % len(groups)
        connections[index].send(frames[index])
        for _ in range(_MEMBERS_A_GROUP):
            connections[index].response()
        count += 1
        time.sleep(max(0.0, begun_s + count * step_s - time.perf_counter()))
    took_s = time.perf_counter() - begun_s
    used_s = broker.cpu_s() - cpu_s
    for joining in joined:
        joining.leave()
    for connection in connections:
        connection.close()
    return Outcome(used_s / took_s * 100, "% of a core", used_s / count / _MEMBERS_A_GROUP * 1e6)


def _transactional(broker: Broker, **more: Any) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": broker.address,
            "transactional.id": _unique("perf"),
            "linger.ms": 0,
            "log_level": 0,
            **more,
        }
    )
    producer.init_transactions(_TIMEOUT_S)
    return producer


def transactions(records: int, count: int, broker: Broker, _size: int) -> Outcome:
    """Produce and commit one transaction after the other, of so many records of 100 bytes."""
    topic = _topic(broker)
    producer = _transactional(broker)
    value = b"v" * 100

    def one() -> None:
        producer.begin_transaction()
        for _ in range(records):
            producer.produce(topic, value, partition=0)
        producer.commit_transaction(_TIMEOUT_S)

    one()
    cpu_s, begun_s = broker.cpu_s(), time.perf_counter()
    for _ in range(count):
        one()
    took_s = time.perf_counter() - begun_s
    cpu = (broker.cpu_s() - cpu_s) / count * 1e6
    return Outcome(count / took_s, "transactions/s", cpu)


def encoded_transactions(count: int, broker: Broker, _size: int) -> Outcome:
    """Commit transactions of one record whose requests are encoded before, one after the other."""
    topic = _topic(broker)
    producer = EncodedTransactions(broker.address, _unique("perf"), topic, count + 20)
    producer.run(20)
    cpu_s, begun_s = broker.cpu_s(), time.perf_counter()
    producer.run(count)
    took_s = time.perf_counter() - begun_s
    cpu = (broker.cpu_s() - cpu_s) / count * 1e6
    producer.close()
    return Outcome(count / took_s, "transactions/s", cpu)


def transactions_at_once(producers: int, count: int, broker: Broker, _size: int) -> Outcome:
    """Commit transactions of one record by several producers at once, `count` each."""
    topic = _topic(broker, producers)
    open_producers = [_transactional(broker) for _ in range(producers)]
    value = b"v" * 100

    def run(partition: int, repeats: int) -> None:
        producer = open_producers[partition]
        for _ in range(repeats):
            producer.begin_transaction()
            producer.produce(topic, value, partition=partition)
            producer.commit_transaction(_TIMEOUT_S)

    with ThreadPoolExecutor(producers) as pool:
        list(pool.map(partial(run, repeats=1), range(producers)))
        cpu_s, begun_s = broker.cpu_s(), time.perf_counter()
        list(pool.map(partial(run, repeats=count), range(producers)))
        took_s = time.perf_counter() - begun_s
    total = producers * count
    cpu = (broker.cpu_s() - cpu_s) / total * 1e6
    return Outcome(total / took_s, "transactions/s", cpu)


def end_to_end(broker: Broker, _size: int) -> Outcome:
    """Consume a record, produce it in a transaction with its offset, read it committed: p50."""
    count = 150
    source, target = _topic(broker), _topic(broker)
    common = {"bootstrap.servers": broker.address, "log_level": 0, "fetch.wait.max.ms": 100}
    reading = {**common, "isolation.level": "read_committed", "enable.auto.commit": False}
    consumer = Consumer({**reading, "group.id": _unique("copy"), "auto.offset.reset": "earliest"})
    consumer.subscribe([source])
    reader = Consumer({**reading, "group.id": "unused"})
    reader.assign([TopicPartition(target, 0, 0)])
    feeder = Producer({"bootstrap.servers": broker.address, "linger.ms": 0, "log_level": 0})
    producer = _transactional(broker)
    times = []
    cpu_s = 0.0
    for number in range(count + 10):
        if number == 10:
            cpu_s = broker.cpu_s()
        begun_s = time.perf_counter()
        feeder.produce(source, b"%d" % number, partition=0)
        feeder.flush(_TIMEOUT_S)
        message = _next(consumer)
        producer.begin_transaction()
        producer.produce(target, message.value(), partition=0)
        producer.send_offsets_to_transaction(
            [TopicPartition(source, 0, int(message.offset()) + 1)],
            consumer.consumer_group_metadata(),
            _TIMEOUT_S,
        )
        producer.commit_transaction(_TIMEOUT_S)
        assert _next(reader).value() == b"%d" % number
        if number >= 10:
            times.append(time.perf_counter() - begun_s)
    cpu = (broker.cpu_s() - cpu_s) / count * 1e6
    consumer.close()
    reader.close()
    return Outcome(statistics.median(times) * 1e6, "µs", cpu)


def _next(consumer: Consumer) -> Any:
    end_s = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < end_s:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            return message
    raise AssertionError("no record in time")


CASES: Final = [
    Case("offset commits, one partition a request", commits, ">= 2x"),
    Case("offset commits by librdkafka", partial(librdkafka_commits, 1, 3_000), ">= 2x"),
    Case("offset commits by librdkafka, 8 at once", partial(librdkafka_commits, 8, 2_000), ">= 2x"),
    Case("50 members join a new group", join, "<= 0.7x"),
    Case("heartbeats of 2,000 members", heartbeats, "<= 15 % of a core"),
    Case("transactions of 100 records", partial(transactions, 100, 300), ">= 1.5x"),
    Case("transactions of one record", partial(transactions, 1, 500), ">= 2x"),
    Case("transactions of one record, encoded before", partial(encoded_transactions, 500), "-"),
    Case("transactions of one record, 4 at once", partial(transactions_at_once, 4, 250), ">= 2x"),
    Case("consume, transform, produce, read: p50", end_to_end, "<= 0.7x"),
]


def main() -> None:
    """Print one line a case."""
    measure(CASES, Kind())


if __name__ == "__main__":
    main()
