"""Choose the log directory of a new log, and the name of its folder.

| log directory | when |
|---|---|
| that of the call | a copy is made there, for a move between directories |
| the preferred one | AlterReplicaLogDirs named it before the partition had a log (REPL-14) |
| the one with the fewest logs, of those that work | otherwise |

Source: Kafka's LogManager.nextLogDirs; KIP-113.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.host.ports import Entropy
from engine.log.directory.log_directory import LogDirectory
from engine.log.directory.log_refusals import KafkaStorageError
from engine.model import TopicPartition
from engine.naming import DirectoryKind, PartitionDirectory

_UNIQUE_ID_BYTES = 16


class LogPlacement:
    """Chooses log directories and folder names for the logs of one broker."""

    def __init__(self, entropy: Entropy, log_count_of: Callable[[LogDirectory], int]) -> None:
        """`log_count_of` returns how many logs a directory has."""
        self._entropy = entropy
        self._log_count_of = log_count_of
        #: Paths of log directories for partitions that have no log yet.
        self._preferred: dict[TopicPartition, str] = {}

    def prefer(self, topic_partition: TopicPartition, directory: str) -> None:
        """Choose the directory for the log of a partition, once it is created."""
        self._preferred[topic_partition] = directory

    def directory_for(
        self, topic_partition: TopicPartition, online: Sequence[LogDirectory], path: str | None
    ) -> LogDirectory:
        """Return the log directory for a new log: `path`, the preferred one, or the least used.

        The least used has the fewest logs. `online` are the log directories that work. A preference
        (of AlterReplicaLogDirs) is used once. Raises KafkaStorageError if the wanted directory, or
        every directory, is offline.
        """
        wanted = path or self._preferred.pop(topic_partition, None)
        candidates = [one for one in online if wanted is None or one.path == wanted]
        if not candidates:
            raise KafkaStorageError(f"{wanted or 'every log directory'} is offline")
        if len(candidates) == 1:
            # Spares counting all logs for each that is made.
            return candidates[0]
        return min(candidates, key=self._log_count_of)

    def folder_name(self, topic_partition: TopicPartition, kind: DirectoryKind) -> str:
        """Return the name of a log's folder; all but live ones get a new random id."""
        if kind is DirectoryKind.LIVE:
            return str(topic_partition)
        unique_id = self._entropy.random_bytes(_UNIQUE_ID_BYTES).hex()
        topic, partition = topic_partition
        return PartitionDirectory(topic, partition, kind, unique_id).name
