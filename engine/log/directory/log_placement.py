"""Choose the log directory of a new log, and the name of its folder.

| log directory | when |
|---|---|
| the requested one | a future replica is created there, for a move between directories |
| the preferred one | AlterReplicaLogDirs named it before the partition had a log (REPL-14) |
| the online one with the fewest logs | otherwise |

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
        """Start without preferences; `log_count_of` returns the number of logs in a directory."""
        self._entropy = entropy
        self._log_count_of = log_count_of
        #: Paths of log directories for partitions that have no log yet.
        self._preferred: dict[TopicPartition, str] = {}

    def prefer(self, topic_partition: TopicPartition, directory: str) -> None:
        """Set the directory in which a partition's log will be created, for AlterReplicaLogDirs."""
        self._preferred[topic_partition] = directory

    def choose_directory(
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
            # Avoids counting all logs for each new log.
            return candidates[0]
        return min(candidates, key=self._log_count_of)

    def create_folder_name(self, topic_partition: TopicPartition, kind: DirectoryKind) -> str:
        """Return the name of a log's folder; kinds other than LIVE contain a new random id."""
        if kind is DirectoryKind.LIVE:
            return str(topic_partition)
        unique_id = self._entropy.random_bytes(_UNIQUE_ID_BYTES).hex()
        topic, partition = topic_partition
        return PartitionDirectory(topic, partition, kind, unique_id).name
