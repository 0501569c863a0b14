"""Which throttles a plan wants, and how what was there before comes back. Source: REPL-17."""

from __future__ import annotations

import pytest

from engine.client.config_admin import ConfigResourceType, Resource
from engine.planner.plan import PartitionChange
from engine.reassign.throttles import (
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
    LOG_DIRS_RATE,
    ThrottleRates,
    ThrottleSetting,
    least_useful_rate,
    settings_to_read,
    throttles_to_restore,
    throttles_to_set,
)
from tests.unit.reassign.moved_cluster import change

RATES = ThrottleRates(1000, 77)


def topic(name: str, setting: str) -> ThrottleSetting:
    return ThrottleSetting(Resource(ConfigResourceType.TOPIC, name), setting)


def broker(broker_id: int, setting: str) -> ThrottleSetting:
    return ThrottleSetting(Resource(ConfigResourceType.BROKER, str(broker_id)), setting)


def journaled(values: dict[ThrottleSetting, str]) -> dict[ThrottleSetting, list[str]]:
    """Return values that were set once."""
    return {setting: [value] for setting, value in values.items()}


MOVE, ORDER = change(0, (1, 2), (3, 2)), change(1, (1, 2), (2, 1))
DIRS = PartitionChange("u", 0, (4,), (4,), 4, 4, 10, (), ("/a",), ("/b",))


def test_only_what_takes_part_is_throttled() -> None:
    values = throttles_to_set([MOVE, ORDER, DIRS], RATES, {})
    assert {
        topic("t", LEADER_LIST): "0:1,0:2",
        topic("t", FOLLOWER_LIST): "0:3",
        **{broker(id_, name): "1000" for id_ in (1, 2, 3) for name in (LEADER_RATE, FOLLOWER_RATE)},
        broker(4, LOG_DIRS_RATE): "77",
    } == values
    assert set(values) <= set(settings_to_read([MOVE, ORDER, DIRS], RATES))


def test_what_is_not_requested_is_not_touched() -> None:
    assert {} == throttles_to_set([MOVE, DIRS], ThrottleRates(), {})
    assert [] == settings_to_read([MOVE, DIRS], ThrottleRates())
    assert {broker(4, LOG_DIRS_RATE)} == set(settings_to_read([MOVE, DIRS], ThrottleRates(None, 5)))
    assert [] == settings_to_read([ORDER], ThrottleRates(5))


def test_lists_of_others_are_kept_and_all_stays_all() -> None:
    before: dict[ThrottleSetting, str | None] = {
        topic("t", LEADER_LIST): "7:1,0:2",
        topic("t", FOLLOWER_LIST): "*",
    }
    values = throttles_to_set([MOVE], ThrottleRates(1000), before)
    assert "7:1,0:2,0:1" == values[topic("t", LEADER_LIST)]
    assert topic("t", FOLLOWER_LIST) not in values


def test_a_rate_that_is_there_already_is_left_out() -> None:
    before: dict[ThrottleSetting, str | None] = {broker(1, LEADER_RATE): "1000"}
    assert broker(1, LEADER_RATE) not in throttles_to_set([MOVE], ThrottleRates(1000), before)


def test_everything_comes_back() -> None:
    before: dict[ThrottleSetting, str | None] = {
        broker(1, LEADER_RATE): "5",
        topic("t", LEADER_LIST): "7:1",
        topic("t", FOLLOWER_LIST): None,
    }
    ours = throttles_to_set([MOVE], ThrottleRates(1000), before)
    back = throttles_to_restore(before, journaled(ours), dict(ours))
    assert [] == back.foreign
    assert "5" == back.values[broker(1, LEADER_RATE)]
    assert "7:1" == back.values[topic("t", LEADER_LIST)]
    assert back.values[topic("t", FOLLOWER_LIST)] is None
    assert back.values[broker(3, FOLLOWER_RATE)] is None
    assert set(ours) == set(back.values)


def test_what_is_back_already_or_not_known_is_left() -> None:
    ours = {broker(1, LEADER_RATE): "1000", broker(2, LEADER_RATE): "1000"}
    back = throttles_to_restore({}, journaled(ours), {broker(1, LEADER_RATE): None})
    assert {} == back.values
    assert [] == back.foreign


def test_what_others_set_meanwhile_stays_and_ours_goes_out_of_their_lists() -> None:
    rate, leaders, followers = (
        broker(1, LEADER_RATE),
        topic("t", LEADER_LIST),
        topic("t", FOLLOWER_LIST),
    )
    ours = {rate: "1000", leaders: "7:1,0:1", followers: "0:3"}
    now: dict[ThrottleSetting, str | None] = {
        rate: "9",
        leaders: "0:1,8:8,7:1",
        followers: "*",
    }
    back = throttles_to_restore({leaders: "7:1"}, journaled(ours), now)
    assert {leaders: "8:8,7:1"} == back.values
    assert [rate, leaders, followers] == back.foreign


def test_a_list_that_is_left_with_ours_alone_is_taken_away() -> None:
    followers = topic("t", FOLLOWER_LIST)
    back = throttles_to_restore({}, {followers: ["0:3,1:3"]}, {followers: "1:3"})
    assert {followers: None} == back.values


@pytest.mark.parametrize("there", ["1000", "2000", "3000"])
def test_every_rate_that_was_ever_ours_is_taken_away(there: str) -> None:
    rate = broker(1, LEADER_RATE)
    back = throttles_to_restore({rate: "5"}, {rate: ["1000", "2000", "3000"]}, {rate: there})
    assert ({rate: "5"}, []) == (back.values, back.foreign)


def test_a_list_that_a_resume_shortened_is_ours_before_and_after() -> None:
    followers = topic("t", FOLLOWER_LIST)
    ours = {followers: ["7:1,0:3,1:3", "7:1,1:3"]}
    for there in ours[followers]:
        back = throttles_to_restore({followers: "7:1"}, ours, {followers: there})
        assert ({followers: "7:1"}, []) == (back.values, back.foreign)
    back = throttles_to_restore({followers: "7:1"}, ours, {followers: "7:1,0:3,8:8"})
    assert ({followers: "7:1,8:8"}, [followers]) == (back.values, back.foreign)


def test_the_least_useful_rate_is_what_the_worst_broker_takes_in() -> None:
    changes = [MOVE, change(1, (1, 2), (1, 3)), change(2, (1, 2), (2, 4))]
    rates = {("t", 0): 100.0, ("t", 1): 50.0, ("t", 2): 20.0}
    assert 150.0 == least_useful_rate(changes, rates)
    assert 0.0 == least_useful_rate([ORDER], rates)


def test_settings_say_what_they_are_of() -> None:
    assert "leader.replication.throttled.rate of broker 1" == str(broker(1, LEADER_RATE))
    assert "leader.replication.throttled.replicas of topic t" == str(topic("t", LEADER_LIST))
