"""Members join, sync, send heartbeats and leave: what each state answers."""

from __future__ import annotations

from uuid import UUID

import pytest

from engine.groups.group import Group
from engine.groups.group_offsets import CommittedOffset
from engine.groups.member import Protocol
from engine.groups.requests import LeavingMember, MemberRequest, SyncRequest
from engine.host.promise import Promise
from engine.model import TopicPartition
from tests.unit.groups.stage import RANGE, REBALANCE_MS, STICKY, Stage


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_new_member_is_given_an_id_first(stage: Stage) -> None:
    given = stage.join(version=4).result()
    assert 79 == given.error_code
    name, number = given.member_id.split("-", 1)
    assert ("app", 4) == (name, UUID(number).version)
    join = stage.join(given.member_id, version=4)
    stage.pass_ms(3_000)
    assert (given.member_id, 0) == (join.result().member_id, join.result().error_code)


def test_an_id_that_was_given_to_a_dynamic_member_is_no_static_members(stage: Stage) -> None:
    given = stage.join(version=4).result()
    found = stage.join(given.member_id, instance_id="i", version=5).result()
    assert ("", -1, []) == (found.member_id, found.error_code, list(found.members))
    assert {given.member_id} == stage.group().pending_members


def test_an_id_that_nobody_joins_with_is_forgotten_after_the_session_timeout(stage: Stage) -> None:
    given = stage.join(version=4).result()
    stage.pass_ms(9_999)
    assert {given.member_id} == stage.group().pending_members
    stage.pass_ms(1)
    assert set() == stage.group().pending_members
    assert 25 == stage.join(given.member_id, version=4).result().error_code


def test_a_rebalance_waits_for_those_who_were_given_an_id(stage: Stage) -> None:
    (first,) = stage.stable()
    given = stage.join(version=4).result()
    stage.join(first.member_id)
    again = stage.join(first.member_id)
    assert not again.is_kept
    other = stage.join(given.member_id, version=4)
    assert (0, 0) == (again.result().error_code, other.result().error_code)


@pytest.mark.parametrize(("session_ms", "code"), [(5_999, 26), (1_800_001, 26)])
def test_a_session_timeout_has_bounds(stage: Stage, session_ms: int, code: int) -> None:
    assert code == stage.join(session_ms=session_ms).result().error_code


@pytest.mark.parametrize(
    ("protocols", "code"), [((STICKY,), 23), ((), 23), ((STICKY, RANGE), None)]
)
def test_a_new_member_has_a_protocol_of_all(
    stage: Stage, protocols: tuple[Protocol, ...], code: int | None
) -> None:
    stage.stable()
    join = stage.join(protocols=protocols)
    assert code == (join.result().error_code if join.is_kept else None)


def test_an_unknown_member_of_an_unknown_group_is_refused(stage: Stage) -> None:
    assert 25 == stage.join("nobody").result().error_code
    assert {} == stage.coordinator.registry.groups


def test_a_member_of_a_group_that_is_empty_by_now_is_unknown(stage: Stage) -> None:
    (member,) = stage.stable()
    stage.pass_ms(10_000)
    assert "Empty" == stage.state
    assert 25 == stage.join(member.member_id).result().error_code


def test_a_group_without_a_name_is_refused(stage: Stage) -> None:
    assert 24 == stage.join(group_id="").result().error_code


def test_a_follower_that_repeats_its_join_in_stable_gets_the_same_response(stage: Stage) -> None:
    _, follower = stage.stable(2)
    assert follower == stage.join(follower.member_id).result()
    assert "Stable" == stage.state


def test_a_follower_with_another_subscription_begins_a_rebalance(stage: Stage) -> None:
    _, follower = stage.stable(2)
    join = stage.join(follower.member_id, protocols=(RANGE._replace(metadata=b"other"),))
    assert not join.is_kept
    assert "PreparingRebalance" == stage.state


def test_a_leader_that_joins_again_in_stable_begins_a_rebalance(stage: Stage) -> None:
    leader, _ = stage.stable(2)
    assert not stage.join(leader.member_id).is_kept
    assert "PreparingRebalance" == stage.state


