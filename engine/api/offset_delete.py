"""OffsetDelete (47): delete a group's offsets of topics that its members do not subscribe to.

Source: KafkaApis.handleOffsetDeleteRequest; KIP-496.
"""

from __future__ import annotations

from collections.abc import Collection

from engine.api.admission import AclOperation, AclResource
from engine.api.commit_order import commit_result_rows
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
        """Delete a group's committed offsets; return an error code for each partition.

        The response has one code instead if the whole group is refused.
        """
        session = exchange.session
        if not session.may(AclOperation.DELETE, AclResource.GROUP, request.group_id):
            return messages.OffsetDeleteResponse(error_code=GROUP_AUTHORIZATION_FAILED)
        refused: Codes = {}
        refused_topics: set[str] = set()
        known: list[TopicPartition] = []
        for topic in request.topics:
            may_read = session.may(AclOperation.READ, AclResource.TOPIC, topic.name)
            if not may_read or topic.name not in self._metadata_cache.topics:
                refused_topics.add(topic.name)
            for row in topic.partitions:
                key = TopicPartition(topic.name, row.partition_index)
                if not may_read:
                    refused[key] = TOPIC_AUTHORIZATION_FAILED
                elif not self._metadata_cache.is_known(key):
                    refused[key] = UNKNOWN_TOPIC_OR_PARTITION
                else:
                    known.append(key)
        deleted = self._commits.delete_offsets(request.group_id, known)
        return _response(request, refused, deleted, refused_topics)


def _response(
    request: messages.OffsetDeleteRequest,
    refused: Codes,
    deleted: tuple[int, Codes],
    refused_topics: Collection[str],
) -> messages.OffsetDeleteResponse:
    """Return the response: an error of the whole group, or the code of each partition."""
    response = messages.OffsetDeleteResponse
    code, codes = deleted
    if code:
        return response(error_code=code)
    return response(
        topics=[
            response.OffsetDeleteResponseTopic(
                name=name,
                partitions=[
                    response.OffsetDeleteResponsePartition(partition_index=index, error_code=code)
                    for index, code in rows
                ],
            )
            for name, rows in commit_result_rows(
                request.topics, refused, codes, refused_topics, have_topic_ids=False
            )
        ]
    )
