"""Ledger of the clients' batches: each acknowledged record must be committed and readable.

| rule | checked | claim |
|---|---|---|
| R8 | at an acknowledgement | what acks=all accepted is committed |
| R14 | when a consumer reads | it gets what was committed, and never other records there |
| R1 | at rest | all replicas hold the same bytes |
| L7 | at rest, when a consumer reads | of compacted topics: the last record of each key |
| R2 | at rest | everything accepted is there |
| T5 | at rest | an idempotent producer's records are there once |
| T6 | at rest | the records of a producer that waits are in the order it sent them |
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from engine.log.local_log import LocalLog
from engine.model import TopicPartition
from engine.naming import INTERNAL_TOPICS, coordinator_partition
from engine.records.batch import BatchView
from engine.sim.bit_rot import whole_part
from engine.sim.clients import ACKS_ALL, SentBatch, SimulatedProducer
from engine.sim.copy_rules import CopyRules
from engine.sim.fence_rules import FenceRules
from engine.sim.group_rules import OFFSETS_TOPIC, GroupRules
from engine.sim.histories import History, Loss
from engine.sim.invariants import Invariants
from engine.sim.members import Commit
from engine.sim.node import SimulatedBroker
from engine.sim.records import batch_ids, batches, id_of, numbers
from engine.sim.sent_transactions import Fence, Ids, SentTransaction
from engine.sim.trace import Trace
from engine.sim.transaction_rules import TRANSACTION_TOPIC, TransactionRules


class Ledger:
    """The responses to producers and records of consumers; see `clients.ClientEvents`."""

    def __init__(self, invariants: Invariants, trace: Trace) -> None:
        """Watch the losses and commits that `invariants` sees."""
        self._trace = trace
        #: Records that acks=all has acknowledged.
        self.acknowledged_count = 0
        self._invariants = invariants
        #: Numbers that acks=all acknowledged, by producer and partition, with their offsets (−1:
        #: the response had none).
        self._accepted: dict[tuple[str, TopicPartition], dict[int, int]] = {}
        #: Names of idempotent producers: their records must not repeat.
        self._idempotent: set[str] = set()
        #: Numbers that a producer gave up after a loss: they may be in the log, out of order.
        self._given_up: defaultdict[tuple[str, TopicPartition], set[int]] = defaultdict(set)
        #: Acknowledged records that are not expected any more, because a loss explains that.
        self.excused_count = 0
        #: Records that consumers got beyond the committed end while no leader was seen; checked
        #: once one is.
        self._unseen: defaultdict[TopicPartition, list[tuple[str, BatchView]]] = defaultdict(list)
        self.groups = GroupRules(invariants.histories, invariants.broke)
        self.transactions = TransactionRules(invariants.histories, invariants.broke)
        self.copies = CopyRules(invariants.histories, invariants.broke)
        self._fences = FenceRules(
            invariants.broke,
            leader_epoch=self.leader_epoch,
            leads=self.leads,
            is_excused=self.transactions.is_excused,
        )
        invariants.losses.on_loss = self._lost
        invariants.on_commit = self._committed_by_leader

    def record(self, subject: str, text: str) -> None:
        """Put a line into the trace."""
        self._trace.add(subject, text)

    def began(self, transaction: SentTransaction) -> None:
        """Take note of a transaction that begins."""
        self.transactions.began(transaction)
        if transaction.copied is not None:
            self.copies.began(transaction.copied, transaction)

    def initialized(self, transactional_id: str, ids: Ids) -> None:
        """Take note of what InitProducerId has given to an instance."""
        self._fences.initialized(transactional_id, ids)

    def fence_of(
        self, transactional_id: str, ids: Ids, partition: TopicPartition | None
    ) -> Fence | None:
        """Return the fence that must refuse a request with these ids, None if it may succeed.

        A fence is a partition and its leader epoch in which InitProducerId gave a later producer
        epoch. Without `partition` it is the `__transaction_state` partition of the transactional
        id.
        """
        if partition is None:
            partition = self._coordinator_of(TRANSACTION_TOPIC, transactional_id)
        return self._fences.fence_of(transactional_id, ids, partition)

    def served_fenced(self, fence: Fence, host: str, request_name: str) -> None:
        """Note the success of a request of an instance that was not the latest."""
        self._fences.served(fence, host, request_name)

    def resumes(self, group_id: str) -> Mapping[TopicPartition, int]:
        """Return what a copier has to find committed that asks now, by partition."""
        return self.copies.floors(group_id)

    def resumed(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int],
        floors: Mapping[TopicPartition, int],
        host: str,
    ) -> None:
        """Note the committed offsets at which a copier resumes, and the broker they came from."""
        is_leader = self.leads(host, self._coordinator_of(OFFSETS_TOPIC, group_id))
        self.copies.resumed(group_id, offsets, floors, is_leader=is_leader)

    def _coordinator_of(self, topic: str, key: str) -> TopicPartition:
        """Return the partition of a coordinators' topic that has a group or a transactional id."""
        count = sum(row.topic == topic for row in self._invariants.topics.rows)
        return TopicPartition(topic, coordinator_partition(key, max(count, 1)))

    def assigned(
        self, group_id: str, generation_id: int, member_id: str, partitions: list[TopicPartition]
    ) -> None:
        """Record the partitions that a member was assigned in a generation of its group."""
        self.groups.assigned(group_id, generation_id, member_id, partitions)

    def commits(
        self, group_id: str, partition: TopicPartition, generation_id: int, member_id: str
    ) -> Commit:
        """Record that a member sends an offset commit now, and return its numbered record."""
        return self.groups.commits(group_id, partition, generation_id, member_id)

    def committed(self, commit: Commit, code: int) -> None:
        """Record the response to a commit."""
        self.groups.committed(commit, code)

    def broke(self, rule: str, text: str, partition: TopicPartition | None) -> None:
        """Report a violation of a rule to the invariants."""
        self._invariants.broke(rule, text, partition)

    def is_doomed(self, partition: TopicPartition) -> bool:
        """Return whether a partition is to be deleted."""
        return self._invariants.history(partition).is_doomed

    def loss_count(self, partition: TopicPartition) -> int:
        """Return how often records of a partition were lost."""
        return len(self._invariants.history(partition).losses)

    def resume_at(self, partition: TopicPartition, position: int) -> int | None:
        """Return where a reader goes on that has read into what was lost, None if it has not."""
        return self._invariants.history(partition).resume_at(position)

    def gave_up(self, producer: SimulatedProducer, batch: SentBatch) -> None:
        """Take note of a batch that is not sent again, and may be there or not."""
        numbers_ = range(batch.first_number, batch.first_number + batch.count)
        self._given_up[producer.name, batch.partition].update(numbers_)

    def _committed_by_leader(self, partition: TopicPartition, batch: BatchView) -> None:
        """Pass committed batches of __consumer_offsets to the rules about generations."""
        if partition.topic == OFFSETS_TOPIC:
            self.groups.lives.take(batch)

    def _lost(self, partition: TopicPartition, loss: Loss) -> None:
        """Stop requiring that consumers get the records that a partition has lost."""
        self._trace.add("LOST", f"{partition} from {loss.first} to {loss.end}: {loss.reason}")
        for (_, key), accepted in self._accepted.items():
            if key != partition:
                continue
            gone = {number for number, at in accepted.items() if loss.first <= at < loss.end}
            if gone:
                first, last = min(gone), max(gone)
                gone |= {n for n, at in accepted.items() if at < 0 and first <= n <= last + 1}
            for number in gone:
                del accepted[number]
            self.excused_count += len(gone)

    def leads(self, host: str, partition: TopicPartition) -> bool:
        """Return whether the broker of a machine leads, as the store has it, and is there."""
        state = self._invariants.history(partition).state
        is_there = self._invariants.leading_log(partition) is not None
        return state is not None and host == f"b{state.leader}" and is_there

    def leader_epoch(self, partition: TopicPartition) -> int:
        """Return the leader epoch that is stored, −1 without one."""
        history = self._invariants.histories.get(partition)
        return -1 if history is None or history.state is None else history.state.leader_epoch

    def is_written(self, producer: SimulatedProducer, batch: SentBatch) -> bool:
        """Return whether the leader's log has a batch; the producer's response does not count.

        Where old records are deleted it may have had it.
        """
        if self._invariants.history(batch.partition).start > 0:
            return True
        return batch.first_number in self._offsets_of(producer, batch.partition)

    def is_committed(self, producer: SimulatedProducer, batch: SentBatch) -> bool:
        """Return whether a batch that the leader's log has, or had, will not be lost."""
        offset = self._offsets_of(producer, batch.partition).get(batch.first_number)
        return offset is None or offset < self._invariants.history(batch.partition).committed_end

    def is_overtaken(self, producer: SimulatedProducer, batch: SentBatch) -> bool:
        """Return True if the leader's log has only later batches of a producer than this one.

        The producer may not have got the response for the later ones.
        """
        first_number = next(iter(self._offsets_of(producer, batch.partition)), None)
        return first_number is not None and batch.first_number < first_number

    def is_forgotten(self, producer: SimulatedProducer, batch: SentBatch) -> bool:
        """Return True if a cleaning removed the producer's batch before this one from the log.

        A cleaning keeps the last batch of each producer. If a truncation removes that one later,
        the log knows an earlier batch and none in between, in Kafka too.
        """
        if self._invariants.history(batch.partition).keys is None:
            return False
        accepted = self._accepted.get((producer.name, batch.partition), {})
        before = batch.first_number - 1
        log = self._invariants.leading_log(batch.partition)
        if log is None or before not in accepted:
            return False
        with self._invariants.without_disk_faults():
            kept = {
                number
                for content in _all(log)
                for _, name, number in numbers(content)
                if name == producer.name
            }
        return before not in kept

    def _offsets_of(self, producer: SimulatedProducer, partition: TopicPartition) -> dict[int, int]:
        """Return the offsets of a producer's records in the leader's log, by record number.

        Records that a cleaning may have removed count as well.
        """
        log, keys = (
            self._invariants.leading_log(partition),
            self._invariants.history(partition).keys,
        )
        found = [] if keys is None else [(r.offset, r.producer, r.number) for r in keys.records()]
        with self._invariants.without_disk_faults():
            for content in () if log is None else _all(log):
                found += numbers(content)
        return {number: offset for offset, name, number in found if name == producer.name}

    def acknowledged(self, producer: SimulatedProducer, batch: SentBatch, base_offset: int) -> None:
        """Take note of a batch that was accepted."""
        self.acknowledged_count += batch.count
        if producer.kind.acks != ACKS_ALL:
            return
        if producer.kind.is_idempotent:
            self._idempotent.add(producer.name)
        history = self._invariants.history(batch.partition)
        end_offset = base_offset + batch.count
        is_lost = (
            len(history.losses) > batch.loss_count
            if base_offset < 0
            else history.is_lost(base_offset, end_offset, batch.loss_count)
            or history.is_forked(base_offset, end_offset)
            # A leader of an epoch before the loss repeats the response to a batch that it has.
            or (
                history.is_lost(base_offset, end_offset)
                and self._invariants.is_led_in_an_epoch_before_loss(batch.partition)
            )
        )
        if is_lost:
            # The response was under way as a leader without the batch began.
            self.excused_count += batch.count
            return
        accepted = self._accepted.setdefault((producer.name, batch.partition), {})
        for index in range(batch.count):
            accepted[batch.first_number + index] = base_offset + index if base_offset >= 0 else -1
        end = history.committed_end
        if base_offset + batch.count > end and not self._invariants.is_unseen(batch.partition):
            self._invariants.broke(
                "R8",
                f"{producer.name} was told of {batch.partition} {base_offset} + {batch.count}, "
                f"committed {end}",
                batch.partition,
            )

    def read(
        self, consumer: str, partition: TopicPartition, position: int, content: bytes
    ) -> int | None:
        """Check the records that a consumer read from a position against the committed ones."""
        history, next_offset = self._invariants.history(partition), None
        is_seen = not self._invariants.is_unseen(partition)
        for batch in batches(content):
            if is_seen or batch.last_offset < history.committed_end:
                self._check_read(consumer, partition, batch)
            else:
                self._unseen[partition].append((consumer, batch))
            expected = position if next_offset is None else next_offset
            if history.keys is None and batch.base_offset > expected:
                is_hidden = next_offset is None and self._invariants.rots.hides(
                    partition, expected, batch.base_offset
                )
                if not is_hidden and not history.is_in_fork(expected, batch.base_offset):
                    text = f"{consumer} read {partition} from {position}, {id_of(batch)}"
                    self._invariants.broke("R14", f"{text} behind {next_offset}")
            next_offset = batch.last_offset + 1
        if is_seen and history.keys is not None and next_offset is not None:
            self._check_gaps(consumer, partition, content, (position, next_offset))
        return next_offset

    def damaged(
        self, consumer: str, host: str, partition: TopicPartition, base_offset: int
    ) -> None:
        """Check R14: a batch with a wrong checksum is one that the leader's disk has damaged."""
        self._trace.add(consumer, f"{partition} at {base_offset} from {host}: wrong checksum")
        if not self._invariants.rots.explains(host, partition, base_offset):
            text = f"{consumer} was given {partition} at {base_offset} damaged by {host}"
            self._invariants.broke("R14", text, partition)

    def _check_read(self, consumer: str, partition: TopicPartition, batch: BatchView) -> None:
        """Check that a batch that a consumer read is or was committed (R14)."""
        history = self._invariants.history(partition)
        if not history.has(batch) and not history.was_committed(batch):
            committed = history.committed.get(batch.base_offset)
            text = f"{consumer} read {id_of(batch)} of {partition}, committed {committed}"
            self._invariants.broke("R14", text, partition)

    def check_all(self, *, is_end: bool = False) -> None:
        """Check the records read while no leader was up, once they are known to be committed."""
        for partition, waiting in list(self._unseen.items()):
            history = self._invariants.histories.get(partition)
            left = []
            for consumer, batch in waiting:
                if history is None or history.is_doomed:
                    continue
                if is_end or batch.last_offset < history.committed_end:
                    self._check_read(consumer, partition, batch)
                else:
                    left.append((consumer, batch))
            self._unseen[partition] = left
            if not left:
                del self._unseen[partition]

    def _check_gaps(
        self, consumer: str, partition: TopicPartition, content: bytes, span: tuple[int, int]
    ) -> None:
        """Check that records that a consumer of a compacted topic missed were superseded."""
        history, now_ms = self._invariants.history(partition), self._invariants.now_ms
        start, end = max(span[0], history.owed_start), span[1]
        if history.is_lost(*span):
            # A leader of before a loss gives what it has.
            return
        fault = history.cleaning_fault(batches(content), start, end, now_ms)
        if fault:
            text = f"{consumer} read {partition} from {start} to {end}, which {fault}"
            self._invariants.broke("L7", text, partition)

    def forget(self, topic: str) -> None:
        """Expect nothing any more of a topic that is gone."""
        for key in [key for key in self._accepted if key[1].topic == topic]:
            del self._accepted[key]
        for partition in [key for key in self._unseen if key.topic == topic]:
            del self._unseen[partition]

    def start_of(self, partition: TopicPartition) -> int:
        """Return below which offset old records may have been deleted."""
        return self._invariants.history(partition).start

    # At rest

    def check_end(
        self, nodes: Mapping[int, SimulatedBroker], partitions: Iterable[TopicPartition]
    ) -> None:
        """Check every partition of a cluster at rest: the replicas in sync."""
        self.check_all(is_end=True)
        of_leaders: dict[TopicPartition, bytes] = {}
        for partition in partitions:
            contents = {}
            state = self._invariants.history(partition).state
            for broker_id in () if state is None else state.isr:
                broker = nodes[broker_id].broker
                assert broker is not None
                log = broker.storage.replica_manager.partitions[partition].log
                contents[broker_id] = b"".join(_all(log))
            self._check_same(partition, contents)
            if partition.topic not in INTERNAL_TOPICS:
                of_leaders[partition] = content = next(iter(contents.values()))
                self._check_records(partition, content)
        self.transactions.check_end(of_leaders)

    def _check_same(self, partition: TopicPartition, contents: Mapping[int, bytes]) -> None:
        """Check that the replicas' records are equal, apart from deleted ones at the start (R1).

        `contents` are the batches by broker. In a compacted topic each must have the last record of
        each key (L7).
        """
        history = self._invariants.history(partition)
        for broker_id, content in contents.items():
            whole, damaged_offset = whole_part(content)
            if damaged_offset is not None or whole != content:
                text = f"{partition}: {broker_id} has a damaged batch at {damaged_offset}"
                self._invariants.broke("R1", text)
                return
        if history.keys is not None:
            self._check_cleaned(partition, contents)
            return
        for broker_id, content in contents.items():
            fault = history.fault_of(batches(content), history.committed_end, 0)
            if fault:
                self._invariants.broke("R2", f"{partition}: {broker_id} {fault}", partition)
        contents = {broker_id: _without_forks(history, c) for broker_id, c in contents.items()}
        # Each replica deletes old records by itself.
        first_id, first = min(contents.items(), key=lambda item: len(item[1]))
        for broker_id, content in contents.items():
            if not content.endswith(first) or (content != first and not history.start):
                self._invariants.broke(
                    "R1",
                    f"{partition}: {broker_id} has {batch_ids(content)[-3:]}, "
                    f"{first_id} {batch_ids(first)[-3:]}",
                )

    def _check_cleaned(self, partition: TopicPartition, contents: Mapping[int, bytes]) -> None:
        """Check that each replica of a compacted topic has the last record of each key."""
        history, now_ms = self._invariants.history(partition), self._invariants.now_ms
        for broker_id, content in contents.items():
            fault = history.fault_of(batches(content), history.committed_end, now_ms)
            if fault:
                self._invariants.broke("L7", f"{partition}: {broker_id} {fault}", partition)

    def _check_records(self, partition: TopicPartition, content: bytes) -> None:
        """Check that each accepted record is in the log, in order, once if idempotent (R2, T6)."""
        found: dict[str, list[tuple[int, int]]] = {}
        history = self._invariants.history(partition)
        keys, start = history.keys, self.start_of(partition)
        # What each replica still has of a compacted topic is looked at before. Of producers whose
        # records are all below its start a log that is loaded again knows nothing.
        written = (
            numbers(content)
            if keys is None
            else ((r.offset, r.producer, r.number) for r in keys.records(start))
        )
        forked = history.forked_offsets()
        for offset, name, number in written:
            if offset in forked or number in self._given_up[name, partition]:
                continue
            found.setdefault(name, []).append((offset, number))
        for (name, key), accepted in sorted(self._accepted.items()):
            if key != partition:
                continue
            placed = found.get(name, [])
            there = [number for _, number in placed]
            missing = sorted(owed_numbers(accepted, start, forked) - set(there))
            if missing:
                self._invariants.broke(
                    "R2", f"{partition}: lost {missing[:5]} of {name}, {len(missing)} in all", key
                )
            if name in self._idempotent:
                self._check_once(partition, name, there)
            elif not first_writes_are_in_order(placed, forked):
                self._invariants.broke("T6", f"{partition}: {name} out of order", key)

    def _check_once(self, partition: TopicPartition, name: str, there: list[int]) -> None:
        """Check that an idempotent producer's records are stored once (T5), in order (T6)."""
        twice = sorted(number for number, count in Counter(there).items() if count > 1)
        if twice:
            self._invariants.broke("T5", f"{partition}: {name} has {twice[:5]} twice", partition)
        elif there != sorted(there):
            self._invariants.broke("T6", f"{partition}: {name} out of order", partition)


