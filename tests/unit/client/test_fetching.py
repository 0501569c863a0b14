from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from engine.client.errors import Unreachable
from engine.client.fetched_records import AbortedProducer, visible_records
from engine.client.fetching import ConsumedRecords, Fetcher, FetchOptions
from engine.errors import ApiError
from engine.host.streams import Stream, StreamEvent, TlsSettings
from engine.model import TopicPartition
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec
from engine.records.control import ControlType, EndTransactionMarker, build_marker
from engine.wire.structs import message_class
from tests.client_session import FramedStream
from tests.unit.client.fake_broker import TOPIC_ID, FakeCluster

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def batch(base_offset: int, *values: bytes, **settings: Any) -> bytes:
    builder = BatchBuilder(BatchSettings(base_offset=base_offset, **settings))
    for value in values:
        builder.append(1, None, value)
    return bytes(builder.build())


def values(found: Any) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record, _ in found.records]


class TestSeenRecords:
    def test_records_before_the_position_are_left_out(self) -> None:
        data = batch(5, b"a", b"b", b"c", codec=Codec.GZIP)
        found = visible_records(data, 6)
        assert [(6, b"b"), (7, b"c")] == values(found)
        assert 8 == found.next_offset

    def test_a_batch_that_is_cut_short_waits_for_the_next_fetch(self) -> None:
        found = visible_records(batch(0, b"a") + batch(1, b"b")[:-1], 0)
        assert ([(0, b"a")], 1) == (values(found), found.next_offset)

    def test_damage_is_reported_after_good_batches(self) -> None:
        broken = bytearray(batch(1, b"b"))
        broken[-1] ^= 1
        found = visible_records(batch(0, b"a") + bytes(broken), 0)
        assert ([(0, b"a")], 1) == (values(found), found.next_offset)
        assert found.damage is not None

    def transactions(self) -> bytes:
        txn = {"producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
        abort = EndTransactionMarker(ControlType.ABORT, 0)
        return b"".join(
            (
                batch(0, b"aborted", producer_id=1, **txn),
                batch(1, b"other", producer_id=2, **txn),
                bytes(
                    build_marker(
                        abort, producer_id=1, producer_epoch=0, base_offset=2, timestamp_ms=1
                    )
                ),
                batch(3, b"later", producer_id=1, **txn),
            )
        )

    def test_uncommitted_shows_all_but_markers(self) -> None:
        found = visible_records(self.transactions(), 0)
        assert [(0, b"aborted"), (1, b"other"), (3, b"later")] == values(found)

    def test_committed_leaves_out_what_was_aborted_until_its_marker(self) -> None:
        found = visible_records(self.transactions(), 0, [AbortedProducer(1, 0)])
        assert [(1, b"other"), (3, b"later")] == values(found)
        assert 4 == found.next_offset


class Log(FakeCluster):
    """A cluster whose partitions hold batches."""

    def __init__(self, **versions: tuple[int, int]) -> None:
        super().__init__(versions)
        self.data = {P0: batch(0, b"a", b"b"), P1: batch(0, b"c")}
        self.ends = {P0: 2, P1: 1}
        self.codes: dict[TopicPartition, list[int]] = {}
        self.fetched: list[Any] = []
        self.handlers["Fetch"] = self.fetch

    def fetch(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        self.fetched.append((version, body))
        response = message_class("FetchResponse")
        topics = []
        is_news = False
        for topic in body.topics:
            named = {"topic": "t"} if version <= 12 else {"topic_id": topic.topic_id}
            row = response.FetchableTopicResponse(**named)
            for requested in topic.partitions:
                partition = TopicPartition("t", requested.partition)
                code = self.codes[partition].pop(0) if self.codes.get(partition) else 0
                end = self.ends[partition]
                data = self.data[partition] if requested.fetch_offset < end and not code else b""
                is_news = is_news or bool(data) or code != 0
                row.partitions.append(
                    response.PartitionData(
                        partition_index=requested.partition,
                        error_code=code,
                        high_watermark=end,
                        last_stable_offset=end,
                        records=data,
                    )
                )
            topics.append(row)
        return response(responses=topics) if is_news else None


def poll_all(fetcher: Fetcher, count: int) -> list[ConsumedRecords]:
    found: list[ConsumedRecords] = []
    for _ in range(50):
        found += fetcher.poll(1_000)
        if len([f for f in found if f.records or f.error]) >= count:
            break
    return found


@pytest.mark.parametrize("version", [4, 11, 12, 13, 17])
def test_records_come_from_all_leaders_in_every_version(version: int) -> None:
    log = Log(Fetch=(4, version))
    found = {f.partition: values(f) for f in poll_all(Fetcher(log.client(), {P0: 0, P1: 0}), 2)}
    assert {P0: [(0, b"a"), (1, b"b")], P1: [(0, b"c")]} == found
    requested, body = log.fetched[0]
    assert version == requested
    by_id, by_name = ("", TOPIC_ID), ("t", bytes(16))
    topic = body.topics[0]
    assert (by_id if version > 12 else by_name) == (topic.topic, topic.topic_id)


def test_topics_without_ids_are_fetched_by_name() -> None:
    log = Log(Metadata=(4, 9))
    poll_all(Fetcher(log.client(), {P0: 0}), 1)
    assert 12 == log.fetched[0][0]


def test_the_next_fetch_goes_on_behind_the_last_record() -> None:
    log = Log()
    fetcher = Fetcher(log.client(), {P0: 0})
    poll_all(fetcher, 1)
    assert 2 == log.fetched[-1][1].topics[0].partitions[0].fetch_offset


def test_what_was_requested_before_a_seek_does_not_come_after_it() -> None:
    log = Log()
    first, second = batch(0, b"a"), batch(1, b"b")
    # The second fetch is under way as the consumer goes back to the first record.
    contents = iter((first, second, first + second))
    fetch = log.handlers["Fetch"]

    def next_content(body: Any, version: int, address: tuple[str, int]) -> Any:
        log.data[P0] = next(contents, b"")
        return fetch(body, version, address)

    log.handlers["Fetch"] = next_content
    fetcher = Fetcher(log.client(), {P0: 0})
    poll_all(fetcher, 1)
    fetcher.seek(P0, 0)
    assert [(0, b"a"), (1, b"b")] == values(poll_all(fetcher, 1)[0])


def test_a_quiet_leader_does_not_hold_up_another() -> None:
    log = Log()
    fetcher = Fetcher(log.client(), {P0: 2, P1: 0})
    assert [(0, b"c")] == values(poll_all(fetcher, 1)[0])
    assert 1_000 == log.clock.now_ms


def test_a_leader_that_moved_is_looked_up_again() -> None:
    log = Log()
    log.codes[P0] = [6]
    (found,) = poll_all(Fetcher(log.client(), {P0: 0}), 1)
    assert [(0, b"a"), (1, b"b")] == values(found)
    assert 2 == log.requested_apis().count("Metadata")


def test_a_leader_is_waited_for_no_longer_while_another_partition_is_paused() -> None:
    log = Log()
    log.leaders["t", 0] = -1
    fetcher = Fetcher(log.client(), {P0: 0, P1: 0})
    fetcher.pause(P1)
    assert [] == fetcher.poll(10_000)
    log.leaders["t", 0] = 1
    (found,) = fetcher.poll(10_000)
    assert [(0, b"a"), (1, b"b")] == values(found)
    assert log.clock.now_ms < 2_000


def test_an_offset_out_of_range_stops_its_partition_alone() -> None:
    log = Log()
    log.codes[P0] = [1]
    fetcher = Fetcher(log.client(), {P0: 9, P1: 0})
    found = {f.partition: f for f in poll_all(fetcher, 2)}
    error = found[P0].error
    assert isinstance(error, ApiError)
    assert 1 == error.code
    assert (P1,) == fetcher.partitions


def test_a_topic_that_is_gone_is_given_up_soon() -> None:
    log = Log()
    gone = TopicPartition("gone", 0)
    (found,) = poll_all(Fetcher(log.client(), {gone: 0}), 1)
    assert isinstance(found.error, ApiError)
    assert log.clock.now_ms < 2_000


def test_a_lasting_trouble_is_given_up_after_the_timeout() -> None:
    log = Log()
    log.codes[P0] = [6] * 1_000
    (found,) = poll_all(Fetcher(log.client(), {P0: 0}), 1)
    assert isinstance(found.error, ApiError)
    assert 30_000 < log.clock.now_ms < 35_000


def test_each_look_up_in_a_row_waits_longer_than_the_one_before_until_records_come() -> None:
    log = Log()
    looked_up: list[int] = []
    metadata = log.handlers["Metadata"]

    def note(body: Any, version: int, address: tuple[str, int]) -> Any:
        looked_up.append(log.clock.now_ms)
        return metadata(body, version, address)

    log.handlers["Metadata"] = note
    # Its records come at the third try; the next fetch fails again.
    log.codes[P0] = [6, 6, 0, 6]
    fetcher = Fetcher(log.client(), {P0: 0})
    poll_all(fetcher, 1)
    for _ in range(2):
        fetcher.poll(100)
    # A fifth less than 100, 200 and again 100: the least that is drawn. Before an idle connection
    # is used its events are taken, for which these streams take 1 ms.
    assert [81, 161, 81] == [later - earlier for earlier, later in pairwise(looked_up)]


class Restarting(Log):
    """Brokers that take no connections for a while, and close those that they have."""

    def __init__(self) -> None:
        super().__init__()
        self.up_again_ms = 0

    def restart(self, lasting_ms: int) -> None:
        self.up_again_ms = self.clock.now_ms + lasting_ms
        for stream in self.opened:
            self.events.append(StreamEvent(stream, "closed", reason="reset"))

    def connect(self, host: str, port: int, tls: TlsSettings | None = None) -> Stream:
        if self.clock.now_ms >= self.up_again_ms:
            return super().connect(host, port, tls)
        stream = FramedStream(self, host, port)
        self.events.append(StreamEvent(stream, "closed", reason="refused"))
        return stream


def test_a_restart_of_all_brokers_is_waited_for() -> None:
    log = Restarting()
    fetcher = Fetcher(log.client(), {P0: 0})
    poll_all(fetcher, 1)
    log.restart(20_000)
    log.data[P0] += batch(2, b"after")
    log.ends[P0] = 3
    found: list[tuple[int, bytes | None]] = []
    while not found and log.clock.now_ms < 60_000:
        found = [pair for fetched in fetcher.poll(1_000) for pair in values(fetched)]
    assert [(2, b"after")] == found
    assert fetcher.trouble is None
    assert 20_000 <= log.clock.now_ms < 25_000


def test_the_trouble_is_known_while_it_lasts() -> None:
    log = Restarting()
    fetcher = Fetcher(log.client(), {P0: 2})
    fetcher.poll(10)
    assert fetcher.trouble is None
    log.restart(20_000)
    fetcher.poll(10)
    assert isinstance(fetcher.trouble, Unreachable)


def test_brokers_that_do_not_come_back_are_given_up_after_the_timeout() -> None:
    log = Restarting()
    fetcher = Fetcher(log.client(), {P0: 0, P1: 0})
    poll_all(fetcher, 2)
    log.restart(10_000_000)
    found = poll_all(fetcher, 2)
    assert [Unreachable, Unreachable] == [type(f.error) for f in found]
    assert () == fetcher.partitions
    assert 30_000 < log.clock.now_ms < 40_000


def test_read_committed_is_sent_to_the_broker() -> None:
    log = Log()
    poll_all(Fetcher(log.client(), {P0: 0}, FetchOptions(read_committed=True)), 1)
    assert 1 == log.fetched[0][1].isolation_level


def test_a_partition_that_was_stopped_is_asked_no_more() -> None:
    log = Log()
    fetcher = Fetcher(log.client(), {P0: 0, P1: 0})
    fetcher.stop(P0)
    poll_all(fetcher, 1)
    assert [1] == [p.partition for _, b in log.fetched for t in b.topics for p in t.partitions][:1]
    assert (P1,) == fetcher.partitions


class Nearer(Log):
    """Partition 0 is led by broker 1, which names broker 2 to consumers with a rack."""

    def __init__(self, **versions: tuple[int, int]) -> None:
        super().__init__(**versions)
        self.asked: list[tuple[int, str]] = []
        self.named = 2

    def fetch(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        broker_id = address[1] - 9000
        self.asked.append((broker_id, body.rack_id))
        is_named = broker_id == 1 and body.rack_id and self.named != 1
        kept, self.data = self.data, {P0: b"", P1: b""} if is_named else self.data
        answer = super().fetch(body, version, address)
        self.data = kept
        if is_named:
            answer = answer or self.nothing(version)
            answer.responses[0].partitions[0].preferred_read_replica = self.named
        return answer

    def nothing(self, version: int) -> Any:
        response = message_class("FetchResponse")
        row = response.PartitionData(partition_index=0, high_watermark=2, records=b"")
        named = {"topic": "t"} if version <= 12 else {"topic_id": TOPIC_ID}
        return response(responses=[response.FetchableTopicResponse(partitions=[row], **named)])


NEAR = FetchOptions(client_rack="b")


@pytest.mark.parametrize("version", [11, 12, 17])
def test_a_consumer_with_a_rack_fetches_from_the_replica_that_its_leader_names(
    version: int,
) -> None:
    log = Nearer(Fetch=(4, version))
    *_, found = poll_all(Fetcher(log.client(), {P0: 0}, NEAR), 1)
    assert [(0, b"a"), (1, b"b")] == values(found)
    assert [(1, "b"), (2, "b")] == log.asked[:2]


@pytest.mark.parametrize(("options", "version"), [(FetchOptions(), 17), (NEAR, 10)])
def test_without_a_rack_or_its_version_the_leader_is_fetched_from(
    options: FetchOptions, version: int
) -> None:
    log = Nearer(Fetch=(4, version))
    (found,) = poll_all(Fetcher(log.client(), {P0: 0}, options), 1)
    assert [(0, b"a"), (1, b"b")] == values(found)
    assert {(1, "")} == set(log.asked)


@pytest.mark.parametrize("code", [1, 6, 74, 75])
def test_a_replica_that_refuses_is_left_for_the_leader(code: int) -> None:
    log = Nearer()
    fetcher = Fetcher(log.client(), {P0: 0}, NEAR)
    fetcher.poll(1_000)
    assert [(1, "b")] == log.asked
    log.codes[P0], log.named = [code], 1
    *_, found = poll_all(fetcher, 1)
    assert [(0, b"a"), (1, b"b")] == values(found)
    assert [(1, "b"), (2, "b"), (1, "b")] == log.asked[:3]


def test_a_replica_that_is_down_is_not_fetched_from() -> None:
    log = Nearer()
    log.named = 7
    fetcher = Fetcher(log.client(), {P0: 0}, NEAR)
    fetcher.poll(1_000)
    log.named = 1
    poll_all(fetcher, 1)
    assert {(1, "b")} == set(log.asked)


def test_a_replica_that_metadata_does_not_have_yet_is_asked_for() -> None:
    log = Nearer()
    log.brokers = [1]
    fetcher = Fetcher(log.client(), {P0: 0}, NEAR)
    fetcher.poll(1_000)
    log.brokers = [1, 2]
    *_, found = poll_all(fetcher, 1)
    assert [(0, b"a"), (1, b"b")] == values(found)
    assert 2 == log.requested_apis().count("Metadata")


def test_a_replica_that_never_comes_is_asked_for_with_pauses() -> None:
    log = Nearer()
    log.brokers = [1]
    fetcher = Fetcher(log.client(), {P0: 0}, NEAR)
    for _ in range(40):
        fetcher.poll(1_000)
    assert log.clock.now_ms >= 2_000


def test_a_partition_of_a_topic_that_is_added_is_no_trouble() -> None:
    log = Log()
    fetcher = Fetcher(log.client(), {P1: 0})
    poll_all(fetcher, 1)
    log.leaders["u", 0] = 1
    log.leaders["t", 2] = 1
    added = TopicPartition("u", 0), TopicPartition("t", 2)
    log.ends |= dict.fromkeys(added, 0)
    for partition in added:
        fetcher.seek(partition, 0)
        fetcher.prepare()
        assert fetcher.trouble is None
        fetcher._send_fetches()
        assert fetcher.trouble is None
