"""Produce to very many partitions: a few in each turn of the loop, and what happens in between."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from engine.api.admission import Session, allow_all
from engine.api.exchange import Exchange
from engine.host.promise import Promise
from engine.limits import PARTITIONS_AT_ONCE_MAX, ROWS_PER_SHARE
from engine.model import TopicPartition
from engine.replication.partition import Partition
from engine.replication.partition_types import FetchParams, FetchSpec, PartitionState
from engine.replication.watermark import Isolation
from engine.wire.codec import message_codec
from engine.wire.headers import encode_request_header
from engine.wire.produce_bytes import decode_produce_request
from tests.unit.api.data_stage import LEADER, DataStage, produce_request
from tests.unit.log.writing import sent, sent_by

COUNT = PARTITIONS_AT_ONCE_MAX + 2
LAST = TopicPartition("t", COUNT - 1)


class Stage(DataStage):
    """Broker 1 leads so many partitions that a produce to all takes several turns."""

    def __init__(self, isr: tuple[int, ...] = (LEADER,)) -> None:
        super().__init__(isr)
        for index in range(2, COUNT):
            self.add("t", index)

    def here(self, index: int) -> Partition:
        return self.manager.find(TopicPartition("t", index))

    def ends(self) -> list[int]:
        """Return where the logs end."""
        found = [self.manager.partitions.get(TopicPartition("t", n)) for n in range(COUNT)]
        return [-1 if each is None else each.log.log_end_offset for each in found]

    def amid(self, action: Callable[[], object]) -> None:
        """Do something once some partitions are appended to, and others are not."""

        def look() -> None:
            if 0 < sum(self.ends()) < COUNT:
                action()
            elif not sum(self.ends()):
                self.timers.call_soon(look)

        self.timers.call_soon(look)

    def codes(self, records: Any = None, **more: Any) -> list[int]:
        """Produce to all; return the codes by partition."""
        found = self.produce(*(records or [sent()] * COUNT), **more)
        return [each.error_code for each in sorted(found, key=lambda each: each.index)]

    def follow_all(self) -> None:
        """Let a follower fetch all of each partition."""
        params = FetchParams(2, max_wait_ms=0, isolation=Isolation.LOG_END)
        self.manager.fetch(
            params,
            [
                (TopicPartition("t", index), FetchSpec(end, 1 << 20, log_start_offset=0))
                for index, end in enumerate(self.ends())
            ],
        )


def _failing_last(error_at: int = COUNT - 1) -> list[Any]:
    """Return batches of which one is refused."""
    return [sent() if index != error_at else b"" for index in range(COUNT)]


def test_each_partition_has_its_row_in_the_order_of_the_request() -> None:
    stage = Stage()
    stage.produce(sent(2), acks=1)
    found = stage.produce(*[sent()] * COUNT, acks=1)
    assert list(range(COUNT)) == [each.index for each in found]
    assert [2] + [0] * (COUNT - 1) == [each.base_offset for each in found]
    assert {0} == {each.error_code for each in found}


def test_others_have_their_turns_meanwhile() -> None:
    stage = Stage()
    seen: list[int] = []
    stage.amid(lambda: seen.append(sum(stage.ends())))
    stage.codes(acks=1)
    assert [ROWS_PER_SHARE] == seen


def test_a_few_partitions_are_appended_to_at_once() -> None:
    stage = Stage()
    seen: list[int] = []
    stage.amid(lambda: seen.append(sum(stage.ends())))
    assert stage.produce(*[sent()] * PARTITIONS_AT_ONCE_MAX, acks=1)
    assert [PARTITIONS_AT_ONCE_MAX] == seen


def test_a_partition_that_goes_meanwhile_is_not_led() -> None:
    stage = Stage()
    stage.amid(lambda: stage.manager.remove(LAST))
    assert [0] * (COUNT - 1) + [6] == stage.codes(acks=1)


def test_a_partition_that_is_led_elsewhere_meanwhile_takes_nothing() -> None:
    stage = Stage()
    last = stage.here(COUNT - 1)

    def lose() -> None:
        last.become_follower(PartitionState(2, 1, (LEADER, 2), 1, (1, 2, 3)))

    stage.amid(lose)
    assert [0] * (COUNT - 1) + [6] == stage.codes(acks=1)
    assert 0 == last.log.log_end_offset


def test_a_broken_batch_refuses_all_before_any_is_appended() -> None:
    stage = Stage()
    assert [2] * COUNT == stage.codes([sent()] * (COUNT - 1) + [b"\x00" * 17], acks=1)
    assert [0] * COUNT == stage.ends()


def test_a_refusal_stays_with_its_partition() -> None:
    assert [0] * (COUNT - 1) + [87] == Stage().codes(_failing_last(), acks=1)


@pytest.mark.parametrize("is_failing", [False, True])
def test_acks_0_ends_the_connection_for_an_error_alone(is_failing: bool) -> None:
    stage = Stage()
    records = _failing_last() if is_failing else [sent()] * COUNT
    assert stage.produce(*records, acks=0) is None
    assert (is_failing, []) == (bool(stage.closed), stage.faults)
    assert COUNT - is_failing == sum(stage.ends())


def test_acks_that_do_not_exist_are_refused_for_each() -> None:
    stage = Stage()
    assert [21] * COUNT == stage.codes(acks=2)
    assert [0] * COUNT == stage.ends()


def test_records_outlive_the_buffer_that_they_came_in() -> None:
    stage = Stage()
    request = produce_request({"t": [(index, sent()) for index in range(COUNT)]}, acks=1)
    frame = bytearray(message_codec("ProduceRequest", 9).encode(request))
    row = stage.table.row(0)
    assert row is not None
    exchange = Exchange(Session("peer", allow_all()), 0, 9, 1, None, 0)
    handled = row.handler(decode_produce_request(memoryview(frame), 9), exchange)
    assert isinstance(handled, Promise)
    frame[:] = bytes(len(frame))
    stage.timers.run_until_idle()
    assert ([1] * COUNT, True) == (stage.ends(), handled.is_kept)


@pytest.mark.parametrize("acks", [1, -1])
def test_the_next_request_of_the_connection_is_appended_behind(acks: int) -> None:
    stage = Stage()
    codec = message_codec("ProduceRequest", 11)
    head = encode_request_header(0, 11, 77, "tester")
    for sequence in range(3):
        rows = [(index, sent_by(5, sequence)) for index in range(COUNT)]
        request = produce_request({"t": rows[-1:] if sequence else rows}, acks=acks)
        stage.client.send([head, codec.encode(request)])
    for _ in range(3):
        answer = stage.answer("Produce", 11)
        found = answer.responses[0].partition_responses
        assert {0} == {row.error_code for row in found}
    assert [1] * (COUNT - 1) + [3] == stage.ends()


def test_what_was_sent_is_appended_though_the_client_goes() -> None:
    stage = Stage()
    stage.amid(lambda: stage.client.close("gone"))
    assert stage.produce(*[sent()] * COUNT, acks=1) is None
    assert ([1] * COUNT, []) == (stage.ends(), stage.faults)


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_nothing_is_appended_once_the_broker_has_stopped(acks: int) -> None:
    stage = Stage((1, 2))
    ends: list[list[int]] = []

    def stop() -> None:
        stage.server.close("the broker stops")
        stage.manager.stop()
        ends.append(stage.ends())

    stage.amid(stop)
    assert stage.produce(*[sent()] * COUNT, acks=acks) is None
    assert (ends, [], 0) == ([stage.ends()], stage.faults, stage.manager.delayed_produce_count)


def test_all_wait_for_the_followers_together_and_hold_nobody() -> None:
    stage = Stage((1, 2))
    assert stage.produce(*[sent()] * COUNT) is None
    assert 1 == stage.manager.delayed_produce_count
    stage.send_raw("Produce", 11, message_codec("ProduceRequest", 11).encode(_one_more()))
    assert (2, 2) == (stage.manager.delayed_produce_count, stage.ends()[0])
    stage.follow_all()
    found = stage.answer("Produce", 11).responses[0].partition_responses
    assert [(index, 0) for index in range(COUNT)] == [(row.index, row.error_code) for row in found]
    assert 0 == stage.manager.delayed_produce_count


def _one_more() -> Any:
    return produce_request({"t": [(0, sent())]})


def test_what_followers_fetch_between_two_turns_is_not_waited_for() -> None:
    stage = Stage((1, 2))
    turns = 0

    def follow() -> None:
        nonlocal turns
        turns += 1
        stage.follow_all()
        if turns < 100:
            stage.timers.call_soon(follow)

    stage.amid(follow)
    assert [0] * COUNT == stage.codes()
    assert 0 == stage.manager.delayed_produce_count


def test_the_timeout_begins_with_the_request() -> None:
    stage = Stage((1, 2))
    stage.amid(lambda: stage.clock.advance(600))
    assert stage.produce(*[sent()] * COUNT, timeout_ms=1000) is None
    stage.pass_time(399)
    assert stage.answer("Produce", 11) is None
    stage.pass_time(2)
    found = stage.answer("Produce", 11).responses[0].partition_responses
    assert {7} == {row.error_code for row in found}


def test_a_watermark_checks_its_partition_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage((1, 2))
    assert stage.produce(*[sent()] * COUNT) is None
    looks = 0
    settled = Partition.check_enough_replicas

    def counted(partition: Partition, required_offset: int) -> Any:
        nonlocal looks
        looks += 1
        return settled(partition, required_offset)

    monkeypatch.setattr(Partition, "check_enough_replicas", counted)
    params = FetchParams(2, max_wait_ms=0, isolation=Isolation.LOG_END)
    for index in reversed(range(COUNT)):
        spec = FetchSpec(1, 1 << 20, log_start_offset=0)
        stage.manager.fetch(params, [(TopicPartition("t", index), spec)])
    found = stage.answer("Produce", 11).responses[0].partition_responses
    assert {0} == {row.error_code for row in found}
    assert COUNT == looks


def is_view_of(value: bytes, view: object) -> bool:
    """Tell whether an object is a view of a batch of this value.

    The content decides: other tests leave views of the same size behind, some of them released.
    """
    try:
        return (
            type(view) is memoryview
            and len(value) <= len(view) < 2 * len(value)
            and value in bytes(view)
        )
    except ValueError:
        return False


def test_records_that_were_appended_are_not_kept_while_followers_are_waited_for() -> None:
    stage = Stage((1, 2))
    value = b"kept while followers are waited for" * 2000
    request = produce_request({"t": [(n, sent(value=value)) for n in range(COUNT)]})
    frame = message_codec("ProduceRequest", 11).encode(request)
    del request
    row = stage.table.row(0)
    assert row is not None
    exchange = Exchange(Session("peer", allow_all()), 0, 11, 1, None, 0)
    handled = row.handler(decode_produce_request(memoryview(bytearray(frame)), 11), exchange)
    stage.timers.run_until_idle()
    assert isinstance(handled, Promise)
    assert (False, 1) == (handled.is_kept, stage.manager.delayed_produce_count)
    assert 0 == sum(is_view_of(value, view) for view in gc.get_objects())


def test_what_is_left_when_the_broker_stops_is_led_elsewhere() -> None:
    stage = Stage()
    stage.amid(stage.manager.stop)
    codes = stage.codes(acks=1)
    assert [0] * ROWS_PER_SHARE + [6] * (COUNT - ROWS_PER_SHARE) == codes
    assert [1] * ROWS_PER_SHARE + [0] * (COUNT - ROWS_PER_SHARE) == stage.ends()


@pytest.mark.parametrize(("client_id", "code"), [("tester", 17), ("__admin_client", 0)])
def test_internal_topics_are_for_the_tools_of_kafka_alone(client_id: str, code: int) -> None:
    stage = Stage()
    stage.add("__consumer_offsets", 0)
    rows = {"t": [(n, sent()) for n in range(COUNT)], "__consumer_offsets": [(0, sent())]}
    answer = stage.ask("Produce", 11, produce_request(rows, acks=1), client_id)
    found = {topic.name: topic.partition_responses for topic in answer.responses}
    assert [code] == [row.error_code for row in found["__consumer_offsets"]]
    assert {0} == {row.error_code for row in found["t"]}
