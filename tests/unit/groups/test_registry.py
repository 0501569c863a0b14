"""Groups come and go with the leadership of their partition."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from engine.errors import api_error
from engine.groups.group_offsets import CommittedOffset
from engine.groups.ports import GroupRecord, LoadedRecords
from engine.groups.records import build_offset_record
from engine.groups.requests import MemberRequest
from engine.groups.states import GroupState
from engine.kafka_errors import NOT_LEADER_OR_FOLLOWER
from engine.limits import COORDINATOR_LOAD_RETRY_MS
from engine.model import TopicPartition
from engine.naming import coordinator_partition
from engine.wire import messages
from engine.wire.coordinator_records import encode_key, encode_value
from tests.unit.groups.stage import COUNT, MemoryLog, Stage

T0, U0 = TopicPartition("t", 0), TopicPartition("u", 0)
ALONE = MemberRequest("g", -1, "", None)


@pytest.mark.parametrize(
    ("group_id", "count", "partition"), [("g1", 4, 2), ("g2", 4, 3), ("polygenelubricants", 50, 0)]
)
def test_the_partition_of_a_group_is_kafkas(group_id: str, count: int, partition: int) -> None:
    assert partition == coordinator_partition(group_id, count)


def test_another_coordinator_has_the_group_as_it_was() -> None:
    stage = Stage()
    leader, follower = stage.stable(2)
    offset = CommittedOffset(7, 3, "note", 1_000)
    mine = MemberRequest("g", 1, leader.member_id, None)
    stage.coordinator.commits.commit(mine, {T0: offset})
    other = Stage(log=stage.log)
    assert stage.coordinator.admin.describe_group("g") == other.coordinator.admin.describe_group(
        "g"
    )
    assert (0, {T0: offset}) == other.coordinator.commits.fetch("g", None)
    assert 0 == other.heartbeat(leader)
    assert b"1" == other.sync(follower).result().assignment
    assert follower == other.join(follower.member_id).result()


def test_an_empty_group_is_loaded_as_it_became_empty() -> None:
    stage = Stage()
    stage.stable()
    stage.pass_ms(10_000)
    other = Stage(log=stage.log)
    for name in ("state", "generation_id", "protocol_type", "state_timestamp_ms"):
        assert getattr(stage.group(), name) == getattr(other.group(), name)
    assert "Empty" == other.state


def test_a_partition_that_is_led_already_is_not_loaded_again() -> None:
    stage = Stage()
    stage.stable()
    group = stage.group()
    stage.coordinator.registry.elected(coordinator_partition("g", COUNT), 2)
    assert group is stage.group()
    stage.coordinator.stop()
    stage.coordinator.registry.elected(coordinator_partition("g", COUNT), 3)
    assert {} == stage.coordinator.registry.groups


def test_members_of_a_group_that_was_loaded_expire() -> None:
    stage = Stage()
    stage.stable()
    other = Stage(log=stage.log)
    other.pass_ms(9_999)
    assert "Stable" == other.state
    other.pass_ms(1)
    assert "Empty" == other.state


def test_an_offset_with_a_retention_is_loaded_with_it() -> None:
    stage = Stage()
    offset = CommittedOffset(7, -1, "", 1_000, 9_000)
    stage.coordinator.commits.commit(ALONE, {T0: offset})
    assert (0, {T0: offset}) == Stage(log=stage.log).coordinator.commits.fetch("g", None)


def test_requests_for_a_partition_that_is_led_elsewhere_are_refused() -> None:
    stage = Stage()
    (member,) = stage.stable()
    stage.coordinator.registry.on_resigned(coordinator_partition("g", COUNT))
    assert 16 == stage.heartbeat(member)
    assert 16 == stage.join().result().error_code
    assert 16 == stage.sync(member).result().error_code
    assert 16 == stage.coordinator.commits.fetch("g", None)[0]
    assert 16 == stage.coordinator.admin.describe_group("g").error_code
    assert {"g": 16} == stage.coordinator.admin.delete(["g"])
    assert (16, []) == stage.coordinator.memberships.remove_members("g", [])


def test_groups_of_other_partitions_stay_as_one_is_led_elsewhere() -> None:
    stage = Stage()
    names = [f"g{number}" for number in range(20)]
    for name in names:
        stage.coordinator.commits.commit(ALONE._replace(group_id=name), {T0: CommittedOffset(1)})
    stage.coordinator.admin.delete(names[:3])
    stage.coordinator.registry.on_resigned(2)
    left = {name for name in names[3:] if coordinator_partition(name, COUNT) != 2}
    assert left == set(stage.coordinator.registry.groups)
    stage.coordinator.registry.elected(2, 2)
    assert set(names[3:]) == set(stage.coordinator.registry.groups)


def test_a_partition_keeps_the_epoch_in_which_it_was_loaded() -> None:
    registry = Stage().coordinator.registry
    registry.on_resigned(1)
    assert registry.loaded_epoch(1) is None
    registry.elected(1, 4)
    registry.elected(1, 6)
    assert 4 == registry.loaded_epoch(1)
    registry.on_resigned(1)
    registry.elected(1, 7)
    assert 7 == registry.loaded_epoch(1)


def test_groups_end_and_go_though_the_topic_has_grown() -> None:
    stage = Stage()
    names = [f"g{number}" for number in range(8)]
    for name in names:
        stage.coordinator.commits.commit(ALONE._replace(group_id=name), {T0: CommittedOffset(1)})
    stage.log.count = 5
    stage.coordinator.admin.forget_topics(["t"])
    assert {} == stage.coordinator.registry.groups
    for partition in range(COUNT):
        stage.coordinator.registry.on_resigned(partition)


def test_a_group_that_is_served_is_not_replaced_by_what_it_was_before_the_topic_grew() -> None:
    stage = Stage()
    stage.log.count = COUNT + 1
    registry = stage.coordinator.registry
    registry.elected(COUNT, 1)
    before, now = (coordinator_partition("h", count) for count in (COUNT, COUNT + 1))
    assert (0, COUNT) == (before, now)
    stage.coordinator.commits.commit(ALONE._replace(group_id="h"), {T0: CommittedOffset(9)})
    group = stage.group("h")
    # Another broker has led it meanwhile.
    registry.on_resigned(before)
    stage.log.partitions[before] = [build_offset_record("h", T0, CommittedOffset(1))]
    registry.elected(before, 3)
    assert group is stage.group("h")
    assert [9] == [row.offset for row in group.offsets.all().values()]
    registry.on_resigned(now)
    assert {} == registry.groups


def test_who_waits_for_a_group_hears_that_it_is_coordinated_elsewhere() -> None:
    stage = Stage()
    joins = [stage.join(), stage.join()]
    stage.coordinator.registry.on_resigned(coordinator_partition("g", COUNT))
    assert {16} == {join.result().error_code for join in joins}
    assert 0 == stage.coordinator.delays.delayed_count
    stage = Stage()
    joins = [stage.join(), stage.join()]
    stage.pass_ms(6_000)
    parked = stage.sync(joins[1].result())
    stage.coordinator.registry.on_resigned(coordinator_partition("g", COUNT))
    assert 16 == parked.result().error_code
    assert 0 == stage.coordinator.delays.delayed_count


def test_no_timer_is_left_of_an_id_that_was_given_as_the_group_goes() -> None:
    stage = Stage()
    assert 79 == stage.join(version=4).result().error_code
    assert 1 == stage.coordinator.delays.delayed_count
    stage.coordinator.registry.on_resigned(coordinator_partition("g", COUNT))
    assert 0 == stage.coordinator.delays.delayed_count


class ReadLater(MemoryLog):
    """A log whose reading goes on in turns of the loop."""

    stage: Stage

    def read(self, partition: int) -> Iterator[LoadedRecords]:
        for entry in super().read(partition):
            self.stage.clock.advance(100)
            yield entry


def loading(records: MemoryLog) -> Stage:
    """Return a coordinator that has begun to load."""
    log = ReadLater()
    log.partitions = records.partitions
    stage = Stage()
    stage.log = log
    log.stage = stage
    partition = coordinator_partition("g", COUNT)
    registry = stage.coordinator.registry
    registry.on_resigned(partition)
    registry._log = log
    registry.elected(partition, 2)
    return stage


def written() -> MemoryLog:
    stage = Stage()
    stage.stable()
    stage.coordinator.commits.commit(ALONE._replace(group_id="g"), {T0: CommittedOffset(1)})
    return stage.log


def test_while_a_partition_is_loaded_clients_get_an_error_and_members_stay() -> None:
    stage = loading(written())
    assert 14 == stage.join().result().error_code
    assert 14 == stage.coordinator.commits.fetch("g", None)[0]
    assert 14 == stage.coordinator.admin.list_groups()[0]
    member = stage.join().result()
    assert 0 == stage.heartbeat(member)
    assert 27 == stage.sync(member).result().error_code
    stage.timers.run_until_idle()
    assert "Stable" == stage.state
    assert 0 == stage.coordinator.admin.list_groups()[0]


def test_the_log_says_how_long_a_load_took(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    stage = loading(written())
    stage.timers.run_until_idle()
    stage.clock.advance(5_000)
    registry, partition = stage.coordinator.registry, coordinator_partition("g", COUNT)
    registry.on_resigned(partition)
    registry.elected(partition, 3)
    stage.timers.run_until_idle()
    assert (
        "Finished loading offsets and group metadata from __consumer_offsets-"
        f"{partition} in 100 milliseconds for epoch 3"
    ) == caplog.messages[-1]


def test_a_load_ends_as_the_partition_is_lost() -> None:
    stage = loading(written())
    stage.coordinator.registry.on_resigned(coordinator_partition("g", COUNT))
    stage.timers.run_until_idle()
    assert {} == stage.coordinator.registry.groups
    # Nothing is kept of markers that are written from now on.
    assert {} == stage.coordinator.registry._ended_during_load
    assert 16 == stage.join().result().error_code


def turns_of(stage: Stage) -> Iterator[None]:
    """Have each turn of the loop load one record or make one group, and pass them one by one."""
    stage.coordinator.registry._turns.ends_early = lambda: True
    while stage.timers._soon:
        stage.timers._soon.popleft()()
        yield


@pytest.mark.parametrize("is_lost", [True, False])
def test_groups_are_made_in_turns_and_served_once_all_are_there(*, is_lost: bool) -> None:
    names = [name for name in map(str, range(40)) if coordinator_partition(name, COUNT) == 3][:5]
    log = MemoryLog()
    records = [build_offset_record(name, T0, CommittedOffset(1)) for name in names]
    log.partitions = {coordinator_partition("g", COUNT): records}
    stage = loading(log)
    registry = stage.coordinator.registry
    turns = 0
    for turns, _ in enumerate(turns_of(stage), 1):
        if registry.groups:
            break
        assert 14 == registry.check_served(names[0])
        if is_lost and turns == 7:
            registry.on_resigned(3)
            break
    stage.timers.run_until_idle()
    assert (7 if is_lost else 10) == turns
    assert (set() if is_lost else {*names}) == set(registry.groups)
    assert (16 if is_lost else 0) == registry.check_served(names[0])


def loading_stable(names: list[str]) -> Stage:
    """Return a coordinator that has begun to load stable groups, each of one member."""
    partition = coordinator_partition("g", COUNT)
    value = written().partitions[partition][0].value
    keys = (encode_key(messages.GroupMetadataKey(group=name), 2) for name in names)
    log = MemoryLog()
    log.partitions = {partition: [GroupRecord(key, value) for key in keys]}
    return loading(log)


@pytest.mark.parametrize("is_lost", [True, False])
def test_sessions_begin_in_the_turn_of_their_group_and_end_with_a_lost_load(
    *, is_lost: bool
) -> None:
    names = [name for name in map(str, range(40)) if coordinator_partition(name, COUNT) == 3][:5]
    stage, partition = loading_stable(names), coordinator_partition("g", COUNT)
    registry, delays = stage.coordinator.registry, stage.coordinator.delays
    counts = [0]
    for _ in turns_of(stage):
        counts.append(delays.delayed_count)
        if is_lost and counts[-1] == 3:
            registry.on_resigned(partition)
            break
    stage.timers.run_until_idle()
    assert {0, 1} == {after - before for before, after in itertools.pairwise(counts)}
    assert (0 if is_lost else 5) == delays.delayed_count == len(registry.groups)


def test_groups_of_a_lost_partition_are_dead_at_once_and_unloaded_in_turns() -> None:
    names = [name for name in map(str, range(40)) if coordinator_partition(name, COUNT) == 3][:5]
    stage, partition = loading_stable(names), coordinator_partition("g", COUNT)
    stage.timers.run_until_idle()
    registry, delays = stage.coordinator.registry, stage.coordinator.delays
    groups = list(registry.groups.values())
    registry._turns.ends_early = lambda: True
    registry.on_resigned(partition)
    assert ({}, {GroupState.DEAD}) == (registry.groups, {group.state for group in groups})
    counts = [delays.delayed_count]
    counts += [delays.delayed_count for _ in turns_of(stage)]
    assert [4, 3, 2, 1, 0] == counts[:5]


def test_who_joins_before_the_sessions_of_a_loaded_group_begin_is_waited_for_as_ever() -> None:
    first = next(name for name in map(str, range(40)) if coordinator_partition(name, COUNT) == 3)
    stage = loading_stable([first, "g"])
    for _ in turns_of(stage):
        if stage.coordinator.delays.delayed_count:
            break
    (loaded,) = stage.group().members
    join = stage.join(instance_id="i", session_ms=6_000)
    stage.timers.run_until_idle()
    assert 2 == len(stage.group().members)
    # The session of the loaded one ends, and with it the wait for it.
    stage.pass_ms(10_000)
    assert (0, 2) == (join.result().error_code, join.result().generation_id)
    assert loaded not in stage.group().members


@pytest.mark.parametrize("turn", [1, 2])
def test_nothing_of_a_deleted_topic_is_loaded_for_one_that_is_made_in_its_place(turn: int) -> None:
    log, partition = MemoryLog(), coordinator_partition("g", COUNT)
    log.partitions = {partition: [build_offset_record("g", T0, CommittedOffset(1))] * 2}
    stage = loading(log)
    registry = stage.coordinator.registry
    for passed, _ in enumerate(turns_of(stage), 1):
        if passed == turn:
            break
    assert registry.is_loading
    registry.on_resigned(partition)
    later = CommittedOffset(2)
    log.partitions[partition] = [build_offset_record("g", U0, later)] * 5
    registry.elected(partition, 2)
    stage.timers.run_until_idle()
    assert (0, {U0: later}) == stage.coordinator.commits.fetch("g", None)


def test_a_load_ends_as_the_broker_stops() -> None:
    stage = loading(written())
    stage.coordinator.stop()
    stage.timers.run_until_idle()
    assert {} == stage.coordinator.registry.groups
    assert {} == stage.coordinator.registry._ended_during_load
    assert 0 == stage.coordinator.delays.delayed_count


def test_offsets_of_topics_that_a_loaded_group_subscribes_to_are_not_deleted() -> None:
    stage = Stage()
    (member,) = stage.stable()
    mine = MemberRequest("g", 1, member.member_id, None)
    stage.coordinator.commits.commit(mine, {T0: CommittedOffset(1)})
    other = Stage(log=stage.log)
    assert frozenset("t") == other.group().subscribed_topics
    assert (0, {T0: 86}) == other.coordinator.commits.delete_offsets("g", [T0])


class Unreadable(MemoryLog):
    """A log that cannot be read so many times."""

    def __init__(self, failure_count: int) -> None:
        super().__init__()
        self.failures_left = failure_count

    def read(self, partition: int) -> Iterator[LoadedRecords]:
        yield from super().read(partition)
        if self.failures_left:
            self.failures_left -= 1
            raise api_error(NOT_LEADER_OR_FOLLOWER)


def test_a_partition_is_read_again_until_it_can_be_read() -> None:
    log = Unreadable(COUNT * 2)
    log.partitions = written().partitions
    stage = Stage(log=log)
    for _ in range(2):
        assert 14 == stage.join().result().error_code
        stage.pass_ms(COORDINATOR_LOAD_RETRY_MS)
        stage.timers.run_until_idle()
    assert "Stable" == stage.state


def test_a_partition_that_is_lost_is_not_read_again() -> None:
    stage = Stage(log=Unreadable(COUNT))
    stage.coordinator.registry.on_resigned(coordinator_partition("g", COUNT))
    stage.pass_ms(COORDINATOR_LOAD_RETRY_MS)
    stage.timers.run_until_idle()
    assert 16 == stage.join().result().error_code


def group_without_protocol() -> GroupRecord:
    """Return the record of a group whose members agreed on nothing."""
    members = [messages.GroupMetadataValue.MemberMetadata()]
    value = messages.GroupMetadataValue(protocol_type="consumer", protocol=None, members=members)
    key = messages.GroupMetadataKey(group="g")
    return GroupRecord(encode_key(key, 2), encode_value(value, 3))


def test_records_of_other_kinds_and_damaged_ones_are_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = written()
    partition = coordinator_partition("g", COUNT)
    log.partitions[partition][0:0] = [
        GroupRecord(b"\0\3\0\1g", b""),
        GroupRecord(b"\0\x63", b""),
        GroupRecord(b"", None),
        GroupRecord(b"\0\1\0\1g", b"\0\3"),
        group_without_protocol(),
    ]
    assert "Stable" == Stage(log=log).state
    passed_over = [m for m in caplog.messages if "of __consumer_offsets is passed over: " in m]
    assert [f"offset {at} of" for at in range(5)] == [m[:11] for m in passed_over]


def test_loaded_groups_of_one_topic_share_its_partitions() -> None:
    stage = Stage()
    for group_id in ("g", "k"):
        alone = ALONE._replace(group_id=group_id)
        stage.coordinator.commits.commit(alone, {TopicPartition("t", 0): CommittedOffset(2)})
    assert coordinator_partition("g", COUNT) == coordinator_partition("k", COUNT)
    loaded = Stage(log=stage.log)
    ((mine,), (theirs,)) = (loaded.group(group_id).offsets.all() for group_id in ("g", "k"))
    assert mine is theirs


def test_bytes_behind_keys_and_values_are_passed_over() -> None:
    log = written()
    record = build_offset_record("g", U0, CommittedOffset(2))
    assert record.value is not None
    partition = coordinator_partition("g", COUNT)
    log.partitions[partition] += [
        GroupRecord(record.key, record.value + b"more"),
        GroupRecord(build_offset_record("g", T0, None).key + b"more", record.value),
    ]
    stage = Stage(log=log)
    assert {U0: CommittedOffset(2), T0: CommittedOffset(2)} == stage.group().offsets.all()


def test_a_stopped_coordinator_is_not_available() -> None:
    stage = Stage()
    stage.stable()
    stage.coordinator.stop()
    assert 15 == stage.join().result().error_code
    assert (15, []) == stage.coordinator.admin.list_groups()
    assert 0 == stage.coordinator.delays.delayed_count


def test_a_group_whose_id_cannot_be_written_is_refused() -> None:
    stage = Stage()
    too_long = ALONE._replace(group_id="g" * 32_768)
    refused = stage.coordinator.commits.commit(too_long, {T0: CommittedOffset(1)}).result()
    assert ({T0: 24}, {}) == (refused, stage.coordinator.registry.groups)
    longest = ALONE._replace(group_id="g" * 32_767)
    assert {T0: 0} == stage.coordinator.commits.commit(longest, {T0: CommittedOffset(1)}).result()
