"""The storage of a broker: log manager, replica manager, fetchers, cleaner and their connections.

```
LogManager <── Leadership ──> ReplicaManager ──> IsrProposals ──> the controller
    │              ^                ├──> ReplicaFetcherManager ──> leaders
    │              │                │
    └── config ── LiveConfig ───────┘     a failed log directory:
                                          LogManager ──> partitions offline ──> on_offline
```

Source: PART-2, PART-13, SCH-1, SCH-2; D20.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from engine.broker.deadlines import Deadlines
from engine.broker.directory_moves import DirectoryMoves
from engine.broker.dynamic_config import LiveConfig
from engine.broker.host import BrokerHost
from engine.broker.isr_proposals import IsrProposalPorts, IsrProposals, SendToController
from engine.broker.isr_writes import IsrWritePorts, IsrWrites, writes_sets_itself
from engine.broker.peers import Peers
from engine.broker.replication_quotas import ReplicationQuotas
from engine.broker.tasks import LoopTasks
from engine.config.broker_config import BrokerConfig
from engine.config.replica_selectors import REPLICA_SELECTORS
from engine.errors import StorageError
from engine.host.ports import Files, LogDirOffline
from engine.limits import LOGGED_STATES_MAX
from engine.log.cleaner.compaction_report import CleanerLogs, compaction_states
from engine.log.cleaner.compaction_state import LogCompaction
from engine.log.cleaner.log_cleaner import CleanerConfig, CleanerPorts, LogCleaner
from engine.log.directory.log_manager import LogManager
from engine.log.directory.log_manager_ports import LogManagerConfig, LogManagerPorts
from engine.log.log_config import LogConfig
from engine.log.topic_log_config import build_log_config
from engine.model import TopicPartition
from engine.naming import STORE_FILE
from engine.replication.effects import ProposeIsr
from engine.replication.following.followed_partitions import ReplicaFetcherConfig
from engine.replication.following.follower_logs import FollowerLogs
from engine.replication.following.leader_end_point import FetcherPorts
from engine.replication.following.replica_fetcher_manager import ReplicaFetcherManager
from engine.replication.leadership import Leadership
from engine.replication.metadata_cache import MetadataCache
from engine.replication.nearest_replica import NearestReplica
from engine.replication.partition_types import ReplicationConfig
from engine.replication.ports import ReplicaManagerConfig, ReplicaManagerPorts
from engine.replication.replica_manager import ReplicaManager
from engine.replication.state_text import format_state
from engine.znode.client import ZnodeClient

_log = logging.getLogger("kafka.server.ReplicaManager")
_logs_log = logging.getLogger("kafka.log.LogManager")


class StoragePorts(NamedTuple):
    """The other parts of a broker that its storage calls.

    `epoch` returns the broker epoch; `on_offline` gets the path of each failed log directory.
    """

    epoch: Callable[[], int]
    znodes: ZnodeClient
    peers: Peers
    send_to_controller: SendToController
    on_offline: Callable[[str], None]


class Storage:
    """The logs and partitions of a broker, with the tasks that maintain them."""

    def __init__(
        self,
        host: BrokerHost,
        live: LiveConfig,
        metadata_cache: MetadataCache,
        tasks: LoopTasks,
        *,
        deadlines: Deadlines,
        ports: StoragePorts,
    ) -> None:
        """Create the logs, the cleaner, the replica manager and the fetchers.

        `start` loads the logs.
        """
        self._live = live
        self._is_read_only = host.is_read_only
        self._files = host.files
        self._clock = host.clock
        #: Called with the path of a log directory that has failed.
        self._on_offline = ports.on_offline
        config = live.config
        self.logs = LogManager(
            host.files,
            _log_manager_config(config, metadata_cache, host.files),
            LogManagerPorts(
                tasks,
                host.clock,
                host.entropy,
                host.lock,
                self._log_config_of,
                self._high_watermark_of,
                self._on_offline_directory,
                host.run_all,
                host.work_ns,
            ),
        )
        self.cleaner = LogCleaner(
            self.logs,
            CleanerPorts(
                host.files, tasks, host.clock, self._high_watermark_of, host.start_process
            ),
            _cleaner_config(config),
        )
        self.quotas = ReplicationQuotas(live, host.clock)
        self._open_copying(host, metadata_cache, ports)
        self.replica_manager = ReplicaManager(
            host.clock,
            ReplicaManagerPorts(
                is_known=metadata_cache.is_known,
                propose_isr=self._propose_isr,
                fetching=self.fetchers,
                moving=self.moves,
                on_log_dir_offline=self._on_failed_path,
                on_waiting=deadlines.note,
                nearest=_rack_selector(config, metadata_cache, host),
                leader_quota=self.quotas.leader,
            ),
            ReplicaManagerConfig(
                config.fetch_purgatory_purge_interval_requests,
                config.producer_purgatory_purge_interval_requests,
            ),
        )
        deadlines.add(self.replica_manager)
        self.isr_changes = self._isr_changes(host, metadata_cache, tasks, ports)
        self.leadership = Leadership(
            config.broker_id,
            host.clock,
            self.replica_manager,
            self.logs,
            config_of=self._replication_config_of,
            is_alive=metadata_cache.is_alive,
        )
        self._tasks = tasks

    def _isr_changes(
        self,
        host: BrokerHost,
        metadata_cache: MetadataCache,
        tasks: LoopTasks,
        ports: StoragePorts,
    ) -> IsrProposals | IsrWrites:
        """Return the part that changes ISRs.

        It does so by proposals to the controller, or by writes of its own. Leaders write themselves
        if inter.broker.protocol.version is below 2.7-IV2.
        """
        config = self._live.config
        decided = self.replica_manager.on_isr_decided
        if writes_sets_itself(config.inter_broker_protocol_version):

            def controller_epoch(key: TopicPartition) -> int:
                """Return the controller epoch that the partition's state was written in."""
                known = metadata_cache.partition(key)
                return self.leadership.controller_epoch if known is None else known.controller_epoch

            writing = IsrWritePorts(ports.znodes, controller_epoch, decided)
            return IsrWrites(config.broker_id, writing, tasks, host.clock)
        return IsrProposals(
            config.broker_id,
            IsrProposalPorts(ports.epoch, ports.send_to_controller, decided),
            host.timers,
            host.clock,
        )

    def _open_copying(
        self, host: BrokerHost, metadata_cache: MetadataCache, ports: StoragePorts
    ) -> None:
        """Create the replica fetchers and the mover between log directories."""
        config = self._live.config
        self.moves = DirectoryMoves(
            lambda: self.replica_manager,
            self.logs,
            self.quotas.moves,
            host.timers,
            host.clock,
            chunk_bytes=config.replica_fetch_max_bytes,
            backoff_ms=config.replica_fetch_backoff_ms,
            abort_cleaning=self.cleaner.abort,
        )
        self.fetchers = ReplicaFetcherManager(
            FetcherPorts(
                config.broker_id,
                ports.epoch,
                metadata_cache,
                ports.peers.replica_channel,
                host.timers,
                host.clock,
            ),
            _fetcher_config(config),
            fetcher_count=config.num_replica_fetchers,
            logs=lambda: FollowerLogs(self.replica_manager),
            quota=self.quotas.follower,
        )

    def start(self) -> None:
        """Load all logs and start the periodic tasks; raises the errors of LogManager.start."""
        for path, directory in self.logs.start().items():
            recovered = sum(report.recovered_segments > 0 for report in directory.reports.values())
            _logs_log.info("%s: %d logs, %d recovered", path, len(directory.logs), recovered)
            for failed in directory.failed:
                _logs_log.error("%s is left alone: %s", failed.directory, failed.error)
            for stray in directory.strays:
                _logs_log.warning("Loaded stray log: %s", stray)
            for name in directory.unknown:
                # A standalone broker has its metadata store in its log directory.
                if not name.startswith(STORE_FILE):
                    _logs_log.warning("%s: %s is no partition and is left alone", path, name)
            for problem in directory.problems:
                _logs_log.warning("%s: %s", path, problem)
        config = self._live.config
        if config.log_cleaner_enable:
            self.logs.create_cleaner_checkpoints()
        self.cleaner.start()
        every_ms = config.replica_high_watermark_checkpoint_interval_ms
        self._tasks.every(
            "highwatermark-checkpoint",
            every_ms,
            self.checkpoint_high_watermarks,
            first_after_ms=every_ms,
        )
        if isinstance(self.isr_changes, IsrWrites):
            self.isr_changes.start()
        every_ms = config.replica_lag_time_max_ms // 2
        self._tasks.every(
            "isr-expiration", every_ms, self.replica_manager.shrink_isrs, first_after_ms=every_ms
        )

    def checkpoint_high_watermarks(self) -> None:
        """Write the high watermark checkpoints, once all partitions are known (PART-13).

        Earlier, partitions that are not known yet would be lost from the files.
        """
        if self.leadership.is_informed:
            self.logs.checkpoint_high_watermarks(self.replica_manager.high_watermarks())

    def state_text(self) -> str:
        """Return the states of the first LOGGED_STATES_MAX partitions as text, for the log."""
        partitions = self.replica_manager.partitions.values()
        texts = [format_state(partition) for partition in islice(partitions, LOGGED_STATES_MAX)]
        return f"{len(partitions)} partitions: {'; '.join(texts)}"

    def stop(self) -> None:
        """Complete the delayed operations and close everything in order.

        An exception in a response is raised after the logs are closed. After a failed assertion the
        logs are not closed, since their state is in doubt: the next start recovers them.
        """
        self.fetchers.close()
        self.moves.close()
        self.isr_changes.stop()
        try:
            self.replica_manager.stop()
        except AssertionError:
            raise
        except Exception:
            self._close_logs()
            raise
        self._close_logs()

    def _close_logs(self) -> None:
        """Write the high watermark checkpoints, and close the logs."""
        self.checkpoint_high_watermarks()
        self.logs.stop()

    def compaction(self) -> Iterator[LogCompaction]:
        """Yield the cleaner's progress in each compacted log."""
        around = CleanerLogs(self.logs.logs, self.logs.first_dirty_offset, self._high_watermark_of)
        return compaction_states(self.cleaner, around, self._clock.wall_ms())

    def _propose_isr(self, proposal: ProposeIsr) -> None:
        """Pass a leader's ISR proposal to the part that changes ISRs."""
        self.isr_changes.propose(proposal)

    # Settings

    def _log_config_of(self, topic: str) -> LogConfig:
        """Return the log settings of a topic: its overrides, else the broker's."""
        expiration_ms = self._live.config.producer_id_expiration_ms
        return build_log_config(
            self._live.topic_config(topic), producer_id_expiration_ms=expiration_ms
        )

    def _replication_config_of(self, topic: str) -> ReplicationConfig:
        """Return the present replication settings of a topic."""
        return ReplicationConfig(
            self._live.config.replica_lag_time_max_ms,
            self._live.topic_config(topic).min_insync_replicas,
            self._is_read_only,
        )

    def reconfigure(self, topic: str | None = None) -> None:
        """Apply changed settings to the logs and partitions of `topic`, None for all topics."""
        self.logs.reconfigure(topic)
        self.cleaner.reconfigure(_cleaner_config(self._live.config))
        self.fetchers.resize(self._live.config.num_replica_fetchers)
        self.quotas.reconfigure()
        self.leadership.reconfigure(topic)

    def _high_watermark_of(self, topic_partition: TopicPartition) -> int:
        """Return a replica's high watermark; the log start offset for a log without a replica.

        So retention and the cleaner do not touch a log until the controller has sent the replica's
        state. Source: RET-7; UnifiedLog.highWatermarkMetadata, Partition.createLog.
        """
        partition = self.replica_manager.partitions.get(topic_partition)
        if partition is not None:
            return partition.high_watermark
        log = self.logs.get(topic_partition)
        return 0 if log is None else log.log_start_offset

    # Directories that fail

    def _on_failed_path(self, failure: LogDirOffline) -> None:
        """Take the log directory offline that contains the failed path."""
        for directory in self.logs.directories:
            if failure.path == directory.path or failure.path.startswith(f"{directory.path}/"):
                self.logs.take_offline(directory.path, failure)

    def _on_offline_directory(
        self, path: str, error: StorageError, lost: Sequence[TopicPartition]
    ) -> None:
        """Mark the replicas `lost` in a failed directory offline, then notify the broker."""
        _log.error("Stopping serving replicas in dir %s, %d of them: %s", path, len(lost), error)
        self.leadership.mark_offline(*lost)
        self._on_offline(path)