def owed_numbers(accepted: Mapping[int, int], start: int, forked: frozenset[int]) -> set[int]:
    """Return the numbers of the accepted records that a log must have.

    Records below the log start offset are deleted, and at forked offsets each replica may have
    others.
    """
    return {
        number
        for number, offset in accepted.items()
        if (offset >= start or not start) and offset not in forked
    }


def first_writes_are_in_order(placed: Iterable[tuple[int, int]], forked: frozenset[int]) -> bool:
    """Return whether the numbers of a producer that may repeat itself first appear in order.

    `placed` has offsets and numbers in the order of the log, without the forked offsets, at which
    replicas hold other records. A fork may cut a series that the producer sent and repeated
    later: its continuation, up to the first number that does not follow, is no first write.
    """
    forks = sorted(forked)
    first: dict[int, None] = {}
    forks_before = 0
    continued_number: int | None = None
    for offset, number in placed:
        if forks_before != (count := bisect_left(forks, offset)):
            forks_before, continued_number = count, number
        if number == continued_number:
            continued_number += 1
            continue
        continued_number = None
        first.setdefault(number)
    return list(first) == sorted(first)


def _without_forks(history: History, content: bytes) -> bytes:
    """Return the bytes of a log without the batches that overlap a fork.

    A fork is a range of offsets at which replicas may hold different records of one epoch.
    """
    if not history.forks:
        return content
    return b"".join(
        bytes(batch.raw)
        for batch in batches(content)
        if not history.is_forked(batch.base_offset, batch.last_offset + 1)
    )


def _all(log: LocalLog) -> Iterable[bytes]:
    """Yield all batches of a log, one read after the other."""
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        found = log.read(offset, 1 << 30)
        content = found.read()
        found.release()
        ids = batch_ids(content)
        if not ids:
            return
        yield content
        offset = ids[-1].last_offset + 1
