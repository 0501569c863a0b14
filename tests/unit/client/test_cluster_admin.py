"""What brokers say of their log directories."""

from __future__ import annotations

from typing import Any

from engine.client.cluster_admin import LogDirView, describe_log_dirs
from engine.errors import ApiError
from engine.model import TopicPartition
from engine.wire.structs import message_class
from tests.unit.client.fake_broker import FakeCluster


class Directories(FakeCluster):
    """Brokers with one directory each; `code` is what all are asked for in vain with."""

    def __init__(self, code: int = 0) -> None:
        super().__init__({"DescribeLogDirs": (1, 4)})
        self.code = code
        self.handlers["DescribeLogDirs"] = self.describe

    def api_versions(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        answer = super().api_versions(body, version, address)
        row = message_class("ApiVersionsResponse").ApiVersion
        answer.api_keys.append(row(api_key=35, min_version=1, max_version=4))
        return answer

    def describe(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("DescribeLogDirsResponse")
        partition = response.DescribeLogDirsPartition(
            partition_index=1, partition_size=9, offset_lag=2, is_future_key=True
        )
        topic = response.DescribeLogDirsTopic(name="t", partitions=[partition])
        rows = [
            response.DescribeLogDirsResult(log_dir="/b", error_code=56),
            response.DescribeLogDirsResult(
                log_dir="/a", topics=[topic], total_bytes=10, usable_bytes=-1
            ),
        ]
        return response(error_code=self.code, results=[] if self.code else rows)


def test_directories_come_in_order_with_what_is_in_them() -> None:
    with Directories().client() as client:
        found = describe_log_dirs(client, [1])[1]
    assert isinstance(found, list)
    first, second = found
    assert isinstance(first, LogDirView)
    assert ("/a", None, 10, None) == (
        first.path,
        first.error,
        first.total_bytes,
        first.usable_bytes,
    )
    assert (TopicPartition("t", 1), 9, 2, True) == tuple(first.replicas[0])
    assert isinstance(second.error, ApiError)
    assert ("/b", 56) == (second.path, second.error.code)


def test_a_broker_that_refuses_is_an_error_of_its_own() -> None:
    with Directories(31).client() as client:
        refused = describe_log_dirs(client, [1, 2])
    assert [31, 31] == [error.code for error in refused.values() if isinstance(error, ApiError)]


def test_a_broker_that_has_left_meanwhile_is_an_error_of_its_own() -> None:
    with Directories().client() as client:
        found = describe_log_dirs(client, [1, 7])
    assert isinstance(found[1], list)
    gone = found[7]
    assert isinstance(gone, ApiError)
    assert ("BROKER_NOT_AVAILABLE", "broker 7 is not alive") == (gone.name, gone.detail)
