"""Plans that are executed on a cluster in memory.

Source: RSN-1 … RSN-9, REPL-17, C6, KIP-455.
"""

from __future__ import annotations

from typing import Any

import pytest

from engine.client.config_admin import ConfigResourceType, Resource
from engine.client.reassignments import OngoingReassignment, alter_reassignments
from engine.client.topic_admin import delete_topics
from engine.errors import api_error
from engine.kafka_errors import INVALID_REPLICA_ASSIGNMENT, REQUEST_TIMED_OUT
from engine.model import TopicPartition
from engine.reassign.change_status import ExecutionStatus
from engine.reassign.execution import StalePlan, TargetsMissing, WrongCluster
from engine.reassign.journal import MoveJournal
from engine.reassign.journal_state import Begun, ExecutionSettings
from engine.reassign.live_cluster import ObservedCluster
from engine.reassign.phases import MovePhase
from engine.reassign.throttles import (
    FOLLOWER_RATE,
    LEADER_RATE,
    LISTS,
    ThrottleRates,
    ThrottleSetting,
)
from engine.reassign.throttling import ThrottleNotSet, ThrottleOfAnotherMove
from tests.unit.reassign.moved_cluster import (
    JOURNAL,
    RATE,
    T0,
    WRITER,
    Died,
    Mortal,
    MovedTopic,
    change,
)

WANTED = {0: (3, 2), 1: (2, 3), 2: (2, 1), 3: (2, 1, 3)}
LEADERS = "leader.replication.throttled.replicas of topic t"
FOLLOWERS = "follower.replication.throttled.replicas of topic t"
TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER


@pytest.fixture
def moved() -> MovedTopic:
    return MovedTopic()


def test_a_plan_is_executed_and_preferred_leaders_lead(moved: MovedTopic) -> None:
    end = moved.execute()
    assert end.is_clean
    assert WANTED == moved.replicas()
    assert {0: 3, 1: 2, 2: 2, 3: 2} == moved.leaders()
    assert ["waiting", "done"] == [moved.phases(0)[0], moved.phases(0)[-1]]
    assert moved.state().is_over


def test_leaders_stay_if_nobody_wants_elections(moved: MovedTopic) -> None:
    assert moved.execute(elects_leaders=False).is_clean
    assert 1 == moved.leaders()[2]


def test_nothing_is_lost_under_load(moved: MovedTopic) -> None:
    moved.streams.on_wait = lambda: [moved.produce(number) for number in range(4)] and None
    assert moved.execute().is_clean
    assert max(moved.acknowledged.values()) > 10
    records = moved.records()
    assert all(records[number] >= count for number, count in moved.acknowledged.items())


def test_throttles_are_there_while_it_runs_and_gone_after_it(moved: MovedTopic) -> None:
    seen: list[dict[str, str]] = []
    moved.begin(ExecutionSettings(RATE))
    end = moved.execution().run(lambda _: seen.append(moved.throttles()))
    assert end.is_clean
    assert "0:1,0:2,1:2,1:1,3:2,3:1" == seen[0][LEADERS]
    assert "0:3,1:3,3:3" == seen[0][FOLLOWERS]
    rates = {name for name in seen[0] if ".rate of broker" in name}
    assert 6 == len(rates)
    assert {"1000000"} == {seen[0][name] for name in rates}
    assert {} == moved.throttles()


def test_throttles_of_others_come_back_as_they_were(moved: MovedTopic) -> None:
    moved.set(TOPIC, "t", leader_replication_throttled_replicas="1:2,9:9")
    moved.set(TOPIC, "t", follower_replication_throttled_replicas="*")
    moved.set(BROKER, "2", leader_replication_throttled_rate="77")
    moved.set(BROKER, "3", replica_alter_log_dirs_io_max_bytes_per_second="5")
    before = moved.throttles()
    assert moved.execute(rates=RATE).is_clean
    assert before == moved.throttles()


