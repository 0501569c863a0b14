"""Markers: to whom they go, what is sent again, and when a transaction is complete."""

from __future__ import annotations

import logging

import pytest

from engine.client.errors import Unreachable
from engine.limits import MARKER_RETRY_MS, MARKER_RETRY_MS_MAX, MARKERS_PER_REQUEST_MAX
from engine.model import TopicPartition
from tests.unit.transactions.stage import T0, T1, U0, Stage

LOST = Unreachable("broker", 1, "it is gone")


def later(stage: Stage, times: int = 1) -> None:
    for _ in range(times):
        stage.clock.advance(MARKER_RETRY_MS)
        stage.timers.run_until_idle()


def test_each_leader_gets_its_partitions_in_one_request() -> None:
    stage = Stage().begun(T0, T1, U0)
    stage.channels.leaders = {T0: 1, T1: 2, U0: 1}
    stage.end().result()
    sent = [(broker, markers[0].partitions) for broker, markers in stage.channels.written]
    assert [(1, (T0, U0)), (2, (T1,))] == sent
    assert "CompleteCommit" == stage.state


def test_a_leader_is_sent_what_waits_in_one_request() -> None:
    stage = Stage().begun(T0)
    stage.channels.is_held = True
    stage.end().result()
    for id_ in ("y", "z"):
        producer_id = stage.init(id_).producer_id
        stage.coordinator.partitions.add_partitions(id_, producer_id, 0, [T0]).result()
        stage.coordinator.ends.end_transaction(id_, producer_id, 0, is_commit=True).result()
    assert 1 == len(stage.channels.written)
    stage.channels.release()
    stage.timers.run_until_idle()
    assert [1, 2] == [len(markers) for _, markers in stage.channels.written]
    assert 3 == stage.log.states().count("CompleteCommit")


def test_a_request_has_markers_for_so_many_partitions_and_the_others_follow() -> None:
    partitions = [TopicPartition("t", index) for index in range(2 * MARKERS_PER_REQUEST_MAX + 1)]
    stage = Stage().begun(*partitions)
    stage.channels.codes = {partitions[0]: 6}
    stage.end().result()
    stage.timers.run_until_idle()
    sent = [[len(marker.partitions) for marker in markers] for _, markers in stage.channels.written]
    assert [[MARKERS_PER_REQUEST_MAX], [MARKERS_PER_REQUEST_MAX], [1]] == sent
    assert "PrepareCommit" == stage.state
    stage.channels.codes = {}
    later(stage)
    assert "CompleteCommit" == stage.state


