"""Rehearse a plan: copy a cluster, execute the plan on the copy, and report the events.

1. The cluster is read: brokers, racks, topics, settings, sizes. Nothing is changed there.
2. An embedded cluster with as many brokers is started in its own folder.
3. Topics are created there with the same replicas, and filled with records; all replicas get them.
4. Brokers that are dead in the cluster are stopped.
5. The plan is executed, with a throttle that makes the copies take a while.
6. If a broker is to die: it is killed once the first change is at work, and restarted some time
   later.
7. The acknowledged records are looked for; the embedded cluster is stopped and removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.config_admin import (
    ConfigResourceType,
    ConfigSource,
    Resource,
    describe_configs,
)
from engine.client.offsets import EARLIEST, LATEST, list_offsets
from engine.client.producing import OutgoingRecord, Producer, ProducerOptions
from engine.client.topic_admin import NewTopic, create_topics
from engine.cluster import daemon
from engine.cluster.broker_processes import kill_broker
from engine.cluster.data_directory import DataDirectory
from engine.cluster.plan import ClusterPlan
from engine.cluster.requests import Action, request_action
from engine.errors import ApiError, EngineError
from engine.host.deferred_signals import block_signals
from engine.host.held_file import RealHeldFiles
from engine.host.ports import Clock
from engine.host.process_identity import identify_process
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange
from engine.reassign.change_status import ExecutionStatus
from engine.reassign.execution import Execution, ExecutionEnd
from engine.reassign.journal import MoveJournal
from engine.reassign.journal_state import Begun, ExecutionSettings, read_journal
from engine.reassign.live_cluster import LiveCluster
from engine.reassign.phases import AT_WORK
from engine.reassign.throttles import ThrottleRates
from engine.rehearsal.copied_cluster import CopiedCluster
from engine.rehearsal.record_loss import LostRecords, OffsetRange, find_lost_records, is_whole

_TOPICS_AT_ONCE = 50
_VALUE_BYTES = 1000
#: Intended duration of the copies, so that their states can be observed.
_COPY_S = 5
#: Time after which a killed broker is restarted.
_DEAD_MS = 3_000
#: Interval between two observations.
_POLL_MS = 200
#: Time for followers to replicate, and for a new leader to advance its high watermark.
_WHOLE_MS = 15_000
_TIMEOUT_S = 300.0
_RATE_BYTES_MIN = 100_000


class SeenStep(NamedTuple):
    """A state of a change, with the cluster's ids; `at_ms` is the time since the start."""

    at_ms: int
    change: PartitionChange
    phase: str
    isr: tuple[int, ...]
    leader: int | None


class RehearsalEnd(NamedTuple):
    """The result of a rehearsal; `lost` are acknowledged records that were lost."""

    end: ExecutionEnd
    took_ms: int
    leader_changes: int
    lost: list[LostRecords]
    warnings: list[str]


class RecordsNotWritten(EngineError):
    """The records of a partition of the copy were not stored."""

    hint = "the settings of its topic may be why: `kctl configs describe --topic` shows them"

    def __init__(self, partition: TopicPartition, error: EngineError) -> None:
        self.partition = partition
        self.error = error
        super().__init__(f"the copy of {partition} cannot be filled: {error}")


class RehearsalPorts(NamedTuple):
    """The ports of a rehearsal; `connect` returns a client for bootstrap servers."""

    files: RealHeldFiles
    clock: Clock
    connect: Callable[[str], KafkaClient]
    pause: Callable[[int], None]


