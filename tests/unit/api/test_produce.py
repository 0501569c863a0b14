"""Produce: what is appended, what is refused and how that is said."""

from __future__ import annotations

from typing import Any

import pytest

from engine.host.ports import LogDirOffline
from engine.log.log_config import LogConfig
from engine.model import TopicPartition
from engine.records.codec import Codec
from engine.records.crc import crc32c
from engine.records.legacy_builder import LegacySettings, build_messages
from engine.records.record import Record, TimestampType
from engine.replication.isr import InSyncSet
from engine.wire.codec import message_codec
from tests.unit.api.data_stage import T0, DataStage, produce_request
from tests.unit.log.writing import NOW_MS, sent, sent_by

VERSIONS = range(3, 12)


def old_messages(magic: int, count: int = 2) -> bytes:
    records = [Record(n, NOW_MS + n, b"k", b"v%d" % n, ()) for n in range(count)]
    settings = LegacySettings(magic=magic, codec=Codec.NONE)
    return bytes(build_messages(records, settings))


def codes(stage: DataStage, records: Any, *, version: int = 11, **more: Any) -> list[int]:
    return [found.error_code for found in stage.produce(records, version=version, **more)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_batch_is_appended_and_its_offset_returned(version: int) -> None:
    stage = DataStage()
    stage.produce(sent(3))
    (found,) = stage.produce(sent(2), version=version)
    assert (0, 3, 5) == (
        found.error_code,
        found.base_offset,
        stage.manager.find(T0).log.log_end_offset,
    )
    assert (0 if version >= 5 else -1) == found.log_start_offset


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1)])
def test_old_messages_become_one_batch(version: int, magic: int) -> None:
    stage = DataStage()
    (found,) = stage.produce(old_messages(magic), version=version)
    assert (0, 0) == (found.error_code, found.base_offset)
    batch = stage.fetch(0).records
    assert (2, 2) == (batch[16], stage.manager.find(T0).log.log_end_offset)


@pytest.mark.parametrize(
    ("records", "version", "code"),
    [
        (None, 11, 87),
        (b"", 3, 87),
        (b"\x00" * 11, 9, 87),
        (b"\x00" * 12, 9, 2),
        (sent(1).tobytes() + b"\x00" * 12, 9, 2),
        (sent(1).tobytes() + b"\x00" * 12, 2, 2),
        (sent(1).tobytes()[:-1], 9, 87),
        (sent(1).tobytes() * 2, 9, 87),
        (old_messages(1), 3, 87),
        (b"\x00" * 8 + b"\x00\x00\x00\x01" + b"\x00" * 40, 9, 2),
        (sent(1, codec=Codec.ZSTD).tobytes(), 6, 76),
        (sent(1, codec=Codec.ZSTD).tobytes(), 7, 0),
        (sent(1).tobytes()[:-1] + b"\xff", 9, 2),
        (b"", 2, 0),
    ],
)
def test_records_are_held_to_the_requests_version(
    records: bytes | None, version: int, code: int
) -> None:
    assert [code] == codes(DataStage(), records, version=version)


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (b"\x00" * 17, "Record size 0 is less than the minimum record overhead (14)"),
        (bytes(11) + b"\x3d" + bytes(4) + b"\x03" + bytes(56), "Invalid magic found in record: 3"),
    ],
)
def test_a_first_batch_without_a_format_refuses_the_whole_request(
    damaged: bytes, message: str
) -> None:
    stage = DataStage()
    found = stage.produce(sent(1), damaged, version=11)
    assert [2, 2] == [answer.error_code for answer in found]
    assert [-1, -1] == [answer.log_start_offset for answer in found]
    assert [message, message] == [answer.error_message for answer in found]
    assert 0 == stage.manager.find(T0).log.log_end_offset


@pytest.mark.parametrize(("version", "expected"), [(6, [-1, -1]), (7, [0, -1])])
def test_a_codec_that_there_is_not_refuses_the_whole_request_of_an_old_producer(
    version: int, expected: list[int]
) -> None:
    stage = DataStage()
    control = bytearray(sent(1))
    # The codec is found before the flag of control records is, which clients may not send.
    control[21:23] = b"\x00\x27"
    control[17:21] = crc32c(control[21:]).to_bytes(4, "big")
    found = stage.produce(sent(1), bytes(control), version=version)
    assert expected == [answer.error_code for answer in found]
    data = {"gone": [(0, bytes(control))], "t": [(0, sent(1))]}
    answer = stage.ask("Produce", version, produce_request(data))
    codes_by_topic = {
        topic.name: topic.partition_responses[0].error_code for topic in answer.responses
    }
    # Records for a topic that there is not are not looked into.
    assert {"gone": 3, "t": 0} == codes_by_topic


