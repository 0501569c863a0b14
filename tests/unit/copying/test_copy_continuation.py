"""A copy goes on where an earlier one has ended: nothing is left out, nothing comes twice."""

from __future__ import annotations

import pytest

from engine.copying.copy_continuation import (
    GroupNotTranslated,
    PartitionEnds,
    SourceReplaced,
    SourceShorter,
    check_same_topics,
    continue_group_offsets,
    continue_range,
    new_range,
)
from engine.copying.copy_plan import (
    EXACTLY_ONCE,
    CopiedTopic,
    CopyRange,
    GroupOffset,
    TopicCopy,
)
from engine.model import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC = CopiedTopic("t", "c", 2, "first")


def plan_of(*offsets: GroupOffset, start: int = 0) -> TopicCopy:
    ranges = {T0: CopyRange(start, 200), T1: CopyRange(0, 200)}
    continued = frozenset((T0,)) if start else frozenset[TopicPartition]()
    return TopicCopy("id", "asked", "a", "b", (TOPIC,), ranges, offsets, EXACTLY_ONCE, continued)


@pytest.mark.parametrize(
    ("ends", "copied"),
    [
        (PartitionEnds(5, 90, 0, 90), CopyRange(5, 90)),
        (PartitionEnds(5, 90, 20, 30), CopyRange(20, 30)),
        (PartitionEnds(5, 90, 20, 100), CopyRange(20, 90)),
        (PartitionEnds(5, 90, 95, 90), CopyRange(90, 90)),
    ],
)
def test_a_new_range_lies_within_what_is_there(ends: PartitionEnds, copied: CopyRange) -> None:
    assert copied == new_range(ends)


@pytest.mark.parametrize(
    ("ends", "copied"),
    [
        # What --from says is of the first copy alone.
        (PartitionEnds(0, 150, 0, 150), CopyRange(100, 150)),
        (PartitionEnds(0, 100, 0, 100), CopyRange(100, 100)),
        (PartitionEnds(120, 150, 0, 150), CopyRange(120, 150)),
        (PartitionEnds(0, 150, 0, 130), CopyRange(100, 130)),
        # The range never ends before it begins: the next one would copy records twice.
        (PartitionEnds(0, 150, 0, 60), CopyRange(100, 100)),
        (PartitionEnds(120, 150, 0, 60), CopyRange(120, 120)),
    ],
)
def test_a_continued_range_begins_at_the_end_of_the_earlier_one(
    ends: PartitionEnds, copied: CopyRange
) -> None:
    assert copied == continue_range(T0, ends, 100)


def test_a_source_that_has_lost_its_end_is_not_continued() -> None:
    with pytest.raises(
        SourceShorter, match="t-0 ends at 99 at the source, and is copied up to 100"
    ):
        continue_range(T0, PartitionEnds(0, 99, 0, 99), 100)


def test_a_topic_of_another_id_is_another_topic() -> None:
    check_same_topics([TOPIC, CopiedTopic("new", "n", 1, "x")], [TOPIC])
    check_same_topics([TOPIC._replace(source_id=None)], [TOPIC])
    check_same_topics([TOPIC], [TOPIC._replace(source_id=None)])
    with pytest.raises(SourceReplaced, match="t was deleted and made again"):
        check_same_topics([TOPIC._replace(source_id="second")], [TOPIC])


def test_a_group_before_a_continued_range_stays_where_it_was_translated_to() -> None:
    earlier = plan_of(GroupOffset("g", T0, 40), GroupOffset("g", T1, 7))
    now = [GroupOffset("g", T0, 60), GroupOffset("g", T1, 50), GroupOffset("h", T0, 100)]
    plan = plan_of(start=100)
    offsets = continue_group_offsets(now, plan, earlier)
    assert [GroupOffset("g", T0, 40), *now[1:]] == offsets
    assert now[1:] == plan._replace(group_offsets=tuple(offsets)).translated_offsets()


@pytest.mark.parametrize(
    ("known", "now"),
    # One that was not asked for, and one that has gone back since.
    [((), 99), ((GroupOffset("g", T0, 40),), 39), ((GroupOffset("other", T0, 40),), 50)],
)
def test_a_group_that_would_miss_records_is_refused(
    known: tuple[GroupOffset, ...], now: int
) -> None:
    with pytest.raises(GroupNotTranslated, match=f"offset {now} of t-0"):
        continue_group_offsets([GroupOffset("g", T0, now)], plan_of(start=100), plan_of(*known))
