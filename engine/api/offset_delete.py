"""OffsetDelete (47): what a group has committed for topics that it does not consume any more.

Source: KafkaApis.handleOffsetDeleteRequest; KIP-496.
"""

from __future__ import annotations

from engine.api.admission import AclOperation, AclResource
from engine.api.exchange import Exchange
from engine.groups.offset_commits import Codes, OffsetCommits
from engine.kafka_errors import (
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.model import TopicPartition
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
        codes: Codes = {}
        known: list[TopicPartition] = []
        for topic in request.topics:
            may_read = session.may(AclOperation.READ, AclResource.TOPIC, topic.name)
            for row in topic.partitions:
                key = TopicPartition(topic.name, row.partition_index)
                if not may_read:
                    codes[key] = TOPIC_AUTHORIZATION_FAILED
                elif not self._metadata_cache.is_known(key):
                    codes[key] = UNKNOWN_TOPIC_OR_PARTITION
                else:
                    known.append(key)
        return _response(request, codes, self._commits.delete(request.group_id, known))


def _response(
    request: messages.OffsetDeleteRequest, refused: Codes, deleted: tuple[int, Codes]
) -> messages.OffsetDeleteResponse:
    response = messages.OffsetDeleteResponse
    code, codes = deleted
    if code:
        return response(error_code=code)
    codes = refused | codes
    return response(
        topics=[
            response.OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    response.OffsetDeleteResponsePartition(
                        partition_index=row.partition_index,
                        error_code=codes[TopicPartition(topic.name, row.partition_index)],
                    )
                    for row in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
