"""AlterReplicaLogDirs (34): move replicas of this broker to other log directories.

For a partition that the broker does not have the code is REPLICA_NOT_AVAILABLE, and the replica
will be created in that directory when the controller assigns it. The move itself continues after
the response; DescribeLogDirs shows its progress.

Source: REPL-14, KIP-113; KafkaApis.handleAlterReplicaLogDirsRequest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from engine.api.exchange import Exchange
from engine.api.promised import in_order, promised
from engine.errors import ApiError, StorageError
from engine.hash_order import by_topic_in_hash_order
from engine.host.promise import Promise
from engine.host.turns import LoopTurns
from engine.kafka_errors import NONE, NOT_LEADER_OR_FOLLOWER, REPLICA_NOT_AVAILABLE
from engine.model import TopicPartition
from engine.replication.errors import to_api_error
from engine.wire import messages

#: Begins to move a replica, or raises why not.
MoveTo: TypeAlias = Callable[[TopicPartition, str], None]


class AlterReplicaLogDirs:
    """Passes the requested moves to the mover of this broker's replicas."""

    def __init__(self, move_to: MoveTo, turns: LoopTurns) -> None:
        self._move_to = move_to
        self._turns = turns

    def handle(
        self, request: messages.AlterReplicaLogDirsRequest, _exchange: Exchange
    ) -> Promise[messages.AlterReplicaLogDirsResponse]:
        """Start to move replicas to the requested log directories.

        Promises a code for each partition. For a partition that is named twice the last directory
        is used.
        """
        return in_order(promised(self._begin_moves(request)))

    async def _begin_moves(
        self, request: messages.AlterReplicaLogDirsRequest
    ) -> messages.AlterReplicaLogDirsResponse:
        """Start each requested move, in several turns of the loop; return a code per partition."""
        share = self._turns.begin()
        wanted = {
            TopicPartition(topic.name, index): directory.path
            for directory in request.dirs
            for topic in directory.topics
            for index in topic.partitions
        }
        codes: dict[TopicPartition, int] = {}
        for topic_partition, path in wanted.items():
            if share.is_over():
                await share.next()
            codes[topic_partition] = self._begin_move(topic_partition, path)
        return _response(codes)

    def _begin_move(self, topic_partition: TopicPartition, path: str) -> int:
        """Start to move one replica to the log directory `path`; return the error code or NONE."""
        try:
            self._move_to(topic_partition, path)
        except (ApiError, StorageError) as failure:
            code = to_api_error(topic_partition, failure).code
            return REPLICA_NOT_AVAILABLE if code == NOT_LEADER_OR_FOLLOWER else code
        return NONE


def _response(codes: dict[TopicPartition, int]) -> messages.AlterReplicaLogDirsResponse:
    """Return the response: a code for each partition, by topic."""
    response = messages.AlterReplicaLogDirsResponse
    return response(
        results=[
            response.AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    response.AlterReplicaLogDirPartitionResult(
                        partition_index=key.partition, error_code=codes[key]
                    )
                    for key in partitions
                ],
            )
            for name, partitions in by_topic_in_hash_order(codes).items()
        ]
    )
