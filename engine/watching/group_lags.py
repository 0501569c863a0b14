"""Lags of groups, and verdicts about them, from samples of a cluster. Pure.

Members commit every `auto.commit.interval.ms`, 5 s by default: between two commits the offset of a
group that keeps up does not change, and its lag grows. A partition with a member gets the verdicts
STALL and WARN only if the samples cover WATCH_JUDGED_MS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from engine.client.groups import MemberView
from engine.client.lag_verdicts import JudgedLag, LagSample, LagVerdict, judge_lag
from engine.exporter.cluster_sample import GroupSample
from engine.limits import WATCH_JUDGED_MS
from engine.model import TopicPartition
from engine.watching.timed_sample import TimedSample

_MS_PER_S = 1000
#: Verdicts, from the best to the worst.
VERDICTS: Final = (
    LagVerdict.OK,
    LagVerdict.WARN,
    LagVerdict.STOP,
    LagVerdict.STALL,
    LagVerdict.REWIND,
)


#: Verdicts that a group that keeps up could get between two commits.
_TAKES_TIME: Final = (LagVerdict.STALL, LagVerdict.WARN)
#: The samples that contain a group, each with the group's data.
_History = list[tuple[TimedSample, GroupSample]]


class PartitionLag(NamedTuple):
    """The lag of a group in one partition; offsets and lag are None if unknown."""

    topic: str
    partition: int
    committed_offset: int | None
    end_offset: int | None
    lag: int | None
    verdict: str
    reason: str
    member_id: str | None
    client_id: str | None
    client_host: str | None


class GroupLag(NamedTuple):
    """A group with the lag of all its partitions, the growth of the lag, and the worst verdict.

    `lag_per_s` is None with one sample. `member_count` is None if the coordinator did not return
    it.
    """

    group: str
    state: str
    coordinator_id: int
    member_count: int | None
    lag: int
    lag_per_s: float | None
    verdict: str
    reason: str
    partitions: tuple[PartitionLag, ...]


def group_lags(samples: Sequence[TimedSample]) -> list[GroupLag]:
    """Return the groups of the last sample by name, with verdicts from all samples."""
    histories: dict[str, _History] = {}
    for timed in samples:
        for group in timed.sample.groups:
            histories.setdefault(group.listing.group_id, []).append((timed, group))
    return [
        _group_lag(group, histories[group.listing.group_id], samples[-1])
        for group in samples[-1].sample.groups
    ]


def _group_lag(group: GroupSample, history: _History, last: TimedSample) -> GroupLag:
    """Return a group's lag over all partitions, with the verdict of the worst one."""
    description = group.description
    partitions = tuple(_partition_lags(group, history, last))
    worst = max(partitions, key=_severity, default=None)
    state = (description.state if description is not None else group.listing.state) or ""
    return GroupLag(
        group.listing.group_id,
        state,
        group.listing.coordinator_id,
        None if description is None else len(description.members),
        sum(one.lag or 0 for one in partitions),
        _lag_per_s(history),
        LagVerdict.OK.value if worst is None else worst.verdict,
        "" if worst is None else f"{worst.topic}-{worst.partition}: {worst.reason}",
        partitions,
    )


def _severity(one: PartitionLag) -> tuple[int, int]:
    """Return the sort key of a partition: its verdict, from good to bad, then its lag."""
    return VERDICTS.index(LagVerdict(one.verdict)), one.lag or 0


def _partition_lags(
    group: GroupSample, history: _History, last: TimedSample
) -> Iterator[PartitionLag]:
    """Yield the lag of each partition that is committed or assigned.

    Some verdicts are not given before members have been observed for two commit intervals.
    """
    owners: dict[TopicPartition, MemberView] = {}
    if group.description is not None:
        for member in group.description.members:
            owners |= dict.fromkeys(member.partitions or (), member)
    ends = last.sample.high_watermarks
    is_short = last.at_ms - history[0][0].at_ms < WATCH_JUDGED_MS
    for key in sorted({*group.commits, *owners}):
        commit, owner = group.commits.get(key), owners.get(key)
        judged = judge_lag(_lag_samples(key, history), has_member=owner is not None)
        if owner is not None and is_short and judged.verdict in _TAKES_TIME:
            judged = JudgedLag(LagVerdict.OK, "watched for less than two commits may take")
        committed, end = None if commit is None else commit.offset, ends.get(key)
        yield PartitionLag(
            *key,
            committed,
            end,
            None if committed is None or end is None else max(end - committed, 0),
            judged.verdict.value,
            judged.reason,
            None if owner is None else owner.member_id,
            None if owner is None else owner.client_id,
            None if owner is None else owner.client_host,
        )


def _lag_samples(key: TopicPartition, history: _History) -> list[LagSample]:
    """Return a partition's committed offset and high watermark in each sample that has both."""
    return [
        LagSample(group.commits[key].offset, timed.sample.high_watermarks[key])
        for timed, group in history
        if key in group.commits and key in timed.sample.high_watermarks
    ]


def _lag_per_s(history: _History) -> float | None:
    """Return the growth of a group's lag in records per second, None without two samples.

    It is between the first sample and the last one that have known partitions, over the
    partitions known in both.
    """
    known = ((timed, group, _known_partitions(timed, group)) for timed, group in history)
    first, before, old = next((one for one in known if one[2]), (None, None, set()))
    last, after = history[-1]
    if first is None or before is None or first is last:
        return None
    common = old & _known_partitions(last, after)
    grown = _lag_sum(last, after, common) - _lag_sum(first, before, common)
    return round(grown * _MS_PER_S / max(last.at_ms - first.at_ms, 1), 1) if common else None


def _known_partitions(timed: TimedSample, group: GroupSample) -> set[TopicPartition]:
    """Return the partitions with a committed offset and a high watermark in one sample."""
    ends = timed.sample.high_watermarks
    return {key for key in group.commits if key in ends}


def _lag_sum(timed: TimedSample, group: GroupSample, keys: Iterable[TopicPartition]) -> int:
    """Return the total lag of partitions; a committed offset above the end counts as 0."""
    ends = timed.sample.high_watermarks
    return sum(max(ends[key] - group.commits[key].offset, 0) for key in keys)
