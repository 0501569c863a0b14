"""OffsetFetch (9): return a group's committed offsets.

| versions | request | an error of the group is |
|---|---|---|
| 0 | not served: Kafka keeps these in znodes | |
| 1 | partitions | that of each partition; of a group that is denied there are none |
| 2 … 7 | partitions, or null for all | one for the response |
| 7 | + no offset that an open transaction may change: UNSTABLE_OFFSET_COMMIT | |
| 8 on | several groups | one for each group |

Partitions come in the order of Kafka's map: by their hashes if there are more than four, or if all
were asked for.

Source: KafkaApis.handleOffsetFetchRequest; GRP-17; KIP-447, KIP-709.
Differs: Kafka's map of all offsets of a group is as large as it ever was, which changes the order
of up to four of a group that had twelve.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from engine.api.admission import AclOperation, AclResource, Session
from engine.api.exchange import Exchange
from engine.groups.group_offsets import NO_OFFSET, CommittedOffset
from engine.groups.offset_commits import OffsetCommits
from engine.hash_order import (
    SMALL_MAP_MAX,
    partitions_in_hash_order,
    partitions_in_immutable_order,
)
from engine.kafka_errors import (
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    UNSTABLE_OFFSET_COMMIT,
    UNSUPPORTED_VERSION,
)
from engine.model import TopicPartition
from engine.wire import messages

_WITH_LOG, _WITH_ERROR, _WITH_GROUPS = 1, 2, 8


class RequestedTopic(Protocol):
    """A topic of a request, of any version."""

    name: str
    partition_indexes: list[int]


class _Fetched(NamedTuple):
    """The response for one group: an error code, and the partitions with their codes."""

    error_code: int
    partitions: dict[TopicPartition, tuple[int, CommittedOffset]]


class OffsetFetch:
    """Answers OffsetFetch."""

    def __init__(self, commits: OffsetCommits) -> None:
        self._commits = commits

    def handle(
        self, request: messages.OffsetFetchRequest, exchange: Exchange
    ) -> messages.OffsetFetchResponse:
        """Return the committed offsets of a group; from version 8 on, of several groups."""
        version, session = exchange.api_version, exchange.session
        response = messages.OffsetFetchResponse
        if version >= _WITH_GROUPS:
            groups = []
            for group in request.groups:
                fetched = self._fetch_offsets(
                    group.group_id, group.topics, session, is_stable=request.require_stable
                )
                groups.append(
                    response.OffsetFetchResponseGroup(
                        group_id=group.group_id,
                        error_code=fetched.error_code,
                        topics=_topics_of_group(fetched),
                    )
                )
            return response(groups=groups)
        fetched = self._fetch_offsets(
            request.group_id, request.topics, session, is_stable=request.require_stable
        )
        if version < _WITH_LOG and fetched.error_code != GROUP_AUTHORIZATION_FAILED:
            fetched = _refused_group(request.topics, UNSUPPORTED_VERSION)
        if version < _WITH_ERROR:
            is_denied = fetched.error_code == GROUP_AUTHORIZATION_FAILED
            if fetched.error_code and not (is_denied and version == _WITH_LOG):
                fetched = _refused_group(request.topics, fetched.error_code)
            return response(topics=_topics_of_only_group(fetched))
        return response(error_code=fetched.error_code, topics=_topics_of_only_group(fetched))

    def _fetch_offsets(
        self,
        group_id: str,
        topics: Iterable[RequestedTopic] | None,
        session: Session,
        *,
        is_stable: bool,
    ) -> _Fetched:
        """Return a group's committed offsets, of all its partitions if `topics` is None.

        With `is_stable` a partition with a pending transactional offset is UNSTABLE_OFFSET_COMMIT.
        Partitions of topics that the client may not describe have an error code, or are left out of
        a request for all.
        """
        if not session.may(AclOperation.DESCRIBE, AclResource.GROUP, group_id):
            return _Fetched(GROUP_AUTHORIZATION_FAILED, {})
        requested = None if topics is None else list(_iter_requested(topics))
        may = {
            topic: session.may(AclOperation.DESCRIBE, AclResource.TOPIC, topic)
            for topic in {key.topic for key in requested or ()}
        }
        allowed = None if requested is None else [key for key in requested if may[key.topic]]
        code, committed = self._commits.fetch(group_id, allowed)
        if code:
            return _Fetched(code, {})
        nothing = CommittedOffset(NO_OFFSET)
        if requested is None and len(committed) <= SMALL_MAP_MAX:
            ordered = partitions_in_hash_order(committed)
        else:
            ordered = partitions_in_immutable_order(committed)
        rows = {key: (0, committed[key]) for key in ordered}
        if is_stable:
            for key in self._commits.unstable_partitions(group_id, committed):
                rows[key] = (UNSTABLE_OFFSET_COMMIT, nothing)
        if requested is None:
            return _Fetched(
                0,
                {
                    key: row
                    for key, row in rows.items()
                    if session.may(AclOperation.DESCRIBE, AclResource.TOPIC, key.topic)
                },
            )
        denied = (TOPIC_AUTHORIZATION_FAILED, nothing)
        return _Fetched(0, rows | {key: denied for key in requested if not may[key.topic]})


def _iter_requested(topics: Iterable[RequestedTopic]) -> Iterable[TopicPartition]:
    """Yield the partitions that a request names."""
    for topic in topics:
        for index in topic.partition_indexes:
            yield TopicPartition(topic.name, index)


def _refused_group(topics: Iterable[RequestedTopic] | None, code: int) -> _Fetched:
    """Return a group's error, which each requested partition repeats for old versions."""
    nothing = CommittedOffset(NO_OFFSET)
    return _Fetched(code, dict.fromkeys(_iter_requested(topics or ()), (code, nothing)))


def _topics_of_only_group(
    fetched: _Fetched,
) -> list[messages.OffsetFetchResponse.OffsetFetchResponseTopic]:
    """Return the response's topic rows for versions below 8, which have one group per request."""
    response = messages.OffsetFetchResponse
    topics: dict[str, list[messages.OffsetFetchResponse.OffsetFetchResponsePartition]] = {}
    for key, (code, committed) in fetched.partitions.items():
        row = response.OffsetFetchResponsePartition(
            partition_index=key.partition,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            error_code=code,
        )
        topics.setdefault(key.topic, []).append(row)
    return [
        response.OffsetFetchResponseTopic(name=name, partitions=rows)
        for name, rows in topics.items()
    ]


def _topics_of_group(
    fetched: _Fetched,
) -> list[messages.OffsetFetchResponse.OffsetFetchResponseTopics]:
    """Return a group's topic rows for versions since 8, which have several groups per request."""
    response = messages.OffsetFetchResponse
    topics: dict[str, list[messages.OffsetFetchResponse.OffsetFetchResponsePartitions]] = {}
    for key, (code, committed) in fetched.partitions.items():
        row = response.OffsetFetchResponsePartitions(
            partition_index=key.partition,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            error_code=code,
        )
        topics.setdefault(key.topic, []).append(row)
    return [
        response.OffsetFetchResponseTopics(name=name, partitions=rows)
        for name, rows in topics.items()
    ]
