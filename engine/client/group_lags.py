"""Lag of many groups, from their committed offsets and the end offsets of the partitions.

```
1. of each coordinator   OffsetFetch of GROUPS_PER_REQUEST groups, all coordinators at once
2. of each leader        ListOffsets of the partitions whose end offsets are not known yet
3. of each group         the sum over its partitions; the offsets are then discarded
```

`find_groups_at` finds the groups with a given committed offset, by (1) alone.

An end offset is read once, before or after a commit: a lag below 0 counts as 0. Brokers before 3.0
take one group in a request. A coordinator that does not answer in time gets no more requests.

Source: KIP-709.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.errors import NoCommonVersion, TimedOut, Unreachable
from engine.client.groups import CommitView, GroupListing, request_commits
from engine.client.many_groups import commits_of_groups, commits_of_groups_call
from engine.client.offsets import LATEST, FoundOffset, list_offsets
from engine.errors import EngineError, api_error
from engine.kafka_errors import COORDINATOR_NOT_AVAILABLE
from engine.limits import GROUPS_PER_REQUEST
from engine.model import TopicPartition

#: Share groups commit nothing: their state is of another kind (KIP-932).
_WITHOUT_COMMITS: Final = "share"

_Commits = dict[TopicPartition, CommitView]


class LagSum(NamedTuple):
    """The sizes of a group's commits, and the sum of its lag in records.

    `lag` is None where the end of a partition is not known; `unknown_count` counts those.
    """

    topic_count: int
    partition_count: int
    lag: int | None
    unknown_count: int = 0


def request_lags(
    client: KafkaClient,
    groups: Iterable[GroupListing],
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, LagSum | EngineError]:
    """Return the lag of each group, by group id, or the error for which it is unknown.

    Share groups are left out. `on_progress` is called with the number of finished groups and of all
    groups. Raises the errors of a cluster that cannot be reached.
    """
    wanted = _with_commits(groups)
    ends: dict[TopicPartition, int | None] = {}
    lags: dict[str, LagSum | EngineError] = {}
    silent: dict[int, EngineError] = {}
    for some in _iter_rounds(wanted):
        committed = _request_commits(client, some, silent)
        _add_ends(client, committed, ends)
        for group_id, found in committed.items():
            lags[group_id] = found if isinstance(found, EngineError) else _lag_sum(found, ends)
        if on_progress is not None:
            on_progress(len(lags), len(wanted))
    return lags


def find_groups_at(
    client: KafkaClient, groups: Iterable[GroupListing], key: TopicPartition, offset: int
) -> tuple[list[str], dict[str, EngineError]]:
    """Return the sorted ids of groups whose committed offset of partition `key` is `offset`.

    The second value has the errors of groups whose offsets are unknown, by group id. Raises the
    errors of a cluster that cannot be reached.
    """
    there: list[str] = []
    errors: dict[str, EngineError] = {}
    silent: dict[int, EngineError] = {}
    for some in _iter_rounds(_with_commits(groups)):
        for group_id, found in _request_commits(client, some, silent).items():
            if isinstance(found, EngineError):
                errors[group_id] = found
            elif key in found and found[key].offset == offset:
                there.append(group_id)
    return sorted(there), errors


def _with_commits(groups: Iterable[GroupListing]) -> list[GroupListing]:
    """Return the groups that can have committed offsets: all but share groups."""
    return [group for group in groups if (group.group_type or "").lower() != _WITHOUT_COMMITS]


def _iter_rounds(groups: Sequence[GroupListing]) -> Iterator[dict[int, list[str]]]:
    """Yield rounds of group ids by coordinator, each with as many groups as fit in one request."""
    left: dict[int, list[str]] = {}
    for group in groups:
        left.setdefault(group.coordinator_id, []).append(group.group_id)
    while left:
        yield {id_: group_ids[:GROUPS_PER_REQUEST] for id_, group_ids in left.items()}
        left = {
            id_: group_ids[GROUPS_PER_REQUEST:]
            for id_, group_ids in left.items()
            if len(group_ids) > GROUPS_PER_REQUEST
        }


def _request_commits(
    client: KafkaClient, groups: Mapping[int, list[str]], silent: dict[int, EngineError]
) -> dict[str, _Commits | EngineError]:
    """Request the committed offsets of groups (ids by coordinator); return them by group id.

    The value is an error if they are unknown. Coordinators in `silent` have not responded before,
    and get no requests; one that does not respond now is added to it.
    """
    brokers = client.brokers_view().brokers
    calls = {
        id_: (brokers[id_].address, commits_of_groups_call(group_ids))
        for id_, group_ids in groups.items()
        if id_ in brokers and id_ not in silent
    }
    results = client.exchange(calls, client.clock.monotonic_ms() + client.timeout_ms)
    found: dict[str, _Commits | EngineError] = {}
    for id_, group_ids in groups.items():
        result = silent.get(id_) or results.get(id_) or api_error(COORDINATOR_NOT_AVAILABLE)
        if isinstance(result, NoCommonVersion):
            for group_id in group_ids:
                found[group_id] = silent.get(id_) or _request_commits_of_one(client, group_id)
                _note_silent(id_, found[group_id], silent)
        elif isinstance(result, EngineError):
            _note_silent(id_, result, silent)
            found |= dict.fromkeys(group_ids, result)
        else:
            found |= commits_of_groups(result.message)
    return found


def _note_silent(id_: int, result: object, silent: dict[int, EngineError]) -> None:
    """Add a coordinator to `silent` if its result is that it did not respond."""
    # A stopped process (SIGSTOP) is Unreachable, too: the handshake times out.
    if isinstance(result, TimedOut | Unreachable):
        silent[id_] = result


def _request_commits_of_one(client: KafkaClient, group_id: str) -> _Commits | EngineError:
    """Return the committed offsets of one group, or the error of the request.

    Used for coordinators whose OffsetFetch does not accept several groups.
    """
    try:
        return request_commits(client, group_id)
    except EngineError as error:
        return error


def _add_ends(
    client: KafkaClient,
    committed: Mapping[str, _Commits | EngineError],
    ends: dict[TopicPartition, int | None],
) -> None:
    """Request the end offsets of partitions with a commit that `ends` lacks, and add them to it.

    None is added for a partition with an error.
    """
    new = {
        key: LATEST
        for found in committed.values()
        if not isinstance(found, EngineError)
        for key in found
        if key not in ends
    }
    if new:
        offsets = list_offsets(client, new)
        for key in new:
            end = offsets.get(key)
            ends[key] = end.offset if isinstance(end, FoundOffset) else None


def _lag_sum(committed: _Commits, ends: Mapping[TopicPartition, int | None]) -> LagSum:
    """Return the lag of one group, summed over its partitions.

    The sum is None if the end offset of a partition is unknown.
    """
    lags = [
        max(0, end - commit.offset)
        for key, commit in committed.items()
        if (end := ends[key]) is not None
    ]
    unknown_count = len(committed) - len(lags)
    topic_count = len({key.topic for key in committed})
    return LagSum(topic_count, len(committed), None if unknown_count else sum(lags), unknown_count)
