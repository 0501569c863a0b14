"""OffsetDelete (47): what a group has committed for topics that it does not consume any more.

Source: KafkaApis.handleOffsetDeleteRequest; KIP-496.
"""

from __future__ import annotations

from engine.api.admission import AclOperation, AclResource
from engine.api.commit_results import CommitResults
from engine.api.exchange import Exchange
from engine.groups.offset_commits import OffsetCommits
from engine.kafka_errors import (
    GROUP_AUTHORIZATION_FAILED,
)
from engine.replication.metadata_cache import MetadataCache
from engine.wire import messages


class OffsetDelete:
    """Answers OffsetDelete."""

    def __init__(self, commits: OffsetCommits, metadata_cache: MetadataCache) -> None:
        self._commits = commits
        self._metadata_cache = metadata_cache

    def handle(
        self, request: messages.OffsetDeleteRequest, exchange: Exchange
    ) -> messages.OffsetDeleteResponse:
        """Return an error code for each partition."""
        session = exchange.session
        if not session.may(AclOperation.DELETE, AclResource.GROUP, request.group_id):
            return messages.OffsetDeleteResponse(error_code=GROUP_AUTHORIZATION_FAILED)
        results = CommitResults()
        left = results.refuse(request.topics, session, self._metadata_cache)
        known = list(dict.fromkeys(key for key, _ in left))
        code, codes = self._commits.delete(request.group_id, known)
        if code:
            return messages.OffsetDeleteResponse(error_code=code)
        results.add_all(codes)
        return _response(results)


def _response(results: CommitResults) -> messages.OffsetDeleteResponse:
    response = messages.OffsetDeleteResponse
    row = response.OffsetDeleteResponsePartition
    return response(
        topics=[
            response.OffsetDeleteResponseTopic(
                name=name,
                partitions=[row(partition_index=index, error_code=code) for index, code in rows],
            )
            for name, rows in results.by_topic.items()
        ]
    )