def test_of_a_partition_that_is_named_twice_the_last_batch_is_verified() -> None:
    stage = DataStage()
    transactional = sent_by(5, 0, is_transactional=True)
    data = {"t": [(0, transactional), (0, sent(1))]}
    answer = stage.ask("Produce", 7, produce_request(data, transactional_id="tx"))
    assert [0] == [row.error_code for row in answer.responses[0].partition_responses]


def test_a_request_that_is_refused_whole_lists_partitions_in_the_order_of_kafkas_map() -> None:
    stage = DataStage()
    zeros = b"\x00" * 30
    # As a real 3.9.1 answers: topics without partitions are left out, and no partition comes twice.
    for asked, listed in (
        ({".": [0], "a b": [], "e904616-one": [1, 1]}, [("e904616-one", [1]), (".", [0])]),
        ({".": [0], "zz": [1]}, [("zz", [1]), (".", [0])]),
        ({"zz": [1], ".": [0]}, [("zz", [1]), (".", [0])]),
        ({"aa": [0], "bb": [0], "cc": [0]}, [("cc", [0]), ("bb", [0]), ("aa", [0])]),
        ({"cc": [0], "bb": [0], "aa": [0]}, [("aa", [0]), ("bb", [0]), ("cc", [0])]),
        ({"q": [0, 1, 2], "r": [0]}, [("q", [2, 1, 0]), ("r", [0])]),
    ):
        data = {name: [(index, zeros) for index in indexes] for name, indexes in asked.items()}
        answer = stage.ask("Produce", 9, produce_request(data))
        assert listed == [
            (topic.name, [row.index for row in topic.partition_responses])
            for topic in answer.responses
        ]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_old_producer_may_send_nothing(version: int) -> None:
    (found,) = DataStage().produce(old_messages(1, 1)[:-1], version=version)
    assert (0, -1) == (found.error_code, found.base_offset)


def test_the_log_start_is_reported_where_the_log_refused() -> None:
    stage = DataStage()
    (by_request,) = stage.produce(b"", version=11)
    (by_log,) = stage.produce(sent(1, base_offset=3), version=11)
    assert (87, -1) == (by_request.error_code, by_request.log_start_offset)
    assert (87, 0) == (by_log.error_code, by_log.log_start_offset)


def test_a_refusal_leaves_the_other_partitions_alone() -> None:
    stage = DataStage()
    found = stage.produce(b"", sent(1), sent(1))
    assert {0: 87, 1: 0, 2: 3} == {answer.index: answer.error_code for answer in found}
    assert {0: -1, 1: 0, 2: -1} == {answer.index: answer.base_offset for answer in found}


def test_a_topic_that_the_controller_did_not_send_is_unknown() -> None:
    stage = DataStage()
    stage.metadata.update(1, (), {T0: None}, {})
    assert [3] == codes(stage, sent(1))


def test_a_client_at_the_wrong_broker_gets_the_leader() -> None:
    stage = DataStage()
    stage.tell(TopicPartition("other", 0), leader=3, epoch=9)
    request = produce_request({"other": [(0, sent(1))]})
    answer = stage.ask("Produce", 11, request)
    (found,) = answer.responses[0].partition_responses
    leader = found.current_leader
    assert (6, 3, 9) == (found.error_code, leader.leader_id, leader.leader_epoch)
    (node,) = answer.node_endpoints
    assert (3, "host3", 9092, "rack3") == (node.node_id, node.host, node.port, node.rack)
    old = stage.ask("Produce", 9, request)
    assert 6 == old.responses[0].partition_responses[0].error_code


def test_acks_that_do_not_exist_are_refused_for_each_partition() -> None:
    stage = DataStage()
    assert [21] == codes(stage, sent(1), acks=2)
    assert 0 == stage.manager.find(T0).log.log_end_offset


def test_acks_0_is_not_answered() -> None:
    stage = DataStage()
    assert stage.produce(sent(1), acks=0) is None
    assert 1 == stage.manager.find(T0).log.log_end_offset
    assert 1 == stage.produce(sent(1))[0].base_offset


def test_acks_0_that_fails_ends_the_connection() -> None:
    stage = DataStage()
    assert stage.produce(b"", acks=0) is None
    assert ([], 1) == (stage.faults, len(stage.closed))


