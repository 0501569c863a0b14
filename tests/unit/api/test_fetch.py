"""Fetch: what is read for whom, how long it waits, and in which form it leaves."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from engine.api.admission import Session, allow_all
from engine.api.exchange import EncodedResponse, Exchange
from engine.api.fetch import Fetch, FetchDeps
from engine.host.memory import MemoryFiles
from engine.host.ports import FileRegion, LogDirOffline
from engine.host.real import RealFiles
from engine.log.log_config import LogConfig
from engine.log.producer_state import AppendOrigin
from engine.model import TopicPartition
from engine.records.codec import Codec
from engine.records.view import RecordBatch, batches_in
from engine.replication.partition_types import PartitionState
from engine.wire.codec import message_codec
from engine.wire.fetch_bytes import decode_fetch_request
from tests.unit.api.data_stage import T0, TOPIC_ID, DataStage, fetch_request
from tests.unit.log.writing import NOW_MS, end_of_transaction, sent, sent_by
from tests.unit.replication.replicas import borrowed_segments

VERSIONS = range(18)
FOLLOWER = {"replica_id": 2}


def batches_of(records: Any) -> list[RecordBatch]:
    return list(batches_in(memoryview(records), allow_partial_tail=True))


def stage_with(*counts: int, **more: Any) -> DataStage:
    stage = DataStage(**more)
    for count in counts:
        stage.produce(sent(count), acks=1)
    return stage


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_reads_the_same_records(version: int) -> None:
    stage = stage_with(2, 1)
    found = stage.fetch(0, version=version)
    assert (0, 3) == (found.error_code, found.high_watermark)
    magic = 0 if version < 2 else 1 if version < 4 else 2
    batches = batches_of(found.records)
    assert {magic} == {batch.magic for batch in batches}
    if magic == 2:
        assert 3 == sum(batch.record_count for batch in batches)  # type: ignore[union-attr]


def test_the_batch_around_an_offset_is_whole() -> None:
    stage = stage_with(3, 2)
    records = stage.fetch(1).records
    assert [0, 3] == [batch.base_offset for batch in batches_of(records)]


@pytest.mark.parametrize(("offset", "code"), [(3, 0), (4, 1), (-1, 1)])
def test_offsets_outside_of_the_log_are_refused(offset: int, code: int) -> None:
    found = stage_with(3).fetch(offset)
    assert (code, b"") == (found.error_code, bytes(found.records))
    assert (3 if code == 0 else -1) == found.high_watermark


def test_a_fetch_waits_for_bytes() -> None:
    stage = DataStage()
    assert stage.fetch(0, max_wait_ms=500) is None
    stage.manager.append_records({T0: memoryview(bytearray(sent(1)))}, 1, 0)
    (topic,) = stage.answer("Fetch", 17).responses
    assert 1 == topic.partitions[0].high_watermark
    assert topic.partitions[0].records


def test_a_fetch_gives_up_waiting() -> None:
    stage = DataStage()
    assert stage.fetch(0, max_wait_ms=500) is None
    stage.pass_time(499)
    assert stage.answer("Fetch", 17) is None
    stage.pass_time(2)
    assert b"" == bytes(stage.answer("Fetch", 17).responses[0].partitions[0].records)


def test_min_bytes_above_max_bytes_do_not_wait_for_ever() -> None:
    stage = stage_with(1)
    size = stage.manager.find(T0).log.size_bytes
    found = stage.fetch(0, min_bytes=1 << 30, max_bytes=size, max_wait_ms=10_000)
    assert found is not None
    assert size == len(found.records)


def test_partitions_share_the_limit_of_all_bytes() -> None:
    stage = DataStage()
    stage.produce(sent(1), sent(1))
    size = stage.manager.find(T0).log.size_bytes
    answer = stage.ask("Fetch", 17, fetch_request(17, {0: 0, 1: 0}, max_bytes=size))
    (topic,) = answer.responses
    assert [size, 0] == [len(found.records) for found in topic.partitions]


@pytest.mark.parametrize("version", [0, 2])
def test_the_limit_is_hard_below_version_3(version: int) -> None:
    stage = stage_with(5)
    request = fetch_request(version, {0: 0})
    request.topics[0].partitions[0].partition_max_bytes = 40
    found = stage.ask("Fetch", version, request).responses[0].partitions[0]
    assert (0, b"") == (found.error_code, bytes(found.records))


def test_the_first_batch_comes_whole_from_version_3_on() -> None:
    stage = stage_with(5)
    request = fetch_request(4, {0: 0}, max_bytes=10)
    assert batches_of(stage.ask("Fetch", 4, request).responses[0].partitions[0].records)


@pytest.mark.parametrize("version", [12, 17])
def test_unknown_topics_are_reported_by_name_or_id(version: int) -> None:
    stage = DataStage()
    request = fetch_request(version, {0: 0}, topic="no-such", topic_id=b"?" * 16)
    (topic,) = stage.ask("Fetch", version, request).responses
    assert [3 if version == 12 else 100] == [found.error_code for found in topic.partitions]
    assert 3 == stage.fetch(0, version=version, index=9).error_code


@pytest.mark.parametrize(
    ("epoch", "offsets", "code"),
    [(-1, {0: 0}, 0), (-1, {0: 0, 1: 0}, -1), (0, {0: 0}, -1), (0, {}, 0)],
)
def test_a_topic_without_an_id_fails_the_fetch_where_kafka_compares_its_name(
    epoch: int, offsets: dict[int, int], code: int
) -> None:
    request = fetch_request(13, offsets, topic_id=bytes(16))
    request.session_epoch = epoch
    answer = DataStage().ask("Fetch", 13, request)
    assert code == answer.error_code
    assert (1 if code == 0 and offsets else 0) == len(answer.responses)


def test_another_topic_of_the_same_name_is_recognised_by_its_id() -> None:
    stage = stage_with(1)
    stage.manager.find(T0).log.topic_id = "AAAAAAAAAAAAAAAAAAAAAA"
    assert (103, 0) == (
        stage.fetch(0, version=13).error_code,
        stage.fetch(0, version=12).error_code,
    )


def test_a_client_at_the_wrong_broker_gets_the_leader() -> None:
    stage = DataStage()
    stage.add("t", 0, leader=3)
    request = fetch_request(17, {0: 0}, requested={"current_leader_epoch": 0})
    found = stage.fetch(0)
    assert 0 == found.error_code, "consumers may read from followers"
    stage.manager.find(T0).become_follower(PartitionState(3, 5, (3,), 1, (1, 2, 3)))
    answer = stage.ask("Fetch", 17, request)
    (fenced,) = answer.responses[0].partitions
    leader = fenced.current_leader
    assert (74, 3, 5) == (fenced.error_code, leader.leader_id, leader.leader_epoch)
    assert [(3, "host3", "rack3")] == [(n.node_id, n.host, n.rack) for n in answer.node_endpoints]
    assert (6, -1) == _not_leader(stage)


def _not_leader(stage: DataStage) -> tuple[int, int]:
    found = stage.fetch(0, version=10)
    return found.error_code, found.high_watermark


def test_committed_readers_get_the_aborted_transactions() -> None:
    stage = DataStage()
    partition = stage.manager.find(T0)
    for batch, origin in (
        (sent_by(9, 0, is_transactional=True), AppendOrigin.CLIENT),
        (end_of_transaction(9), AppendOrigin.COORDINATOR),
        (sent_by(9, 1, is_transactional=True), AppendOrigin.CLIENT),
    ):
        stage.manager.perform(partition.append(memoryview(bytearray(batch)), 1, origin).effects)
    found = stage.fetch(0, isolation_level=1)
    assert (3, 2) == (found.high_watermark, found.last_stable_offset)
    assert [(9, 0)] == [(one.producer_id, one.first_offset) for one in found.aborted_transactions]
    assert 2 == len(batches_of(found.records))
    plain = stage.fetch(0)
    assert (None, 3) == (
        plain.aborted_transactions,
        len(batches_of(plain.records)),
    )


def test_followers_read_to_the_logs_end_and_move_the_watermark() -> None:
    stage = DataStage((1, 2))
    stage.produce(sent(2), acks=1)
    assert b"" == bytes(stage.fetch(0).records)
    requested = {"log_start_offset": 0, "current_leader_epoch": 0}
    found = stage.fetch(0, version=12, requested=requested, **FOLLOWER)
    assert (True, 0) == (bool(found.records), found.high_watermark)
    stage.fetch(2, version=14, requested=requested, **FOLLOWER)
    assert 2 == stage.manager.find(T0).high_watermark


def test_a_follower_of_version_15_on_says_who_it_is_in_a_tag() -> None:
    stage = DataStage((1, 2))
    stage.produce(sent(2), acks=1)
    request = fetch_request(
        15, {0: 2}, requested={"log_start_offset": 0, "current_leader_epoch": 0}
    )
    request.replica_state.replica_id = 2
    stage.ask("Fetch", 15, request)
    assert 2 == stage.manager.find(T0).high_watermark


def test_a_diverged_log_gets_the_offset_where_it_diverged() -> None:
    stage = DataStage((1, 2))
    stage.produce(sent(2), acks=1)
    partition = stage.manager.find(T0)
    partition.become_leader(PartitionState(1, 4, (1, 2), 1, (1, 2, 3)))
    stage.produce(sent(1), acks=1)
    requested = {"last_fetched_epoch": 2, "current_leader_epoch": 4, "log_start_offset": 0}
    found = stage.fetch(5, version=12, requested=requested, **FOLLOWER)
    diverging = found.diverging_epoch
    assert (0, 0, 2) == (found.error_code, diverging.epoch, diverging.end_offset)
    assert b"" == bytes(found.records)


@pytest.mark.parametrize(("version", "code"), [(3, 6), (5, 6), (6, 56)])
def test_a_failed_disk_has_no_name_in_old_versions(version: int, code: int) -> None:
    stage = DataStage()
    stage.manager.mark_offline(T0)
    assert code == stage.fetch(0, version=version).error_code


@pytest.mark.parametrize(("version", "code"), [(1, 76), (3, 76), (9, 76), (10, 0)])
def test_a_zstd_topic_is_read_from_version_10_on(version: int, code: int) -> None:
    stage = DataStage()
    stage.add("t", 0, config=LogConfig(compression_type=Codec.ZSTD))
    stage.produce(sent(1))
    assert code == stage.fetch(0, version=version).error_code


def test_zstd_batches_cannot_be_converted_down() -> None:
    stage = DataStage()
    stage.produce(sent(1, codec=Codec.ZSTD))
    assert [76, 0] == [stage.fetch(0, version=v).error_code for v in (3, 4)]


def test_conversion_can_be_switched_off() -> None:
    stage = DataStage()
    stage.add("t", 0, config=LogConfig(is_down_conversion_enabled=False))
    stage.produce(sent(1))
    assert [35, 0] == [stage.fetch(0, version=v).error_code for v in (3, 4)]


def test_damage_is_an_error_of_its_partition() -> None:
    stage = DataStage()
    stage.produce(sent(2, codec=Codec.GZIP), sent(1))
    file = stage.manager.find(T0).log.active_segment.file
    file.write_at(70, b"\xff" * 20)
    request = fetch_request(3, {0: 0, 1: 0})
    (topic,) = stage.ask("Fetch", 3, request).responses
    assert [2, 0] == [found.error_code for found in topic.partitions]


def test_large_records_leave_as_a_region_of_their_file(tmp_path: Path) -> None:
    stage = DataStage(files=RealFiles(), root=str(tmp_path))
    stage.produce(sent(1, value=b"x" * 200_000))
    partition = stage.manager.find(T0)
    fetch = Fetch(FetchDeps(stage.manager, stage.metadata, stage.sessions), stage.turns)
    body = message_codec("FetchRequest", 17).encode(fetch_request(17, {0: 0}))
    exchange = Exchange(Session("memory:1", allow_all()), 1, 17, 1, "tester", 0)
    reply = fetch.handle(decode_fetch_request(memoryview(body), 17), exchange)
    assert isinstance(reply, EncodedResponse)
    regions = [part for part in reply.parts if isinstance(part, FileRegion)]
    assert [(0, partition.log.size_bytes)] == [(part.position, part.length) for part in regions]
    assert partition.log.size_bytes == len(stage.fetch(0).records)
    partition.log.restart_at(0, NOW_MS)
    os.fstat(regions[0].descriptor)
    assert reply.on_sent is not None
    reply.on_sent()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(regions[0].descriptor)


def test_large_records_of_a_file_without_descriptor_leave_as_bytes() -> None:
    stage = DataStage()
    stage.produce(sent(1, value=b"x" * 200_000))
    assert stage.manager.find(T0).log.size_bytes == len(stage.fetch(0).records)


@pytest.mark.parametrize(
    ("offsets", "reads_before"),
    [pytest.param({0: 0, 1: 0}, 1, id="two"), pytest.param({1: 0}, 0, id="one, the fast path")],
)
def test_a_fetch_that_fails_while_it_is_answered_gives_its_segments_back(
    offsets: dict[int, int], reads_before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = MemoryFiles()
    stage = DataStage(files=files)
    stage.produce(*[sent(1, value=b"x" * 200_000)] * 2)
    borrowed = borrowed_segments(monkeypatch)
    files.fail("read", errno.EIO, path_end="t-1/00000000000000000000.log", skip=reads_before)
    body = message_codec("FetchRequest", 17).encode(fetch_request(17, offsets))
    with pytest.raises(LogDirOffline):
        stage.send_raw("Fetch", 17, body)
    assert [] == borrowed


def test_a_session_may_be_left_to_itself() -> None:
    stage = stage_with(1)
    answer = stage.ask("Fetch", 17, fetch_request(17, {0: 0}, session_epoch=-1))
    assert (0, 0) == (answer.error_code, answer.session_id)


def test_a_session_sends_news_alone() -> None:
    stage = stage_with(1)
    first = stage.ask("Fetch", 17, fetch_request(17, {0: 1, 1: 0}, session_epoch=0))
    assert 2 == len(first.responses[0].partitions)
    assert 1 == len(stage.sessions)
    told = {"session_id": first.session_id}
    nothing = stage.ask("Fetch", 17, fetch_request(17, {}, session_epoch=1, **told))
    assert ([], first.session_id) == (nothing.responses, nothing.session_id)
    stage.produce(sent(1), acks=1)
    news = stage.ask("Fetch", 17, fetch_request(17, {}, session_epoch=2, **told))
    assert [(TOPIC_ID, [0])] == [
        (topic.topic_id, [found.partition_index for found in topic.partitions])
        for topic in news.responses
    ]
    forget = fetch_request(17, {0: 2}, session_epoch=3, forgotten=[1], **told)
    assert [] == stage.ask("Fetch", 17, forget).responses
    assert 1 == stage.sessions.partition_count


@pytest.mark.parametrize(
    ("session", "epoch", "version", "code"), [(0, 1, 17, 71), (5, 1, 17, 70), (0, 1, 12, 106)]
)
def test_a_session_that_does_not_fit_is_an_error_of_the_request(
    session: int, epoch: int, version: int, code: int
) -> None:
    stage = stage_with(1)
    first = stage.ask("Fetch", 17, fetch_request(17, {0: 0}, session_epoch=0))
    number = first.session_id + session
    if code == 71:
        epoch = 2
    request = fetch_request(version, {}, session_id=number, session_epoch=epoch)
    answer = stage.ask("Fetch", version, request)
    assert (code, 0, []) == (answer.error_code, answer.session_id, answer.responses)


def test_a_topic_without_a_replica_here_is_led_elsewhere() -> None:
    stage = DataStage()
    stage.tell(TopicPartition("t", 5), leader=2, epoch=3)
    answer = stage.ask("Fetch", 16, fetch_request(16, {5: 0}))
    (found,) = answer.responses[0].partitions
    leader = found.current_leader
    assert (6, 2, 3) == (found.error_code, leader.leader_id, leader.leader_epoch)


@pytest.mark.parametrize("version", [4, 12, 13])
def test_an_unknown_isolation_fails_the_request(version: int) -> None:
    found = stage_with(1).ask("Fetch", version, fetch_request(version, {0: 0}, isolation_level=2))
    codes = [each.error_code for topic in found.responses for each in topic.partitions]
    assert ([-1] if version < 13 else []) == codes
    assert (-1 if version >= 7 else 0) == found.error_code


def test_nothing_is_read_of_fewer_than_no_bytes() -> None:
    assert -1 == stage_with(1).fetch(0, max_bytes=-1).error_code
    assert 0 == stage_with(1).fetch(1, max_bytes=-1).error_code


def test_what_is_refused_before_it_is_read_has_no_aborted_transactions() -> None:
    stage = stage_with(1)
    stage.metadata.update(1, (), {T0: None}, {})
    assert [] == stage.fetch(0).aborted_transactions
    assert stage_with(1).fetch(99).aborted_transactions is None


def test_a_session_of_a_topic_without_an_id_fails() -> None:
    opening = {"topic_id": bytes(16), "session_epoch": 0}
    found = stage_with(1).ask("Fetch", 13, fetch_request(13, {0: 0}, **opening))
    assert (-1, []) == (found.error_code, found.responses)
    opening["session_epoch"] = -1
    found = stage_with(1).ask("Fetch", 13, fetch_request(13, {0: 0}, **opening))
    assert (0, 100) == (found.error_code, found.responses[0].partitions[0].error_code)


@pytest.mark.parametrize("version", [4, 14])
def test_broker_0_is_a_follower_and_reads_above_the_watermark(version: int) -> None:
    stage = DataStage((1, 2))
    partition = stage.manager.find(T0)
    partition.become_leader(PartitionState(1, 4, (0, 1), 1, (0, 1)))
    stage.produce(sent(2), acks=1)
    assert 0 == partition.high_watermark
    assert b"" == bytes(stage.fetch(0, version=version).records)
    assert stage.fetch(0, version=version, replica_id=0).records
    stage.fetch(2, version=version, replica_id=0)
    assert 2 == partition.high_watermark
