"""Groups are listed, described, deleted, and end by themselves."""

from __future__ import annotations

import pytest

from engine.groups.group_admin import ListedGroup
from engine.groups.group_offsets import CommittedOffset
from engine.groups.records import group_tombstone
from engine.groups.requests import LeavingMember, MemberRequest
from engine.hash_order import in_hash_order
from engine.log.tasks import take_all
from engine.model import TopicPartition
from tests.unit.groups.stage import COUNT, RANGE, SETTINGS, Stage

T0, U0 = TopicPartition("t", 0), TopicPartition("u", 0)
ALONE = MemberRequest("g", -1, "", None)
RETENTION_MS = SETTINGS.offsets_retention_ms


@pytest.fixture
def stage() -> Stage:
    return Stage()


def commit(stage: Stage, request: MemberRequest, *partitions: TopicPartition) -> None:
    offset = CommittedOffset(1, commit_ms=stage.clock.wall_ms())
    codes = stage.coordinator.commits.commit(request, dict.fromkeys(partitions, offset)).result()
    assert {0} == set(codes.values())


def test_groups_are_listed_with_their_states(stage: Stage) -> None:
    stage.stable()
    commit(stage, ALONE._replace(group_id="alone"), T0)
    code, listed = stage.coordinator.admin.list_groups()
    assert {ListedGroup("g", "consumer", "Stable"), ListedGroup("alone", "", "Empty")} == {*listed}
    assert 0 == code


def test_groups_are_listed_in_the_order_of_a_hash_table(stage: Stage) -> None:
    for group_id in ("b", "a", "ab", "aa"):
        commit(stage, ALONE._replace(group_id=group_id), T0)
    _, listed = stage.coordinator.admin.list_groups()
    assert in_hash_order(("a", "aa", "ab", "b")) == [group.group_id for group in listed]


def test_a_stable_group_is_described_with_what_its_members_have(stage: Stage) -> None:
    (member,) = stage.stable()
    described = stage.coordinator.admin.describe_group("g")
    assert (0, "Stable", "consumer", "range") == described[:4]
    assert [(member.member_id, None, "app", "/1.2.3.4", RANGE.metadata, b"0")] == list(
        described.members
    )


def test_a_group_that_rebalances_is_described_without_that(stage: Stage) -> None:
    (member,) = stage.stable()
    stage.join()
    described = stage.coordinator.admin.describe_group("g")
    assert ("PreparingRebalance", "consumer", "") == described[1:4]
    assert (member.member_id, b"", b"") == (
        described.members[0].member_id,
        *described.members[0][-2:],
    )


def test_an_unknown_group_is_dead(stage: Stage) -> None:
    assert (0, "Dead", "", "", ()) == stage.coordinator.admin.describe_group("unknown")


def test_only_groups_without_members_are_deleted(stage: Stage) -> None:
    stage.stable()
    commit(stage, ALONE._replace(group_id="empty"), T0)
    delete = stage.coordinator.admin.delete
    assert {"g": 68, "empty": 0, "unknown": 69} == delete(["g", "empty", "unknown"])
    assert {"empty": 69} == delete(["empty"])
    assert {"g"} == set(Stage(log=stage.log).coordinator.registry.groups)


def test_a_group_is_deleted_though_a_commit_is_on_its_way(stage: Stage) -> None:
    stage.log.is_held = True
    offset = CommittedOffset(1)
    promise = stage.coordinator.commits.commit(ALONE, {T0: offset})
    assert {"g": 0} == stage.coordinator.admin.delete(["g"])
    stage.log.release()
    assert {T0: 0} == promise.result()
    assert {} == stage.coordinator.registry.groups


def test_a_deleted_group_has_no_record(stage: Stage) -> None:
    (member,) = stage.stable()
    stage.coordinator.memberships.remove_members("g", [LeavingMember(member.member_id, None)])
    assert {"g": 0} == stage.coordinator.admin.delete(["g"])
    assert {} == Stage(log=stage.log).coordinator.registry.groups


def expire_after(stage: Stage, duration_ms: int) -> set[TopicPartition] | None:
    """Return what group g has committed after that time, None once it has ended."""
    stage.pass_ms(duration_ms)
    take_all(stage.coordinator.admin.expire_groups())
    group = stage.coordinator.registry.groups.get("g")
    return None if group is None else set(group.offsets.all())


def test_offsets_of_no_members_expire_after_their_commit(stage: Stage) -> None:
    commit(stage, ALONE, T0)
    assert {T0} == expire_after(stage, 1_000)
    commit(stage, ALONE, U0)
    assert {T0, U0} == expire_after(stage, RETENTION_MS - 1_001)
    assert {U0} == expire_after(stage, 1)
    assert expire_after(stage, 1_000) is None
    assert {} == Stage(log=stage.log).coordinator.registry.groups


