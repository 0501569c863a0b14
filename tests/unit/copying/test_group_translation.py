"""Where groups stand in a copy, whichever records are copied and wherever it was stopped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.copying.copy_plan import GroupOffset
from engine.copying.group_translation import GroupTranslation
from engine.model import TopicPartition

T0 = TopicPartition("t", 0)


def translation(*offsets: int, position: int = 0) -> GroupTranslation:
    groups = [GroupOffset(f"g{offset}", T0, offset) for offset in offsets]
    return GroupTranslation(groups, {T0: position})


def found(translation: GroupTranslation) -> dict[str, int]:
    return {group: offsets[T0] for group, offsets in translation.take().items()}


def test_an_offset_is_that_of_the_first_copied_record_at_or_after_it() -> None:
    groups = translation(2, 3, 9)
    groups.stored(T0, [0, 2, 7], 100)
    assert {"g2": 101, "g3": 102} == found(groups)
    groups.stored(T0, [8, 9], 200)
    assert {"g9": 201} == found(groups)
    assert not groups.is_needed


def test_an_offset_behind_everything_is_the_end_of_the_copy() -> None:
    groups = translation(50)
    groups.stored(T0, [0, 1], 10)
    assert [] == groups.unseen(None)
    groups.settle(None, {})
    assert {"g50": 12} == found(groups)


def test_an_end_that_was_not_seen_is_requested() -> None:
    groups = translation(50)
    assert [T0] == groups.unseen(None)
    groups.settle(None, {T0: 77})
    assert {"g50": 77} == found(groups)


def test_an_offset_in_a_gap_at_the_end_of_a_transaction_is_not_forgotten() -> None:
    groups = translation(10)
    groups.stored(T0, [7], 70)
    # Records 8 to 12 were left out: the position goes past the group's without a record for it.
    groups.settle({T0: 13}, {})
    assert {"g10": 71} == found(groups)
    # What is found once is not put elsewhere at the end.
    groups.settle(None, {T0: 99})
    assert {} == found(groups)
    assert not translation(10, position=13).is_needed


def test_a_position_before_an_offset_leaves_it_to_be_found() -> None:
    groups = translation(10)
    groups.settle({T0: 10}, {T0: 5})
    assert {} == found(groups)
    assert groups.is_needed


@given(
    copied=st.sets(st.integers(0, 40)),
    committed=st.sets(st.integers(0, 45), max_size=6),
    stops=st.sets(st.integers(0, 41)),
    kills=st.sets(st.integers(0, 41)),
)
def test_groups_miss_no_record_and_read_none_twice(
    copied: set[int], committed: set[int], stops: set[int], kills: set[int]
) -> None:
    offsets = sorted(copied)
    results: dict[str, int] = {}
    position, stored_count = 0, 0
    groups = translation(*committed)
    for end in [*sorted(stops), 41]:
        batch = [offset for offset in offsets if position <= offset < end]
        if batch:
            groups.stored(T0, batch, stored_count)
        ends = dict.fromkeys(groups.unseen({T0: end}), stored_count + len(batch))
        groups.settle({T0: end}, ends)
        if end in kills and end < 41:
            # The transaction did not count: another process begins it again.
            groups = translation(*committed, position=position)
            continue
        results |= found(groups)
        position, stored_count = end, stored_count + len(batch)
        if end + 1 in kills:
            groups = translation(*committed, position=position)
    groups.settle(None, dict.fromkeys(groups.unseen(None), stored_count))
    results |= found(groups)
    if position == 41:
        wanted = {f"g{c}": sum(offset < c for offset in offsets) for c in committed}
        assert wanted == results
