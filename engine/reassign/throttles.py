"""Throttles that a plan needs, and the return to the former values. Pure.

| setting | value during an execution |
|---|---|
| leader.replication.throttled.replicas of a topic | the former list, and all old replicas |
| follower.replication.throttled.replicas of a topic | the former list, and the added replicas |
| leader., follower.replication.throttled.rate of a broker | the rate, on participating brokers |
| replica.alter.log.dirs.io.max.bytes.per.second of a broker | the rate, if its directories change |

A list with all replicas (`*`) stays. Only values that are set for this topic or broker count as
former values: a cluster-wide default, or one from a file, applies again when ours is deleted. A
value that another client changed meanwhile is kept, but our replicas are removed from a list.

Source: REPL-17, KIP-73; kafka-reassign-partitions.
Differs: Kafka's tool removes all throttles at the end, also those of other clients.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from engine.client.config_admin import ConfigResourceType, Resource
from engine.planner.plan import PartitionChange

LEADER_LIST: Final = "leader.replication.throttled.replicas"
FOLLOWER_LIST: Final = "follower.replication.throttled.replicas"
LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LOG_DIRS_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
LISTS: Final = (LEADER_LIST, FOLLOWER_LIST)
RATES: Final = (LEADER_RATE, FOLLOWER_RATE, LOG_DIRS_RATE)
_ALL: Final = "*"


class ThrottleSetting(NamedTuple):
    """A throttle setting of one topic or broker."""

    resource: Resource
    name: str

    def __str__(self) -> str:
        kind = "topic" if self.resource.kind is ConfigResourceType.TOPIC else "broker"
        return f"{self.name} of {kind} {self.resource.name}"


class ThrottleRates(NamedTuple):
    """Limits in bytes per second for each broker, in each direction; None sets no throttle."""

    replication: int | None = None
    log_dirs: int | None = None

    @property
    def is_unbounded(self) -> bool:
        """True if no throttle is requested."""
        return self.replication is None and self.log_dirs is None


class ThrottleReturn(NamedTuple):
    """The values that restore the former state, None to delete one; and values of other clients."""

    values: dict[ThrottleSetting, str | None]
    foreign: list[ThrottleSetting]


def settings_to_read(
    changes: Iterable[PartitionChange], rates: ThrottleRates
) -> list[ThrottleSetting]:
    """Return the settings that a plan may change, whose values have to be read first."""
    topics, brokers, dir_brokers = _participants(changes)
    found = []
    if rates.replication is not None:
        found += [
            ThrottleSetting(_topic_resource(name), list_) for name in topics for list_ in LISTS
        ]
        found += [
            ThrottleSetting(_broker_resource(id_), rate)
            for id_ in brokers
            for rate in (LEADER_RATE, FOLLOWER_RATE)
        ]
    if rates.log_dirs is not None:
        found += [ThrottleSetting(_broker_resource(id_), LOG_DIRS_RATE) for id_ in dir_brokers]
    return found


def throttles_to_set(
    changes: Iterable[PartitionChange],
    rates: ThrottleRates,
    before: Mapping[ThrottleSetting, str | None],
    ours: Collection[ThrottleSetting] = (),
) -> dict[ThrottleSetting, str]:
    """Return the throttle values during a plan, without those that are unchanged.

    `before` are the values in the cluster. `ours` are settings that this execution has changed
    already: they are included even if they equal the former value.
    """
    changes = list(changes)
    values: dict[ThrottleSetting, str] = {}
    for setting in settings_to_read(changes, rates):
        if setting.name == LOG_DIRS_RATE:
            value: str | None = str(rates.log_dirs)
        elif setting.name in RATES:
            value = str(rates.replication)
        else:
            replicas = _throttled_entries(changes, setting)
            value = _merge_lists(before.get(setting), replicas) if replicas else None
        if value is not None and (value != before.get(setting) or setting in ours):
            values[setting] = value
    return values


def throttles_to_restore(
    before: Mapping[ThrottleSetting, str | None],
    ours: Mapping[ThrottleSetting, Collection[str]],
    now: Mapping[ThrottleSetting, str | None],
) -> ThrottleReturn:
    """Return the values that restore the former throttles, given their values in the cluster now.

    `ours` has every value that the execution set or was about to set: an unreachable broker, or
    a crash between two brokers, can leave an earlier one of them in place. A value that is not in
    `ours` was set by another client and stays.
    """
    values: dict[ThrottleSetting, str | None] = {}
    foreign = []
    for setting, our_values in ours.items():
        if setting not in now or now[setting] == before.get(setting):
            continue
        if now[setting] in our_values:
            values[setting] = before.get(setting) or None
            continue
        foreign.append(setting)
        if setting.name in LISTS and now[setting] not in (None, _ALL):
            left = _without_ours(now[setting], our_values, before.get(setting))
            if left != now[setting]:
                values[setting] = left or None
    return ThrottleReturn(values, foreign)


def least_useful_rate(
    changes: Iterable[PartitionChange], write_rates: Mapping[tuple[str, int], float]
) -> float:
    """Return the highest write rate that a broker receives with its added replicas, in bytes/s.

    With a lower throttle that broker never catches up, since a throttle also applies to new
    records of replicas outside the ISR. `write_rates` are by topic and partition.
    """
    by_broker: dict[int, float] = {}
    for change in changes:
        rate = write_rates.get((change.topic, change.partition), 0.0)
        for broker_id in change.added:
            by_broker[broker_id] = by_broker.get(broker_id, 0.0) + rate
    return max(by_broker.values(), default=0.0)


def _participants(
    changes: Iterable[PartitionChange],
) -> tuple[list[str], list[int], list[int]]:
    """Return the topics and brokers of replica moves, and the brokers of directory moves."""
    topics: dict[str, None] = {}
    brokers: set[int] = set()
    dir_brokers: set[int] = set()
    for change in changes:
        if change.added:
            topics[change.topic] = None
            brokers |= {*change.old_replicas, *change.added}
        dir_brokers |= {broker_id for broker_id, _, _ in change.log_dir_moves}
    return list(topics), sorted(brokers), sorted(dir_brokers)


def _throttled_entries(changes: Iterable[PartitionChange], setting: ThrottleSetting) -> list[str]:
    """Return the entries `partition:broker` of a topic's list of throttled replicas."""
    of_topic = [change for change in changes if change.topic == setting.resource.name]
    return [
        f"{change.partition}:{broker_id}"
        for change in of_topic
        if change.added
        for broker_id in (change.old_replicas if setting.name == LEADER_LIST else change.added)
    ]


def _merge_lists(before: str | None, ours: Iterable[str]) -> str:
    """Return a list of throttled replicas with ours added; `*` includes them already."""
    if before == _ALL:
        return before
    there = [entry for entry in (before or "").split(",") if entry]
    return ",".join([*there, *(entry for entry in ours if entry not in there)])


def _without_ours(now: str | None, our_values: Iterable[str], before: str | None) -> str:
    """Return a list of throttled replicas without the entries that we added."""
    kept = set((before or "").split(","))
    added = {entry for value in our_values for entry in value.split(",") if entry not in kept}
    return ",".join(entry for entry in (now or "").split(",") if entry and entry not in added)


def _topic_resource(name: str) -> Resource:
    """Return the resource of a topic."""
    return Resource(ConfigResourceType.TOPIC, name)


def _broker_resource(broker_id: int) -> Resource:
    """Return the resource of a broker."""
    return Resource(ConfigResourceType.BROKER, str(broker_id))
