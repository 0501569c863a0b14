"""Elect leaders: the preferred replicas, or any live replica at the price of lost records.

Source: ElectLeadersRequest; KIP-183, KIP-460.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from engine.client.blocking import CONTROLLER, KafkaClient
from engine.errors import ApiError, api_error
from engine.kafka_errors import NONE, NOT_CONTROLLER
from engine.model import TopicPartition, by_topic
from engine.wire import messages

#: The first version with unclean elections.
_FIRST_WITH_KINDS = 1


class Election(IntEnum):
    """Types of leader elections."""

    #: The first of the assigned replicas, if it is in sync.
    PREFERRED = 0
    #: The first live replica, in sync or not: records that it lacks are lost.
    UNCLEAN = 1


def elect_leaders(
    client: KafkaClient, election: Election, partitions: Sequence[TopicPartition] | None
) -> dict[TopicPartition, ApiError | None]:
    """Elect leaders; return the error of each partition, None if elected.

    ELECTION_NOT_NEEDED is an error too. `partitions` None means all: those that need no election
    are then left out of the results. Raises the error of the request as a whole.
    """
    request = messages.ElectLeadersRequest
    topics = None
    if partitions is not None:
        topics = [
            request.TopicPartitions(topic=name, partitions=[p.partition for p in of_topic])
            for name, of_topic in by_topic(partitions).items()
        ]

    def message(version: int) -> messages.ElectLeadersRequest:
        """Return the request of a version; version 0 has only preferred elections."""
        requested = request(topic_partitions=topics, timeout_ms=client.timeout_ms)
        if version >= _FIRST_WITH_KINDS:
            requested.election_type = election
        return requested

    def moved(response: messages.ElectLeadersResponse) -> int:
        """Return NOT_CONTROLLER if any row has it, else NONE.

        With the former the request is repeated.
        """
        codes = [response.error_code]
        codes += [
            row.error_code
            for topic in response.replica_election_results
            for row in topic.partition_result
        ]
        return NOT_CONTROLLER if NOT_CONTROLLER in codes else NONE

    lowest = 0 if election is Election.PREFERRED else _FIRST_WITH_KINDS
    response: messages.ElectLeadersResponse = client.send(
        "ElectLeaders", message, to=CONTROLLER, retriable_code=moved, lowest=lowest
    ).message
    if response.error_code != NONE:
        raise api_error(response.error_code)
    return {
        TopicPartition(topic.topic, row.partition_id): None
        if row.error_code == NONE
        else api_error(row.error_code, row.error_message)
        for topic in response.replica_election_results
        for row in topic.partition_result
    }