def test_what_others_change_meanwhile_is_left_alone(moved: MovedTopic) -> None:
    def meddle(now: ExecutionStatus) -> None:
        if not moved.looks:
            moved.set(BROKER, "1", leader_replication_throttled_rate="5")
            moved.set(TOPIC, "t", follower_replication_throttled_replicas="0:3,1:3,3:3,8:8")
        moved.looks.append(now)

    moved.begin(ExecutionSettings(RATE))
    end = moved.execution().run(meddle)
    assert {LEADERS.replace("replicas of topic t", "rate of broker 1"): "5", FOLLOWERS: "8:8"} == (
        moved.throttles()
    )
    assert 2 == len(end.foreign_throttles)


def test_a_broker_that_missed_the_last_rate_gets_its_own_back(moved: MovedTopic) -> None:
    moved.begin(ExecutionSettings(RATE))
    journal, _ = MoveJournal.reopen(moved.files, JOURNAL, WRITER)
    rates = [
        ThrottleSetting(Resource(BROKER, str(id_)), name)
        for id_ in (1, 2, 3)
        for name in (LEADER_RATE, FOLLOWER_RATE)
    ]
    for rate in ("1000000", "1300000"):
        journal.throttle(dict.fromkeys(rates, rate))
    journal.close()
    for id_, rate in ((1, "1300000"), (2, "1000000"), (3, "1000000")):
        values = dict.fromkeys((LEADER_RATE, FOLLOWER_RATE), rate)
        moved.set(BROKER, str(id_), **values)
    end = moved.execution().cancel(moved.looks.append)
    assert ([], {}) == (end.foreign_throttles, end.left_throttles)
    assert {} == moved.throttles()
    assert moved.state().is_over


@pytest.mark.parametrize(("rated", "moving"), [(1, (1, 4)), (2, (4, 2))])
def test_rates_of_brokers_that_take_part_in_another_move_are_not_replaced(
    moved: MovedTopic, rated: int, moving: tuple[int, ...]
) -> None:
    another = TopicPartition("u", 7)

    class Shared(Mortal):
        def read(self) -> ObservedCluster:
            move = OngoingReassignment(moving, moving[:1], moving[1:])
            return self._cluster.read()._replace(ongoing={another: move})

    moved.set(BROKER, str(rated), follower_replication_throttled_rate="77")
    moved.begin(ExecutionSettings(RATE))
    with pytest.raises(ThrottleOfAnotherMove, match="u-7") as refusal:
        moved.execution(lambda cluster: Shared(cluster, 0, is_made=False)).run(moved.looks.append)  # type: ignore[arg-type]
    assert (another,) == refusal.value.partitions
    assert moved.state().has_changed_nothing
    assert {f"follower.replication.throttled.rate of broker {rated}": "77"} == moved.throttles()


@pytest.mark.parametrize(("rated", "moving"), [(1, (2, 4)), (None, (1, 2))])
def test_another_move_without_rates_on_its_brokers_is_no_obstacle(
    moved: MovedTopic, rated: int | None, moving: tuple[int, ...]
) -> None:
    class Shared(Mortal):
        def read(self) -> ObservedCluster:
            now = self._cluster.read()
            move = OngoingReassignment(moving, moving[:1], moving[1:])
            return now._replace(ongoing={**now.ongoing, TopicPartition("u", 7): move})

    if rated is not None:
        moved.set(BROKER, str(rated), follower_replication_throttled_rate="77")
    before = moved.throttles()
    moved.begin(ExecutionSettings(RATE))
    execution = moved.execution(lambda cluster: Shared(cluster, 0, is_made=False))  # type: ignore[arg-type]
    assert execution.run(moved.looks.append).is_clean
    assert before == moved.throttles()


def test_a_throttle_that_cannot_be_set_stops_it_before_anything_moves(moved: MovedTopic) -> None:
    moved.begin(ExecutionSettings(ThrottleRates(replication=-5)))
    with pytest.raises(ThrottleNotSet, match=r"\.throttled\.\w+ of \w+ \w+ cannot be set: .*-5"):
        moved.execution().run(moved.looks.append)
    assert {0: (1, 2), 1: (2, 1), 2: (1, 2), 3: (2, 1)} == moved.replicas()


