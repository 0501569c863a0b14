"""Topics page by page."""

from __future__ import annotations

from typing import Any

import pytest

from engine.api.describe_topic_partitions import DescribeTopicPartitions
from engine.wire.structs import message_class
from tests.unit.api.asking import CLICKS_ID, OUTSIDE, ask, cluster

REQUEST = message_class("DescribeTopicPartitionsRequest")


def described(*names: str, cursor: tuple[str, int] | None = None, **more: Any) -> Any:
    handler = DescribeTopicPartitions(cluster())
    start = cursor and REQUEST.Cursor(topic_name=cursor[0], partition_index=cursor[1])
    topics = [REQUEST.TopicRequest(name=name) for name in names]
    return ask(handler, "DescribeTopicPartitions", 0, topics=topics, cursor=start, **more)


def listed(reply: Any) -> list[tuple[str, int, list[int]]]:
    return [
        (each.name, each.error_code, [p.partition_index for p in each.partitions])
        for each in reply.topics
    ]


def next_of(reply: Any) -> tuple[str, int] | None:
    cursor = reply.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


def test_no_topic_asks_for_all_sorted() -> None:
    reply = described()
    names = ["__consumer_offsets", "clicks", "orders", "orphans"]
    assert names == [each.name for each in reply.topics]
    assert [True, False, False, False] == [each.is_internal for each in reply.topics]
    assert next_of(reply) is None


def test_a_topic_is_described_with_its_partitions() -> None:
    (clicks,) = described("clicks").topics
    assert (CLICKS_ID, 3576) == (clicks.topic_id, clicks.topic_authorized_operations)
    first, second = clicks.partitions
    assert (0, 1, 5, [1, 2], [1, 2], [], [], []) == (
        first.partition_index,
        first.leader_id,
        first.leader_epoch,
        first.replica_nodes,
        first.isr_nodes,
        first.eligible_leader_replicas,
        first.last_known_elr,
        first.offline_replicas,
    )
    assert 2 == second.leader_id


def test_a_leader_without_the_listener_is_left_out() -> None:
    handler = DescribeTopicPartitions(cluster())
    topics = [REQUEST.TopicRequest(name="clicks")]
    (clicks,) = ask(handler, "DescribeTopicPartitions", 0, OUTSIDE, topics=topics).topics
    assert [1, -1] == [each.leader_id for each in clicks.partitions]


def test_unknown_and_bad_names_have_errors() -> None:
    reply = described("ghost", "no/good", "clicks")
    assert [("clicks", 0, [0, 1]), ("ghost", 3, []), ("no/good", 17, [])] == listed(reply)


def test_pages_follow_each_other_by_their_cursors() -> None:
    seen: list[tuple[str, int]] = []
    cursor: tuple[str, int] | None = None
    pages = 0
    while pages == 0 or cursor is not None:
        reply = described(cursor=cursor, response_partition_limit=1)
        seen += [(name, index) for name, _, indexes in listed(reply) for index in indexes]
        cursor = next_of(reply)
        pages += 1
    expected = [
        ("__consumer_offsets", 0),
        ("clicks", 0),
        ("clicks", 1),
        ("orders", 0),
        ("orphans", 0),
    ]
    assert expected == seen
    assert 5 == pages


def test_a_page_that_is_full_at_the_end_of_a_topic_points_before_the_next() -> None:
    reply = described("clicks", "orders", response_partition_limit=2)
    assert [("clicks", 0, [0, 1])] == listed(reply)
    assert ("orders", 0) == next_of(reply)


def test_a_limit_below_one_still_gets_on() -> None:
    assert [("clicks", 0, [0])] == listed(described("clicks", response_partition_limit=-1))


def test_the_brokers_own_limit_counts() -> None:
    handler = DescribeTopicPartitions(cluster(), partitions_max=1)
    reply = ask(handler, "DescribeTopicPartitions", 0)
    assert ("clicks", 0) == next_of(reply)


@pytest.mark.parametrize("cursor", [("orders", 0), ("clicks", -1)])
def test_a_cursor_must_point_to_a_topic_that_is_requested(cursor: tuple[str, int]) -> None:
    assert [("clicks", 42, [])] == listed(described("clicks", cursor=cursor))


def test_a_cursor_into_all_topics_may_point_to_one_that_is_gone() -> None:
    reply = described(cursor=("ophelia", 3))
    assert ["orders", "orphans"] == [each.name for each in reply.topics]
