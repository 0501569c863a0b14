"""Predict the effect of a broker's failure on a partition: leader, acks, lost records. Pure.

The rule is the controller's for an offline leader (ELE-1): the first assigned replica that is
alive and in sync becomes leader; without one, any replica that is alive if unclean elections are
enabled.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from engine.client.metadata import PartitionView


class Situation(NamedTuple):
    """The state of a partition and its cluster; `ends` has known log end offsets by broker id."""

    partition: PartitionView
    alive: Collection[int]
    min_isr: int
    is_unclean_allowed: bool
    ends: Mapping[int, int]


def effect_of_death(situation: Situation, broker_id: int) -> str:
    """Return as text the effect on a partition if the broker `broker_id` dies.

    It names the next leader, lost records, and whether acks=all still succeeds. The broker has a
    replica of the partition.
    """
    partition = situation.partition
    if broker_id not in situation.alive:
        return "it is gone already"
    left = [id_ for id_ in partition.replicas if id_ != broker_id and id_ in situation.alive]
    in_sync = [id_ for id_ in left if id_ in partition.isr]
    if partition.leader != broker_id:
        leads = f"{partition.leader} goes on" if partition.has_leader else "still no leader"
    elif in_sync:
        leads = f"{in_sync[0]} leads, nothing is lost"
    elif left and situation.is_unclean_allowed:
        return f"{left[0]} leads, {_lost_records_text(situation, left[0])}"
    else:
        waiting = "its return is waited for"
        return f"offline: nobody else is in sync, {waiting}"
    if not partition.has_leader:
        return leads
    return f"{leads}; {_acks_text(situation, len(in_sync) if in_sync else 0)}"


def _acks_text(situation: Situation, in_sync_count: int) -> str:
    """Return as text whether acks=all succeeds with `in_sync_count` replicas in sync.

    The leader needs min.insync.replicas of them, or all replicas if these are fewer.
    """
    needed = min(situation.min_isr, len(situation.partition.replicas))
    if in_sync_count < needed:
        return f"acks=all is refused, {in_sync_count} in sync of {needed} needed"
    return f"acks=all goes on, {in_sync_count} in sync"


def _lost_records_text(situation: Situation, new_leader: int) -> str:
    """Return as text how many records are lost if `new_leader` is elected uncleanly.

    The text has no number unless the log end offsets of both leaders are known.
    """
    end = situation.ends.get(situation.partition.leader)
    own = situation.ends.get(new_leader)
    if end is None or own is None:
        return "and records that it lacks are lost"
    return f"and {max(0, end - own)} records are lost"