def test_markers_of_many_ids_share_requests_as_far_as_they_fit() -> None:
    stage = Stage().begun(T0)
    stage.channels.is_held = True
    stage.end().result()
    partitions = [TopicPartition("t", index) for index in range(MARKERS_PER_REQUEST_MAX // 2)]
    for number in range(3):
        producer_id = stage.init(f"y{number}").producer_id
        stage.coordinator.partitions.add_partitions(
            f"y{number}", producer_id, 0, partitions
        ).result()
        stage.coordinator.ends.end_transaction(
            f"y{number}", producer_id, 0, is_commit=True
        ).result()
    stage.channels.release()
    stage.timers.run_until_idle()
    assert [1, 2, 1] == [len(markers) for _, markers in stage.channels.written]
    assert {} == stage.coordinator.markers._queues
    assert 4 == stage.log.states().count("CompleteCommit")


@pytest.mark.parametrize("code", [3, 6, 7, 19, 20, 56])
def test_a_marker_that_failed_for_now_is_sent_again(code: int) -> None:
    stage = Stage().begun(T0, T1)
    stage.channels.codes = {T1: code}
    stage.end().result()
    assert ("PrepareCommit", [T1]) == (stage.state, list(stage.transaction().partitions))
    later(stage)
    assert [(T0, T1), (T1,)] == [markers[0].partitions for _, markers in stage.channels.written]
    stage.channels.codes = {}
    later(stage)
    assert "CompleteCommit" == stage.state


def test_it_goes_to_the_leader_of_that_time() -> None:
    stage = Stage().begun(T0)
    stage.channels.codes = {T0: 6}
    stage.end().result()
    stage.channels.codes, stage.channels.leaders = {}, {T0: 2}
    later(stage)
    assert [1, 2] == [broker for broker, _ in stage.channels.written]


def test_without_a_leader_it_waits() -> None:
    stage = Stage().begun(T0)
    stage.channels.leaders = {T0: -1}
    stage.end().result()
    later(stage, 3)
    assert ([], "PrepareCommit") == (stage.channels.written, stage.state)
    stage.channels.leaders = {}
    later(stage)
    assert "CompleteCommit" == stage.state


def test_a_broker_that_is_lost_is_asked_again() -> None:
    stage = Stage().begun(T0, T1)
    stage.channels.error = LOST
    stage.end().result()
    later(stage)
    assert 2 == len(stage.channels.written)
    stage.channels.error = None
    later(stage, 2)
    assert "CompleteCommit" == stage.state


def test_a_broker_that_is_lost_is_asked_after_longer_and_longer_pauses() -> None:
    stage = Stage().begun(T0)
    stage.channels.error = LOST
    began_ms = stage.clock.monotonic_ms()
    stage.end().result()
    asked_ms = [0]
    for _ in range(65):
        later(stage)
        if len(stage.channels.written) > len(asked_ms):
            asked_ms.append(stage.clock.monotonic_ms() - began_ms)
    assert [0, 100, 300, 700, 1500, 3100, 4700, 6300] == asked_ms
    stage.channels.error = None
    later(stage, MARKER_RETRY_MS_MAX // MARKER_RETRY_MS)
    assert "CompleteCommit" == stage.state
    # One response, and the next loss is the first again.
    stage.channels.error = LOST
    producer_id = stage.init("y").producer_id
    stage.coordinator.partitions.add_partitions("y", producer_id, 0, [T0]).result()
    stage.coordinator.ends.end_transaction("y", producer_id, 0, is_commit=True).result()
    stage.channels.error = None
    later(stage)
    assert "CompleteCommit" == stage.transaction("y").state.value


def test_while_a_broker_is_left_alone_other_ends_wait_too_and_other_leaders_do_not() -> None:
    stage = Stage().begun(T0)
    stage.channels.error = LOST
    stage.end().result()
    stage.channels.error = None
    for name, partitions in (("y", [T0]), ("z", [T1])):
        stage.channels.leaders = {T1: 2}
        producer_id = stage.init(name).producer_id
        stage.coordinator.partitions.add_partitions(name, producer_id, 0, partitions).result()
        stage.coordinator.ends.end_transaction(name, producer_id, 0, is_commit=True).result()
        stage.timers.run_until_idle()
    assert [1, 2] == [broker_id for broker_id, _ in stage.channels.written]
    later(stage)
    assert [1, 2, 1, 1] == [broker_id for broker_id, _ in stage.channels.written]
    assert 3 == stage.log.states().count("CompleteCommit")


def test_a_leader_that_takes_over_from_a_lost_broker_is_asked_at_the_next_look() -> None:
    stage = Stage().begun(T0)
    stage.channels.error = LOST
    stage.end().result()
    later(stage)
    stage.channels.error, stage.channels.leaders = None, {T0: 2}
    later(stage)
    assert [1, 1, 2] == [broker_id for broker_id, _ in stage.channels.written]
    assert "CompleteCommit" == stage.state


def test_what_waits_for_a_lost_broker_waits_no_more_for_an_id_that_is_lost_too() -> None:
    stage = Stage().begun(T0)
    stage.channels.leaders = {T0: -1}
    stage.end().result()
    registry = stage.coordinator.registry
    registry.on_resigned(registry.partition_of("x"))
    later(stage)
    assert {} == stage.coordinator.markers._waiting
    assert 0 == stage.timers.waiting_count


def test_a_partition_that_is_gone_needs_no_marker(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stage = Stage().begun(T0, T1)
    stage.channels.leaders = {T0: None, T1: None}
    stage.end().result()
    assert ([], "CompleteCommit") == (stage.channels.written, stage.state)
    told = [message for message in caplog.messages if message.endswith(" and gets no marker")]
    assert ["t-0 is gone and gets no marker", "t-1 is gone and gets no marker"] == told


def test_a_partition_may_be_deleted_while_its_marker_waits() -> None:
    stage = Stage().begun(T0)
    stage.channels.codes = {T0: 6}
    stage.end().result()
    stage.channels.leaders = {T0: None}
    later(stage)
    assert "CompleteCommit" == stage.state


@pytest.mark.parametrize("code", [43, 35])
def test_a_log_that_cannot_have_markers_needs_none(code: int) -> None:
    stage = Stage().begun(T0)
    stage.channels.codes = {T0: code}
    stage.end().result()
    assert "CompleteCommit" == stage.state


@pytest.mark.parametrize("code", [47, 52])
def test_a_later_epoch_ends_the_sending(code: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    stage = Stage().begun(T0, T1)
    stage.channels.codes = {T0: code}
    stage.end().result()
    later(stage, 3)
    assert 1 == len(stage.channels.written)
    assert ("PrepareCommit", ()) == (stage.state, stage.coordinator.markers.pending_ids)
    assert "x: another epoch has gone on" in caplog.messages


def test_an_unexpected_error_keeps_the_transaction_open(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage().begun(T0)
    stage.channels.codes = {T0: -1}
    stage.end().result()
    assert "PrepareCommit" == stage.state
    assert f"the marker for {T0} failed with error -1" in caplog.messages
    stage.channels.codes = {}
    later(stage)
    assert "CompleteCommit" == stage.state


def test_an_answer_without_a_partition_is_no_success() -> None:
    stage = Stage().begun(T0)
    stage.channels._codes = lambda markers: [{} for _ in markers]  # type: ignore[method-assign]
    stage.end().result()
    assert "PrepareCommit" == stage.state


def test_the_completion_is_written_until_enough_replicas_are_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    stage = Stage().begun(T0)
    stage.channels.is_held = True
    stage.end().result()
    stage.log.error_code = 19
    stage.channels.release()
    appended = len(stage.log.timeouts_ms)
    counts = []
    for _ in range(7):
        later(stage)
        counts.append(len(stage.log.timeouts_ms) - appended)
    # The pause doubles.
    assert [1, 1, 2, 2, 2, 2, 3] == counts
    assert "the completion of x is written again" in caplog.messages
    assert "PrepareCommit" == stage.state
    assert 51 == stage.end().result()
    stage.log.error_code = 0
    later(stage, 8)
    assert "CompleteCommit" == stage.state


def test_a_completion_that_another_coordinator_writes_is_not_tried_again() -> None:
    stage = Stage().begun(T0)
    stage.channels.is_held = True
    stage.end().result()
    stage.log.error_code = 6
    stage.channels.release()
    appended = len(stage.log.timeouts_ms)
    later(stage, 3)
    assert appended == len(stage.log.timeouts_ms)


def test_who_coordinates_no_more_sends_no_more() -> None:
    stage = Stage().begun(T0)
    stage.channels.codes = {T0: 6}
    stage.end().result()
    registry = stage.coordinator.registry
    registry.on_resigned(registry.partition_of("x"))
    later(stage, 3)
    assert 1 == len(stage.channels.written)
    assert () == stage.coordinator.markers.pending_ids


def test_a_coordinator_that_stops_sends_no_more() -> None:
    stage = Stage().begun(T0)
    stage.channels.codes = {T0: 6}
    stage.end().result()
    stage.coordinator.stop()
    later(stage, 3)
    assert 1 == len(stage.channels.written)
    assert () == stage.coordinator.markers.pending_ids
    assert 15 == stage.end().result()


def test_an_answer_that_comes_after_the_stop_changes_nothing() -> None:
    stage = Stage().begun(T0)
    stage.channels.is_held = True
    stage.end().result()
    stage.coordinator.stop()
    states = stage.log.states()
    stage.channels.release()
    assert states == stage.log.states()
