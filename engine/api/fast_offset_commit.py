"""The fast path of commits: a consumer's position in one partition.

```
frame ─ read_commit_fast ─ commit_fast ─┬─ the response's frame
  │                                     └─ in-sync replicas that lag: a promise of it
  └ anything else: nothing has been done, and the dispatch table's row serves it
```

Only requests are taken that need no decision of `OffsetCommit` beyond an error code of the group's
coordinator: nothing is decided in another way here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from engine.api.admission import AclOperation, AclResource, Session
from engine.api.dispatch import FastResponse
from engine.api.exchange import EncodedResponse
from engine.groups.group_offsets import CommittedOffset
from engine.groups.offset_commits import OffsetCommits
from engine.groups.requests import MemberRequest
from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.limits import COMMIT_HEADS_KEPT
from engine.model import TopicPartition, new_tuple
from engine.replication.metadata_cache import MetadataCache
from engine.wire.fast_commit_bytes import (
    HEAD_AT,
    PLAIN_COMMIT_BYTES,
    PLAIN_COMMIT_ENDS,
    CommitHead,
    encode_offset_value_fast,
    read_commit_fast,
    read_plain_commit,
    read_version,
)


class _Head(NamedTuple):
    """The parsed fields of a request before its commit; see `CommitHead`."""

    version: int
    request: MemberRequest
    topic_partition: TopicPartition
    record_key: bytes
    answer: Callable[[int, int], bytes]


class FastOffsetCommit:
    """Answers complete frames of OffsetCommit; see the module's docstring."""

    def __init__(self, commits: OffsetCommits, metadata_cache: MetadataCache, clock: Clock) -> None:
        """Create the fast path for commits of one partition, with an empty cache of heads."""
        self._commit_fast = commits.commit_fast
        self._is_known = metadata_cache.is_known
        self._wall_ms = clock.wall_ms
        #: Parsed beginnings of frames (header, group, member) by their bytes, which are equal in
        #: all commits of a client. No beginning is a prefix of another one.
        self._heads: dict[bytes, _Head] = {}

    def answer(
        self, frame: memoryview, session: Session
    ) -> FastResponse | Promise[FastResponse] | None:
        """Serve a commit of one partition; return the response with its header.

        Returns None, with nothing done, if the general path must serve the request. It checks that
        the client may read the group and the topic, unless nothing can be denied to the client.
        """
        at = len(frame) - PLAIN_COMMIT_BYTES
        head, metadata = self._heads.get(bytes(frame[HEAD_AT:at])), ""
        if head is not None:
            version, correlation_id = read_version(frame)
            offset, leader_epoch, end = read_plain_commit(frame, at)
        if head is None or version != head.version or end not in PLAIN_COMMIT_ENDS:
            request = read_commit_fast(frame)
            if request is None:
                return None
            correlation_id, _, offset, leader_epoch, metadata = request
            head = self._cached_head(frame, request.head)
        _, member, partition, record_key, answer = head
        if not (
            session.may_take_fast_path or _is_admitted(session, member.group_id, partition.topic)
        ) or not self._is_known(partition):
            return None
        now_ms = self._wall_ms()
        code = self._commit_fast(
            member,
            partition,
            new_tuple(CommittedOffset, (offset, leader_epoch, metadata, now_ms, None)),
            record_key,
            encode_offset_value_fast(offset, leader_epoch, metadata, now_ms),
        )
        if code == 0:
            return answer(correlation_id, 0)
        if isinstance(code, Promise):
            return code.then(lambda written: _response(answer(correlation_id, written), written))
        return None if code is None else _response(answer(correlation_id, code), code)

    def _cached_head(self, frame: memoryview, head: CommitHead) -> _Head:
        """Return the parsed head of a commit, from the cache if it is there; else add it.

        Commits with metadata are parsed at each request, so that this is called for each of them.
        """
        version, _ = read_version(frame)
        content = bytes(frame[HEAD_AT : HEAD_AT + head.size_bytes])
        known = self._heads.get(content)
        if known is not None and known.version == version:
            return known
        member = MemberRequest(
            head.group_id, head.generation_id, head.member_id, head.group_instance_id
        )
        if known is None and len(self._heads) >= COMMIT_HEADS_KEPT:
            self._heads.clear()
        known = _Head(version, member, head.topic_partition, head.record_key, head.answer)
        self._heads[content] = known
        return known


def _is_admitted(session: Session, group_id: str, topic: str) -> bool:
    """Return True if the cache of grants shows that a client may read a group and a topic.

    False decides nothing: the general path asks the authorizer.
    """
    read = AclOperation.READ
    return session.is_admitted(read, AclResource.GROUP, group_id) and session.is_admitted(
        read, AclResource.TOPIC, topic
    )


def _response(frame: bytes, code: int) -> FastResponse:
    """Return the response frame; with an error, its code is counted in the metrics."""
    return EncodedResponse([frame], None, {code: 1}) if code else frame
