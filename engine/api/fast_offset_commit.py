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

from engine.api.admission import AclOperation, AclResource, Session
from engine.api.dispatch import FastResponse
from engine.api.exchange import EncodedResponse
from engine.groups.group_offsets import CommittedOffset
from engine.groups.offset_commits import OffsetCommits
from engine.groups.ports import GroupRecord
from engine.groups.requests import MemberRequest
from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.model import new_tuple
from engine.replication.metadata_cache import MetadataCache
from engine.wire.fast_commit_bytes import offset_value_fast, read_commit_fast


class FastOffsetCommit:
    """Answers whole frames; see the module's head."""

    def __init__(self, commits: OffsetCommits, metadata_cache: MetadataCache, clock: Clock) -> None:
        self._commit_fast = commits.commit_fast
        self._is_known = metadata_cache.is_known
        self._clock = clock

    def answer(
        self, frame: memoryview, session: Session
    ) -> FastResponse | Promise[FastResponse] | None:
        """Serve a request and return its response with its header; None with nothing done.

        The session's client is one to whom nothing can be denied, or may read the group and topic.
        """
        request = read_commit_fast(frame)
        if request is None:
            return None
        correlation_id, head, offset, leader_epoch, metadata = request
        group_id, generation_id, member_id, instance_id, partition, record_key, answer = head
        if not (session.may_take_fast_path or _is_admitted(session, group_id, partition.topic)):
            return None
        if not self._is_known(partition):
            return None
        now_ms = self._clock.wall_ms()
        code = self._commit_fast(
            new_tuple(MemberRequest, (group_id, generation_id, member_id, instance_id)),
            partition,
            new_tuple(CommittedOffset, (offset, leader_epoch, metadata, now_ms, None)),
            new_tuple(
                GroupRecord,
                (record_key, offset_value_fast(offset, leader_epoch, metadata, now_ms)),
            ),
        )
        if isinstance(code, Promise):
            return code.then(lambda written: _response(answer(correlation_id, written), written))
        return None if code is None else _response(answer(correlation_id, code), code)


def _is_admitted(session: Session, group_id: str, topic: str) -> bool:
    """Return whether a client may read a group and a topic, as far as is known."""
    read = AclOperation.READ
    return session.is_admitted(read, AclResource.GROUP, group_id) and session.is_admitted(
        read, AclResource.TOPIC, topic
    )


def _response(frame: bytes, code: int) -> FastResponse:
    """Return the response with a code of the only partition."""
    return EncodedResponse([frame], None, {code: 1}) if code else frame
