"""Fetch of very many partitions: a few in each turn of the loop, and what happens in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.ids import uuid_text
from engine.kafka_errors import INCONSISTENT_TOPIC_ID, NOT_LEADER_OR_FOLLOWER
from engine.limits import PARTITIONS_AT_ONCE_MAX, SENDFILE_BYTES_MIN
from engine.model import TopicPartition
from engine.replication.nearest_replica import NearestReplica
from engine.replication.partition import Partition
from engine.replication.partition_types import PartitionState
from engine.wire.codec import message_codec
from engine.wire.headers import encode_request_header
from tests.unit.api.data_stage import LEADER, DataStage, fetch_request, produce_request
from tests.unit.api.test_delete_records import delete
from tests.unit.api.test_delete_records import rows as rows_of_deletion
from tests.unit.log.writing import sent
from tests.unit.replication.replicas import borrowed_segments

COUNT = PARTITIONS_AT_ONCE_MAX + 2
VERSION = 17
LARGE = b"v" * SENDFILE_BYTES_MIN
FOR_EVER_MS = 0x7FFFFFFF
#: Of a fetch that waits; behind them nothing is left but the wait.
TURNS = range(1, 60, 4)


class Stage(DataStage):
    """Broker 1 leads so many partitions that a fetch of all takes several turns."""

    def __init__(self, isr: tuple[int, ...] = (LEADER,)) -> None:
        super().__init__(isr)
        for index in range(2, COUNT):
            self.add("t", index)

    def fill(self, value: bytes = b"v", *, indexes: range = range(COUNT)) -> None:
        for index in indexes:
            self.append(index, value)

    def append(self, index: int, value: bytes = b"v") -> None:
        partition = self.manager.find(TopicPartition("t", index))
        batch = memoryview(bytearray(sent(value=value)))
        self.manager.perform(partition.append(batch, 1).effects)

    def in_turn(self, number: int, action: Callable[[], object]) -> None:
        """Do something between two turns from now on, in the one of that number."""

        def turn() -> None:
            nonlocal number
            number -= 1
            if number:
                self.timers.call_soon(turn)
            else:
                action()

        self.timers.call_soon(turn)

    def fetch_all(self, version: int = VERSION, **more: Any) -> Any:
        more.setdefault("max_bytes", 1 << 30)
        request = fetch_request(version, dict.fromkeys(range(COUNT), 0), **more)
        return self.ask("Fetch", version, request)


def _rows(answer: Any) -> list[Any]:
    return [row for topic in answer.responses for row in topic.partitions]


@pytest.mark.parametrize("version", [1, 4, 11, 12, 17])
def test_each_partition_is_answered_as_by_itself(version: int) -> None:
    stage = Stage()
    stage.fill(indexes=range(0, COUNT, 2))
    more = {} if version < 3 else {"max_bytes": 1 << 30}
    rows = _rows(stage.ask("Fetch", version, _figures_of(version, range(COUNT), **more)))
    assert list(range(COUNT)) == [row.partition_index for row in rows]
    for index, row in enumerate(rows):
        (alone,) = _rows(
            stage.ask("Fetch", version, _figures_of(version, range(index, index + 1), **more))
        )
        assert alone == row


def _figures_of(version: int, indexes: range, **more: Any) -> Any:
    return fetch_request(version, dict.fromkeys(indexes, 0), **more)


def test_others_have_their_turns_meanwhile() -> None:
    stage = Stage()
    turns: list[int] = []
    for number in TURNS:
        stage.in_turn(number, lambda: turns.append(stage.manager.fetches.large.reading_count))
    assert COUNT == len(_rows(stage.fetch_all()))
    assert sum(turns) > 2
    assert 0 == stage.manager.fetches.large.reading_count


@pytest.mark.parametrize("max_bytes", [0, 1, 200, 1000])
def test_the_bound_of_all_bytes_holds_over_all_turns(max_bytes: int) -> None:
    stage = Stage()
    stage.fill()
    size = len(sent(value=b"v"))
    sizes = [len(row.records) for row in _rows(stage.fetch_all(max_bytes=max_bytes))]
    assert max(1, max_bytes // size) * size == sum(sizes)
    assert COUNT == len(sizes)


@pytest.mark.parametrize("number", TURNS)
@pytest.mark.parametrize("index", [0, COUNT // 2, COUNT - 1])
def test_no_append_between_two_turns_is_missed(number: int, index: int) -> None:
    stage = Stage()
    stage.in_turn(number, lambda: stage.append(index))
    rows = _rows(stage.fetch_all(max_wait_ms=FOR_EVER_MS))
    assert [index] == [row.partition_index for row in rows if row.records]
    assert 0 == stage.manager.delayed_fetch_count


@pytest.mark.parametrize("number", TURNS)
def test_no_change_of_a_leader_between_two_turns_is_missed(number: int) -> None:
    stage = Stage()
    partition = stage.manager.find(TopicPartition("t", COUNT - 1))

    def lose() -> None:
        role = PartitionState(2, 1, (LEADER, 2), 1, (1, 2, 3))
        stage.manager.perform(partition.become_follower(role).effects)

    stage.in_turn(number, lose)
    requested = {"current_leader_epoch": 0}
    rows = _rows(stage.fetch_all(max_wait_ms=FOR_EVER_MS, requested=requested))
    assert [0] * (COUNT - 1) + [74] == [row.error_code for row in rows]


@pytest.mark.parametrize("number", TURNS)
def test_no_deletion_between_two_turns_is_missed(number: int) -> None:
    stage = Stage()
    stage.in_turn(number, lambda: stage.manager.remove(TopicPartition("t", COUNT - 1)))
    rows = _rows(stage.fetch_all(max_wait_ms=FOR_EVER_MS))
    assert [0] * (COUNT - 1) + [6] == [row.error_code for row in rows]


@pytest.mark.parametrize("number", TURNS)
@pytest.mark.parametrize("max_wait_ms", [0, 500])
def test_nobody_is_sent_records_of_a_topic_that_took_the_name_between_two_turns(
    number: int, max_wait_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, borrowed = Stage(), borrowed_segments(monkeypatch)

    def make_again() -> None:
        stage.manager.remove(TopicPartition("t", COUNT - 1))
        stage.root = "/other"
        stage.add("t", COUNT - 1).log.topic_id = uuid_text(bytes(16))
        stage.append(COUNT - 1, LARGE)

    stage.in_turn(number, make_again)
    answer = stage.fetch_all(max_wait_ms=max_wait_ms)
    if answer is None:
        stage.pass_time(500)
        answer = stage.answer("Fetch", VERSION)
    rows = _rows(answer)
    assert [] == [row.partition_index for row in rows if row.records]
    assert {row.error_code for row in rows} <= {0, NOT_LEADER_OR_FOLLOWER, INCONSISTENT_TOPIC_ID}
    assert [] == borrowed


def test_bytes_of_several_partitions_are_enough_together() -> None:
    stage = Stage()
    size = len(sent(value=b"v"))
    assert stage.fetch_all(max_wait_ms=FOR_EVER_MS, min_bytes=2 * size) is None
    stage.append(3)
    assert stage.answer("Fetch", VERSION) is None
    stage.append(COUNT - 1)
    rows = _rows(stage.answer("Fetch", VERSION))
    assert [3, COUNT - 1] == [row.partition_index for row in rows if row.records]


def test_too_few_bytes_are_sent_at_the_deadline() -> None:
    stage = Stage()
    stage.append(3)
    assert stage.fetch_all(max_wait_ms=200, min_bytes=1 << 20) is None
    assert 1 == stage.manager.delayed_fetch_count
    stage.pass_time(199)
    assert stage.answer("Fetch", VERSION) is None
    stage.pass_time(2)
    assert 1 == len([row for row in _rows(stage.answer("Fetch", VERSION)) if row.records])


def test_what_waits_holds_nobody() -> None:
    stage = Stage()
    assert stage.fetch_all(max_wait_ms=FOR_EVER_MS) is None
    request = produce_request({"t": [(3, sent())]}, acks=1)
    stage.send_raw("Produce", 11, message_codec("ProduceRequest", 11).encode(request))
    rows = _rows(stage.answer("Fetch", VERSION))
    assert [3] == [row.partition_index for row in rows if row.records]
    (produced,) = stage.answer("Produce", 11).responses[0].partition_responses
    assert 0 == produced.error_code


def test_the_next_request_of_the_connection_does_not_overtake_the_reading() -> None:
    stage = Stage()
    head = encode_request_header(1, VERSION, 77, "tester")
    fetch = message_codec("FetchRequest", VERSION).encode(_figures_of(VERSION, range(COUNT)))
    stage.client.send([head, fetch])
    head = encode_request_header(0, 11, 77, "tester")
    request = produce_request({"t": [(COUNT - 1, sent())]}, acks=1)
    stage.client.send([head, message_codec("ProduceRequest", 11).encode(request)])
    rows = _rows(stage.answer("Fetch", VERSION))
    assert [] == [row for row in rows if row.records]
    assert stage.answer("Produce", 11) is not None


@pytest.mark.parametrize("number", TURNS)
@pytest.mark.parametrize("max_wait_ms", [0, FOR_EVER_MS])
def test_what_was_read_is_given_back_when_the_client_goes(
    number: int, max_wait_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage()
    stage.fill(LARGE)
    borrowed = borrowed_segments(monkeypatch)
    stage.in_turn(number, lambda: stage.client.close("gone"))
    stage.fetch_all(max_wait_ms=max_wait_ms, min_bytes=1 << 30)
    assert ([], []) == (borrowed, stage.faults)
    assert (0, 0) == (stage.manager.fetches.large.reading_count, stage.manager.delayed_fetch_count)


@pytest.mark.parametrize("number", TURNS)
@pytest.mark.parametrize("max_wait_ms", [0, FOR_EVER_MS])
def test_what_was_read_is_given_back_when_the_broker_stops(
    number: int, max_wait_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage()
    stage.fill(LARGE)
    borrowed = borrowed_segments(monkeypatch)
    left: list[int] = []

    def stop() -> None:
        stage.server.close("the broker stops")
        stage.manager.stop()
        left.append(len(borrowed))

    stage.in_turn(number, stop)
    stage.fetch_all(max_wait_ms=max_wait_ms, min_bytes=1 << 30)
    assert ([0], [], []) == (left, borrowed, stage.faults)
    assert (0, 0) == (stage.manager.fetches.large.reading_count, stage.manager.delayed_fetch_count)


@pytest.mark.parametrize("max_wait_ms", [0, 200])
def test_each_response_gives_its_segments_back(
    max_wait_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage()
    stage.fill(LARGE)
    borrowed = borrowed_segments(monkeypatch)
    for _ in range(3):
        answer = stage.fetch_all(max_wait_ms=max_wait_ms, min_bytes=1 << 30)
        if max_wait_ms:
            stage.pass_time(201)
            answer = stage.answer("Fetch", VERSION)
        assert COUNT == len([row for row in _rows(answer) if row.records])
        assert [] == borrowed


def test_a_session_begins_and_goes_on() -> None:
    stage = Stage()
    stage.fill()
    first = stage.fetch_all(session_epoch=0)
    assert (0, COUNT) == (first.error_code, len(_rows(first)))
    assert COUNT == stage.sessions.partition_count
    caught_up = dict.fromkeys(range(COUNT), 1)
    more = {"session_id": first.session_id, "max_bytes": 1 << 30}
    second = stage.ask("Fetch", VERSION, fetch_request(VERSION, caught_up, session_epoch=1, **more))
    assert (first.session_id, []) == (second.session_id, _rows(second))
    stage.append(5)
    third = stage.ask("Fetch", VERSION, fetch_request(VERSION, {}, session_epoch=2, **more))
    assert [5] == [row.partition_index for row in _rows(third)]


@pytest.mark.parametrize("number", TURNS)
def test_a_request_of_the_same_epoch_between_two_turns_is_refused(number: int) -> None:
    stage = Stage()
    session_id = stage.fetch_all(session_epoch=0).session_id
    other = stage.network.connect("here", stage.port)
    frames: list[bytes] = []
    other.on_frame = lambda frame: frames.append(bytes(frame))
    body = message_codec("FetchRequest", VERSION).encode(
        fetch_request(VERSION, {}, session_id=session_id, session_epoch=1)
    )
    head = encode_request_header(1, VERSION, 78, "other")
    stage.in_turn(number, lambda: other.send([head, body]))
    answer = stage.ask("Fetch", VERSION, _next_of(session_id))
    assert (0, session_id) == (answer.error_code, answer.session_id)
    (frame,) = frames
    second = message_codec("FetchResponse", VERSION).decode(frame[5:])
    assert 71 == second.error_code


def _next_of(session_id: int) -> Any:
    return fetch_request(VERSION, {}, session_id=session_id, session_epoch=1)


def test_a_followers_fetch_of_all_is_noted() -> None:
    stage = Stage((1, 2))
    stage.fill()
    partition = stage.manager.find(TopicPartition("t", COUNT - 1))
    assert 0 == partition.high_watermark
    caught_up = dict.fromkeys(range(COUNT), 1)
    requested = {"log_start_offset": 0}
    request = fetch_request(12, caught_up, topic="t", replica_id=2, requested=requested)
    assert COUNT == len(_rows(stage.ask("Fetch", 12, request)))
    assert 1 == partition.high_watermark


def _counted_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the partitions that are read from now on."""
    reads: list[int] = []
    read = Partition.read

    def counted(partition: Partition, *given: Any, **named: Any) -> Any:
        reads.append(partition.topic_partition.partition)
        return read(partition, *given, **named)

    monkeypatch.setattr(Partition, "read", counted)
    return reads


