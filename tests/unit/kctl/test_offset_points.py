"""Points in partitions, as a broker answers for them."""

from __future__ import annotations

from typing import Any

import pytest

from engine.client.offsets import EARLIEST, EARLIEST_LOCAL, LATEST, LATEST_TIERED, MAX_TIMESTAMP
from engine.model import TopicPartition
from engine.wire.structs import message_class
from kctl.offset_points import OffsetLookup, parse_point
from tests.unit.client.fake_broker import FakeCluster

P0 = TopicPartition("t", 0)
START, FIRST_END = 5, 100
NOW_MS = 1_767_225_600_000


class BusyTopic(FakeCluster):
    """A topic that has ten records more whenever its end is looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.end = FIRST_END
        #: The offset of each time that has one.
        self.by_time = {EARLIEST: START}
        self.handlers["ListOffsets"] = self.list_offsets

    def list_offsets(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("ListOffsetsResponse")
        return response(
            topics=[
                response.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        response.ListOffsetsPartitionResponse(
                            partition_index=row.partition_index, offset=self._offset(row.timestamp)
                        )
                        for row in topic.partitions
                    ],
                )
                for topic in body.topics
            ]
        )

    def _offset(self, timestamp: int) -> int:
        if timestamp != LATEST:
            return self.by_time.get(timestamp, -1)
        self.end += 10
        return self.end - 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # What is nowhere begins where the log does: nothing lies before it.
        ("latest-tiered", START),
        ("max-timestamp", START),
        ("earliest-local", START),
        ("-1h", FIRST_END),
        ("start", START),
        ("end", FIRST_END),
        ("-10", FIRST_END - 10),
        ("-1000", START),
        ("77", 77),
    ],
)
def test_what_is_not_there_has_a_meaning_for_each_point(text: str, expected: int) -> None:
    lookup = OffsetLookup(BusyTopic().client(), [P0])
    assert {P0: expected} == lookup.resolve(parse_point(text, NOW_MS))


@pytest.mark.parametrize("text", ["latest-tiered", "max-timestamp", "earliest-local"])
def test_a_point_that_is_nowhere_is_said_to_be(text: str) -> None:
    lookup = OffsetLookup(BusyTopic().client(), [P0])
    assert {P0: None} == lookup.find(parse_point(text, NOW_MS))


def test_special_points_are_those_of_the_broker_where_they_are() -> None:
    topic = BusyTopic()
    topic.by_time |= {LATEST_TIERED: 40, MAX_TIMESTAMP: 60, EARLIEST_LOCAL: 41, NOW_MS: 70}
    lookup = OffsetLookup(topic.client(), [P0])
    texts = ("latest-tiered", "max-timestamp", "earliest-local", f"@{NOW_MS}")
    offsets = [lookup.resolve(parse_point(text, NOW_MS))[P0] for text in texts]
    assert [40, 60, 41, 70] == offsets


@pytest.mark.parametrize("text", ["end", "latest", "-7", "-1h"])
def test_a_topic_that_grows_is_checked_once(text: str) -> None:
    topic = BusyTopic()
    lookup = OffsetLookup(topic.client(), [P0])
    point = lookup.resolve(parse_point(text, NOW_MS))[P0]
    end = lookup.resolve(parse_point("end", NOW_MS))[P0]
    assert FIRST_END == end
    assert point == (FIRST_END - 7 if text == "-7" else FIRST_END)
    assert point == lookup.resolve(parse_point(text, NOW_MS))[P0]
