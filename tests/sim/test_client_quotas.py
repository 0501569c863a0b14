"""Rules of client quotas, seen to hold and to break, and a run in which clients are throttled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from engine.client.connection import Call, Response
from engine.client.settings import Address
from engine.model import TopicPartition
from engine.security.quota_limits import DEFAULT, NONE, QuotaKind, QuotaLimits, QuotaOwner
from engine.sim.client_quotas import QuotaRules, limited_clients
from engine.sim.fault_kinds import FaultKind
from engine.sim.node import SimulatedBroker
from engine.sim.plan import Fault
from engine.wire import messages
from tests.sim.test_operator import quiet_plan, traced

_BROKER = Address("b1", 9092)


class Broken:
    """Keeps the rules that broke."""

    def __init__(self) -> None:
        self.rules: list[str] = []

    def broke(self, rule: str, text: str, partition: TopicPartition | None) -> None:
        """Note a rule."""
        assert text
        assert partition is None
        self.rules.append(rule)


def _produce(size_bytes: int) -> Call:
    request = messages.ProduceRequest
    row = request.PartitionProduceData(index=0, records=bytes(size_bytes))
    topic = request.TopicProduceData(name="t", partition_data=[row])
    return Call("Produce", request(acks=-1, timeout_ms=1, topic_data=[topic]))


def _taken(throttle_ms: int = 0) -> Response:
    message = messages.ProduceResponse(responses=[], throttle_time_ms=throttle_ms)
    return Response(None, 9, message)


def _broker(limits: QuotaLimits, life: int = 1) -> list[SimulatedBroker]:
    """Return one broker as the rules see it."""
    broker = SimpleNamespace(quotas=SimpleNamespace(limits=limits, on_change=lambda: None))
    node = SimpleNamespace(name="b1", broker=broker, machine=SimpleNamespace(life=life))
    return [cast(SimulatedBroker, node)]


def _respond(
    rules: QuotaRules, sent_ms: int, now_ms: int, throttle_ms: int = 0, on: int = 1
) -> None:
    call = _produce(10)
    _take_response(
        rules, call, rules.record_request("p0", _BROKER, call), sent_ms, now_ms, throttle_ms, on
    )


def _take_response(
    rules: QuotaRules,
    call: Call,
    sent_number: int,
    sent_ms: int,
    now_ms: int,
    throttle_ms: int = 0,
    on: int = 1,
) -> None:
    rules.record_end("p0", _BROKER, call)
    rules.check_response(
        "p0",
        _BROKER,
        call,
        _taken(throttle_ms),
        connection_number=on,
        sent_number=sent_number,
        sent_ms=sent_ms,
        now_ms=now_ms,
    )


def test_a_response_before_the_throttle_time_is_over_breaks_q1() -> None:
    broken = Broken()
    rules = QuotaRules(broken)
    _respond(rules, 100, 105, throttle_ms=1_000)
    _respond(rules, 106, 1_100)
    assert broken.rules == []
    _respond(rules, 1_100, 1_105, throttle_ms=1_000)
    _respond(rules, 1_106, 2_099)
    assert broken.rules == ["Q1"]


def test_a_request_on_its_way_as_the_throttle_time_came_is_served_in_its_turn() -> None:
    broken = Broken()
    rules = QuotaRules(broken)
    first, second = _produce(10), _produce(10)
    first_number = rules.record_request("p0", _BROKER, first)
    second_number = rules.record_request("p0", _BROKER, second)
    _take_response(rules, first, first_number, 90, 100, throttle_ms=1_000)
    _take_response(rules, second, second_number, 100, 101)
    assert broken.rules == []
    _respond(rules, 100, 102)
    assert broken.rules == ["Q1"]


def test_a_new_connection_is_not_throttled() -> None:
    broken = Broken()
    rules = QuotaRules(broken)
    _respond(rules, 100, 105, throttle_ms=1_000, on=1)
    _respond(rules, 106, 110, on=2)
    assert broken.rules == []


def _produce_for(
    rules: QuotaRules, limits: QuotaLimits, seconds: int, size_bytes: int, first_second: int = 0
) -> None:
    for second in range(first_second, first_second + seconds):
        rules.check(_broker(limits), 1_000 * second)
        call = _produce(size_bytes)
        number, sent_ms = rules.record_request("p0", _BROKER, call), 1_000 * second
        _take_response(rules, call, number, sent_ms, sent_ms + 5)


def test_more_bytes_than_a_quota_allows_break_q2() -> None:
    limits = QuotaLimits()
    limits.take(QuotaOwner(NONE, DEFAULT), {QuotaKind.PRODUCE.value: "1000"})
    for size_bytes, rules_broken in ((1_000, []), (1_900, ["Q2"])):
        broken = Broken()
        rules = QuotaRules(broken)
        rules.check_quota_of("p0")
        _produce_for(rules, limits, 16, size_bytes)
        assert broken.rules[:1] == rules_broken


def test_what_was_taken_before_a_quota_was_removed_does_not_count_for_the_next_one() -> None:
    limits, none = QuotaLimits(), QuotaLimits()
    limits.take(QuotaOwner(NONE, DEFAULT), {QuotaKind.PRODUCE.value: "1000"})
    broken = Broken()
    rules = QuotaRules(broken)
    rules.check_quota_of("p0")
    _produce_for(rules, limits, 10, 1_900)
    _produce_for(rules, none, 10, 100_000, first_second=10)
    _produce_for(rules, limits, 10, 1_900, first_second=20)
    assert broken.rules == []


def test_a_quota_that_is_gone_for_a_moment_between_two_checks_is_measured_again() -> None:
    limits, owner = QuotaLimits(), QuotaOwner(NONE, "p0")
    limit = {QuotaKind.PRODUCE.value: "1000"}
    broken = Broken()
    rules = QuotaRules(broken)
    rules.check_quota_of("p0")
    (node,) = _broker(limits)
    now_ms = 0
    rules.watch(node, lambda: now_ms)
    assert node.broker is not None
    on_change = node.broker.quotas.on_change
    for at_ms, config in ((0, limit), (1_100, {}), (1_900, limit)):
        now_ms = at_ms
        limits.take(owner, config)
        on_change()
        if not config:
            call = _produce(100_000)
            _take_response(rules, call, rules.record_request("p0", _BROKER, call), 1_200, 1_205)
    rules.check([node], 2_000)
    assert broken.rules == []
    # A change that leaves the client's quota as it is does not begin the measurement again.
    for sent_ms in (2_000, 3_000):
        call = _produce(100_000)
        number = rules.record_request("p0", _BROKER, call)
        _take_response(rules, call, number, sent_ms, sent_ms + 5)
    now_ms = 4_000
    on_change()
    assert broken.rules == ["Q2"]


def test_a_broker_that_knows_no_quota_may_take_any_number_of_bytes() -> None:
    broken = Broken()
    rules = QuotaRules(broken)
    rules.check_quota_of("p0")
    _produce_for(rules, QuotaLimits(), 20, 100_000)
    assert broken.rules == []


def test_quotas_that_are_left_somewhere_are_named() -> None:
    limits = QuotaLimits()
    assert limited_clients(_broker(limits)) == []
    limits.take(QuotaOwner(NONE, "p0"), {QuotaKind.FETCH.value: "5"})
    (line,) = limited_clients(_broker(limits))
    assert "b1" in line
    assert "p0" in line


def test_clients_that_are_throttled_get_fewer_records_in_and_all_of_them_in_the_end() -> None:
    # The number stands for 150 bytes a second, produced and consumed, of each client.
    quota = Fault(2_000, FaultKind.LIMIT_CLIENTS, "1", 12_000, 0)
    plan = quiet_plan()
    plan = plan._replace(producers=tuple(kind._replace(period_ms=50) for kind in plan.producers))
    free, limited = traced(plan), traced(plan._replace(faults=(quota,)))
    # Set, removed, and removed once more as all faults are taken back, unless all is at rest then.
    assert 2 <= len([line for line in limited.lines if "AlterClientQuotas: done" in line]) <= 3
    assert limited.acknowledged_count < free.acknowledged_count * 2 / 3
