"""Rates of writes between two looks at a log."""

from __future__ import annotations

from typing import Any

from engine.client.rates import LogSample, PartitionRate, rate_between, sample_rates
from engine.errors import ApiError
from engine.kafka_errors import UNKNOWN_SERVER_ERROR
from engine.model import TopicPartition
from engine.wire.headers import api
from engine.wire.structs import message_class
from tests.unit.client.fake_broker import FakeCluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)

FIRST = LogSample(leader=1, start_offset=0, end_offset=100, size_bytes=10_000, at_ms=0)


def test_a_log_that_only_grew_was_written_what_it_grew_by() -> None:
    second = FIRST._replace(end_offset=300, size_bytes=34_000, at_ms=2_000)
    assert PartitionRate(12_000, 100.0) == rate_between(FIRST, second)


def test_a_log_that_retention_cut_is_estimated_by_its_mean_record() -> None:
    second = FIRST._replace(start_offset=90, end_offset=150, size_bytes=6_000, at_ms=1_000)
    assert PartitionRate(50 * 100, 50.0, is_estimate=True) == rate_between(FIRST, second)


def test_a_log_that_a_cleaner_has_shrunk_is_estimated() -> None:
    second = FIRST._replace(end_offset=120, size_bytes=4_000, at_ms=1_000)
    rate = rate_between(FIRST, second)
    assert rate.is_estimate
    assert 20.0 == rate.records_per_s
    assert 0 < rate.bytes_per_s <= 20 * 100


def test_a_log_that_nobody_writes_to_has_no_rate() -> None:
    assert PartitionRate(0, 0.0) == rate_between(FIRST, FIRST._replace(at_ms=5_000))
    deleted = FIRST._replace(start_offset=100, size_bytes=0, at_ms=5_000)
    assert PartitionRate(0, 0.0, is_estimate=True) == rate_between(FIRST, deleted)


class WrittenCluster(FakeCluster):
    """Broker 1 leads t-0, broker 2 t-1; both logs grow by 100 bytes and 10 records each look.

    Beside its leader's log a partition has a follower of another size, and t-0 a copy in the
    directory that it moves to.
    """

    def __init__(self) -> None:
        super().__init__()
        self.looks = {1: 0, 2: 0}
        self.offset_errors: dict[int, int] = {}
        self.handlers["ListOffsets"] = self.offsets
        self.handlers["DescribeLogDirs"] = self.log_dirs

    def api_versions(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        answer = super().api_versions(body, version, address)
        low, high = api("DescribeLogDirs").stable
        row = message_class("ApiVersionsResponse").ApiVersion
        answer.api_keys.append(row(api_key=35, min_version=low, max_version=high))
        return answer

    def offsets(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("ListOffsetsResponse")
        looks = self.looks[address[1] - 9000]
        return response(
            topics=[
                response.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        response.ListOffsetsPartitionResponse(
                            partition_index=row.partition_index,
                            error_code=self.offset_errors.get(row.partition_index, 0),
                            offset=0 if row.timestamp == -2 else 50 + 10 * looks,
                        )
                        for row in topic.partitions
                    ],
                )
                for topic in body.topics
            ]
        )

    def log_dirs(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("DescribeLogDirsResponse")
        number = address[1] - 9000
        led, followed = (0, 1) if number == 1 else (1, 0)
        size = 500 + 100 * self.looks[number]
        self.looks[number] += 1

        def directory(path: str, *rows: tuple[int, int, bool]) -> Any:
            partition = response.DescribeLogDirsPartition
            partitions = [
                partition(partition_index=p, partition_size=size, offset_lag=0, is_future_key=f)
                for p, size, f in rows
            ]
            topic = response.DescribeLogDirsTopic(name="t", partitions=partitions)
            return response.DescribeLogDirsResult(log_dir=path, topics=[topic])

        return response(
            results=[
                directory("/a", (led, size, False), (followed, 7, False)),
                directory("/b", (0, 3, True)),
            ]
        )


def test_the_size_that_counts_is_that_of_the_log_by_which_its_leader_leads() -> None:
    with WrittenCluster().client() as client:
        # The look for events on a connection that was idle takes these streams 1 ms more.
        sampled = sample_rates(client, None, 999)
    assert {T0: PartitionRate(100, 10.0), T1: PartitionRate(100, 10.0)} == sampled.rates
    assert {} == sampled.errors


def test_a_partition_without_offsets_has_an_error_and_no_rate() -> None:
    cluster = WrittenCluster()
    cluster.offset_errors = {1: UNKNOWN_SERVER_ERROR}
    with cluster.client() as client:
        sampled = sample_rates(client, None, 1000)
    assert {T0} == set(sampled.rates)
    (error,) = sampled.errors.values()
    assert isinstance(error, ApiError)
    assert (["t-1"], UNKNOWN_SERVER_ERROR) == (list(sampled.errors), error.code)