def test_acks_all_waits_for_the_followers_or_its_timeout() -> None:
    stage = DataStage((1, 2))
    assert stage.produce(sent(1)) is None
    assert 1 == stage.manager.delayed_produce_count
    stage.follow(1)
    (found,) = stage.answer("Produce", 11).responses[0].partition_responses
    assert (0, 0) == (found.error_code, found.base_offset)
    assert stage.produce(sent(1)) is None
    stage.pass_time(1001)
    (late,) = stage.answer("Produce", 11).responses[0].partition_responses
    assert (7, 1) == (late.error_code, late.base_offset)


def test_a_small_in_sync_set_is_reported_with_the_logs_start() -> None:
    stage = DataStage()
    stage.manager.find(T0).in_sync = InSyncSet(())
    (found,) = stage.produce(sent(1))
    assert (19, 0) == (found.error_code, found.log_start_offset)


def test_records_to_blame_are_named_from_version_8_on() -> None:
    stage = DataStage()
    stage.add("t", 0, config=LogConfig(message_timestamp_before_max_ms=1000))
    old = sent(2, at_ms=1)
    (found,) = stage.produce(old, version=8)
    assert 32 == found.error_code
    assert [0, 1] == [error.batch_index for error in found.record_errors]
    assert found.error_message is not None
    assert [] == stage.produce(old, version=7)[0].record_errors


def test_append_times_are_reported() -> None:
    stage = DataStage()
    stage.add("t", 0, config=LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME))
    (found,) = stage.produce(sent(1))
    assert stage.clock.wall_ms() == found.log_append_time_ms


def test_a_batch_that_comes_again_is_answered_with_its_offset() -> None:
    stage = DataStage()
    stage.produce(sent_by(5, 0, 2))
    stage.produce(sent_by(5, 2, 2))
    assert 0 == stage.produce(sent_by(5, 0, 2))[0].base_offset
    assert [45] == codes(stage, sent_by(5, 9))
    assert 4 == stage.manager.find(T0).log.log_end_offset


def test_internal_topics_are_for_admin_tools_alone() -> None:
    stage = DataStage()
    stage.add("__consumer_offsets", 0)
    request = produce_request({"__consumer_offsets": [(0, sent(1))]})
    refused = stage.ask("Produce", 9, request)
    assert 17 == refused.responses[0].partition_responses[0].error_code
    allowed = stage.ask("Produce", 9, request, client_id="__admin_client")
    assert 0 == allowed.responses[0].partition_responses[0].error_code


def test_transactional_records_without_an_id_refuse_the_whole_request() -> None:
    stage = DataStage()
    transactional = sent_by(5, 0, is_transactional=True)
    found = stage.produce(sent(1), transactional)
    assert [53, 53] == [answer.error_code for answer in found]


@pytest.mark.parametrize(("transactional_id", "code"), [("tx", 49), ("", 42)])
def test_transactional_records_need_a_producer_that_is_known(
    transactional_id: str, code: int
) -> None:
    stage = DataStage()
    transactional = sent_by(5, 0, is_transactional=True)
    assert [code] == codes(stage, transactional, transactional_id=transactional_id)
    assert [0] == codes(stage, sent(1), transactional_id=transactional_id)


def test_a_failed_disk_is_reported() -> None:
    stage = DataStage()
    log = stage.manager.find(T0).log

    def fail(*_: Any, **__: Any) -> Any:
        raise LogDirOffline("/data", "write", "no space", 28)

    log.append_fast = fail  # type: ignore[method-assign]
    assert [56] == codes(stage, sent(1))


def test_a_request_of_several_topics_is_answered_by_topic() -> None:
    stage = DataStage()
    stage.add("u", 0)
    request = produce_request({"u": [(0, sent(1))], "t": [(0, sent(1)), (1, sent(1))]})
    answer = stage.ask("Produce", 11, request)
    assert {"u": [0], "t": [0, 1]} == {
        topic.name: [found.index for found in topic.partition_responses]
        for topic in answer.responses
    }


def test_nothing_of_the_frame_is_kept() -> None:
    stage = DataStage((1, 2))
    body = bytearray(
        message_codec("ProduceRequest", 11).encode(produce_request({"t": [(0, sent(1))]}))
    )
    stage.send_raw("Produce", 11, body)
    body[:] = bytes(len(body))
    stage.follow(1)
    assert 0 == stage.answer("Produce", 11).responses[0].partition_responses[0].error_code


def test_no_topic_at_all_is_answered() -> None:
    stage = DataStage()
    assert [] == stage.ask("Produce", 11, produce_request({})).responses
