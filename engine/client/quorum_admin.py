"""The KRaft controller quorum of a cluster. Source: KIP-595, KIP-836, KIP-853."""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.errors import api_error
from engine.kafka_errors import NONE
from engine.wire import messages

_TOPIC: Final = "__cluster_metadata"
_NO_TIME: Final = -1


class QuorumReplica(NamedTuple):
    """A voter or observer; times are None if the leader does not know them."""

    replica_id: int
    directory_id: bytes
    log_end_offset: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


class QuorumView(NamedTuple):
    """The quorum by its leader's response; `endpoints` by node, empty before 3.9."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: dict[int, tuple[str, ...]]


def describe_quorum(client: KafkaClient) -> QuorumView:
    """Return leader, epoch, high watermark, voters and observers of the KRaft quorum.

    Raises ApiError, and NoCommonVersion for a cluster without a quorum.
    """
    request = messages.DescribeQuorumRequest
    partition = request.PartitionData(partition_index=0)
    response: messages.DescribeQuorumResponse = client.send(
        "DescribeQuorum",
        request(topics=[request.TopicData(topic_name=_TOPIC, partitions=[partition])]),
        retriable_code=lambda answer: int(answer.error_code),
    ).message
    if response.error_code != NONE:
        raise api_error(response.error_code, getattr(response, "error_message", None))
    row = response.topics[0].partitions[0]
    if row.error_code != NONE:
        raise api_error(row.error_code, getattr(row, "error_message", None))
    return QuorumView(
        row.leader_id,
        row.leader_epoch,
        row.high_watermark,
        tuple(_quorum_replica(voter) for voter in row.current_voters),
        tuple(_quorum_replica(observer) for observer in row.observers),
        {
            node.node_id: tuple(f"{at.name}://{at.host}:{at.port}" for at in node.listeners)
            for node in response.nodes or ()
        },
    )


def _quorum_replica(row: messages.DescribeQuorumResponse.ReplicaState) -> QuorumReplica:
    """Return a voter or observer; its times in ms are None where the leader does not know them."""
    return QuorumReplica(
        row.replica_id,
        bytes(row.replica_directory_id),
        row.log_end_offset,
        None if row.last_fetch_timestamp == _NO_TIME else row.last_fetch_timestamp,
        None if row.last_caught_up_timestamp == _NO_TIME else row.last_caught_up_timestamp,
    )


def remove_voter(client: KafkaClient, voter_id: int, directory_id: bytes) -> None:
    """Remove a controller, by node id and directory id, from the voters of the KRaft quorum.

    Raises ApiError, NoCommonVersion.
    """
    request = messages.RemoveRaftVoterRequest(
        cluster_id=None, voter_id=voter_id, voter_directory_id=directory_id
    )
    response: messages.RemoveRaftVoterResponse = client.send("RemoveRaftVoter", request).message
    if response.error_code != NONE:
        raise api_error(response.error_code, response.error_message)
