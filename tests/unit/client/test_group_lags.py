"""The lag of many groups: which requests are sent, and what is not known."""

from __future__ import annotations

from typing import Any

import pytest

from engine.client import group_lags
from engine.client.errors import TimedOut
from engine.client.group_lags import LagSum, find_groups_at, request_lags
from engine.client.groups import GroupListing
from engine.errors import ApiError, EngineError
from engine.kafka_errors import NOT_COORDINATOR, NOT_LEADER_OR_FOLLOWER
from engine.model import TopicPartition
from engine.wire.structs import message_class
from tests.unit.client.fake_broker import FakeCluster


class Groups(FakeCluster):
    """Coordinators whose groups have committed, and leaders of t, each partition of 10 records."""

    def __init__(self, committed: dict[str, dict[int, int]], **more: Any) -> None:
        super().__init__(**more)
        self.committed = committed
        self.errors: dict[str, int] = {}
        self.partition_errors: dict[int, int] = {}
        self.silent: set[int] = set()
        self.asked: list[list[str]] = []
        self.handlers |= {
            "OffsetFetch": self.offset_fetch,
            "ListOffsets": self.list_offsets,
            "FindCoordinator": self.find_coordinator,
        }

    def offset_fetch(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        if address[1] - 9000 in self.silent:
            return None
        response = message_class("OffsetFetchResponse")
        if version < 8:
            self.asked.append([body.group_id])
            row, partition = (
                response.OffsetFetchResponseTopic,
                response.OffsetFetchResponsePartition,
            )
            return response(
                error_code=self.errors.get(body.group_id, 0),
                topics=self._topics(body.group_id, row, partition),
            )
        self.asked.append([group.group_id for group in body.groups])
        row, partition = response.OffsetFetchResponseTopics, response.OffsetFetchResponsePartitions
        return response(
            groups=[
                response.OffsetFetchResponseGroup(
                    group_id=group.group_id,
                    topics=self._topics(group.group_id, row, partition),
                    error_code=self.errors.get(group.group_id, 0),
                )
                for group in body.groups
            ]
        )

    def _topics(self, group_id: str, row: Any, partition: Any) -> list[Any]:
        rows = [
            partition(partition_index=index, committed_offset=offset, metadata="")
            for index, offset in self.committed[group_id].items()
        ]
        return [row(name="t", partitions=rows)] if rows else []

    def list_offsets(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("ListOffsetsResponse")
        return response(
            topics=[
                response.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        response.ListOffsetsPartitionResponse(
                            partition_index=row.partition_index,
                            offset=10,
                            error_code=self.partition_errors.get(row.partition_index, 0),
                        )
                        for row in topic.partitions
                    ],
                )
                for topic in body.topics
            ]
        )

    def find_coordinator(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("FindCoordinatorResponse")
        if version < 4:
            return response(node_id=1, host="127.0.0.1", port=9001)
        return response(
            coordinators=[
                response.Coordinator(key=key, node_id=1, host="127.0.0.1", port=9001)
                for key in body.coordinator_keys
            ]
        )


def listing(group_id: str, coordinator_id: int = 1, kind: str = "classic") -> GroupListing:
    return GroupListing(group_id, "consumer", "Stable", kind, coordinator_id)


def test_lags_are_sums_over_what_groups_have_committed() -> None:
    cluster = Groups({"a": {0: 4, 1: 10}, "b": {0: 12}, "none": {}})
    groups = [listing("a"), listing("b", 2), listing("none")]
    done: list[tuple[int, int]] = []
    lags = request_lags(cluster.client(), groups, lambda *of: done.append(of))
    expected = {"a": LagSum(1, 2, 6), "b": LagSum(1, 1, 0), "none": LagSum(0, 0, 0)}
    assert expected == lags
    assert [(3, 3)] == done


def test_a_coordinator_gets_few_requests_and_an_end_is_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_lags, "GROUPS_PER_REQUEST", 2)
    names = [f"g{number}" for number in range(5)]
    cluster = Groups({name: {0: 1} for name in names})
    lags = request_lags(cluster.client(), [listing(name) for name in names])
    assert dict.fromkeys(names, LagSum(1, 1, 9)) == lags
    assert [names[:2], names[2:4], names[4:]] == cluster.asked
    assert 1 == cluster.requested_apis().count("ListOffsets")