def _rack_selector(
    config: BrokerConfig, metadata_cache: MetadataCache, host: BrokerHost
) -> NearestReplica | None:
    """Return the selector of the replica in a consumer's rack; None if consumers read from leaders.

    That is so without replica.selector.class.
    """
    if not REPLICA_SELECTORS.get(config.replica_selector_class or "", False):
        return None
    return NearestReplica(metadata_cache, host.clock)


def _fetcher_config(config: BrokerConfig) -> ReplicaFetcherConfig:
    """Return the replica fetcher's limits from the broker's `replica.fetch.*` settings."""
    return ReplicaFetcherConfig(
        config.replica_fetch_backoff_ms,
        config.replica_fetch_max_bytes,
        config.replica_fetch_response_max_bytes,
        config.replica_fetch_min_bytes,
        config.replica_fetch_wait_max_ms,
    )


def _cleaner_config(config: BrokerConfig) -> CleanerConfig:
    """Return the cleaner's settings from the broker's."""
    return CleanerConfig(
        config.log_cleaner_enable,
        config.log_cleaner_threads,
        config.log_cleaner_backoff_ms,
        config.log_cleaner_dedupe_buffer_size,
        config.log_cleaner_io_buffer_load_factor,
        config.log_cleaner_io_buffer_size,
        config.log_cleaner_io_max_bytes_per_second,
        config.message_max_bytes,
    )


def _log_manager_config(
    config: BrokerConfig, metadata_cache: MetadataCache, files: Files
) -> LogManagerConfig:
    """Return the log manager's settings from the broker's."""
    return LogManagerConfig(
        log_dirs=[files.absolute_path(path) for path in config.data_dirs],
        broker_id=config.broker_id,
        cluster_id=metadata_cache.cluster_id,
        retention_check_interval_ms=config.log_retention_check_interval_ms,
        flush_scheduler_interval_ms=config.log_flush_scheduler_interval_ms,
        recovery_point_checkpoint_ms=config.log_flush_offset_checkpoint_interval_ms,
        log_start_offset_checkpoint_ms=config.log_flush_start_offset_checkpoint_interval_ms,
        producer_id_expiration_check_ms=config.producer_id_expiration_check_interval_ms,
        initial_task_delay_ms=config.log_initial_task_delay_ms,
    )