def test_offsets_of_a_group_expire_after_it_became_empty(stage: Stage) -> None:
    (member,) = stage.stable()
    commit(stage, MemberRequest("g", 1, member.member_id, None), T0)
    for _ in range(5):
        stage.pass_ms(9_000)
        assert 0 == stage.heartbeat(member)
    stage.coordinator.memberships.remove_members("g", [LeavingMember(member.member_id, None)])
    assert {T0} == expire_after(stage, RETENTION_MS - 1)
    assert expire_after(stage, 1) is None


def test_offsets_of_topics_that_a_stable_group_subscribes_to_do_not_expire() -> None:
    stage = Stage(SETTINGS._replace(offsets_retention_ms=1_000))
    (member,) = stage.stable()
    commit(stage, MemberRequest("g", 1, member.member_id, None), T0, U0)
    assert {T0, U0} == expire_after(stage, 999)
    assert {T0} == expire_after(stage, 1)


def test_nothing_expires_while_a_group_rebalances() -> None:
    stage = Stage(SETTINGS._replace(offsets_retention_ms=1_000))
    (member,) = stage.stable()
    commit(stage, MemberRequest("g", 1, member.member_id, None), T0, U0)
    stage.join()
    assert {T0, U0} == expire_after(stage, 1_000)


def test_an_offset_with_a_retention_of_its_own_expires_by_that(stage: Stage) -> None:
    offset = CommittedOffset(1, expire_ms=stage.clock.wall_ms() + 5_000)
    stage.coordinator.commits.commit(ALONE, {T0: offset})
    assert {T0} == expire_after(stage, 4_999)
    assert expire_after(stage, 1) is None


def test_groups_that_end_while_others_expire_are_passed_over(stage: Stage) -> None:
    commit(stage, ALONE, T0)
    commit(stage, ALONE._replace(group_id="other"), T0)
    stage.pass_ms(RETENTION_MS)
    steps = stage.coordinator.admin.expire_groups()
    next(steps)
    assert {"other": 0} == stage.coordinator.admin.delete(["other"])
    take_all(steps)
    assert {} == stage.coordinator.registry.groups
    tombstones = [r for log in stage.log.partitions.values() for r in log if r.value is None]
    assert 2 == len(tombstones)


def test_a_group_that_ends_while_others_expire_has_one_tombstone(stage: Stage) -> None:
    commit(stage, ALONE._replace(group_id="other"), T0)
    stage.stable()
    stage.pass_ms(10_000)
    assert "Empty" == stage.state
    steps = stage.coordinator.admin.expire_groups()
    next(steps)
    assert {"g": 0} == stage.coordinator.admin.delete(["g"])
    take_all(steps)
    tombstones = [r for log in stage.log.partitions.values() for r in log if r.value is None]
    assert [group_tombstone("g")] == tombstones


def test_groups_that_were_loaded_again_meanwhile_do_not_expire(stage: Stage) -> None:
    other = ALONE._replace(group_id="other")
    commit(stage, ALONE, T0)
    commit(stage, other, T0)
    stage.pass_ms(RETENTION_MS)
    steps = stage.coordinator.admin.expire_groups()
    next(steps)
    for partition in range(COUNT):
        stage.coordinator.registry.on_resigned(partition)
        stage.coordinator.registry.elected(partition, 2)
    commit(stage, other, T0)
    take_all(steps)
    _, found = Stage(log=stage.log).coordinator.commits.fetch("other", None)
    assert {T0} == set(found)


def test_what_is_committed_again_meanwhile_does_not_expire(stage: Stage) -> None:
    commit(stage, ALONE, T0)
    stage.log.is_held = True
    stage.pass_ms(RETENTION_MS)
    offset = CommittedOffset(2, commit_ms=stage.clock.wall_ms())
    stage.coordinator.commits.commit(ALONE, {T0: offset})
    assert {T0} == expire_after(stage, 0)
    stage.log.release()
    assert (0, {T0: offset}) == stage.coordinator.commits.fetch("g", None)


def test_offsets_of_deleted_topics_are_forgotten(stage: Stage) -> None:
    commit(stage, ALONE, T0, U0)
    stage.coordinator.admin.forget_topics(["t"])
    assert {U0} == set(stage.group().offsets.all())
    stage.coordinator.admin.forget_topics(["u"])
    assert {} == stage.coordinator.registry.groups