def test_share_groups_are_not_asked() -> None:
    cluster = Groups({"a": {0: 4}})
    lags = request_lags(cluster.client(), [listing("a"), listing("s", kind="Share")])
    assert {"a": LagSum(1, 1, 6)} == lags
    assert {} == request_lags(cluster.client(), [listing("s", kind="share")])


def test_brokers_before_3_0_are_asked_group_by_group() -> None:
    cluster = Groups({"a": {0: 4}, "b": {1: 9}}, versions={"OffsetFetch": (1, 7)})
    lags = request_lags(cluster.client(), [listing("a"), listing("b")])
    assert {"a": LagSum(1, 1, 6), "b": LagSum(1, 1, 1)} == lags
    assert [["a"], ["b"]] == cluster.asked


def test_the_error_of_a_group_is_its_alone() -> None:
    cluster = Groups({"a": {0: 4}, "b": {}})
    cluster.errors["b"] = NOT_COORDINATOR
    lags = request_lags(cluster.client(), [listing("a"), listing("b"), listing("c", 9)])
    assert LagSum(1, 1, 6) == lags["a"]
    assert [16, 15] == [lags[name].code for name in "bc"]  # type: ignore[union-attr]
    assert all(isinstance(lags[name], ApiError) for name in "bc")


def test_a_coordinator_that_does_not_answer_costs_its_groups_alone() -> None:
    cluster = Groups({"a": {0: 4}, "b": {0: 4}})
    cluster.silent = {2}
    lags = request_lags(cluster.client(), [listing("a"), listing("b", 2)])
    assert LagSum(1, 1, 6) == lags["a"]
    assert isinstance(lags["b"], TimedOut | EngineError)


def test_a_lag_is_unknown_where_the_end_of_a_partition_is() -> None:
    cluster = Groups({"a": {0: 4, 7: 1}, "b": {7: 1}})
    cluster.partition_errors = {7: NOT_LEADER_OR_FOLLOWER}
    lags = request_lags(cluster.client(), [listing("a"), listing("b")])
    assert {"a": LagSum(1, 2, None, 1), "b": LagSum(1, 1, None, 1)} == lags


def test_groups_are_found_whose_next_record_is_at_an_offset() -> None:
    cluster = Groups({"b": {0: 4}, "a": {0: 4, 1: 9}, "late": {0: 3}, "other": {1: 4}, "s": {}})
    cluster.errors["lost"] = NOT_COORDINATOR
    cluster.committed["lost"] = {}
    groups = [listing(name) for name in ("b", "a", "late", "other", "lost")]
    groups.append(listing("s", kind="share"))
    there, errors = find_groups_at(cluster.client(), groups, TopicPartition("t", 0), 4)
    assert (["a", "b"], ["lost"]) == (there, list(errors))
    assert "s" not in {group_id for asked in cluster.asked for group_id in asked}


@pytest.mark.parametrize("versions", [{}, {"OffsetFetch": (1, 7)}], ids=["many", "one"])
def test_a_coordinator_that_does_not_answer_is_waited_for_once(
    monkeypatch: pytest.MonkeyPatch, versions: dict[str, tuple[int, int]]
) -> None:
    """Its other groups fail with the same error: a wait for each hundred would be minutes."""
    monkeypatch.setattr(group_lags, "GROUPS_PER_REQUEST", 2)
    names = [f"g{number}" for number in range(6)]
    cluster = Groups({name: {0: 4} for name in names}, versions=versions)
    cluster.silent = {1}
    client = cluster.client()
    before_ms = client.clock.monotonic_ms()
    lags = request_lags(client, [listing(name) for name in names])
    assert {type(lags[name]) for name in names} == {TimedOut}
    assert client.clock.monotonic_ms() - before_ms < 2 * client.timeout_ms