def test_a_leader_that_missed_its_join_response_gets_it_again(stage: Stage) -> None:
    joins = [stage.join(), stage.join()]
    stage.pass_ms(6_000)
    leader, follower = (join.result() for join in joins)
    assert (leader, follower) == (
        stage.join(leader.member_id).result(),
        stage.join(follower.member_id).result(),
    )
    assert "CompletingRebalance" == stage.state


def test_syncs_are_answered_once_the_leaders_assignment_is_written(stage: Stage) -> None:
    joins = [stage.join(), stage.join()]
    stage.pass_ms(6_000)
    leader, follower = (join.result() for join in joins)
    parked = stage.sync(follower)
    stage.log.is_held = True
    mine = stage.sync(leader, {follower.member_id: b"theirs", leader.member_id: b"mine"})
    assert not parked.is_kept
    assert "CompletingRebalance" == stage.state
    stage.log.release()
    assert (0, b"mine") == (mine.result().error_code, mine.result().assignment)
    assert (0, b"theirs") == (parked.result().error_code, parked.result().assignment)
    assert ("consumer", "range") == (parked.result().protocol_type, parked.result().protocol_name)


@pytest.mark.parametrize(
    ("log_code", "code"), [(3, 15), (19, 15), (20, 15), (6, 16), (56, 16), (7, 27), (10, -1)]
)
def test_an_assignment_that_cannot_be_written_has_the_group_rebalance(
    stage: Stage, log_code: int, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    join = stage.join()
    stage.pass_ms(3_000)
    stage.log.error_code = log_code
    assert code == stage.sync(join.result(), {}).result().error_code
    assert "PreparingRebalance" == stage.state
    assert f"group g was not written: error {code}" in caplog.messages


def test_a_late_sync_in_stable_gets_what_is_stored(stage: Stage) -> None:
    _, follower = stage.stable(2)
    assert b"1" == stage.sync(follower).result().assignment


def test_who_syncs_in_stable_is_not_removed_for_a_missing_sync(stage: Stage) -> None:
    joins = [stage.join(session_ms=REBALANCE_MS * 2) for _ in range(2)]
    stage.pass_ms(6_000)
    leader, follower = (join.result() for join in joins)
    stage.sync(leader)
    stage.sync(follower)
    assert "Stable" == stage.state
    stage.pass_ms(REBALANCE_MS)
    assert ("Stable", 2) == (stage.state, len(stage.group().members))


def test_an_assignment_of_an_earlier_generation_is_not_given(stage: Stage) -> None:
    join = stage.join()
    stage.pass_ms(3_000)
    stage.log.is_held = True
    sync = stage.sync(join.result(), {join.result().member_id: b"old"})
    stage.join()
    assert 27 == sync.result().error_code
    stage.log.release()
    assert "PreparingRebalance" == stage.state
    assert {b""} == {member.assignment for member in stage.group().members.values()}


def sync_code(stage: Stage, request: SyncRequest) -> int:
    return stage.coordinator.memberships.sync(request).result().error_code


def test_a_sync_is_of_a_member_of_this_generation_and_protocol(stage: Stage) -> None:
    (member,) = stage.stable()
    request = SyncRequest("g", 1, member.member_id, None, "consumer", "range", {})
    assert 0 == sync_code(stage, request)
    assert 22 == sync_code(stage, request._replace(generation_id=2))
    assert 25 == sync_code(stage, request._replace(member_id="nobody"))
    assert 25 == sync_code(stage, request._replace(group_id="unknown"))
    assert 23 == sync_code(stage, request._replace(protocol_type="connect"))
    assert 23 == sync_code(stage, request._replace(protocol_name="sticky"))
    stage.join()
    assert 27 == sync_code(stage, request)


def test_a_heartbeat_is_of_a_member_of_this_generation(stage: Stage) -> None:
    (member,) = stage.stable()
    assert 0 == stage.heartbeat(member)
    assert 22 == stage.heartbeat(member, 2)
    heartbeat = stage.coordinator.memberships.heartbeat
    assert 25 == heartbeat(MemberRequest("g", 1, "nobody", None))
    assert 25 == heartbeat(MemberRequest("unknown", 1, member.member_id, None))


def test_a_sync_and_a_heartbeat_start_the_session_again(stage: Stage) -> None:
    leader, follower = stage.stable(2)
    stage.pass_ms(9_000)
    stage.sync(follower)
    stage.heartbeat(leader)
    stage.pass_ms(9_999)
    assert 2 == len(stage.group().members)
    stage.pass_ms(1)
    assert {} == stage.group().members


def test_no_timer_runs_against_a_member_that_waits_for_its_assignment(stage: Stage) -> None:
    joins = [stage.join(), stage.join()]
    stage.pass_ms(6_000)
    leader, follower = (join.result() for join in joins)
    delays = stage.coordinator.delays
    # Two sessions, and the time for the SyncGroups.
    assert 3 == delays.delayed_count
    stage.sync(follower)
    assert 2 == delays.delayed_count
    stage.sync(leader)
    # Two sessions again: all SyncGroups have come.
    assert 2 == delays.delayed_count


def test_who_was_given_an_id_and_leaves_is_waited_for_no_more(stage: Stage) -> None:
    (first,) = stage.stable()
    given = stage.join(version=4).result()
    stage.join()
    again = stage.join(first.member_id)
    assert not again.is_kept
    assert (0, [0]) == stage.coordinator.memberships.remove_members(
        "g", [LeavingMember(given.member_id, None)]
    )
    assert again.is_kept


def test_who_waits_for_a_join_and_leaves_is_answered_and_waited_for_no_more(stage: Stage) -> None:
    leader, follower = stage.stable(2)
    waiting = stage.join(follower.member_id, protocols=(RANGE._replace(metadata=b"new"),))
    stage.coordinator.memberships.remove_members("g", [LeavingMember(follower.member_id, None)])
    assert ("", 25) == (waiting.result().member_id, waiting.result().error_code)
    assert 0 == stage.group().awaiting_join_count
    assert stage.join(leader.member_id).is_kept


def test_who_is_removed_while_its_join_is_parked_counts_as_one_that_waited(stage: Stage) -> None:
    first, second = stage.stable(2)
    group = stage.group()
    for waiting in (first, second):
        group.await_join(group.members[waiting.member_id], Promise())
    group.remove_member(second.member_id)
    assert (1, True) == (group.awaiting_join_count, group.has_all_members_joined)


def test_the_log_says_who_has_left_and_who_has_expired(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    first, second = stage.stable(2)
    stage.coordinator.memberships.remove_members("g", [LeavingMember(first.member_id, None)])
    stage.pass_ms(10_000)
    assert f"member {first.member_id} leaves group g" in caplog.messages
    assert f"member {second.member_id} of group g has expired" in caplog.messages


def test_a_member_that_leaves_has_the_others_rebalance(stage: Stage) -> None:
    leader, follower = stage.stable(2)
    leave = stage.coordinator.memberships.remove_members
    assert (0, [0, 25]) == leave(
        "g", [LeavingMember(follower.member_id, None), LeavingMember("nobody", None)]
    )
    # One session, and the time for the join of who is left.
    assert 2 == stage.coordinator.delays.delayed_count
    assert 27 == stage.heartbeat(leader)
    assert (0, [25]) == leave("unknown", [LeavingMember("x", None)])


def test_the_last_member_that_leaves_leaves_an_empty_group(stage: Stage) -> None:
    (member,) = stage.stable()
    stage.coordinator.memberships.remove_members("g", [LeavingMember(member.member_id, None)])
    assert ("Empty", 2) == (stage.state, stage.group().generation_id)


# Static members


def static_group(stage: Stage) -> tuple[str, str]:
    """Return the member ids of a stable group with two static members, the leader's first."""
    joins = [stage.join(instance_id="a"), stage.join(instance_id="b")]
    stage.pass_ms(6_000)
    leader, follower = (join.result() for join in joins)
    for member in (follower, leader):
        stage.sync(member, {leader.member_id: b"A", follower.member_id: b"B"})
    return leader.member_id, follower.member_id


def test_a_static_member_that_returns_takes_its_place_without_a_rebalance(stage: Stage) -> None:
    leader_id, follower_id = static_group(stage)
    again = stage.join(instance_id="b").result()
    assert (0, 1, leader_id) == (again.error_code, again.generation_id, again.leader_id)
    assert again.member_id != follower_id
    assert again.member_id.startswith("b-")
    assert "Stable" == stage.state
    assert b"B" == stage.sync(again).result().assignment


def test_what_the_earlier_life_of_a_static_member_waits_for_is_fenced(stage: Stage) -> None:
    joins = [stage.join(instance_id="a"), stage.join(instance_id="b")]
    stage.pass_ms(6_000)
    parked = stage.sync(joins[1].result())
    waiting = stage.join(instance_id="b")
    assert 82 == parked.result().error_code
    assert "PreparingRebalance" == stage.state
    stage.join(instance_id="b")
    assert 82 == waiting.result().error_code


def test_requests_of_the_earlier_life_of_a_static_member_are_fenced(stage: Stage) -> None:
    _, old_id = static_group(stage)
    stage.join(instance_id="b")
    heartbeat = stage.coordinator.memberships.heartbeat
    assert 82 == heartbeat(MemberRequest("g", 1, old_id, "b"))
    assert 25 == heartbeat(MemberRequest("g", 1, old_id, None))
    assert 25 == heartbeat(MemberRequest("g", 1, old_id, "c"))
    nameless = MemberRequest("g", -1, "", "b")
    committed = stage.coordinator.commits.commit(
        nameless, {TopicPartition("t", 0): CommittedOffset(1)}
    )
    assert [82] == list(committed.result().values())


def test_the_session_of_a_static_member_that_returns_begins_then(stage: Stage) -> None:
    leader_id, _ = static_group(stage)
    beat = MemberRequest("g", 1, leader_id, "a")
    stage.pass_ms(5_000)
    stage.coordinator.memberships.heartbeat(beat)
    again = stage.join(instance_id="b").result()
    stage.pass_ms(9_999)
    stage.coordinator.memberships.heartbeat(beat)
    assert {leader_id, again.member_id} == set(stage.group().members)
    stage.pass_ms(1)
    assert {leader_id} == set(stage.group().members)


def test_a_static_leader_that_returns_does_not_assign(stage: Stage) -> None:
    leader_id, _ = static_group(stage)
    old = stage.join(instance_id="a", version=8).result()
    assert (leader_id, (), False) == (old.leader_id, old.members, old.skip_assignment)
    new = stage.join(instance_id="a", version=9).result()
    assert (new.member_id, 2, True) == (new.leader_id, len(new.members), new.skip_assignment)


@pytest.mark.parametrize("is_leader", [True, False])
def test_a_static_member_whose_new_id_cannot_be_written_keeps_its_old_one(
    stage: Stage, *, is_leader: bool
) -> None:
    leader_id, follower_id = static_group(stage)
    member_id, instance_id = (leader_id, "a") if is_leader else (follower_id, "b")
    stage.log.error_code = 6
    refused = stage.join(instance_id=instance_id).result()
    assert (16, leader_id) == (refused.error_code, refused.leader_id)
    assert {leader_id, follower_id} == set(stage.group().members)
    assert member_id == stage.group().static_members[instance_id]
    assert leader_id == stage.group().leader_id


def test_the_session_of_a_static_member_that_could_not_return_begins_then(stage: Stage) -> None:
    leader_id, follower_id = static_group(stage)
    beat = MemberRequest("g", 1, leader_id, "a")
    stage.pass_ms(5_000)
    stage.coordinator.memberships.heartbeat(beat)
    stage.log.error_code = 6
    assert 16 == stage.join(instance_id="b").result().error_code
    stage.pass_ms(9_999)
    stage.coordinator.memberships.heartbeat(beat)
    assert {leader_id, follower_id} == set(stage.group().members)
    stage.pass_ms(1)
    assert {leader_id} == set(stage.group().members)


@pytest.mark.parametrize("log_code", [0, 7])
def test_a_static_member_whose_new_id_is_written_late_expires_too(
    stage: Stage, log_code: int
) -> None:
    leader_id, _ = static_group(stage)
    beat = MemberRequest("g", 1, leader_id, "a")
    stage.log.is_held = True
    waiting = stage.join(instance_id="b")
    for _ in range(3):
        stage.pass_ms(5_000)
        stage.coordinator.memberships.heartbeat(beat)
    stage.log.release(log_code)
    assert (27 if log_code else 0) == waiting.result().error_code
    stage.pass_ms(9_999)
    stage.coordinator.memberships.heartbeat(beat)
    assert 2 == len(stage.group().members)
    stage.pass_ms(1)
    assert {leader_id} == set(stage.group().members)


def test_a_static_member_that_is_gone_as_its_new_id_is_refused_has_no_protocols(
    stage: Stage,
) -> None:
    both = (RANGE, STICKY)
    joins = [stage.join(instance_id="b", protocols=both), stage.join(instance_id="a")]
    stage.pass_ms(6_000)
    for join in reversed(joins):
        stage.sync(join.result(), {})
    stage.log.is_held = True
    stage.join(instance_id="b")
    stage.coordinator.memberships.remove_members("g", [LeavingMember("", "b")])
    stage.log.release(7)
    assert not stage.group().supports_protocols("consumer", (STICKY,))
    # Member a has another protocol alone.
    assert 23 == stage.join(protocols=(STICKY,)).result().error_code


def test_a_static_member_that_is_away_keeps_its_place_until_its_session_ends(stage: Stage) -> None:
    leader_id, follower_id = static_group(stage)
    stage.join(leader_id, instance_id="a")
    stage.pass_ms(9_000)
    assert {leader_id, follower_id} == set(stage.group().members)
    stage.pass_ms(1_000)
    assert {leader_id} == set(stage.group().members)


def test_a_static_member_that_returns_with_another_protocol_has_the_group_rebalance(
    stage: Stage,
) -> None:
    joins = [stage.join(instance_id=name, protocols=(RANGE, STICKY)) for name in ("a", "b")]
    stage.pass_ms(6_000)
    leader, follower = (join.result() for join in joins)
    for member in (follower, leader):
        stage.sync(member, {})
    assert not stage.join(instance_id="b", protocols=(STICKY,)).is_kept
    assert "PreparingRebalance" == stage.state


def test_another_member_leads_if_a_static_leader_does_not_join_again(stage: Stage) -> None:
    leader_id, follower_id = static_group(stage)
    stage.join(follower_id, instance_id="b", protocols=(RANGE._replace(metadata=b"new"),))
    for _ in range(12):
        stage.pass_ms(5_000)
        stage.coordinator.memberships.heartbeat(MemberRequest("g", 1, leader_id, "a"))
    assert {leader_id, follower_id} == set(stage.group().members)
    assert ("CompletingRebalance", follower_id) == (stage.state, stage.group().leader_id)


def test_a_static_member_is_removed_by_its_instance_id(stage: Stage) -> None:
    leader_id, _ = static_group(stage)
    leave = stage.coordinator.memberships.remove_members
    assert (0, [0, 25]) == leave("g", [LeavingMember("", "b"), LeavingMember("", "c")])
    assert {leader_id} == set(stage.group().members)
    # Its place is free: who comes with its id is a new member.
    assert 25 == leave("g", [LeavingMember("", "b")])[1][0]
    again = stage.join(instance_id="b")
    assert not again.is_kept
    assert "PreparingRebalance" == stage.state


def test_members_of_a_group_that_cannot_be_written_hear_so_and_join_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage()
    join = stage.join(instance_id="x" * 32_768)
    stage.pass_ms(3_000)
    assert -1 == stage.sync(join.result()).result().error_code
    assert "PreparingRebalance" == stage.state
    assert any(m.startswith("group g cannot be written: ") for m in caplog.messages)


@pytest.mark.parametrize(("protocol_type", "protocols"), [("consumer", ()), ("", (RANGE,))])
def test_an_empty_group_takes_nobody_without_a_protocol(
    protocol_type: str, protocols: tuple[Protocol, ...]
) -> None:
    group = Group("g", 0)
    assert not group.supports_protocols(protocol_type, protocols)
    assert group.supports_protocols("consumer", (RANGE,))
