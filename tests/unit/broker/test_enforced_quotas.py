"""Clients over their quotas: told so, and at rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engine.admin.mutation_quota import UNBOUNDED
from engine.api.admission import Session, allow_all
from engine.api.enforced_quotas import EnforcedQuotas, QuotaWindows
from engine.host.coroutine import drive
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers
from engine.limits import QUOTA_RATE_IDLE_MS
from engine.security.quota_limits import NONE, QuotaLimits, QuotaOwner
from engine.wire.structs import message_class
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.paths import sanitized
from tests.unit.broker.memory_broker import MemoryBroker, MemoryClient
from tests.unit.broker.test_broker import create_topic
from tests.unit.broker.test_client_quotas import alter
from tests.unit.log.writing import sent

ANYONE: dict[str, str | None] = {"user": "ANONYMOUS"}
EXCEEDED = 89


@pytest.fixture
def stage() -> Iterator[MemoryBroker]:
    stage = MemoryBroker().start()
    create_topic(stage.connect(), "t")
    yield stage
    stage.stop()
    assert not stage.faults


def produce(client: MemoryClient, count: int = 1) -> Any:
    of = message_class("ProduceRequest")
    data = of.PartitionProduceData(index=0, records=sent(count))
    topics = [of.TopicProduceData(name="t", partition_data=[data])]
    return client.ask("Produce", 9, acks=1, timeout_ms=1000, topic_data=topics)


def fetch(client: MemoryClient, version: int = 12, **more: Any) -> Any:
    of = message_class("FetchRequest")
    partition = of.FetchPartition(partition=0, partition_max_bytes=1 << 20)
    fields = {
        "max_wait_ms": 0,
        "max_bytes": 1 << 20,
        "session_epoch": -1,
        "topics": [of.FetchTopic(topic="t", partitions=[partition])],
    }
    return client.ask("Fetch", version, **(fields | more))


def is_at_rest(stage: MemoryBroker, client: MemoryClient, throttle_ms: int) -> bool:
    """Return whether a connection takes nothing for so long, and goes on then."""
    before = client.ask("ApiVersions", 0) is None
    stage.pass_time(throttle_ms - 1)
    almost = client.answer("ApiVersions", 0) is None
    stage.pass_time(1)
    return before and almost and client.answer("ApiVersions", 0) is not None


def test_a_producer_is_served_and_rests(stage: MemoryBroker) -> None:
    client = stage.connect()
    alter(stage.connect(), ANYONE, producer_byte_rate=10.0)
    first = produce(client)
    assert first.throttle_time_ms > 0
    assert first.responses[0].partition_responses[0].error_code == 0
    assert is_at_rest(stage, client, first.throttle_time_ms)


def test_a_producer_below_its_quota_goes_on(stage: MemoryBroker) -> None:
    client = stage.connect()
    alter(stage.connect(), ANYONE, producer_byte_rate=100_000.0)
    assert [0, 0] == [produce(client).throttle_time_ms for _ in range(2)]
    alter(stage.connect(), ANYONE, producer_byte_rate=1.0)
    assert produce(client).throttle_time_ms > 0


def test_a_quota_that_is_removed_bounds_nobody(stage: MemoryBroker) -> None:
    alter(stage.connect(), ANYONE, producer_byte_rate=1.0)
    client = stage.connect()
    (session, *_) = stage.broker.table.admission.sessions
    assert not session.may_take_fast_path
    alter(stage.connect(), ANYONE, producer_byte_rate=None)
    assert session.may_take_fast_path
    assert produce(client).throttle_time_ms == 0


def test_nothing_at_all_may_be_sent_is_no_quota_as_in_kafka(stage: MemoryBroker) -> None:
    alter(stage.connect(), ANYONE, producer_byte_rate=0.0)
    assert produce(stage.connect()).throttle_time_ms == 0


@pytest.mark.parametrize("version", [4, 12])
def test_a_consumer_gets_nothing_while_it_is_over_its_quota(
    stage: MemoryBroker, version: int
) -> None:
    client = stage.connect()
    for _ in range(10):
        produce(client, 20)
    alter(stage.connect(), ANYONE, consumer_byte_rate=200.0)
    answers = []
    for _ in range(3):
        answers.append(fetch(client, version))
        stage.pass_time(answers[-1].throttle_time_ms)
    assert any(answer.throttle_time_ms and not answer.responses for answer in answers)
    assert all(answer.error_code == 0 for answer in answers)
    (full, *_) = [answer for answer in answers if answer.responses]
    assert full.throttle_time_ms == 0
    assert 0 < len(full.responses[0].partitions[0].records) <= 200 * 10


@pytest.mark.parametrize("rate", [2.5e8, 5e8, 1e308, math.inf])
def test_a_quota_beyond_the_largest_fetch_bounds_none(stage: MemoryBroker, rate: float) -> None:
    client = stage.connect()
    produce(client, 20)
    alter(stage.connect(), ANYONE, consumer_byte_rate=rate)
    fetched = fetch(client)
    assert fetched.responses[0].partitions[0].records


@pytest.mark.parametrize("rate", [math.nan, -math.inf, -1.0])
def test_a_quota_that_is_no_rate_leaves_clients_their_connections(
    stage: MemoryBroker, rate: float
) -> None:
    client = stage.connect()
    produce(client, 20)
    alter(stage.connect(), ANYONE, consumer_byte_rate=rate, producer_byte_rate=rate)
    assert 0 == produce(client).responses[0].partition_responses[0].error_code
    assert 0 == fetch(client).error_code


def test_a_session_over_the_quota_stays_as_it_is(stage: MemoryBroker) -> None:
    client = stage.connect()
    produce(client, 20)
    opened = fetch(client, session_epoch=0)
    assert opened.session_id
    alter(stage.connect(), ANYONE, consumer_byte_rate=1.0)
    produce(client, 50)
    more = {"session_id": opened.session_id, "topics": []}
    throttled = fetch(client, session_epoch=1, **more)
    assert (opened.session_id, []) == (throttled.session_id, throttled.responses)
    assert throttled.throttle_time_ms > 0
    stage.pass_time(throttled.throttle_time_ms)
    alter(stage.connect(), ANYONE, consumer_byte_rate=None)
    assert fetch(client, session_epoch=2, **more).responses[0].partitions[0].records


def test_followers_have_no_quota(stage: MemoryBroker) -> None:
    client = stage.connect()
    produce(client, 20)
    alter(stage.connect(), ANYONE, consumer_byte_rate=1.0, request_percentage=0.0)
    assert fetch(client, 11, replica_id=2).throttle_time_ms == 0


def topics_of(*counts: int, prefix: str = "new") -> list[Any]:
    of = message_class("CreateTopicsRequest").CreatableTopic
    return [
        of(name=f"{prefix}{at}", num_partitions=count, replication_factor=1)
        for at, count in enumerate(counts)
    ]


def test_topics_over_the_quota_are_refused(stage: MemoryBroker) -> None:
    alter(stage.connect(), ANYONE, controller_mutation_rate=1.0)
    client = stage.connect()
    answer = client.ask("CreateTopics", 7, topics=topics_of(15, 1), timeout_ms=0)
    codes = {topic.name: topic.error_code for topic in answer.topics}
    assert EXCEEDED == codes["new1"]
    assert EXCEEDED != codes["new0"]
    assert 4000 == answer.throttle_time_ms
    # Who is refused does not rest: the error says enough.
    assert client.ask("ApiVersions", 0) is not None
    stage.pass_time(4000)
    answer = client.ask("CreateTopics", 7, topics=topics_of(1, prefix="more"), timeout_ms=0)
    assert (EXCEEDED, 0) != (answer.topics[0].error_code, answer.throttle_time_ms)
    assert 0 == answer.throttle_time_ms


def test_older_versions_are_done_and_rest(stage: MemoryBroker) -> None:
    alter(stage.connect(), ANYONE, controller_mutation_rate=1.0)
    client = stage.connect()
    answer = client.ask("CreateTopics", 5, topics=topics_of(15), timeout_ms=0)
    assert EXCEEDED != answer.topics[0].error_code
    assert 4000 == answer.throttle_time_ms
    assert is_at_rest(stage, client, 4000)


def test_a_trial_takes_no_tokens(stage: MemoryBroker) -> None:
    alter(stage.connect(), ANYONE, controller_mutation_rate=1.0)
    client = stage.connect()
    for _ in range(2):
        answer = client.ask(
            "CreateTopics", 7, topics=topics_of(100), timeout_ms=0, validate_only=True
        )
        assert (0, 0) == (answer.topics[0].error_code, answer.throttle_time_ms)


def test_partitions_and_deletions_take_tokens_too(stage: MemoryBroker) -> None:
    client = stage.connect()
    grown = message_class("CreatePartitionsRequest").CreatePartitionsTopic
    alter(stage.connect(), ANYONE, controller_mutation_rate=1.0)
    first = client.ask(
        "CreatePartitions", 3, topics=[grown(name="t", count=16, assignments=None)], timeout_ms=0
    )
    assert EXCEEDED != first.results[0].error_code
    again = client.ask(
        "CreatePartitions", 3, topics=[grown(name="t", count=17, assignments=None)], timeout_ms=0
    )
    assert (EXCEEDED, 4000) == (again.results[0].error_code, again.throttle_time_ms)
    gone = client.ask("DeleteTopics", 5, topic_names=["t"], timeout_ms=0)
    assert (EXCEEDED, 4000) == (gone.responses[0].error_code, gone.throttle_time_ms)
    gone = client.ask("DeleteTopics", 4, topic_names=["t"], timeout_ms=0)
    assert EXCEEDED != gone.responses[0].error_code
    assert 4000 < gone.throttle_time_ms


def test_connections_that_come_too_fast_from_an_address_are_closed(stage: MemoryBroker) -> None:
    alter(stage.connect(), {"ip": None}, connection_creation_rate=1.0)
    clients = [stage.connect() for _ in range(20)]
    stage.timers.run_until_idle()
    closed = [client for client in clients if client.is_closed]
    assert 10 == len(closed)
    alter(clients[0], {"ip": None}, connection_creation_rate=None)
    client = stage.connect()
    stage.timers.run_until_idle()
    assert not client.is_closed


def test_quotas_are_read_at_the_start_and_again_with_each_session(stage: MemoryBroker) -> None:
    alter(stage.connect(), ANYONE, producer_byte_rate=1.0)
    alter(stage.connect(), {"client-id": "c"}, producer_byte_rate=1.0)
    stage.clock.advance(18_000)
    stage.store.expire_sessions()
    other = EmbeddedZnodeClient(stage.store, 1 << 30)
    drive(other.connect()).result()
    drive(other.delete("/config/clients/c")).result()
    data = b'{"version":1,"config":{"producer_byte_rate":"odd"}}'
    drive(other.create("/config/clients/d", data)).result()
    drive(other.create("/config/clients/e", b"odd")).result()
    drive(other.create("/config/ips/nowhere", None)).result()
    drive(other.create("/config/users/ANONYMOUS/clients", None)).result()
    drive(other.create("/config/users/ANONYMOUS/clients/x", data.replace(b"odd", b"7"))).result()
    stage.timers.run_until_idle()
    owners = {QuotaOwner("ANONYMOUS", NONE), QuotaOwner("ANONYMOUS", "x")}
    assert owners == stage.broker.quotas.limits.owners()


# The measures alone


class Measures:
    """Quotas of a client at a clock that the test moves."""

    def __init__(self, **config: str) -> None:
        self.clock = ManualClock()
        self.limits = QuotaLimits()
        self.limits.take(QuotaOwner(NONE, "c"), config)
        self.quotas = EnforcedQuotas(
            self.limits,
            QuotaWindows(11, 1000, 11, 1000),
            clock=self.clock,
            timers=MemoryTimers(self.clock),
            work_ns=lambda: 0,
            sanitize=sanitized,
        )
        self.session = Session("1.2.3.4:5", allow_all())


def test_work_of_handlers_is_a_part_of_a_second() -> None:
    measures = Measures(request_percentage="1.0")
    quotas, session = measures.quotas, measures.session
    quotas.count_work(session, "c", 100_000_000)
    assert 0 == quotas.count_request(session, 3, "c")
    quotas.count_work(session, "c", 20_000_000)
    assert 0 < quotas.count_request(session, 3, "c") <= 1000
    assert 0 == quotas.count_request(session, 3, "other")


def test_a_rest_for_requests_is_at_most_a_window() -> None:
    measures = Measures(request_percentage="0.001")
    measures.quotas.count_work(measures.session, "c", 100_000_000)
    assert 1000 == measures.quotas.count_request(measures.session, 3, "c")


def test_brokers_of_this_process_are_free() -> None:
    measures = Measures(request_percentage="0.001", consumer_byte_rate="1")
    own = Session("here", allow_all(), is_own_broker=True)
    assert not measures.quotas.bounds(own)
    assert 0 == measures.quotas.count_request(own, 3, "c")
    assert measures.quotas.fetch_bytes_max(own, "c") is None
    assert measures.quotas.mutation_quota(own, "c", is_strict=True) is UNBOUNDED


def test_a_fetch_that_is_not_sent_counts_for_nothing() -> None:
    measures = Measures(consumer_byte_rate="100")
    quotas, session = measures.quotas, measures.session
    assert 1000 == quotas.fetch_bytes_max(session, "c")
    assert quotas.count_fetch(session, "c", 5000) > 0
    assert 0 == quotas.count_fetch(session, "c", 900)
    assert 0 == quotas.count_fetch(session, "other", 5000)


def test_measures_go_after_an_hour_without_use() -> None:
    measures = Measures(consumer_byte_rate="100", controller_mutation_rate="1")
    quotas, session = measures.quotas, measures.session
    quotas.count_fetch(session, "c", 900)
    measures.limits.take(QuotaOwner(NONE, "d"), {"consumer_byte_rate": "100"})
    measures.clock.advance(QUOTA_RATE_IDLE_MS + 1)
    quotas.count_fetch(session, "d", 1)
    assert ["d"] == [key.counted.client for key in quotas._rates]


def test_a_throttle_of_partitions_becomes_shorter_with_time() -> None:
    measures = Measures(controller_mutation_rate="1")
    quota = measures.quotas.mutation_quota(measures.session, "c", is_strict=False)
    assert quota.take_tokens(15)
    assert (4000, False) == (quota.throttle_ms(), quota.is_exceeded)
    measures.clock.advance(1500)
    assert 2500 == quota.throttle_ms()
    strict = measures.quotas.mutation_quota(measures.session, "c", is_strict=True)
    assert not strict.take_tokens(1)
    assert (2500, True) == (strict.throttle_ms(), strict.is_exceeded)


def test_a_rest_is_over_when_its_time_is() -> None:
    measures = Measures()
    over: list[int] = []
    run: Callable[[], None] = lambda: over.append(1)  # noqa: E731
    measures.quotas.call_later(500, run)
    measures.clock.advance(500)
    timers = measures.quotas._timers
    assert isinstance(timers, MemoryTimers)
    timers.run_until_idle()
    assert [1] == over


@pytest.mark.parametrize("rate", ["0", "-0.0", "nan", "-inf"])
@pytest.mark.parametrize("is_strict", [True, False])
def test_mutations_at_a_rate_that_is_none_are_judged_without_an_end(
    rate: str, is_strict: bool
) -> None:
    measures = Measures(controller_mutation_rate=rate)
    quota = measures.quotas.mutation_quota(measures.session, "c", is_strict=is_strict)
    quota.take_tokens(5)
    assert (is_strict, 0) == (not quota.take_tokens(5), quota.throttle_ms())
