"""In-sync sets: who falls out, who joins, which set counts while a change is pending."""

from __future__ import annotations

import pytest

from engine.replication.isr import (
    NEVER_MS,
    UNKNOWN_OFFSET,
    FollowerProgress,
    InSyncSet,
    counted_log_ends,
    is_watermark_held,
    may_join,
    out_of_sync_replicas,
)

LAG_MS = 30_000


def test_a_growing_set_counts_for_the_watermark_before_it_is_committed() -> None:
    growing = InSyncSet((1, 2)).growing(3)
    assert ((1, 2), (1, 2, 3)) == (growing.isr, growing.maximal_isr)
    assert growing.is_in_flight


def test_a_shrinking_set_counts_for_acks_before_it_is_committed() -> None:
    shrinking = InSyncSet((1, 2, 3)).shrinking([2])
    assert ((1, 3), (1, 2, 3)) == (shrinking.isr, shrinking.maximal_isr)


def test_a_rejected_change_leaves_the_committed_set() -> None:
    assert InSyncSet((1, 2)) == InSyncSet((1, 2)).growing(3).rejected()


def test_a_follower_at_the_end_is_caught_up_now() -> None:
    progress = FollowerProgress().after_fetch(10, 0, leader_log_end_offset=10, now_ms=500)
    assert 500 == progress.last_caught_up_ms


def test_a_follower_that_has_what_the_leader_had_was_caught_up_at_its_fetch_before() -> None:
    first = FollowerProgress().after_fetch(5, 0, leader_log_end_offset=10, now_ms=100)
    second = first.after_fetch(10, 0, leader_log_end_offset=20, now_ms=500)
    third = second.after_fetch(12, 0, leader_log_end_offset=30, now_ms=900)
    # The first fetch of all is never behind the one before it, which was never.
    assert NEVER_MS == first.last_caught_up_ms
    assert [100, 100] == [second.last_caught_up_ms, third.last_caught_up_ms]


@pytest.mark.parametrize(
    ("end", "silent_ms", "assigned", "dropped"),
    [
        (10, 10 * LAG_MS, (1, 2), ()),
        (9, LAG_MS, (1, 2), ()),
        (9, LAG_MS + 1, (1, 2), (2,)),
        (10, 0, (1, 3), (2,)),
    ],
)
def test_a_member_drops_when_behind_and_late_or_not_assigned_any_more(
    end: int, silent_ms: int, assigned: tuple[int, ...], dropped: tuple[int, ...]
) -> None:
    known = {2: FollowerProgress(end, 0, 10, 0, last_caught_up_ms=0)}
    found = out_of_sync_replicas(
        InSyncSet((1, 2)), assigned, known, 10, leader_id=1, now_ms=silent_ms, lag_ms_max=LAG_MS
    )
    assert dropped == found


def test_nobody_drops_while_a_change_is_pending() -> None:
    found = out_of_sync_replicas(
        InSyncSet((1, 2)).growing(3), (1, 2, 3), {}, 10, leader_id=1, now_ms=0, lag_ms_max=LAG_MS
    )
    assert () == found


def test_a_member_without_progress_drops() -> None:
    found = out_of_sync_replicas(
        InSyncSet((1, 2)), (1, 2), {}, 10, leader_id=1, now_ms=0, lag_ms_max=LAG_MS
    )
    assert (2,) == found


@pytest.mark.parametrize(("end", "joins"), [(6, False), (7, False), (8, True)])
def test_a_follower_joins_at_the_watermark_and_the_start_of_the_epoch(
    end: int, joins: bool
) -> None:
    progress = FollowerProgress(end)
    found = may_join(InSyncSet((1,)), 2, progress, high_watermark=7, epoch_start_offset=8)
    assert joins is found


def test_no_one_joins_twice_or_into_a_pending_change() -> None:
    progress = FollowerProgress(9)
    for in_sync in (InSyncSet((1, 2)), InSyncSet((1,)).growing(3)):
        assert not may_join(in_sync, 2, progress, high_watermark=0, epoch_start_offset=0)


def test_a_member_that_has_no_more_than_the_watermark_holds_it() -> None:
    followers = {2: FollowerProgress(7), 3: FollowerProgress(5)}
    assert is_watermark_held(InSyncSet((1, 2, 3)), followers, 5)
    assert not is_watermark_held(InSyncSet((1, 2, 3)), followers, 4)
    assert not is_watermark_held(InSyncSet((1, 2)), followers, 5)
    # One that is about to join counts already, one without progress is not there yet.
    assert is_watermark_held(InSyncSet((1, 2), (1, 2, 3)), followers, 5)
    assert not is_watermark_held(InSyncSet((1, 2, 4)), followers, 5)


def test_members_count_and_the_live_that_are_about_to_join() -> None:
    followers = {2: FollowerProgress(7), 3: FollowerProgress(9), 4: FollowerProgress(3)}
    for alive, expected in (((3, 4), [7, 9]), ((4,), [7])):
        assert expected == counted_log_ends(
            InSyncSet((1, 2)), followers, 9, alive.__contains__, now_ms=10_000, lag_ms_max=100
        )


def test_a_new_leader_forgets_ends_and_a_reelected_one_keeps_them() -> None:
    known = FollowerProgress(9, 2, 10, 50, 60)
    new = known.at_new_epoch(
        knows_nobody=True, is_in_sync=True, leader_log_end_offset=10, now_ms=100
    )
    again = known.at_new_epoch(
        knows_nobody=False, is_in_sync=False, leader_log_end_offset=12, now_ms=100
    )
    assert (UNKNOWN_OFFSET, 100) == (new.log_end_offset, new.last_caught_up_ms)
    assert FollowerProgress(9, 2, 12, NEVER_MS, NEVER_MS) == again