def request_topic_settings(client: KafkaClient, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the settings that each topic overrides; topics that cannot be read are left out."""
    resources = [Resource(ConfigResourceType.TOPIC, name) for name in sorted(topics)]
    described = describe_configs(client, resources) if resources else {}
    return {
        resource.name: {
            entry.name: entry.value
            for entry in entries
            if entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG and entry.value is not None
        }
        for resource, entries in described.items()
        if not isinstance(entries, EngineError)
    }


class Rehearsal:
    """A plan on a copy, in a folder that only this rehearsal uses."""

    def __init__(
        self, ports: RehearsalPorts, folder: str, copy: CopiedCluster, killed: int | None
    ) -> None:
        """Create a rehearsal on a copy of the cluster, whose data is in `folder`; nothing starts.

        `killed` is the id in the cluster of the broker to kill, None for none.
        """
        self._ports = ports
        self._copy = copy
        self._data = DataDirectory(ports.files, folder)
        self._plan = ClusterPlan(
            broker_count=len(copy.ids),
            port=0,
            settings={"auto.leader.rebalance.enable": "false"},
            racks=copy.racks,
            is_in_processes=killed is not None,
        )
        #: Id that the killed broker has in the copy; None if none is killed.
        self._killed = None if killed is None else copy.ids[killed]
        #: Time of the kill, None before; below, True after the restart.
        self._died_ms: int | None = None
        self._is_back = False
        self._began_ms = 0
        #: The last reported state of each partition; only changes are reported.
        self._seen: dict[TopicPartition, tuple[str, tuple[int, ...], int | None]] = {}
        #: The last leader of each partition, and the number of all changes of leaders.
        self._leaders: dict[TopicPartition, int | None] = {}
        self._leader_changes = 0
        self._warnings: list[str] = []

    def run(
        self,
        changes: Sequence[PartitionChange],
        settings: ExecutionSettings,
        on_step: Callable[[SeenStep], None],
        notify: Callable[[str], None],
    ) -> RehearsalEnd:
        """Start the copy, execute the changes on it, remove it, and return the result.

        `on_step` gets each state of a change, `notify` a text for each step.
        """
        files, folder = self._ports.files, self._data.path
        notify(f"starting {len(self._copy.ids)} brokers in {folder}")
        with self._hold_lock():
            daemon.start(self._data, files, self._plan, _TIMEOUT_S)
        try:
            servers = daemon.status_of(self._data).bootstrap_servers
            assert servers is not None
            with self._ports.connect(servers) as client:
                return self._rehearse(client, changes, settings, on_step, notify)
        finally:
            # Signals are blocked: nothing else would stop the cluster.
            with block_signals():
                daemon.stop(self._data, self._ports.clock, _TIMEOUT_S, self._ports.pause)
                with self._hold_lock():
                    daemon.destroy(self._data, files)

    def _hold_lock(self) -> AbstractContextManager[None]:
        """Wait for the lock that commands on the copy take, and return it."""
        ports = self._ports
        return daemon.hold_start_lock(self._data, ports.files, ports.clock, _TIMEOUT_S, ports.pause)

    def _rehearse(
        self,
        client: KafkaClient,
        changes: Sequence[PartitionChange],
        settings: ExecutionSettings,
        on_step: Callable[[SeenStep], None],
        notify: Callable[[str], None],
    ) -> RehearsalEnd:
        """Fill the copy with records, execute the plan on it, and find lost records.

        A broker may be killed meanwhile.
        """
        copied = tuple(self._copy.convert_change(change) for change in changes)
        notify(f"making {len(self._copy.topics)} topics as they are")
        self._create_topics(client)
        notify("filling them")
        acknowledged = self._produce_records(client)
        self._await_records(client, acknowledged)
        for broker_id in self._copy.dead:
            self._request(Action.STOP, broker_id)
        notify("executing the plan")
        originals = dict(zip((c.name for c in copied), changes, strict=True))
        settings = settings._replace(rates=self._throttle_rates(copied))
        path = f"{self._data.path}/rehearsal.journal"
        files = self._ports.files
        begun = Begun(None, copied, settings)
        journal = MoveJournal.create(files, path, begun, identify_process())
        state = read_journal(files, path)
        self._began_ms = self._ports.clock.monotonic_ms()

        def observe(now: ExecutionStatus) -> None:
            """Report the status, and kill or restart the chosen broker."""
            self._observe(now, originals, on_step)
            self._kill_or_restart(now)

        try:
            execution = Execution(
                LiveCluster(client, copied), self._ports.clock, journal, state, poll_ms=_POLL_MS
            )
            end = execution.run(observe)
        finally:
            journal.close()
            files.remove(path)
        if self._killed is not None and self._died_ms is None:
            self._warnings.append("everything was over before a broker could be killed")
        elif self._killed is not None and not self._is_back:
            self._request(Action.RESTART, self._killed)
        took_ms = self._ports.clock.monotonic_ms() - self._began_ms
        lost = self._find_lost(client, acknowledged)
        return RehearsalEnd(end, took_ms, self._leader_changes, lost, self._warnings)

    # 3. Topics and records

    def _create_topics(self, client: KafkaClient) -> None:
        """Create the topics; those whose settings the copy refuses are created without them."""
        topics = self._copy.topics
        for start in range(0, len(topics), _TOPICS_AT_ONCE):
            chunk = topics[start : start + _TOPICS_AT_ONCE]
            made = create_topics(client, chunk)
            refused = [t for t in chunk if isinstance(made.get(t.name), ApiError)]
            for topic in refused:
                self._warnings.append(f"{topic.name} is without its settings: {made[topic.name]}")
            plain = [topic._replace(configs={}) for topic in refused]
            self._create_or_raise(client, plain)

    @staticmethod
    def _create_or_raise(client: KafkaClient, topics: Sequence[NewTopic]) -> None:
        """Create topics; raises the first error."""
        if not topics:
            return
        for result in create_topics(client, topics).values():
            if isinstance(result, ApiError):
                raise result

    def _produce_records(self, client: KafkaClient) -> dict[TopicPartition, OffsetRange]:
        """Produce records with acks=1; return the acknowledged offsets.

        Each has a distinct key: compacted topics require keys, and the cleaner then removes no
        record. acks is 1 because followers may be missing, as in the cluster.
        """
        producer = Producer(client, ProducerOptions(acks=1))
        value = bytes(_VALUE_BYTES)
        acknowledged = {}
        for key, size_bytes in self._copy.size_bytes.items():
            acknowledged[key] = OffsetRange(0, max(1, size_bytes // _VALUE_BYTES))
            for number in range(acknowledged[key].end):
                record_key = f"{number}".encode()
                record = OutgoingRecord(key.topic, record_key, value, partition=key.partition)
                producer.add(record)
        for result in producer.flush():
            if result.error is not None:
                raise RecordsNotWritten(result.batch.partition, result.error)
        return acknowledged

    def _find_lost(
        self, client: KafkaClient, acknowledged: Mapping[TopicPartition, OffsetRange]
    ) -> list[LostRecords]:
        """Return the lost records; a partition that cannot be read becomes a warning."""
        found, unread = self._await_records(client, acknowledged)
        self._warnings += [
            f"{key} cannot be read in the end: {error}" for key, error in unread.items()
        ]
        return find_lost_records(acknowledged, found)

    def _await_records(
        self, client: KafkaClient, acknowledged: Mapping[TopicPartition, OffsetRange]
    ) -> tuple[dict[TopicPartition, OffsetRange], dict[TopicPartition, EngineError]]:
        """Wait up to `_WHOLE_MS` until logs have all acknowledged records; return their offsets.

        Logs are read up to the high watermark, so records may be missing at first: those that
        followers do not have yet, and those that a new leader does not know to be replicated. Logs
        that cannot be read are returned with their errors.
        """
        clock = self._ports.clock
        deadline_ms = clock.monotonic_ms() + _WHOLE_MS
        while True:
            found, unread = _request_logs(client, acknowledged)
            are_whole = all(
                is_whole(range_, found.get(key)) for key, range_ in acknowledged.items()
            )
            if are_whole or clock.monotonic_ms() >= deadline_ms:
                return found, unread
            self._ports.pause(_POLL_MS)

    def _throttle_rates(self, changes: Iterable[PartitionChange]) -> ThrottleRates:
        """Return a throttle at which the busiest receiver needs about `_COPY_S` seconds."""
        taking: dict[int, int] = {}
        for change in changes:
            for broker_id in change.added:
                taking[broker_id] = taking.get(broker_id, 0) + change.size_bytes
        if not taking:
            return ThrottleRates()
        return ThrottleRates(max(_RATE_BYTES_MIN, max(taking.values()) // _COPY_S))

    # 5. and 6. On the way

    def _observe(
        self,
        now: ExecutionStatus,
        originals: Mapping[TopicPartition, PartitionChange],
        on_step: Callable[[SeenStep], None],
    ) -> None:
        """Report each change of a partition's phase, ISR or leader, with the cluster's ids."""
        for change_now in now.changes:
            key = change_now.change.name
            isr = tuple(self._copy.original(id_) for id_ in change_now.isr)
            leader = change_now.leader
            leader = None if leader is None else self._copy.original(leader)
            seen = change_now.phase.value, tuple(sorted(isr)), leader
            if self._seen.get(key) == seen:
                continue
            self._seen[key] = seen
            if key in self._leaders and self._leaders[key] != leader:
                self._leader_changes += 1
            self._leaders[key] = leader
            at_ms = now.now_ms - self._began_ms
            on_step(SeenStep(at_ms, originals[key], change_now.phase.value, isr, leader))

    def _kill_or_restart(self, now: ExecutionStatus) -> None:
        """Kill the chosen broker once a change is in progress; restart it after `_DEAD_MS`.

        Does nothing without --kill. Called at each poll of the execution.
        """
        if self._killed is None or self._is_back:
            return
        if self._died_ms is None:
            if any(change.phase in AT_WORK for change in now.changes):
                kill_broker(self._data, self._plan, self._killed, self._ports.pause)
                self._died_ms = now.now_ms
        elif now.now_ms - self._died_ms >= _DEAD_MS:
            self._request(Action.RESTART, self._killed)
            self._is_back = True

    def _request(self, action: Action, broker_id: int) -> None:
        """Request an action on a broker from the copy's process, and wait for the response."""
        ports = self._ports
        with self._hold_lock():
            request_action(self._data, action, broker_id, ports.clock, _TIMEOUT_S, ports.pause)


def _request_logs(
    client: KafkaClient, partitions: Iterable[TopicPartition]
) -> tuple[dict[TopicPartition, OffsetRange], dict[TopicPartition, EngineError]]:
    """Return the offsets that consumers can read, and the errors of unreadable partitions."""
    starts = list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    ends = list_offsets(client, dict.fromkeys(partitions, LATEST))
    found: dict[TopicPartition, OffsetRange] = {}
    unread: dict[TopicPartition, EngineError] = {}
    for key, start in starts.items():
        end = ends[key]
        if isinstance(start, EngineError):
            unread[key] = start
        elif isinstance(end, EngineError):
            unread[key] = end
        else:
            found[key] = OffsetRange(start.offset, end.offset)
    return found, unread
