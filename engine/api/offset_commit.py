"""OffsetCommit (8): the positions of a group's consumers.

| versions | difference |
|---|---|
| 0 | not served: Kafka keeps these in znodes, where no current client reads |
| 1 | each partition has a commit time |
| 2 … 4 | a retention, in place of the broker's |
| 6 | leader epochs |
| 7 | static members |

Source: KafkaApis.handleOffsetCommitRequest; GRP-13, GRP-16; KIP-211, KIP-320.
"""

from __future__ import annotations

from engine.api.admission import AclOperation, AclResource
from engine.api.commit_admission import AdmittedOffsets, admit_offsets, refuse_offsets
from engine.api.commit_order import commit_result_rows
from engine.api.exchange import Exchange
from engine.groups.group_offsets import CommittedOffset
from engine.groups.offset_commits import Codes, OffsetCommits
from engine.groups.requests import MemberRequest
from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.kafka_errors import (
    GROUP_AUTHORIZATION_FAILED,
    UNSUPPORTED_VERSION,
)
from engine.records.decode import int64
from engine.replication.metadata_cache import MetadataCache
from engine.wire import messages

_DEFAULT = -1
_WITH_TIMES = 1


class OffsetCommit:
    """Answers OffsetCommit."""

    def __init__(self, commits: OffsetCommits, metadata_cache: MetadataCache, clock: Clock) -> None:
        self._commits = commits
        self._metadata_cache = metadata_cache
        self._clock = clock

    def handle(
        self, request: messages.OffsetCommitRequest, exchange: Exchange
    ) -> messages.OffsetCommitResponse | Promise[messages.OffsetCommitResponse]:
        """Commit the offsets that the client may commit.

        Promises an error code for each partition.
        """
        session = exchange.session
        if not session.may(AclOperation.READ, AclResource.GROUP, request.group_id):
            return _response(
                request, refuse_offsets(request.topics, GROUP_AUTHORIZATION_FAILED), {}
            )
        if exchange.api_version < _WITH_TIMES:
            return _refused_response(request, UNSUPPORTED_VERSION)
        now_ms = self._clock.wall_ms()
        retention_ms = request.retention_time_ms
        expire_ms = None if retention_ms == _DEFAULT else int64(now_ms + retention_ms)
        admitted = admit_offsets(
            request.topics,
            session,
            self._metadata_cache,
            lambda row: _committed_offset(row, now_ms, expire_ms),
        )
        if not admitted.offsets:
            return _response(request, admitted, {})
        member = MemberRequest(
            request.group_id,
            request.generation_id_or_member_epoch,
            request.member_id,
            request.group_instance_id,
        )
        committed = self._commits.commit(member, admitted.offsets)
        return committed.then(lambda written: _response(request, admitted, written))


def _committed_offset(
    row: messages.OffsetCommitRequest.OffsetCommitRequestPartition,
    now_ms: int,
    expire_ms: int | None,
) -> CommittedOffset:
    """Return the offset to store for a row of the request.

    A row without a commit timestamp of its own gets the broker's time. `expire_ms` None: the offset
    expires by the broker's retention.
    """
    has_time = row.commit_timestamp != _DEFAULT
    return CommittedOffset(
        row.committed_offset,
        row.committed_leader_epoch,
        row.committed_metadata or "",
        row.commit_timestamp if has_time else now_ms,
        expire_ms,
    )


def _refused_response(
    request: messages.OffsetCommitRequest, code: int
) -> messages.OffsetCommitResponse:
    """Return the response with one error code for all partitions."""
    return _response(request, refuse_offsets(request.topics, code), {})


def _response(
    request: messages.OffsetCommitRequest, admitted: AdmittedOffsets, written: Codes
) -> messages.OffsetCommitResponse:
    """Return the response: the code of each partition, refused or written."""
    response = messages.OffsetCommitResponse
    return response(
        topics=[
            response.OffsetCommitResponseTopic(
                name=name,
                partitions=[
                    response.OffsetCommitResponsePartition(partition_index=index, error_code=code)
                    for index, code in rows
                ],
            )
            for name, rows in commit_result_rows(
                request.topics, admitted.refused, written, admitted.refused_topics
            )
        ]
    )
