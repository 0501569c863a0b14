"""The stories of a rebalance: who waits for whom, and for how long."""

from __future__ import annotations

import pytest

from engine.groups.member import JoinResult
from engine.groups.requests import LeavingMember
from engine.host.promise import Promise
from tests.unit.groups.stage import RANGE, REBALANCE_MS, SETTINGS, STICKY, Stage


@pytest.fixture
def stage() -> Stage:
    return Stage()


def is_answered(join: Promise[JoinResult]) -> bool:
    return join.is_kept


def test_the_first_join_waits_for_the_initial_delay(stage: Stage) -> None:
    join = stage.join()
    stage.pass_ms(2_999)
    assert not is_answered(join)
    stage.pass_ms(1)
    result = join.result()
    assert (0, 1, "consumer", "range") == (
        result.error_code,
        result.generation_id,
        result.protocol_type,
        result.protocol_name,
    )
    assert result.leader_id == result.member_id
    assert [(result.member_id, None, RANGE.metadata)] == list(result.members)
    assert stage.state == "CompletingRebalance"


def test_who_joins_during_the_initial_delay_extends_it_and_all_are_answered_at_once(
    stage: Stage,
) -> None:
    first = stage.join()
    stage.pass_ms(2_000)
    second = stage.join()
    stage.pass_ms(3_999)
    assert not is_answered(first)
    stage.pass_ms(1)
    assert {1} == {first.result().generation_id, second.result().generation_id}
    assert first.result().member_id == second.result().leader_id
    assert 2 == len(first.result().members)
    assert () == second.result().members


def test_the_initial_delay_is_never_longer_than_the_rebalance_timeout(stage: Stage) -> None:
    joins = [stage.join(rebalance_ms=5_000)]
    for _ in range(2):
        stage.pass_ms(2_000)
        joins.append(stage.join(rebalance_ms=5_000))
    stage.pass_ms(999)
    assert not is_answered(joins[0])
    stage.pass_ms(1)
    assert all(map(is_answered, joins))


def test_a_group_whose_rebalance_timeout_is_the_initial_delay_waits_no_longer(stage: Stage) -> None:
    joins = [stage.join(rebalance_ms=3_000) for _ in range(2)]
    stage.pass_ms(3_000)
    assert all(map(is_answered, joins))


def test_a_second_member_waits_until_the_first_has_rejoined(stage: Stage) -> None:
    (first,) = stage.stable()
    second = stage.join()
    assert stage.state == "PreparingRebalance"
    assert stage.heartbeat(first) == 27
    stage.pass_ms(5_000)
    assert not is_answered(second)
    again = stage.join(first.member_id)
    assert (2, 2) == (again.result().generation_id, second.result().generation_id)
    assert first.member_id == second.result().leader_id


def test_a_member_that_does_not_rejoin_in_time_is_removed_and_the_others_answered(
    stage: Stage,
) -> None:
    (first,) = stage.stable()
    second = stage.join(rebalance_ms=30_000)
    for _ in range(59):
        stage.pass_ms(1_000)
        assert stage.heartbeat(first) == 27
        assert not is_answered(second)
    stage.pass_ms(1_000)
    assert second.result().leader_id == second.result().member_id
    assert [second.result().member_id] == list(stage.group().members)
    assert stage.heartbeat(first) == 25


def test_a_member_whose_join_was_answered_is_to_be_heard_of_within_its_session(
    stage: Stage,
) -> None:
    stage.join()
    stage.pass_ms(3_000)
    stage.pass_ms(9_999)
    assert "CompletingRebalance" == stage.state
    stage.pass_ms(1)
    assert "Empty" == stage.state


def test_no_timer_is_left_of_a_member_that_was_removed(stage: Stage) -> None:
    members = stage.stable(2)
    third = stage.join(session_ms=1_000_000)
    for _ in range(59):
        stage.pass_ms(1_000)
        assert [27, 27] == [stage.heartbeat(member) for member in members]
    stage.pass_ms(1_000)
    assert third.is_kept
    # The session of the one that is left, and the time for its SyncGroup.
    assert 2 == stage.coordinator.delays.delayed_count


def test_a_group_of_static_members_that_are_all_away_waits_until_their_sessions_end(
    stage: Stage,
) -> None:
    names = ("a", "b")
    joins = [stage.join(instance_id=name, session_ms=100_000) for name in names]
    stage.pass_ms(6_000)
    for join in reversed(joins):
        stage.sync(join.result())
    stage.coordinator.memberships.remove_members("g", [LeavingMember("", "a")])
    stage.pass_ms(99_000)
    assert ("PreparingRebalance", 1) == (stage.state, len(stage.group().members))
    stage.pass_ms(1_000)
    assert ("Empty", 0) == (stage.state, len(stage.group().members))


