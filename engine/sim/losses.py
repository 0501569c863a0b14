"""Rules for committed records that may be lost because replicas lost unsynced writes.

```
power cut ──> lossy: its log end before ──> checked after the restart: its log end now
                 │ has all former records again: no longer lossy
all ISR members are lossy, or the controller did not notice the leader's loss, or unclean election
                 └──> a loss is expected ──> the next leader begins: the records it lacks are lost
```

A loss is expected in three cases: every ISR member has lost unsynced writes, or the leader has and
restarted before a controller noticed that it was down, or an unclean election. It is decided when
the leader begins: committed offsets that its log lacks are lost. All other offsets, and all later
writes, must agree with the committed records as before.

A fork is left of the second case: the leader wrote other records in the same epoch. As a follower
it cannot fetch across them (its log ends inside a batch of the next leader), but is in the ISR
until `replica.lag.time.max.ms` has passed. Elected meanwhile, it lacks the rest of the fork, in
Kafka too. Source: AbstractFetcherThread.markPartitionFailed, UnexpectedAppendOffsetException.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from engine.model import TopicPartition
from engine.records.batch import BatchView
from engine.replication.partition import Partition
from engine.sim.bit_rot import BitRotRules
from engine.sim.histories import Awaited, Fork, History, Loss, LossyReplica
from engine.sim.logs import content_batches, file_end
from engine.sim.node import SimulatedBroker
from engine.sim.topics import Topics
from engine.znode.values import PartitionStateNode

#: An epoch that no controller has.
_NO_CONTROLLER = -1


class Rules(NamedTuple):
    """The settings of a plan that matter for losses.

    ISR size, unclean elections, syncs, retention.
    """

    min_isr: int
    is_unclean_allowed: bool
    is_synced: bool
    #: How long tombstones of compacted topics are kept; None if no topic is compacted.
    tombstones_stay_ms: int | None = None
    #: `retention.ms` and `retention.bytes` of topics that do not set them.
    retention: tuple[int, int] = (-1, -1)


class ReplicaEnd(NamedTuple):
    """The ends of a replica's log when its process ended: written, synced, recovered."""

    log_end_offset: int
    #: All records below this offset are synced.
    synced_end: int
    #: Start of recovery after an unclean shutdown, which covers whole segments.
    recovered_from: int = 0


