"""DescribeLogDirs: the broker's directories, the partitions in them, and the space around them.

| of a partition | |
|---|---|
| size | all of its .log files |
| lag | how far its log ends before the high watermark; −1 for one that is not in use |
| lag of a log being moved | the records not copied yet |
| future | whether it is being moved to this directory |

An offline directory has KAFKA_STORAGE_ERROR and nothing else. Requested partitions that are not
here are left out.

Source: ReplicaManager.describeLogDirs, getLogEndOffsetLag of 3.9.1; KIP-113, KIP-827.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from engine.api.exchange import Exchange
from engine.api.promised import in_order, promised
from engine.errors import StorageError
from engine.host.ports import Files
from engine.host.promise import Promise
from engine.host.turns import LoopTurns, Share
from engine.kafka_errors import KAFKA_STORAGE_ERROR
from engine.log.directory.log_directory import LogDirectory
from engine.log.directory.log_manager import LogManager
from engine.log.local_log import LocalLog
from engine.model import TopicPartition
from engine.replication.replica_manager import ReplicaManager
from engine.wire import messages

_NO_LAG = -1

_Partition: TypeAlias = "messages.DescribeLogDirsResponse.DescribeLogDirsPartition"


class DescribeLogDirs:
    """Answers DescribeLogDirs from the logs of the broker."""

    def __init__(
        self, files: Files, logs: LogManager, replica_manager: ReplicaManager, turns: LoopTurns
    ) -> None:
        self._files = files
        self._logs = logs
        self._replica_manager = replica_manager
        self._turns = turns

    def handle(
        self, request: messages.DescribeLogDirsRequest, _exchange: Exchange
    ) -> Promise[messages.DescribeLogDirsResponse]:
        """Promise the response: each log directory with the requested partitions in it.

        A request without a topic list asks for all partitions.
        """
        return in_order(promised(self._describe_directories(request)))

    async def _describe_directories(
        self, request: messages.DescribeLogDirsRequest
    ) -> messages.DescribeLogDirsResponse:
        """Return each log directory with the requested partitions in it, all if none is named.

        The rows are collected in several turns of the event loop.
        """
        share = self._turns.begin()
        requested = None
        if request.topics is not None:
            requested = frozenset(
                TopicPartition(topic.topic, index)
                for topic in request.topics
                for index in topic.partitions
            )
        here = await self._partitions_by_directory(requested, share)
        return messages.DescribeLogDirsResponse(
            results=[
                self._directory_row(directory, here.get(directory.path, {}))
                for directory in self._logs.directories
            ]
        )

    async def _partitions_by_directory(
        self, requested: frozenset[TopicPartition] | None, share: Share
    ) -> Mapping[str, Mapping[str, list[_Partition]]]:
        """Return the rows of partitions, by log directory and topic, collected over several turns.

        `requested` None means all. A log that was deleted or moved before its turn is left out.
        """
        rows: dict[str, dict[str, list[_Partition]]] = {}
        for known, is_future in ((self._logs.logs, False), (self._logs.futures, True)):
            for key, log in list(known.items()):
                if requested is not None and key not in requested:
                    continue
                if share.is_over():
                    await share.next()
                if known.get(key) is log:
                    topics = rows.setdefault(self._logs.directory_of(log), {})
                    topics.setdefault(key.topic, []).append(self._partition_row(log, is_future))
        return rows

    def _directory_row(
        self, directory: LogDirectory, topics: Mapping[str, list[_Partition]]
    ) -> messages.DescribeLogDirsResponse.DescribeLogDirsResult:
        """Return the response row of a directory.

        It has the partitions, and the total and usable bytes of the volume. An offline directory
        has KAFKA_STORAGE_ERROR and nothing else.
        """
        result = messages.DescribeLogDirsResponse.DescribeLogDirsResult(log_dir=directory.path)
        try:
            if directory.offline is not None:
                raise directory.offline
            space = self._files.disk_space(directory.path)
        except StorageError:
            result.error_code = KAFKA_STORAGE_ERROR
            return result
        result.total_bytes, result.usable_bytes = space
        row = messages.DescribeLogDirsResponse.DescribeLogDirsTopic
        result.topics = [
            row(name=topic, partitions=partitions) for topic, partitions in topics.items()
        ]
        return result

    def _partition_row(self, log: LocalLog, is_future: bool) -> _Partition:
        """Return the response row of one log.

        It has the size in bytes, the offset lag, and whether it is a future replica.
        """
        return messages.DescribeLogDirsResponse.DescribeLogDirsPartition(
            partition_index=log.topic_partition.partition,
            partition_size=log.size_bytes,
            offset_lag=self._offset_lag(log, is_future),
            is_future_key=is_future,
        )

    def _offset_lag(self, log: LocalLog, is_future: bool) -> int:
        """Return by how many offsets a log lags; -1 if this broker has no such partition.

        A future log lags the current log of the partition, any other log the high watermark.
        """
        partition = self._replica_manager.partitions.get(log.topic_partition)
        if partition is None:
            return _NO_LAG
        if is_future:
            return partition.log.log_end_offset - log.log_end_offset
        return max(0, partition.high_watermark - log.log_end_offset)