def test_as_many_bytes_as_are_wanted_are_enough_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    stage.append(3)
    size = len(sent(value=b"v"))
    assert stage.fetch_all(max_wait_ms=FOR_EVER_MS, min_bytes=size + 1) is None
    other = Stage()
    other.append(3)
    reads = _counted_reads(monkeypatch)
    rows = _rows(other.fetch_all(max_wait_ms=FOR_EVER_MS, min_bytes=size))
    assert [3] == [row.partition_index for row in rows if row.records]
    assert list(range(COUNT)) == reads


@pytest.mark.parametrize("number", TURNS)
@pytest.mark.parametrize("max_wait_ms", [0, FOR_EVER_MS])
def test_nothing_is_read_once_the_broker_has_stopped(
    number: int, max_wait_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage()
    reads = _counted_reads(monkeypatch)

    def stop() -> None:
        stage.manager.stop()
        reads.clear()

    stage.in_turn(number, stop)
    # The one without a wait may have its response before.
    assert stage.fetch_all(max_wait_ms=max_wait_ms) is None or not max_wait_ms
    assert [] == reads
    assert stage.fetch_all(max_wait_ms=max_wait_ms) is None
    assert ([], 0) == (reads, stage.manager.fetches.large.reading_count)


def test_nothing_is_read_for_a_client_that_has_gone_during_its_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    reads = _counted_reads(monkeypatch)
    assert stage.fetch_all(max_wait_ms=FOR_EVER_MS) is None
    assert list(range(COUNT)) == reads
    stage.client.close("gone")
    stage.timers.run_until_idle()
    assert (COUNT, 0) == (len(reads), stage.manager.fetches.large.reading_count)


def test_a_consumer_with_a_nearer_replica_is_sent_there_without_a_wait() -> None:
    stage = Stage((1, 2))
    reader = stage.manager.fetches._reader
    reader._ports = reader._ports._replace(nearest=NearestReplica(stage.metadata, stage.clock))
    request = fetch_request(12, dict.fromkeys(range(COUNT), 0), topic="t", replica_id=2)
    assert stage.ask("Fetch", 12, request) is not None
    rows = _rows(stage.fetch_all(max_wait_ms=FOR_EVER_MS, rack_id="rack2"))
    assert [2] * COUNT == [row.preferred_read_replica for row in rows]


def test_a_followers_fetch_of_all_completes_the_deletions_that_wait_for_it() -> None:
    stage = Stage((1, 2))
    stage.fill()
    caught_up = dict.fromkeys(range(COUNT), 1)
    more: dict[str, Any] = {"topic": "t", "replica_id": 2}
    assert stage.ask("Fetch", 12, fetch_request(12, caught_up, **more)) is not None
    stage.follow(1, 3, log_start=1)
    assert delete(stage, {0: 1}) is None
    requested = {"log_start_offset": 1}
    request = fetch_request(12, caught_up, requested=requested, max_wait_ms=FOR_EVER_MS, **more)
    body = message_codec("FetchRequest", 12).encode(request)
    follower = stage.network.connect("here", stage.port)
    follower.send([encode_request_header(1, 12, 77, "follower"), body])
    assert {0: (0, 1)} == rows_of_deletion(stage.answer("DeleteRecords", 2))
