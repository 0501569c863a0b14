"""The fast path of a fetch: every answer is, byte for byte, the other way's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.api.admission import Session, allow_all
from engine.api.exchange import EncodedResponse, Exchange
from engine.api.fetch import Fetch, FetchDeps
from engine.host.ports import FileRegion
from engine.host.real import RealFiles
from engine.log.log_config import LogConfig
from engine.log.producer_state import AppendOrigin
from engine.model import TopicPartition
from engine.records.codec import Codec
from engine.records.control import ControlType
from engine.replication.partition_types import PartitionState
from engine.wire.codec import message_codec
from engine.wire.fast_fetch_bytes import read_fetch_request
from tests.unit.api.data_stage import T0, DataStage, fetch_request
from tests.unit.log.writing import end_of_transaction, sent, sent_by

SMALL_SEGMENTS = LogConfig(segment_bytes=400, index_interval_bytes=100)

Script = Callable[[DataStage, int], None]


def ask(stage: DataStage, version: int, offset: int | None = 0, **more: Any) -> None:
    """Send a fetch of t-0; its answer stays among the frames."""
    more.setdefault("session_epoch", -1) if version >= 7 else None
    offsets = {} if offset is None else {more.pop("index", 0): offset}
    request = fetch_request(version, offsets, **more)
    stage.send_raw("Fetch", version, message_codec("FetchRequest", version).encode(request))


def ask_capped(stage: DataStage, version: int, partition_max_bytes: int, **more: Any) -> None:
    """Send a fetch of t-0 from the first record on with a limit of its own."""
    request = fetch_request(version, {0: 0}, session_epoch=-1, **more)
    request.topics[0].partitions[0].partition_max_bytes = partition_max_bytes
    stage.send_raw("Fetch", version, message_codec("FetchRequest", version).encode(request))


def append(stage: DataStage, *batches: Any) -> None:
    for batch in batches:
        entries = {T0: memoryview(bytearray(batch))}
        stage.manager.append_records(entries, 1, 0)
        stage.timers.run_until_idle()


def transact(stage: DataStage, *, is_open: bool, kind: ControlType = ControlType.ABORT) -> None:
    """Write a transaction with its end, and perhaps begin another."""
    partition = stage.manager.find(T0)
    batches = [
        (sent_by(9, 0, is_transactional=True), AppendOrigin.CLIENT),
        (end_of_transaction(9, kind), AppendOrigin.COORDINATOR),
    ]
    if is_open:
        batches.append((sent_by(9, 1, is_transactional=True), AppendOrigin.CLIENT))
    for batch, origin in batches:
        stage.manager.perform(partition.append(memoryview(bytearray(batch)), 1, origin).effects)


def every_offset(stage: DataStage, version: int, **more: Any) -> None:
    for offset in range(-1, stage.manager.find(T0).log.log_end_offset + 2):
        ask(stage, version, offset, **more)


def three_batches(stage: DataStage, version: int) -> None:
    append(stage, sent(2), sent(1), sent(3))
    every_offset(stage, version)


def an_empty_log(stage: DataStage, version: int) -> None:
    every_offset(stage, version)


def several_segments(stage: DataStage, version: int) -> None:
    stage.add("t", 0, config=SMALL_SEGMENTS)
    append(stage, *[sent(1, value=b"x" * 60) for _ in range(12)])
    assert len(stage.manager.find(T0).log.segments) > 2
    every_offset(stage, version)
    every_offset(stage, version, isolation_level=1)
    every_offset(stage, version, min_bytes=10_000, max_wait_ms=10)
    stage.pass_time(20)


def deleted_records(stage: DataStage, version: int) -> None:
    stage.add("t", 0, config=SMALL_SEGMENTS)
    append(stage, *[sent(1, value=b"x" * 60) for _ in range(12)])
    stage.manager.find(T0).delete_records_before(7)
    every_offset(stage, version)
    stage.manager.find(T0).log.delete_segments_before(7, 12, 0)
    every_offset(stage, version)


def limits_below_a_batch(stage: DataStage, version: int) -> None:
    append(stage, sent(5), sent(5), sent(5))
    size = stage.manager.find(T0).log.size_bytes
    for limit in (-1, 0, 1, 40, size // 3 - 1, size // 3, size // 3 + 1, size - 1, size, size + 1):
        ask_capped(stage, version, limit)
        ask(stage, version, max_bytes=limit)
        ask(stage, version, max_bytes=limit, min_bytes=size, max_wait_ms=5)
        ask(stage, version, 5, max_bytes=limit, min_bytes=0, max_wait_ms=5)
        stage.pass_time(10)


def watermark_below_the_end(stage: DataStage, version: int) -> None:
    append(stage, sent(2))
    stage.follow(2)
    append(stage, sent(3))
    for wait_ms in (0, 5):
        every_offset(stage, version, max_wait_ms=wait_ms)
        stage.pass_time(10)
    every_offset(stage, version, max_wait_ms=5)
    stage.follow(5)
    stage.pass_time(10)


def committed_readers(stage: DataStage, version: int) -> None:
    append(stage, sent(1))
    every_offset(stage, version, isolation_level=1)
    transact(stage, is_open=True)
    for isolation in (0, 1, 2):
        every_offset(stage, version, isolation_level=isolation)


def committed_transactions(stage: DataStage, version: int) -> None:
    transact(stage, is_open=False, kind=ControlType.COMMIT)
    append(stage, sent(2))
    every_offset(stage, version, isolation_level=1)


def unknown_partitions(stage: DataStage, version: int) -> None:
    append(stage, sent(1))
    ask(stage, version, index=9)
    ask(stage, version, topic="no-such", topic_id=b"?" * 16)
    stage.metadata.update(1, [], {T0: None}, {})
    ask(stage, version)


def another_topic_id(stage: DataStage, version: int) -> None:
    append(stage, sent(1))
    stage.manager.find(T0).log.topic_id = "AAAAAAAAAAAAAAAAAAAAAA"
    ask(stage, version)
    stage.manager.find(T0).log.topic_id = None
    ask(stage, version)


def epochs_and_leaders(stage: DataStage, version: int) -> None:
    append(stage, sent(2))
    for epoch in (-1, 0, 1):
        ask(stage, version, requested={"current_leader_epoch": epoch} if version >= 9 else {})
        if version >= 12:
            ask(stage, version, requested={"last_fetched_epoch": epoch})
    stage.manager.find(T0).become_follower(PartitionState(3, 5, (3,), 1, (1, 2, 3)))
    ask(stage, version)
    stage.manager.mark_offline(T0)
    ask(stage, version)


def codecs(stage: DataStage, version: int) -> None:
    append(stage, sent(3, codec=Codec.ZSTD))
    ask(stage, version)
    stage.add("t", 1, config=LogConfig(compression_type=Codec.ZSTD))
    entries = {TopicPartition("t", 1): memoryview(bytearray(sent(3)))}
    stage.manager.append_records(entries, 1, 0)
    ask(stage, version, index=1)


def large_records(stage: DataStage, version: int) -> None:
    append(stage, *[sent(1, value=b"x" * 50_000) for _ in range(6)])
    for limit in (1, 60_000, 140_000, 1 << 20):
        ask(stage, version, max_bytes=limit)


def damage(stage: DataStage, version: int) -> None:
    append(stage, sent(1), sent(1), sent(1))
    log = stage.manager.find(T0).log
    log.active_segment.file.write_at(log.size_bytes // 3 + 8, b"\0\0\0\1")
    every_offset(stage, version)


def waiting_for_records(stage: DataStage, version: int) -> None:
    for number, isolation in enumerate((0, 1, 0)):
        ask(stage, version, number, max_wait_ms=500, isolation_level=isolation)
        assert 1 == stage.manager.delayed_fetch_count
        append(stage, sent(1))
    ask(stage, version, 3, max_wait_ms=500, min_bytes=150)
    append(stage, sent(1))
    append(stage, sent(1))
    assert 0 == stage.manager.delayed_fetch_count


def waiting_in_vain(stage: DataStage, version: int) -> None:
    append(stage, sent(1))
    ask(stage, version, 1, max_wait_ms=500)
    stage.pass_time(499)
    assert 1 == stage.manager.delayed_fetch_count
    stage.pass_time(2)
    assert 0 == stage.manager.delayed_fetch_count


def waiting_for_a_new_segment(stage: DataStage, version: int) -> None:
    stage.add("t", 0, config=SMALL_SEGMENTS)
    append(stage, *[sent(1, value=b"x" * 60) for _ in range(2)])
    ask(stage, version, 2, max_wait_ms=500, min_bytes=100_000)
    append(stage, sent(1, value=b"x" * 60))
    append(stage, sent(1, value=b"x" * 60))


def waiting_for_what_is_undecided(stage: DataStage, version: int) -> None:
    transact(stage, is_open=True)
    ask(stage, version, 2, max_wait_ms=500, isolation_level=1)
    append(stage, sent(1))
    partition = stage.manager.find(T0)
    ended = memoryview(bytearray(end_of_transaction(9)))
    stage.manager.perform(partition.append(ended, 1, AppendOrigin.COORDINATOR).effects)
    stage.timers.run_until_idle()


def waiting_while_the_leader_goes(stage: DataStage, version: int) -> None:
    for epoch in (0, -1):
        ask(stage, version, max_wait_ms=500, requested={"current_leader_epoch": epoch})
    partition = stage.manager.find(T0)
    role = partition.become_follower(PartitionState(3, 5, (3,), 1, (1, 2, 3)))
    stage.manager.perform(role.effects)
    stage.pass_time(501)


def waiting_while_the_disk_goes(stage: DataStage, version: int) -> None:
    ask(stage, version, max_wait_ms=500)
    stage.manager.mark_offline(T0)
    stage.timers.run_until_idle()


def waiting_while_the_partition_goes(stage: DataStage, version: int) -> None:
    ask(stage, version, max_wait_ms=500)
    stage.metadata.update(1, [], {T0: None}, {})
    stage.manager.remove(T0)
    stage.timers.run_until_idle()


def waiting_while_the_log_is_cut(stage: DataStage, version: int) -> None:
    append(stage, sent(1), sent(1))
    ask(stage, version, 2, max_wait_ms=500)
    stage.manager.find(T0).truncate_to(1)
    append(stage, sent(1))
    stage.pass_time(501)


def pipelined_requests(stage: DataStage, version: int) -> None:
    append(stage, sent(1))
    ask(stage, version, 1, max_wait_ms=500)
    ask(stage, version, 0)
    ask(stage, version, 1, max_wait_ms=500)
    append(stage, sent(1))


SCRIPTS: tuple[Script, ...] = (
    three_batches,
    an_empty_log,
    several_segments,
    deleted_records,
    limits_below_a_batch,
    committed_readers,
    committed_transactions,
    unknown_partitions,
    another_topic_id,
    epochs_and_leaders,
    codecs,
    large_records,
    damage,
    waiting_for_records,
    waiting_in_vain,
    waiting_for_a_new_segment,
    waiting_for_what_is_undecided,
    waiting_while_the_disk_goes,
    waiting_while_the_partition_goes,
    waiting_while_the_log_is_cut,
    pipelined_requests,
)


def frames_of(script: Script, version: int, *, is_fast_path: bool, **more: Any) -> list[bytes]:
    stage = DataStage(is_fast_path=is_fast_path, **more)
    script(stage, version)
    assert [] == stage.faults
    return stage.frames


@pytest.mark.parametrize("version", range(4, 18))
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_the_fast_path_answers_as_the_other(script: Script, version: int) -> None:
    other = frames_of(script, version, is_fast_path=False)
    assert other == frames_of(script, version, is_fast_path=True)
    assert other


@pytest.mark.parametrize("version", range(9, 18))
def test_the_fast_path_waits_for_leaders_as_the_other(version: int) -> None:
    test_the_fast_path_answers_as_the_other(waiting_while_the_leader_goes, version)


@pytest.mark.parametrize("version", range(4, 18))
def test_the_fast_path_sees_the_watermark_as_the_other(version: int) -> None:
    script, isr = watermark_below_the_end, (1, 2)
    other = frames_of(script, version, is_fast_path=False, isr=isr)
    assert other == frames_of(script, version, is_fast_path=True, isr=isr)


# Sessions


class Client:
    """A consumer with a session of t-0, or of both partitions."""

    def __init__(self, stage: DataStage, version: int, *indexes: int) -> None:
        self.stage = stage
        self.version = version
        self.epoch = 0
        self.session_id = 0
        self.ask(dict.fromkeys(indexes or (0,), 0))
        frame = stage.frames[-1]
        at = 4 + (version >= 12) + 6
        self.session_id = int.from_bytes(frame[at : at + 4])

    def ask(self, offsets: dict[int, int] | None = None, **more: Any) -> None:
        request = fetch_request(
            self.version,
            offsets or {},
            session_id=self.session_id,
            session_epoch=self.epoch,
            **more,
        )
        body = message_codec("FetchRequest", self.version).encode(request)
        self.stage.send_raw("Fetch", self.version, body)
        self.epoch += 1


def a_session_at_the_end(stage: DataStage, version: int) -> None:
    client = Client(stage, version)
    client.ask()
    client.ask(max_wait_ms=500)
    append(stage, sent(1))
    client.ask({0: 1})
    client.ask({0: 1}, max_wait_ms=500, isolation_level=1)
    append(stage, sent(2))
    client.ask({0: 3}, max_wait_ms=500)
    stage.pass_time(501)
    client.ask(max_wait_ms=500)
    stage.pass_time(501)


def a_session_behind_the_end(stage: DataStage, version: int) -> None:
    append(stage, sent(2), sent(2), sent(2))
    client = Client(stage, version)
    for offset in (0, 1, 2, 5, 6, 7, -1, 6):
        client.ask({0: offset})
        client.ask(min_bytes=100_000, max_wait_ms=5)
        stage.pass_time(10)


def a_session_told_of_a_new_log_start(stage: DataStage, version: int) -> None:
    append(stage, sent(1), sent(1))
    client = Client(stage, version)
    client.ask({0: 2})
    client.ask()
    stage.manager.find(T0).delete_records_before(1)
    client.ask()
    client.ask()


def a_session_of_wrong_epochs(stage: DataStage, version: int) -> None:
    append(stage, sent(1))
    client = Client(stage, version)
    client.ask({0: 1})
    client.epoch = 1
    client.ask()
    client.epoch, client.session_id = 2, client.session_id + 1
    client.ask()
    ask(stage, version, session_id=client.session_id - 1)
    client.epoch, client.session_id = 2, client.session_id - 1
    client.ask()


def a_session_that_changes(stage: DataStage, version: int) -> None:
    append(stage, sent(1))
    client = Client(stage, version)
    client.ask({0: 1, 1: 0})
    client.ask({0: 0})
    client.ask(forgotten=[1])
    client.ask({0: 0})
    client.ask({1: 0})
    client.ask(forgotten=[0, 1])
    client.ask()


def a_session_of_two_partitions(stage: DataStage, version: int) -> None:
    client = Client(stage, version, 0, 1)
    append(stage, sent(1))
    client.ask()
    client.ask({0: 1}, max_wait_ms=500)
    append(stage, sent(1))


def a_session_that_is_overtaken(stage: DataStage, version: int) -> None:
    client = Client(stage, version)
    client.ask(max_wait_ms=500)
    client.ask(max_wait_ms=500)
    append(stage, sent(1))


def a_session_that_is_refused(stage: DataStage, version: int) -> None:
    client = Client(stage, version)
    client.ask()
    stage.manager.mark_offline(T0)
    client.ask()
    client.ask()
    partition = stage.add("t", 0)
    client.ask()
    client.ask(max_wait_ms=500)
    role = partition.become_leader(PartitionState(1, 3, (1,), 1, (1,)))
    stage.manager.perform(role.effects)
    stage.pass_time(501)
    client.ask()


def a_session_of_an_unknown_topic(stage: DataStage, version: int) -> None:
    stage.metadata.update(1, [], {T0: None}, {})
    client = Client(stage, version)
    client.ask()
    stage.tell(T0)
    client.ask()
    client.ask()


SESSION_SCRIPTS: tuple[Script, ...] = (
    a_session_at_the_end,
    a_session_behind_the_end,
    a_session_told_of_a_new_log_start,
    a_session_of_wrong_epochs,
    a_session_that_changes,
    a_session_of_two_partitions,
    a_session_that_is_overtaken,
    a_session_that_is_refused,
    a_session_of_an_unknown_topic,
)


@pytest.mark.parametrize("version", range(7, 18))
@pytest.mark.parametrize("script", SESSION_SCRIPTS, ids=lambda script: script.__name__)
def test_sessions_go_the_fast_path_as_the_other(script: Script, version: int) -> None:
    test_the_fast_path_answers_as_the_other(script, version)


def test_fast_fetches_need_no_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = DataStage()
    append(stage, sent(1))
    client = Client(stage, 17)
    monkeypatch.setattr(Fetch, "answer", None)
    for version in range(10, 18):
        for isolation in (0, 1):
            ask(stage, version, isolation_level=isolation)
            ask(stage, version, 1, isolation_level=isolation)
    client.ask()
    client.ask({0: 1}, max_wait_ms=500)
    append(stage, sent(1))
    assert 35 == len(stage.frames)


def test_a_large_read_leaves_as_a_region_until_it_is_sent(tmp_path: Path) -> None:
    stage = DataStage(files=RealFiles(), root=str(tmp_path))
    append(stage, sent(1, value=b"x" * 200_000))
    segment = stage.manager.find(T0).log.active_segment
    fetch = Fetch(FetchDeps(stage.manager, stage.metadata, stage.sessions), stage.turns)
    for version in (11, 17):
        body = message_codec("FetchRequest", version).encode(
            fetch_request(version, {0: 0}, session_epoch=-1)
        )
        exchange = Exchange(Session("peer", allow_all()), 1, version, 1, None, 0)
        request = read_fetch_request(memoryview(body), version)
        reply, other = fetch.handle(request, exchange), fetch.answer(request, exchange)
        assert isinstance(reply, EncodedResponse)
        assert any(isinstance(part, FileRegion) for part in reply.parts)
        assert [*map(bytes_or_region, other.parts)] == [*map(bytes_or_region, reply.parts)]
        for one in (reply, other):
            assert one.on_sent is not None
            one.on_sent()
    segment.close_file()
    assert segment.file.fileno() == -1, "nobody keeps it open"


def bytes_or_region(part: Any) -> Any:
    return part if isinstance(part, FileRegion) else bytes(part)
