"""A leader in a new epoch whose log parts from the one that a consumer has read."""

from __future__ import annotations

from typing import Any

import pytest

from engine.client.consumer import Consumer
from engine.client.consumer_settings import ConsumerSettings
from engine.client.fetched_records import visible_records
from engine.client.fetching import ConsumedRecords, Fetcher, FetchOptions
from engine.client.truncation import LogTruncated, TruncationChecks
from engine.model import TopicPartition
from engine.records.control import ControlType, EndTransactionMarker, build_marker
from engine.wire.structs import message_class
from tests.unit.client.test_fetching import Log, batch, values

P0 = TopicPartition("t", 0)
ONCE = FetchOptions(max_wait_ms=1)
NOT_LEADER = 6
FENCED, UNKNOWN_EPOCH = 74, 75


class Elected(Log):
    """Partition 0 whose leader epoch rises; `ends` are those of its epochs in the new log."""

    def __init__(self, **versions: tuple[int, int]) -> None:
        super().__init__(**versions)
        self.epoch = 3
        self.epoch_ends: dict[int, int] = {}
        self.asked: list[tuple[int, int]] = []
        self.code = 0
        self.handlers["OffsetForLeaderEpoch"] = self.offset_for_leader_epoch
        metadata = self.handlers["Metadata"]

        def with_epoch(body: Any, version: int, address: tuple[str, int]) -> Any:
            answer = metadata(body, version, address)
            for topic in answer.topics:
                for row in topic.partitions:
                    row.leader_epoch = self.epoch
            return answer

        self.handlers["Metadata"] = with_epoch
        self.data[P0] = batch(0, b"a", b"b", leader_epoch=3)

    def fetch(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        for row in body.topics[0].partitions:
            epoch = row.current_leader_epoch
            if epoch not in (-1, self.epoch) and row.partition == 0:
                self.codes.setdefault(P0, []).insert(0, (FENCED, UNKNOWN_EPOCH)[epoch > self.epoch])
        return super().fetch(body, version, address)

    def offset_for_leader_epoch(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("OffsetForLeaderEpochResponse")
        assert -1 == body.replica_id
        assert version >= 3
        rows = []
        for row in body.topics[0].partitions:
            self.asked.append((row.current_leader_epoch, row.leader_epoch))
            end = self.epoch_ends.get(row.leader_epoch, -1)
            rows.append(
                response.EpochEndOffset(
                    partition=row.partition, error_code=self.code, end_offset=end
                )
            )
        topic = response.OffsetForLeaderTopicResult(topic="t", partitions=rows)
        return response(topics=[topic])


def read(log: Elected) -> Fetcher:
    """Return a fetcher that has read both records, and whose next fetch finds another leader."""
    fetcher = Fetcher(log.client(), {P0: 0}, ONCE)
    log.codes[P0] = [0, NOT_LEADER]
    fetched = fetcher.poll(1_000)
    assert [(0, b"a"), (1, b"b")] == values(fetched[0])
    return fetcher


def polled(log: Elected, fetcher: Fetcher) -> list[ConsumedRecords]:
    """Poll until records or an error have come."""
    for _ in range(20):
        found = [one for one in fetcher.poll(1_000) if one.records or one.error]
        if found:
            return found
    return []


@pytest.mark.parametrize(("end", "known"), [(1, 1), (-1, None)])
def test_a_log_that_ends_below_the_position_is_reported(end: int, known: int | None) -> None:
    log = Elected()
    fetcher = read(log)
    log.epoch, log.epoch_ends = 4, {3: end}
    (found,) = polled(log, fetcher)
    assert isinstance(found.error, LogTruncated)
    assert (P0, 2, known) == (found.error.partition, found.error.position, found.error.end_offset)
    assert [(4, 3)] == log.asked
    assert () == fetcher.partitions


@pytest.mark.parametrize("end", [2, 7])
def test_a_log_that_has_what_was_read_is_read_on(end: int) -> None:
    log = Elected()
    fetcher = read(log)
    log.epoch, log.epoch_ends = 4, {3: end}
    log.codes[P0] += [0, NOT_LEADER]
    log.data[P0] += batch(2, b"c", leader_epoch=4)
    log.ends[P0] = 3
    (found,) = polled(log, fetcher)
    assert [(2, b"c")] == values(found)
    fetcher.poll(1_000)
    assert [(4, 3)] == log.asked


def test_a_position_without_a_batch_before_it_is_not_checked() -> None:
    log = Elected()
    fetcher = read(log)
    fetcher.seek(P0, 1)
    log.codes[P0] += [NOT_LEADER]
    log.epoch = 4
    (found,) = polled(log, fetcher)
    assert [(1, b"b")] == values(found)
    assert [] == log.asked


def test_a_broker_without_the_request_leaves_positions_unchecked() -> None:
    log = Elected(OffsetForLeaderEpoch=(0, 2))
    fetcher = read(log)
    log.epoch = 4
    log.data[P0] += batch(2, b"c", leader_epoch=4)
    log.ends[P0] = 3
    (found,) = polled(log, fetcher)
    assert [(2, b"c")] == values(found)
    assert [] == log.asked


def test_the_epoch_of_a_batch_that_is_not_shown_counts() -> None:
    marker = build_marker(
        EndTransactionMarker(ControlType.COMMIT, 0),
        producer_id=1,
        producer_epoch=0,
        base_offset=2,
        timestamp_ms=1,
    )
    marker = bytearray(marker)
    marker[12:16] = (5).to_bytes(4, "big")
    found = visible_records(batch(0, b"a", b"b", leader_epoch=3) + bytes(marker), 0)
    assert ([(0, b"a"), (1, b"b")], 3, 5) == (values(found), found.next_offset, found.leader_epoch)
    assert -1 == visible_records(b"", 0).leader_epoch


@pytest.mark.parametrize(("reset", "end", "goes_on_at"), [("earliest", 1, 1), ("earliest", -1, 0)])
def test_a_consumer_with_a_reset_policy_goes_on_where_the_logs_part(
    reset: str, end: int, goes_on_at: int
) -> None:
    log = Elected()
    log.handlers["ListOffsets"] = earliest
    consumer = Consumer(log.client(), ConsumerSettings(auto_offset_reset=reset, fetch=ONCE))
    consumer.assign([P0])
    consumer.seek(P0, 0)
    log.codes[P0] = [0, NOT_LEADER]
    assert 2 == len(consumer.poll(1_000))
    log.epoch, log.epoch_ends = 4, {3: end}
    log.data[P0] = batch(0, b"a", b"B", leader_epoch=4)
    found: list[Any] = []
    while not found and log.clock.now_ms < 60_000:
        found = list(consumer.poll(1_000))
    assert [(0, b"a"), (1, b"B")][goes_on_at:] == [(one.offset, one.value) for one in found]


def test_a_consumer_without_a_reset_policy_raises() -> None:
    log = Elected()
    log.handlers["ListOffsets"] = earliest
    consumer = Consumer(log.client(), ConsumerSettings(auto_offset_reset="earliest", fetch=ONCE))
    consumer.assign([P0])
    consumer._settings = consumer._settings._replace(auto_offset_reset="none")
    log.codes[P0] = [0, NOT_LEADER]
    consumer.poll(1_000)
    log.epoch, log.epoch_ends = 4, {3: 1}
    with pytest.raises(LogTruncated):
        while log.clock.now_ms < 60_000:
            consumer.poll(1_000)


def earliest(body: Any, version: int, address: tuple[str, int]) -> Any:
    response = message_class("ListOffsetsResponse")
    row = response.ListOffsetsPartitionResponse(partition_index=0, offset=0)
    topic = response.ListOffsetsTopicResponse(name="t", partitions=[row])
    return response(topics=[topic])


def elect_with_other_records(log: Elected) -> None:
    """Have partition 0 led in another epoch, by the same broker, without record 1."""
    log.epoch, log.epoch_ends = 4, {3: 1}
    log.data[P0] = batch(0, b"a", b"B", b"C", leader_epoch=4)
    log.ends[P0] = 3


def test_a_leader_in_another_epoch_than_that_of_metadata_refuses_the_fetch() -> None:
    log = Elected()
    fetcher = Fetcher(log.client(), {P0: 0}, ONCE)
    fetch = log.handlers["Fetch"]

    def fetch_at_once(body: Any, version: int, address: tuple[str, int]) -> Any:
        return fetch(body, version, address) or message_class("FetchResponse")()

    log.handlers["Fetch"] = fetch_at_once
    assert [(0, b"a"), (1, b"b")] == values(polled(log, fetcher)[0])
    elect_with_other_records(log)
    (found,) = polled(log, fetcher)
    assert isinstance(found.error, LogTruncated)


def test_a_broker_without_epochs_in_fetches_is_read_on() -> None:
    log = Elected(Fetch=(4, 8))
    (found,) = polled(log, Fetcher(log.client(), {P0: 0}, ONCE))
    assert [(0, b"a"), (1, b"b")] == values(found)


def test_a_topic_that_was_made_again_is_checked_though_its_epochs_begin_at_0(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Elected()
    fetcher = read(log)
    monkeypatch.setattr(log, "topic_id", lambda _version: bytes([7]) * 16)
    log.epoch, log.epoch_ends = 0, {0: 3}
    (found,) = polled(log, fetcher)
    assert isinstance(found.error, LogTruncated)
    assert (None, [(0, 3)]) == (found.error.end_offset, log.asked)


def test_metadata_that_is_out_of_date_leads_to_no_check() -> None:
    log = Elected()
    fetcher = read(log)
    log.epoch = 2
    log.data[P0] += batch(2, b"c", leader_epoch=3)
    log.ends[P0] = 3
    (found,) = polled(log, fetcher)
    assert ([(2, b"c")], []) == (values(found), log.asked)


def test_what_was_fetched_by_earlier_metadata_is_still_to_be_checked() -> None:
    log = Elected()
    client = log.client()
    before = client.view(["t"])
    log.epoch, log.epoch_ends = 4, {3: 2}
    checks = TruncationChecks(client)
    checks.read(P0, 3, before)
    after = client.view(["t"])
    assert {} == checks.validate({P0: 2}, after)
    checks.read(P0, 3, before)
    assert [P0] == list(checks.validate({P0: 4}, after))


def test_a_paused_partition_is_checked_once_it_is_resumed() -> None:
    log = Elected()
    fetcher = read(log)
    fetcher.poll(1_000)
    fetcher.pause(P0)
    elect_with_other_records(log)
    fetcher.prepare()
    assert [] == polled(log, fetcher)
    assert [] == log.asked
    fetcher.resume(P0)
    (found,) = polled(log, fetcher)
    assert isinstance(found.error, LogTruncated)


def consumer_of(log: Elected) -> Consumer:
    """Return a consumer that has read both records."""
    log.handlers["ListOffsets"] = earliest
    settings = ConsumerSettings(auto_offset_reset="earliest", fetch=ONCE)
    consumer = Consumer(log.client(), settings)
    consumer.assign([P0])
    assert 2 == len(consumer.poll(1_000))
    return consumer


def test_a_truncation_is_raised_until_the_application_seeks() -> None:
    log = Elected()
    consumer = consumer_of(log)
    consumer._settings = consumer._settings._replace(auto_offset_reset="none")
    elect_with_other_records(log)
    for _ in range(2):
        with pytest.raises(LogTruncated):
            while log.clock.now_ms < 60_000:
                consumer.poll(1_000)
    consumer.seek(P0, 1)
    assert [(1, b"B"), (2, b"C")] == [(one.offset, one.value) for one in consumer.poll(1_000)]


def test_a_log_that_was_truncated_while_nobody_led_is_noticed_however_long_that_lasted() -> None:
    log = Elected()
    consumer = consumer_of(log)
    log.leaders["t", 0] = -1
    log.codes[P0] = [NOT_LEADER]
    began_ms = log.clock.now_ms
    while log.clock.now_ms < began_ms + 300_000:
        assert [] == consumer.poll(5_000)
    log.leaders["t", 0] = 1
    elect_with_other_records(log)
    found: list[Any] = []
    while not found and log.clock.now_ms < began_ms + 400_000:
        found = list(consumer.poll(1_000))
    assert [(1, b"B"), (2, b"C")] == [(one.offset, one.value) for one in found]


def test_partitions_that_stay_assigned_are_still_checked() -> None:
    log = Elected()
    consumer = consumer_of(log)
    consumer.assign([P0])
    elect_with_other_records(log)
    found: list[Any] = []
    while not found and log.clock.now_ms < 60_000:
        found = list(consumer.poll(1_000))
    assert [(1, b"B"), (2, b"C")] == [(one.offset, one.value) for one in found]


def test_a_paused_partition_that_was_given_up_stays_paused() -> None:
    log = Elected()
    consumer = consumer_of(log)
    consumer.pause([P0])
    consumer._current_fetcher()._view = None
    metadata = log.handlers.pop("Metadata")
    log.handlers["Metadata"] = lambda *_: None
    began_ms = log.clock.now_ms
    while log.clock.now_ms < began_ms + 300_000:
        assert [] == consumer.poll(5_000)
    assert {P0} == consumer.paused
    log.handlers["Metadata"] = metadata
    log.data[P0] += batch(2, b"c", leader_epoch=3)
    log.ends[P0] = 3
    assert [] == [one for _ in range(5) for one in consumer.poll(1_000)]