def test_a_rebalance_begins_as_a_member_expires(stage: Stage) -> None:
    leader, silent = stage.stable(2)
    for _ in range(9):
        stage.pass_ms(1_000)
        assert stage.heartbeat(leader) == 0
    stage.pass_ms(1_000)
    assert stage.heartbeat(leader) == 27
    assert stage.heartbeat(silent) == 25
    again = stage.join(leader.member_id)
    assert 1 == len(again.result().members)


def test_a_group_whose_last_member_expires_is_empty_in_the_next_generation(stage: Stage) -> None:
    stage.stable()
    stage.pass_ms(10_000)
    assert ("Empty", 2, None) == (
        stage.state,
        stage.group().generation_id,
        stage.group().protocol_name,
    )


def test_a_new_member_whose_join_is_never_answered_is_removed_after_five_minutes(
    stage: Stage,
) -> None:
    (first,) = stage.stable()
    waiting = stage.join(rebalance_ms=1_000_000)
    for _ in range(299):
        stage.pass_ms(1_000)
        assert stage.heartbeat(first) == 27
    assert not is_answered(waiting)
    stage.pass_ms(1_000)
    assert ("", 25) == (waiting.result().member_id, waiting.result().error_code)


def test_a_member_that_waits_for_its_join_does_not_expire(stage: Stage) -> None:
    (first,) = stage.stable()
    stage.join()
    again = stage.join(first.member_id, rebalance_ms=REBALANCE_OF_SLOW)
    third = stage.join(rebalance_ms=REBALANCE_OF_SLOW)
    stage.pass_ms(15_000)
    assert again.is_kept
    assert 0 == again.result().error_code
    assert third.is_kept or stage.group().awaiting_join_count


REBALANCE_OF_SLOW = 120_000


def test_members_that_do_not_sync_within_the_rebalance_timeout_are_removed(stage: Stage) -> None:
    joins = [stage.join(session_ms=1_000_000), stage.join(session_ms=1_000_000)]
    stage.pass_ms(6_000)
    leader, follower = (join.result() for join in joins)
    stage.sync(leader, {})
    assert stage.state == "Stable"
    stage.pass_ms(59_999)
    assert "Stable" == stage.state
    stage.pass_ms(1)
    assert [leader.member_id] == list(stage.group().members)
    assert stage.state == "PreparingRebalance"
    assert stage.heartbeat(follower) == 25


def test_a_group_is_empty_once_its_member_expires_as_its_time_to_sync_is_over(stage: Stage) -> None:
    join = stage.join(session_ms=REBALANCE_MS, rebalance_ms=REBALANCE_MS)
    stage.pass_ms(3_000)
    assert join.is_kept
    stage.pass_ms(REBALANCE_MS)
    assert ("Empty", 2) == (stage.state, stage.group().generation_id)


def test_who_waits_for_an_assignment_rejoins_as_another_joins(stage: Stage) -> None:
    joins = [stage.join(), stage.join()]
    stage.pass_ms(6_000)
    _, follower = (join.result() for join in joins)
    parked = stage.sync(follower)
    stage.join()
    assert 27 == parked.result().error_code
    assert "PreparingRebalance" == stage.state


def test_a_protocol_is_chosen_by_votes_among_those_that_all_support(stage: Stage) -> None:
    both, other = (RANGE, STICKY), (STICKY, RANGE)
    joins = [stage.join(protocols=protocols) for protocols in (both, other, other)]
    stage.pass_ms(6_000)
    assert {"sticky"} == {join.result().protocol_name for join in joins}


def test_a_group_over_its_capacity_refuses_new_members(stage: Stage) -> None:
    small = Stage(SETTINGS._replace(max_size=1))
    small.stable()
    refused = small.join().result()
    assert ("", 81) == (refused.member_id, refused.error_code)
    assert "Stable" == small.state


def test_who_finds_a_group_full_by_the_id_that_it_was_given_is_waited_for_no_more() -> None:
    stage = Stage(SETTINGS._replace(max_size=2))
    (first,) = stage.stable()
    given = stage.join(version=4).result()
    joins = [stage.join(), stage.join(first.member_id)]
    assert [False, False] == [is_answered(join) for join in joins]
    assert 81 == stage.join(given.member_id, version=4).result().error_code
    assert set() == stage.group().pending_members
    assert [True, True] == [is_answered(join) for join in joins]


def test_a_group_that_prepares_a_rebalance_takes_as_many_as_may_wait() -> None:
    small = Stage(SETTINGS._replace(max_size=2))
    joins = [small.join() for _ in range(3)]
    assert [False, False, True] == [join.is_kept for join in joins]
    assert 81 == joins[2].result().error_code
    small.pass_ms(6_000)
    assert [0, 0] == [join.result().error_code for join in joins[:2]]


@pytest.mark.parametrize(("max_size", "state"), [(2, "Stable"), (1, "PreparingRebalance")])
def test_a_group_that_is_loaded_over_its_capacity_rebalances(max_size: int, state: str) -> None:
    stage = Stage()
    stage.stable(2)
    other = Stage(SETTINGS._replace(max_size=max_size), stage.log)
    assert state == other.state
