"""The rules that hold at every moment, checked after each event of a broker and of the store.

| rule | checked when | claim |
|---|---|---|
| L1 | a replica changed | log start ≤ high watermark ≤ log end; recovery point ≤ log end |
| R2 | a leader begins an epoch | its log has every committed batch |
| R3 | commit, truncation, larger ISR | each member without losses has all committed records |
| R5 | a leader begins; a state is written | one leader per epoch; epochs increase |
| R6 | a leader's high watermark changed | it increases in an epoch, over committed records |
| R8 | a leader's high watermark rose | enough replicas are in sync |
| R13 | a state is written | leader ∈ ISR ⊆ assigned replicas; leaders come from the ISR |
| R14 | a consumer read | it got the committed records |
| L7 | every half second | a cleaned replica has the last record of each key (`cleanings.py`) |
| L6 | a replica changed | its log start offset increases only for a reason (`deletions.py`) |
| L4 | a replica changed | its epochs increase, and so do their starts, up to the log end |
| L8 | the power was cut | small files are old or new (`side_files.py`) |
| HW-10 | every half second | a follower's high watermark lags by one round (`watermarks.py`) |
| R6, R11, C2 | a high watermark or ISR grew, metadata changed | `epochs.py` |
| C1 | a state is written | its writer is the controller of the latest epoch |
| C3 | a controller changes its phase | the phases are in order (`phases.py`) |
| C6, C8 | a topic is written, a replica is removed | `topics.py` |
| Z1 | a transaction of the store | transaction ids and versions increase |
| Z2 | a transaction of the store | ephemeral nodes end with their sessions (`sessions.py`) |
| T5 | a response to a producer | no sequence is missing |

While a loss is expected (`losses.py`), a partition is not checked until its next leader begins;
then the records that this leader lacks are lost, and all others are checked as before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from engine.log.directory.leader_epoch_checkpoint import EpochStart
from engine.log.local_log import LocalLog
from engine.model import TopicPartition
from engine.records.batch import BatchView
from engine.replication.isr import InSyncSet
from engine.replication.partition import Partition
from engine.sim.bit_rot import BitRotRules
from engine.sim.cleanings import CleaningRules
from engine.sim.clocks import ClockSpread
from engine.sim.committed_keys import CommittedKeys
from engine.sim.deletions import DeletionRules, Moment
from engine.sim.epochs import EpochRules
from engine.sim.histories import History, Loss
from engine.sim.logs import content_batches, epochs_rise
from engine.sim.losses import LossRules, ReplicaEnd, Rules
from engine.sim.node import SimulatedBroker
from engine.sim.records import id_of
from engine.sim.sessions import SessionRules
from engine.sim.store_rollback import StoredTopics, read_topics
from engine.sim.stored_paths import (
    BROKER_PATH,
    CONFIG_PATH,
    DOOM_PATH,
    STATE_PATH,
    TOPIC_PATH,
)
from engine.sim.topics import Topics
from engine.sim.watermarks import WatermarkRules
from engine.znode.journal import Stored
from engine.znode.paths import CONTROLLER_EPOCH
from engine.znode.tree import Node
from engine.znode.values import (
    PartitionStateNode,
    decode_config,
    decode_controller_epoch,
    decode_partition_state,
    decode_topic,
)

MIN_ISR = "min.insync.replicas"


class Violation(NamedTuple):
    """A broken rule, with a description and the simulated time."""

    rule: str
    text: str
    at_ms: int

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


class _Seen(NamedTuple):
    """The state of a replica at its last check."""

    partition: Partition
    leader_id: int
    leader_epoch: int
    high_watermark: int
    log_end_offset: int
    log_start_offset: int
    epochs: tuple[EpochStart, ...]
    in_sync: InSyncSet

    @property
    def role(self) -> tuple[int, int]:
        """Return (leader id, leader epoch)."""
        return self.leader_id, self.leader_epoch

    def __str__(self) -> str:
        """Return leader, offsets and high watermark for the description of a violation."""
        return (
            f"leader {self.leader_id} of epoch {self.leader_epoch}, log {self.log_start_offset}.."
            f"{self.log_end_offset}, watermark {self.high_watermark}"
        )


def has_risen(before: _Seen | None, now: _Seen) -> bool:
    """Return True if a replica's high watermark rose since the last check, or is new.

    A replica that is elected uncleanly after a loss starts with the high watermark that it knew.
    """
    return before is None or now.high_watermark > before.high_watermark


class Invariants:
    """Checks the rules at each event, and keeps the first violation."""

    def __init__(
        self,
        rules: Rules,
        nodes: Mapping[int, SimulatedBroker],
        *,
        on_broken: Callable[[], None],
    ) -> None:
        """Create the rules; `on_broken` is called at the first violation."""
        self.rules = rules
        self._on_broken = on_broken
        #: The first violation; later ones are ignored. None if there is none.
        self.violation: Violation | None = None
        #: Called with each batch that a high watermark covers for the first time.
        self.on_commit: Callable[[TopicPartition, BatchView], None] = lambda _key, _batch: None
        self.histories: dict[TopicPartition, History] = {}
        self.topics = Topics(self.broke, self.histories, has_files=self._has_files)
        self._sessions = SessionRules(self.broke)
        self._epochs = EpochRules(self.broke, nodes, self.histories)
        self.watermarks = WatermarkRules(self.broke, nodes)
        self._cleanings = CleaningRules(self.broke, self.histories, self.topics, nodes)
        self.clocks = ClockSpread()
        #: All values of min.insync.replicas that each topic ever had.
        self._min_isrs: defaultdict[str, set[int]] = defaultdict(lambda: {rules.min_isr})
        self.deletions = DeletionRules(self.broke, rules.retention)
        self.rots = BitRotRules(self.histories, nodes)
        self.losses = LossRules(
            rules,
            self.histories,
            self.topics,
            nodes,
            self.rots,
            broke=self.broke,
            end_of=self._end_of,
        )
        #: Settings of each topic in the metadata store.
        self.configs: dict[str, Mapping[str, str]] = {}
        self.controller_epoch = 0
        self.now_ms = 0
        self._nodes = nodes
        #: What was seen of each broker's replicas, and in which life of its process.
        self._seen: dict[int, tuple[int, dict[TopicPartition, _Seen]]] = {}
        #: Number of the last change of the store, and czxid and version of each znode: they rise
        #: one by one.
        self._zxid = 0
        self._versions: dict[str, tuple[int, int]] = {}

    def broke(self, rule: str, text: str, partition: TopicPartition | None = None) -> None:
        """Record a violation and end the run; later violations are only consequences.

        Nothing is recorded for a partition whose records may be lost by a fault.
        """
        if partition is not None and self.is_excused(partition):
            return
        if self.violation is None:
            self.violation = Violation(rule, text, self.now_ms)
            self._on_broken()

    def history(self, partition: TopicPartition) -> History:
        """Return the history of a partition's committed records; it is created at first use."""
        history = self.histories.get(partition)
        if history is None:
            stay_ms = self.rules.tombstones_stay_ms
            keys = None if stay_ms is None else CommittedKeys(stay_ms, self.clocks.since)
            history = self.histories[partition] = History(f"{partition}", keys)
        return history

    def is_excused(self, partition: TopicPartition) -> bool:
        """Return True if a partition is not checked now, because a fault may lose its records."""
        history = self.histories.get(partition)
        return history is not None and history.excuse is not None

    def is_led_in_an_epoch_before_loss(self, partition: TopicPartition) -> bool:
        """Return True if a broker still leads a partition in an epoch before a loss."""
        lost_epoch = self.history(partition).lost_epoch
        brokers = [node.broker for node in self._nodes.values() if node.broker is not None]
        replicas = [broker.storage.replica_manager.partitions.get(partition) for broker in brokers]
        return any(
            replica is not None and replica.is_leader and replica.leader_epoch < lost_epoch
            for replica in replicas
        )

    def is_unseen(self, partition: TopicPartition) -> bool:
        """Return True if a partition has no leader that can be checked now.

        A broker serves shortly before it counts as up, and may lead then; its log directory may
        fail in the callback in which it commits. Its commits are seen later.
        """
        return self.leading_log(partition) is None

    def leading_log(self, partition: TopicPartition) -> LocalLog | None:
        """Return the log of a partition's leader; None if it has none that is up."""
        leader = self.leading_partition(partition)
        return None if leader is None else leader.log

    def leading_partition(self, partition: TopicPartition) -> Partition | None:
        """Return a partition's replica on its leader; None if it has none that is up."""
        state = self.history(partition).state
        node = None if state is None else self._nodes.get(state.leader)
        broker = None if node is None else node.broker
        if broker is None:
            return None
        return broker.storage.replica_manager.partitions.get(partition)

    def check_all(self) -> None:
        """Check the rules that no event triggers: watermarks of followers, and cleaned logs (L7).

        Called every half second of simulated time.
        """
        self.watermarks.check()
        if self.rules.tombstones_stay_ms is not None:
            with self.without_disk_faults():
                self._cleanings.check(self.now_ms)

    @contextmanager
    def without_disk_faults(self) -> Iterator[None]:
        """Suspend disk faults of all brokers inside the block, so that the checks can read logs."""
        with ExitStack() as stack:
            for node in self._nodes.values():
                stack.enter_context(node.disk.files.suspend_failures())
            yield

    # Replicas

    def check(self, node: SimulatedBroker) -> None:
        """Check the replicas of a broker that changed since its last check."""
        broker = node.broker
        if broker is None:
            return
        self._epochs.check_metadata(broker)
        life, seen = self._seen.get(node.broker_id, (0, {}))
        if life != node.machine.life:
            seen = {}
            self._seen[node.broker_id] = node.machine.life, seen
        partitions = broker.storage.replica_manager.partitions
        for key, partition in partitions.items():
            log = partition.log
            # A plain tuple unless it has changed: this code runs for each replica after each
            # callback.
            now = (
                partition,
                partition.leader_id,
                partition.leader_epoch,
                partition.high_watermark,
                log.log_end_offset,
                log.log_start_offset,
                log.epochs.entries,
                partition.in_sync,
            )
            before = seen.get(key)
            if now != before:
                seen[key] = changed = _Seen._make(now)
                if self.topics.is_of(key, log.topic_id):
                    is_same = before is not None and before.partition is partition
                    with node.disk.files.suspend_failures():
                        self._check_replica_change(
                            node, partition, before if is_same else None, changed
                        )
        if len(partitions) != len(seen):
            for key in [key for key in seen if key not in partitions]:
                del seen[key]
                if not self._has_files(node.broker_id, key):
                    self.topics.check_removal(key, node.broker_id)

    def check_midway(self, node: SimulatedBroker) -> None:
        """Check a broker whose disk stopped in the middle of a callback, before its process ends.

        Records that its leaders have committed by then count: consumers and followers may have
        them. Other rules are checked in the next life, because the state may be changed only in
        part.
        """
        broker = node.broker
        for key, partition in (
            () if broker is None else broker.storage.replica_manager.partitions.items()
        ):
            history = self.history(key)
            if self.topics.is_of(key, partition.log.topic_id):
                self._check_at_start(node, history, partition)
            is_new = partition.is_leader and partition.high_watermark > history.committed_end
            is_new = is_new and partition.leader_epoch >= history.lost_epoch
            if is_new and self.topics.is_of(key, partition.log.topic_id):
                self._commit(history, node.broker_id, partition, partition.high_watermark)

    def _check_replica_change(
        self, node: SimulatedBroker, partition: Partition, before: _Seen | None, now: _Seen
    ) -> None:
        """Check the rules for a replica whose log or role has changed since its last check.

        L1: log start offset ≤ high watermark ≤ log end offset. L4: leader epochs rise. R5: the
        leader epoch does not fall. Further rules if it leads, or if its log became shorter.
        """
        key, who = partition.topic_partition, f"broker {node.broker_id}"
        if not now.log_start_offset <= now.high_watermark <= now.log_end_offset:
            self.broke("L1", f"{who} {key}: {now}")
        if partition.log.recovery_point > now.log_end_offset:
            self.broke("L1", f"{who} {key}: recovery point {partition.log.recovery_point}, {now}")
        # Unchanged epochs of a log that is not shorter need no check.
        if (
            before is None
            or now.epochs is not before.epochs
            or now.log_end_offset < before.log_end_offset
        ) and not epochs_rise(now.epochs, now.log_end_offset):
            self.broke("L4", f"{who} {key}: {now.epochs}, {now}")
        if before is not None and now.leader_epoch < before.leader_epoch:
            self.broke("R5", f"{who} {key}: epoch {before.leader_epoch}, then {now.leader_epoch}")
        history = self.history(key)
        start = now.log_start_offset
        if before is None or start != before.log_start_offset or start > history.start:
            self._check_at_start(node, history, partition)
        self._epochs.on_replica_change(partition)
        self.losses.on_replica_change(history, partition, self.now_ms)
        if now.leader_id == node.broker_id:
            self._check_leader_change(node.broker_id, partition, before, now)
        if before is not None and now.log_end_offset < before.log_end_offset:
            self.losses.log_truncated(partition)
            self._check_member(history, node.broker_id, key, "cut its log")

    def _check_at_start(
        self, node: SimulatedBroker, history: History, partition: Partition
    ) -> None:
        """Check rule L6 for a replica: its log start offset rises only if there is a reason."""
        key, moment = partition.topic_partition, Moment(self.now_ms, node.machine.clock.wall_ms())
        state, role = history.state, (node.broker_id, partition.leader_epoch)
        is_leader = state is not None and (state.leader, state.leader_epoch) == role
        self.deletions.check_start(
            history, key, partition.log, node.name, moment, is_leader=is_leader
        )

    def _check_leader_change(
        self, broker_id: int, partition: Partition, before: _Seen | None, now: _Seen
    ) -> None:
        """Check the rules for a leader that is new, or whose log has changed; record its commits.

        R2: it has all committed records. R5: an epoch has one leader. R6: its high watermark does
        not fall. R9: it does not truncate its log as it becomes leader. Commits of a leader from an
        epoch before a loss are not added to the history.
        """
        key = partition.topic_partition
        history = self.history(key)
        is_new_epoch = now.leader_epoch not in history.leaders
        first = history.leaders.setdefault(now.leader_epoch, broker_id)
        if first != broker_id:
            self.broke("R5", f"{key}: {first} and {broker_id} lead epoch {now.leader_epoch}")
        is_same = before is not None and before.role == now.role
        if not is_same:
            led_before = before is not None and before.role == (broker_id, now.leader_epoch - 1)
            self._epochs.on_leader_epoch(partition, led_before=led_before)
            if before is not None and now.log_end_offset < before.log_end_offset:
                self.broke("R9", f"{key}: {broker_id} cut its log to lead, {before}, then {now}")
            fault = self.losses.on_leader_epoch(
                history, partition, self.now_ms, is_new_epoch=is_new_epoch
            )
            if fault:
                who = f"leader {broker_id} of epoch {now.leader_epoch}"
                self.broke("R2", f"{key}: {who} {fault}", key)
        elif before is not None and now.high_watermark < before.high_watermark:
            self.broke(
                "R6",
                f"{key}: watermark of leader {broker_id} from {before.high_watermark} "
                f"to {now.high_watermark} in epoch {now.leader_epoch}",
            )
        if is_same and before is not None:
            self._check_isr_change(partition, before, now)
            if now.log_start_offset < before.log_start_offset:
                self.broke("L6", f"{key}: leader {broker_id}, {before}, then {now}", key)
        if now.leader_epoch < history.lost_epoch:
            rose_from = before.high_watermark if is_same and before is not None else None
            if rose_from is not None and rose_from < now.high_watermark:
                self.losses.record_outdated_commits(
                    history, partition, rose_from, now.high_watermark, self.now_ms
                )
        elif now.high_watermark > history.committed_end:
            rose = has_risen(before, now)
            self._commit(history, broker_id, partition, now.high_watermark, has_risen=rose)
        elif is_same and before is not None and now.high_watermark > before.high_watermark:
            self._compare(history, broker_id, partition, before.high_watermark, now.high_watermark)

    def _check_isr_change(self, partition: Partition, before: _Seen, now: _Seen) -> None:
        """Check the epochs after an increase of the high watermark or of the maximal ISR."""
        if now.high_watermark > before.high_watermark:
            self._epochs.check_watermark_rise(partition)
        if now.in_sync is not before.in_sync:
            for broker_id in now.in_sync.maximal_isr:
                if broker_id not in before.in_sync.maximal_isr:
                    self._epochs.check_joining_follower(partition, broker_id)

    def _commit(
        self,
        history: History,
        broker_id: int,
        partition: Partition,
        high_watermark: int,
        *,
        has_risen: bool = True,
    ) -> None:
        """Record the batches that a leader's high watermark covers for the first time.

        If the watermark rose (`has_risen`), enough replicas must be in sync (R8). Then each ISR
        member must have the records.
        """
        key = partition.topic_partition
        history.begin_after_lost_range(partition.log.log_start_offset)
        # In a fork, a follower of a leader that lost writes may have a later high watermark.
        is_forked = history.is_forked(history.committed_end, high_watermark)
        if has_risen and not is_forked:
            self._check_in_sync_count(key, partition)
        for batch in content_batches(partition, history.committed_end, high_watermark):
            if batch.base_offset >= history.committed_end:
                history.commit(batch, self.now_ms)
                self.on_commit(key, batch)
        if history.committed_end != high_watermark:
            if not is_forked:
                self.broke("R6", f"{key}: watermark {high_watermark} inside a batch", key)
            history.committed_end = high_watermark
        state = history.state
        for member in () if state is None else state.isr:
            self._check_member(history, member, key, "is in sync")

    def _compare(
        self, history: History, broker_id: int, partition: Partition, start: int, end: int
    ) -> None:
        """Check rule R6: a leader commits in [start, end) only batches committed before."""
        for batch in content_batches(partition, start, end):
            if not history.has(batch):
                key, committed = partition.topic_partition, history.committed.get(batch.base_offset)
                self.broke("R6", f"{key}: {broker_id} commits {id_of(batch)} over {committed}", key)

    def _check_member(
        self, history: History, broker_id: int, key: TopicPartition, why: str
    ) -> None:
        """Check rule R3: an ISR member that lost no writes has all committed records.

        `why` names the event after which it is checked, for the message.
        """
        state, broker = history.state, self._nodes[broker_id].broker
        if state is None or broker_id not in state.isr or broker is None:
            return
        partition = broker.storage.replica_manager.partitions.get(key)
        if partition is None:
            return
        end, required_end = partition.log.log_end_offset, history.member_end
        lossy = history.lossy.get(broker_id)
        if lossy is not None:
            required_end = min(required_end, lossy.kept_end or 0)
        if end < required_end:
            text = f"{key}: {broker_id} {why} and ends at {end}, committed {history.committed_end}"
            self.broke("R3", text, key)

    def _has_files(self, broker_id: int, key: TopicPartition) -> bool:
        """Return True if a broker's disk has a directory of a partition, also while it is down."""
        return self._nodes[broker_id].has_files(str(key))

    def _check_in_sync_count(self, key: TopicPartition, partition: Partition) -> None:
        """Check rule R8: the ISR has the size that a setting of the topic required at some time.

        Brokers learn of changes late; in quiescence they know the latest (`quiescence.py`).
        """
        isr, least = partition.in_sync.isr, partition.config.min_insync_replicas
        if least not in self._min_isrs[key.topic] or len(isr) < partition.min_isr_count:
            text = f"commits with ISR {isr}, {least} of {self._min_isrs[key.topic]} wanted"
            self.broke("R8", f"{key}: leader {partition.broker_id} {text}", key)

    def _end_of(self, broker_id: int, key: TopicPartition) -> ReplicaEnd | None:
        """Return the end offsets of a broker's replica, including those that its disk lost since.

        Followers may have fetched records up to those offsets.
        """
        _, seen = self._seen.get(broker_id, (0, {}))
        found = seen.get(key)
        if found is None:
            return None
        log = found.partition.log
        bases = [segment.base_offset for segment in log.segments]
        recovered_from = max((base for base in bases if base <= log.recovery_point), default=0)
        synced_end = self.losses.synced_end(found.partition)
        log_end_offset = max(found.log_end_offset, log.log_end_offset)
        return ReplicaEnd(log_end_offset, synced_end, recovered_from)

    def record_lost_writes(self, broker_id: int) -> None:
        """Record that a broker lost writes in a power cut."""
        self.losses.record_lost_writes(broker_id)

    # The store

    def on_transaction(
        self,
        zxid: int,
        nodes: Mapping[str, Node | None],
        sessions: Mapping[int, int | None],
        writer: str,
    ) -> None:
        """Check one transaction of the store, and apply its changes to the rules' state.

        Rule Z1: transaction ids are consecutive, and versions of a znode do not fall. A value of
        None in `nodes` means that the znode is deleted, in `sessions` that the session has ended.
        """
        self._sessions.on_transaction(nodes, sessions)
        if zxid != self._zxid + 1:
            self.broke("Z1", f"transaction {zxid} follows {self._zxid}")
        self._zxid = zxid
        for path, node in nodes.items():
            if node is None:
                self._versions.pop(path, None)
                self._apply_removal(path)
                continue
            created, version = self._versions.get(path, (node.czxid, -1))
            if created == node.czxid and node.version < version:
                self.broke("Z1", f"{path}: version {version}, then {node.version}")
            self._versions[path] = node.czxid, node.version
            self._apply_write(path, node, writer)

    def roll_back(self, stored: Stored, now: Stored) -> None:
        """Replace the rules' state by that of an older backup, to which the store is set back.

        Brokers still run. A partition whose stored state is unchanged is checked as before.
        """
        nodes = dict(stored.nodes)
        topics, topics_now = read_topics(nodes), read_topics(dict(now.nodes))
        self._sessions.roll_back(nodes, stored.sessions)
        self._versions = {path: (node.czxid, node.version) for path, node in nodes.items()}
        self.controller_epoch = topics.controller_epoch
        self._epochs.roll_back(topics.controller_epoch)
        self.configs = topics.configs
        for name, config in topics.configs.items():
            self._record_configs(name, config)
        changed = self.topics.roll_back(topics)
        with self.without_disk_faults():
            for key in sorted({*topics.partitions(), *topics_now.partitions()}):
                self._set_back_partition(key, topics, topics_now)
        self.losses.roll_back(topics.controller_epoch, topics.broker_ids)
        for name in changed:
            self.topics.on_change(name)

    def _set_back_partition(
        self, key: TopicPartition, topics: StoredTopics, topics_now: StoredTopics
    ) -> None:
        """Adapt a partition's history to a restored store.

        If the topic is not the same any more, all records count as lost.
        """
        before, state = self.histories.get(key), topics.states.get(key)
        if before is None or not topics.is_same(key, topics_now):
            # Another topic of that name, one deleted meanwhile, or one that the restored store
            # lacks.
            self.histories.pop(key, None)
            history = self.history(key)
            history.state, history.is_doomed = state, key.topic in topics.doomed
            if before is not None:
                loss = Loss(0, before.known_end, "the store was set back", self.now_ms)
                history.losses += [*before.losses, loss]
                self.losses.on_loss(key, loss)
                # Some brokers may still have its log, if its deletion had begun.
                isr = () if state is None else state.isr
                history.roll_back(dict.fromkeys(isr, 0), before.known_end)
            return
        before.state = state
        if state is not None and not topics.is_equal(key, topics_now):
            before.decided_ends.setdefault(state.leader_epoch, before.committed_end)
            self.losses.record_restored_state(key, self.now_ms)

    def _record_configs(self, topic: str, config: Mapping[str, str]) -> None:
        """Add a topic's new settings to those that R8 and L6 allow.

        Earlier settings stay allowed, because brokers learn of changes late.
        """
        self._min_isrs[topic].add(int(config.get(MIN_ISR, self.rules.min_isr)))
        self.deletions.record_configs(topic, config)

    def _apply_removal(self, path: str) -> None:
        """Apply the deletion of a znode: a partition state, topic, deletion request or broker."""
        if match := STATE_PATH.fullmatch(path):
            history = self.histories.get(TopicPartition(match[1], int(match[2])))
            if history is not None:
                history.state = None
        elif match := TOPIC_PATH.fullmatch(path):
            self.topics.remove(match[1])
            self._min_isrs.pop(match[1], None)
            self.configs.pop(match[1], None)
        elif match := DOOM_PATH.fullmatch(path):
            self.topics.pardon(match[1])
        elif match := BROKER_PATH.fullmatch(path):
            self.losses.on_broker_leave(int(match[1]))

    def _apply_write(self, path: str, node: Node, writer: str) -> None:
        """Apply a written znode to the rules' state.

        Rule C1: the controller epoch rises with each write of it.
        """
        if path == CONTROLLER_EPOCH:
            epoch = decode_controller_epoch(node.data, path)
            if epoch <= self.controller_epoch and self.controller_epoch:
                self.broke("C1", f"controller epoch {epoch} follows {self.controller_epoch}")
            self.controller_epoch = epoch
            self._epochs.record_controller(writer, epoch)
            self.losses.on_controller_change(epoch)
        elif match := BROKER_PATH.fullmatch(path):
            self.losses.on_broker_join(int(match[1]))
        elif match := STATE_PATH.fullmatch(path):
            partition = TopicPartition(match[1], int(match[2]))
            self._check_written_state(partition, decode_partition_state(node.data, path), writer)
        elif (match := TOPIC_PATH.fullmatch(path)) and node.data is not None:
            self.topics.write(match[1], decode_topic(node.data, path))
        elif match := DOOM_PATH.fullmatch(path):
            self.topics.doom(match[1])
        elif match := CONFIG_PATH.fullmatch(path):
            config = decode_config(node.data, path)
            self.configs[match[1]] = config
            self._record_configs(match[1], config)

    def _check_written_state(
        self, key: TopicPartition, state: PartitionStateNode, writer: str
    ) -> None:
        """Check a new partition state that `writer` has written to the store.

        C1: it has the present controller epoch. R5: the leader epoch rises with a change of leader.
        R13: the leader was in the ISR before. R3: replicas that join the ISR have all records.
        """
        history = self.history(key)
        before, history.state = history.state, state
        history.decided_ends.setdefault(state.leader_epoch, history.committed_end)
        if state.controller_epoch != self.controller_epoch:
            self.broke("C1", f"{key}: {writer} of epoch {state.controller_epoch} writes {state}")
        self._check_state(key, state)
        self.topics.check(key, state.isr)
        if before is None:
            return
        if state.leader_epoch < before.leader_epoch or (
            state.leader_epoch == before.leader_epoch and state.leader != before.leader
        ):
            self.broke("R5", f"{key}: {before}, then {state}")
        if state.leader >= 0 and state.leader not in before.isr:
            if not self.rules.is_unclean_allowed:
                self.broke("R13", f"{key}: unclean election, {before}, then {state}", key)
            history.expect_unclean_loss()
        self.losses.on_state_change(key, before, state)
        for broker_id in state.isr:
            if broker_id not in before.isr:
                self._check_member(history, broker_id, key, "joined the ISR")
                if history.keys is not None:
                    history.keys.record_joined(self.now_ms)

    def _check_state(self, key: TopicPartition, state: PartitionStateNode) -> None:
        """Check rule R13: the ISR is a subset of the assigned replicas and contains the leader."""
        assigned = self.topics.replicas(key)
        if not state.isr or not set(state.isr) <= set(assigned):
            self.broke("R13", f"{key}: ISR of {state}, assigned {assigned}")
        if state.leader >= 0 and state.leader not in state.isr:
            self.broke("R13", f"{key}: leader outside of the ISR, {state}")