@pytest.mark.parametrize("is_made", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("dies_at", range(1, 13))
def test_a_successor_after_a_death_ends_where_the_dead_one_would_have_ended(
    dies_at: int, *, is_made: bool
) -> None:
    moved = MovedTopic()
    moved.set(BROKER, "2", leader_replication_throttled_rate="77")
    before = moved.throttles()
    moved.begin(ExecutionSettings(RATE, moves_per_broker=1))
    first = moved.execution(lambda cluster: Mortal(cluster, dies_at, is_made=is_made))  # type: ignore[arg-type]
    try:
        first.run(lambda _: None)
    except Died:
        assert not moved.state().is_over
        assert moved.execution().run(moved.looks.append).is_clean
    assert WANTED == moved.replicas()
    assert {0: 3, 1: 2, 2: 2, 3: 2} == moved.leaders()
    assert before == moved.throttles()
    assert moved.state().is_over


def test_a_cancel_brings_back_what_was_at_work(moved: MovedTopic) -> None:
    moved.begin(ExecutionSettings(ThrottleRates(replication=1)))
    moved.cluster.cut_power(3)
    moved.cluster.start(3)
    first = moved.execution(lambda cluster: Mortal(cluster, 5, is_made=True))  # type: ignore[arg-type]
    with pytest.raises(Died):
        first.run(lambda _: None)
    moved.execution().cancel(moved.looks.append)
    assert {} == moved.throttles()
    assert moved.state().is_over
    ended = {key.partition: how for key, how in moved.state().ended.items()}
    moved.cluster.pass_time(500)
    for number, replicas in moved.replicas().items():
        old = moved.changes[number].old_replicas
        assert replicas in (old, WANTED[number]), ended


def test_a_refused_change_does_not_hold_up_the_others(moved: MovedTopic) -> None:
    class Refusing(Mortal):
        def submit(self, targets: Any) -> Any:
            error = api_error(INVALID_REPLICA_ASSIGNMENT)
            others = {key: target for key, target in targets.items() if key != T0}
            return {T0: error, **self._cluster.submit(others)}

    moved.begin()
    end = moved.execution(lambda cluster: Refusing(cluster, -1, is_made=True)).run(lambda _: None)  # type: ignore[arg-type]
    assert {T0: INVALID_REPLICA_ASSIGNMENT} == {k: e.code for k, e in end.refused.items()}
    assert not end.is_clean
    assert {**WANTED, 0: (1, 2)} == moved.replicas()


def test_a_change_that_somebody_replaces_ends(moved: MovedTopic) -> None:
    class Meddled(Mortal):
        def submit(self, targets: Any) -> Any:
            answer = self._cluster.submit(targets)
            alter_reassignments(moved.client, {T0: (2, 3)})
            return answer

    moved.begin()
    end = moved.execution(lambda cluster: Meddled(cluster, -1, is_made=True)).run(lambda _: None)  # type: ignore[arg-type]
    assert end.how_ended[T0] in (MovePhase.REPLACED.value, MovePhase.ELSEWHERE.value)
    assert not end.is_clean
    assert (2, 3) == moved.replicas()[0]


def test_a_topic_that_is_deleted_meanwhile_ends_its_changes(moved: MovedTopic) -> None:
    def lose(now: ExecutionStatus) -> None:
        moved.looks.append(now)
        if len(moved.looks) == 1:
            assert {"t": None} == delete_topics(moved.client, ["t"])

    moved.begin()
    end = moved.execution().run(lose)
    assert {"gone"} == set(end.how_ended.values())


def test_a_plan_for_brokers_that_are_not_there_is_refused(moved: MovedTopic) -> None:
    moved.changes = (change(0, (1, 2), (9, 2)),)
    with pytest.raises(TargetsMissing, match="broker 9"):
        moved.execute(rates=RATE)
    assert {} == moved.throttles()


@pytest.mark.parametrize(("old", "new"), [((2, 3), (3, 1)), ((9, 8), (8, 9))])
def test_a_plan_of_another_time_is_refused(
    moved: MovedTopic, old: tuple[int, ...], new: tuple[int, ...]
) -> None:
    moved.changes = (change(0, old, new),)
    with pytest.raises(StalePlan, match="t-0 is elsewhere"):
        moved.execute(rates=RATE)
    assert {} == moved.throttles()


def test_a_broker_that_dies_is_waited_for(moved: MovedTopic) -> None:
    def lose(now: ExecutionStatus) -> None:
        moved.looks.append(now)
        if len(moved.looks) == 1:
            moved.cluster.cut_power(3)
        if len(moved.looks) == 12:
            moved.cluster.start(3)

    moved.begin(ExecutionSettings(RATE))
    end = moved.execution().run(lose)
    assert any([3] == look.missed for look in moved.looks)
    assert any(look.changes[2].phase is MovePhase.DONE for look in moved.looks if look.missed)
    assert end.is_clean
    assert WANTED == moved.replicas()
    assert {} == moved.throttles()


def test_a_throttle_on_a_dead_broker_is_left_and_reported_until_it_is_back(
    moved: MovedTopic,
) -> None:
    moved.changes = (change(0, (1, 2), (3, 2)),)

    def lose(now: ExecutionStatus) -> None:
        moved.looks.append(now)
        if now.changes[0].phase is MovePhase.DONE:
            moved.cluster.cut_power(1)

    moved.begin(ExecutionSettings(RATE))
    end = moved.execution().run(lose)
    assert {"1"} == {setting.resource.name for setting in end.left_throttles}
    assert not moved.state().is_over
    moved.cluster.start(1)
    moved.cluster.pass_time(2000)
    assert moved.execution().run(moved.looks.append).is_clean
    assert {} == moved.throttles()
    assert moved.state().is_over


@pytest.mark.parametrize("call", ["throttles", "set_throttles"])
def test_a_list_that_cannot_be_taken_away_is_left_and_named(moved: MovedTopic, call: str) -> None:
    class Deaf(Mortal):
        is_deaf = False

        def throttles(self, settings: Any) -> Any:
            there = self._cluster.throttles(settings)
            return {s: self._failed(s, "throttles", value) for s, value in there.items()}

        def set_throttles(self, values: Any) -> Any:
            failures = self._cluster.set_throttles(values)
            named = {s: self._failed(s, "set_throttles", None) for s in values}
            return failures | {s: error for s, error in named.items() if error is not None}

        def _failed(self, setting: Any, at: str, value: Any) -> Any:
            is_lost = self.is_deaf and at == call and setting.name in LISTS
            return api_error(REQUEST_TIMED_OUT, "late") if is_lost else value

    moved.begin(ExecutionSettings(RATE))
    wrapped: list[Deaf] = []

    def wrap(cluster: Any) -> Any:
        wrapped.append(Deaf(cluster, 0, is_made=False))
        return wrapped[0]

    def deafen(_: ExecutionStatus) -> None:
        wrapped[0].is_deaf = True

    end = moved.execution(wrap).run(deafen)
    assert {LEADERS, FOLLOWERS} == {str(setting) for setting in end.left_throttles}
    assert not moved.state().is_over
    assert moved.execution().run(moved.looks.append).is_clean
    assert {} == moved.throttles()


def test_a_journal_of_another_cluster_is_refused(moved: MovedTopic) -> None:
    begun = Begun("elsewhere", moved.changes, ExecutionSettings())
    MoveJournal.create(moved.files, JOURNAL, begun, WRITER).close()
    with pytest.raises(WrongCluster):
        moved.execution().run(moved.looks.append)
    with pytest.raises(WrongCluster):
        moved.execution().cancel(moved.looks.append)


def test_nothing_begins_while_partitions_newly_are_under_min_isr() -> None:
    moved = MovedTopic(min_insync_replicas="2", replica_lag_time_max_ms="2000")

    def lose(now: ExecutionStatus) -> None:
        moved.looks.append(now)
        if len(moved.looks) == 1:
            moved.cluster.cut_power(1)
        if len(moved.looks) == 30:
            moved.cluster.start(1)

    moved.begin(ExecutionSettings(moves_per_broker=1))
    end = moved.execution().run(lose)
    pauses = [look.pause for look in moved.looks]
    assert any(pause is not None and "min.insync.replicas" in pause for pause in pauses)
    assert end.is_clean
    assert WANTED == moved.replicas()