class LossRules:
    """Reports to the histories which records the disks have lost."""

    def __init__(
        self,
        rules: Rules,
        histories: Mapping[TopicPartition, History],
        topics: Topics,
        nodes: Mapping[int, SimulatedBroker],
        rots: BitRotRules,
        *,
        broke: Callable[[str, str, TopicPartition], None],
        end_of: Callable[[int, TopicPartition], ReplicaEnd | None],
    ) -> None:
        """Create the rules; `end_of` returns the end offsets of a broker's replica, of any life.

        `broke` reports a violation by its rule, text and partition.
        """
        self._broke = broke
        self._end_of = end_of
        #: Called with each loss of committed records.
        self.on_loss: Callable[[TopicPartition, Loss], None] = lambda _key, _loss: None
        #: Offset up to which each log was synced at its broker's power cut.
        self._synced_ends: dict[tuple[int, TopicPartition], int] = {}
        #: Start of recovery of each log with a damaged batch.
        self._recovered_from: dict[tuple[int, TopicPartition], int] = {}
        #: For logs that were truncated inside a batch: the end of the last record, and the log end
        #: offset.
        self._gaps: dict[Partition, tuple[int, int]] = {}
        #: The logs in `_gaps` whose process has ended since.
        self._ended: set[Partition] = set()
        self._rules = rules
        self._histories = histories
        self._topics = topics
        self._nodes = nodes
        self._rots = rots
        self._controller_epoch = 0
        #: Brokers that are registered in the metadata store.
        self._registered: set[int] = set()

    def on_controller_change(self, epoch: int) -> None:
        """Record the epoch of a new controller, which may not know of earlier losses of brokers."""
        self._controller_epoch = epoch
        self._judge_unseen()

    def on_broker_join(self, broker_id: int) -> None:
        """Record that a broker registered."""
        self._registered.add(broker_id)
        self._judge_unseen()

    def on_broker_leave(self, broker_id: int) -> None:
        """Record that a broker's registration ended."""
        self._registered.discard(broker_id)

    def on_state_change(
        self, key: TopicPartition, before: PartitionStateNode, state: PartitionStateNode
    ) -> None:
        """Forget the losses of members that joined the ISR again, and expect a loss if due.

        A member that lost writes after the fetch by which it joins, and before its next fetch,
        joins without them. Source: KIP-903, whose broker epochs prevent this, but not with
        ZooKeeper.
        """
        history = self._histories[key]
        for broker_id in state.isr:
            if broker_id not in before.isr and self._has_all(broker_id, key):
                history.lossy.pop(broker_id, None)
        history.judge_lossy()
        history.judge_unseen(self._controller_epoch)

    def _has_all(self, broker_id: int, key: TopicPartition) -> bool:
        """Return True if a broker's log reaches the end of all committed records of a partition."""
        broker = self._nodes[broker_id].broker
        replica = None if broker is None else broker.storage.replica_manager.partitions.get(key)
        end = self._histories[key].committed_end
        return replica is not None and replica.log.log_end_offset >= end

    def record_lost_writes(self, broker_id: int) -> None:
        """Record that a broker lost unsynced writes in a power cut."""
        if self._rules.is_synced:
            return
        for key in self._histories:
            if broker_id in self._topics.replicas(key):
                self._record_lost(broker_id, key)

    def on_process_end(self, node: SimulatedBroker) -> None:
        """Record which logs of an ended process may be shorter at its next start.

        A damaged batch is truncated with all batches after it. A log from a clean shutdown is read
        from its last index entry on: it is recovered if a batch is not found where it should be,
        and may be deleted completely for a damaged last offset.
        """
        self._note_ends_without_records(node.broker_id)
        rot = self._rots.damage_of(node.broker_id)
        if rot is None or rot.partition not in self._histories:
            return
        is_recovered = node.needs_recovery(str(rot.partition))
        if is_recovered or rot.is_misplacing or rot.is_hiding:
            self._record_lost(node.broker_id, rot.partition, is_recovered=is_recovered)

    def _note_ends_without_records(self, broker_id: int) -> None:
        """Record a loss for truncated logs whose last record ends below their log end offset.

        After a restart, the log ends at its last record: the batch at the truncation offset is
        removed, and compaction may have removed a key's record because of a later one that was
        truncated. Source: LocalLog.truncateTo, LogLoader.load.
        """
        for partition in [gap for gap in self._gaps if gap.broker_id == broker_id]:
            if partition not in self._ended:
                self._ended.add(partition)
                records_end, end = self._gaps[partition]
                if records_end < end == partition.log.log_end_offset:
                    self._record_lost(broker_id, partition.topic_partition)

    def _record_lost(
        self, broker_id: int, key: TopicPartition, *, is_recovered: bool = True
    ) -> None:
        """Record that a broker may have lost its unsynced records of a partition.

        Records from the lowest synced or damaged offset on may be lost.
        """
        history, end = self._histories[key], self._end_of(broker_id, key)
        end_before = history.committed_end if end is None else end.log_end_offset
        known_to = self._controller_epoch if self._is_known(broker_id) else _NO_CONTROLLER
        history.record_lost_writes(broker_id, known_to, end_before)
        if end is not None:
            rot, synced_end = self._rots.damage_of(broker_id), end.synced_end
            if rot is not None and rot.partition == key:
                if is_recovered:
                    self._recovered_from[broker_id, key] = end.recovered_from
                is_kept_before = is_recovered or not rot.is_hiding
                synced_end = min(synced_end, rot.base_offset) if is_kept_before else 0
            # An earlier life without a check of the replica may have truncated it further.
            before = self._synced_ends.get((broker_id, key), synced_end)
            self._synced_ends[broker_id, key] = min(before, synced_end)

    def log_truncated(self, partition: Partition) -> None:
        """Record the end of the records of a truncated log, and its log end offset.

        A batch at the truncation offset is removed completely, so the records may end before the
        log does. A batch whose last offset was damaged is removed so with its committed records: a
        log that is closed in order ends where the header of its last batch claims. Source:
        LocalLog.truncateTo, LogSegment.translateOffset.
        """
        records_end = max((b.last_offset + 1 for b in content_batches(partition)), default=0)
        end, key = partition.log.log_end_offset, partition.topic_partition
        self._gaps[partition] = records_end, end
        broker_id = partition.broker_id
        if records_end < end and self._rots.hides(key, records_end, end, broker_id=broker_id):
            self._histories[key].forks.append(Fork(records_end, end))

    def synced_end(self, partition: Partition) -> int:
        """Return the offset below which all records of a log are certainly on its disk.

        It is the recovery point, or the end of the records if that is lower. A process that ended
        during a truncation has shortened the file but not lowered the recovery point yet: then it
        is the end of the file.
        """
        recovery_point = partition.log.recovery_point
        records_end, end = self._gaps.get(partition, (recovery_point, recovery_point))
        is_in_gap = records_end < recovery_point <= end
        return min(records_end if is_in_gap else recovery_point, file_end(partition))

    def on_replica_change(self, history: History, partition: Partition, now_ms: int) -> None:
        """Record the log end of a lossy replica, and whether it has all records again."""
        broker_id, key = partition.broker_id, partition.topic_partition
        lossy, end = history.lossy.get(broker_id), partition.log.log_end_offset
        if lossy is None:
            return
        if lossy.kept_end is None:
            kept_end = end if lossy.whole_end is None else min(end, lossy.whole_end)
            lossy = history.lossy[broker_id] = lossy._replace(kept_end=kept_end)
            synced_end = self._synced_ends.pop((broker_id, key), 0)
            if end < synced_end:
                text = f"{key}: {broker_id} ends at {end} after a power cut, synced {synced_end}"
                self._broke("L2", text, key)
            self._check_recovery(broker_id, key, end)
            if history.keys is not None and end < lossy.end_before:
                history.keys.record_lost_writes(now_ms, end)
        if end >= max(lossy.end_before, history.committed_end):
            is_set_back = lossy.whole_end is not None
            if not is_set_back or self._first_missing(history, partition, now_ms) is None:
                del history.lossy[broker_id]

    def _first_missing(self, history: History, partition: Partition, now_ms: int) -> int | None:
        """Return the first committed offset that a replica lacks; None if it has all records."""
        batches, end = content_batches(partition), partition.log.log_end_offset
        return history.first_missing(batches, end, history.committed_end, now_ms)

    def record_restored_state(self, key: TopicPartition, now_ms: int) -> None:
        """Record which ISR members lack records of a restored state.

        A broker that is down counts as one without any record, because nothing is known about it.
        """
        history, lacking = self._histories[key], {}
        for broker_id in () if history.state is None else history.state.isr:
            broker = self._nodes[broker_id].broker
            replicas = {} if broker is None else broker.storage.replica_manager.partitions
            replica, first = replicas.get(key), 0
            if replica is not None and self._topics.is_of(key, replica.log.topic_id):
                missing = self._first_missing(history, replica, now_ms)
                if missing is None:
                    continue
                first = missing
            lacking[broker_id] = first
        history.roll_back(lacking)

    def roll_back(self, controller_epoch: int, broker_ids: Iterable[int]) -> None:
        """Record that the metadata store was restored to an earlier state.

        Controllers continue from an earlier epoch, and none of them has noticed a broker's loss
        yet. `broker_ids` are registered in the restored store.
        """
        for history in self._histories.values():
            for broker_id, lossy in history.lossy.items():
                history.lossy[broker_id] = lossy._replace(controller_epoch=_NO_CONTROLLER)
        self._registered = set(broker_ids)
        self.on_controller_change(controller_epoch)

    def _check_recovery(self, broker_id: int, key: TopicPartition, end: int) -> None:
        """Check rule L2: a log that was recovered over a damaged batch ends before that batch."""
        recovered_from, rot = (
            self._recovered_from.pop((broker_id, key), None),
            self._rots.damage_of(broker_id),
        )
        if recovered_from is None or rot is None or rot.partition != key:
            return
        if recovered_from <= rot.base_offset < end:
            text = f"{key}: {broker_id} ends at {end}, recovered over what is damaged"
            self._broke("L2", f"{text} at {rot.base_offset}", key)

    def on_leader_epoch(
        self, history: History, partition: Partition, now_ms: int, *, is_new_epoch: bool = False
    ) -> str:
        """Decide which records are lost at the start of a leader's epoch.

        Returns, as text, how the leader's log contradicts the rules; empty if it does not. In a new
        epoch no replica has records yet: followers truncate the records of earlier epochs that the
        leader lost.
        """
        batches, log_end = content_batches(partition), partition.log.log_end_offset
        lossy, awaited = history.lossy.get(partition.broker_id), history.awaited
        is_current, is_rewriting = self._leads_or_rewrites(history, partition)
        end = history.required_end(partition.leader_epoch)
        end = history.committed_end if is_rewriting else end
        first = history.first_missing(batches, log_end, end, now_ms)
        if awaited is None and first is not None and history.is_in_fork(first, end):
            awaited = Awaited(f"the log of leader {partition.broker_id} ends in a fork")
        if is_current:
            self._note_returned_records(history, batches, log_end)
            history.awaited = None
            if awaited is not None and awaited.is_unclean:
                history.lost_epoch = max(history.lost_epoch, partition.leader_epoch)
            # From now on other replicas are compared with the log of this leader.
            history.lossy.pop(partition.broker_id, None)
        may_fork = awaited is not None and awaited.is_rewriting and not is_new_epoch
        if may_fork and (is_current or lossy is not None):
            self._fork(history, partition.topic_partition, lossy, first)
        if first is None or (awaited is not None and not (is_current or is_rewriting)):
            if is_current and awaited is not None:
                history.begin_after(partition.log.log_start_offset)
            return ""
        kept_end = log_end if lossy is None or lossy.kept_end is None else lossy.kept_end
        is_kept = lossy is not None and first < min(kept_end, end)
        if is_kept and awaited is not None and awaited.is_unclean:
            # It was out of sync: its disk kept other records at the offsets of the committed ones.
            is_kept = not any(batch.base_offset <= first <= batch.last_offset for batch in batches)
        if awaited is None or is_kept or first >= end:
            return (
                history.fault_of(batches, end, now_ms)
                or f"has not what is committed at {first}, ends at {log_end} of {end}"
            )
        # A batch of the leader that begins in a fork is committed as a whole.
        spanning = (b.base_offset for b in batches if b.base_offset < first <= b.last_offset)
        first = min(spanning, default=first)
        loss = Loss(first, max(first, history.committed_end), awaited.reason, now_ms)
        history.lose(loss, partition.leader_epoch)
        history.begin_after(partition.log.log_start_offset)
        self.on_loss(partition.topic_partition, loss)
        return ""

    def _note_returned_records(
        self, history: History, batches: list[BatchView], log_end: int
    ) -> None:
        """Record a fork for lost records that a leader still has and other members may lack.

        It was in the ISR and down while an earlier leader continued without these records; now they
        count again, and its high watermark may cover them.
        """
        returned_from = history.own_end(batches[-1].leader_epoch) if batches else None
        if returned_from is not None and returned_from < log_end:
            history.forks.append(Fork(returned_from, log_end))

    def _leads_or_rewrites(self, history: History, partition: Partition) -> tuple[bool, bool]:
        """Return (True if a replica leads as stored, True if it rewrites an earlier epoch).

        A leader whose loss was not noticed, and which learns of its epochs one by one, writes in
        the first of them, at offsets where other replicas have the lost records; these are removed
        before it learns of the last epoch.
        """
        state, awaited = history.state, history.awaited
        if state is None or state.leader != partition.broker_id:
            return False, False
        if partition.leader_epoch == state.leader_epoch:
            return True, False
        is_rewriting = awaited is not None and awaited.is_rewriting
        return False, is_rewriting and partition.broker_id in history.lossy

    def _fork(
        self, history: History, key: TopicPartition, lossy: LossyReplica | None, first: int | None
    ) -> None:
        """Record a fork: offsets that a leader writes again in an epoch of others' records.

        `first` is the first committed offset that the leader lacks; other replicas may have
        uncommitted records after it.
        """
        firsts = [] if first is None else [first]
        if lossy is not None and lossy.kept_end is not None:
            firsts.append(lossy.kept_end)
        ends = (self._end_of(broker_id, key) for broker_id in self._nodes)
        reached = [found.log_end_offset for found in ends if found is not None]
        before = 0 if lossy is None else lossy.end_before
        end = max(history.committed_end, before, *reached)
        if firsts and min(firsts) < end:
            history.forks.append(Fork(min(firsts), end))

    def record_outdated_commits(
        self, history: History, partition: Partition, start: int, end: int, now_ms: int
    ) -> None:
        """Record as lost the batches that a leader of an epoch before a loss commits."""
        others = [b for b in content_batches(partition, start, end) if not history.has(b)]
        if not others:
            return
        reason = "committed by a leader of an epoch before a loss"
        loss = Loss(others[0].base_offset, end, reason, now_ms)
        history.lose_of_before(loss, others)
        self.on_loss(partition.topic_partition, loss)

    def _is_known(self, broker_id: int) -> bool:
        """Return True if the controller has seen a broker as live.

        It will then notice a restart, and that the broker may have lost writes.
        """
        controllers = [node.broker.controller for node in self._nodes.values() if node.broker]
        return any(
            controller.context.epoch == self._controller_epoch
            and broker_id in controller.context.live_brokers
            for controller in controllers
        )

    def is_unseen(self, broker_id: int) -> bool:
        """Return True if a broker lost writes and no live controller has noticed its restart.

        A controller that notices it removes the broker from ISRs and elects another leader.
        """
        return any(
            broker_id in history.lossy
            and not self._is_seen(history.lossy[broker_id])
            and (history.state.leader == broker_id or {broker_id} < set(history.state.isr))
            for history in self._histories.values()
            if history.state is not None
        )

    def _is_seen(self, lossy: LossyReplica) -> bool:
        """Return True if the controller that noticed the lost writes is still active."""
        controllers = [node.broker.controller for node in self._nodes.values() if node.broker]
        return lossy.controller_epoch == self._controller_epoch and any(
            controller.context.epoch == self._controller_epoch for controller in controllers
        )

    def _judge_unseen(self) -> None:
        """Expect losses where a registered leader lost writes and its controller did not notice."""
        for history in self._histories.values():
            if history.state is not None and history.state.leader in self._registered:
                history.judge_unseen(self._controller_epoch)

    def may_lose_writes(self, broker_ids: frozenset[int]) -> bool:
        """Return True if each ISR keeps a member with all records when these brokers lose power."""
        if self._rules.is_synced:
            return True
        return all(
            any(
                i not in broker_ids and i not in history.lossy and not self._rots.is_damaged(i, key)
                for i in history.state.isr
            )
            for key, history in self._histories.items()
            if history.state is not None and not broker_ids.isdisjoint(history.state.isr)
        )

    def may_end(self, broker_ids: frozenset[int]) -> bool:
        """Return True if no ISR loses records when the processes of all these brokers end.

        An ISR that has lossy members must keep another one that has all records. If all members of
        an ISR end, none may have a damaged batch, because that batch is removed when its log is
        opened.
        """
        return all(
            self._keeps_all(history, history.state.isr, broker_ids)
            and (
                not broker_ids.issuperset(history.state.isr)
                or not any(self._rots.is_damaged(i, key) for i in history.state.isr)
            )
            for key, history in self._histories.items()
            if history.state is not None
        )

    def may_change_controller(self) -> bool:
        """Return True if no ISR has both lossy and complete members.

        The controller that noticed the loss removes the lossy ones from the ISR; its successor does
        not.
        """
        return all(
            self._keeps_all(history, history.state.isr, frozenset(history.state.isr))
            for history in self._histories.values()
            if history.state is not None
        )

    @staticmethod
    def _keeps_all(history: History, isr: tuple[int, ...], broker_ids: frozenset[int]) -> bool:
        """Return True unless an ISR with both lossy and complete members loses all complete ones.

        `broker_ids` are the members that it loses.
        """
        whole = [i for i in isr if i not in history.lossy]
        return not whole or len(whole) == len(isr) or not broker_ids.issuperset(whole)
