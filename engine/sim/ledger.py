"""Rules about the clients' records: each acknowledged record must be committed and readable.

| rule | checked | claim |
|---|---|---|
| R8 | at an acknowledgement | records accepted with acks=all are committed |
| R14 | when a consumer reads | it gets the committed records, and no others |
| R1 | at the end | all replicas have the same bytes |
| L7 | at the end, when a consumer reads | compacted topics have the last record of each key |
| R2 | at the end | all accepted records exist |
| T5 | at the end | an idempotent producer's records exist only once |
| T6 | at the end | the records of a producer with one batch in flight are in order |
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
    """Records the responses to producers and the records of consumers.

    See `clients.ClientEvents`.
    """

    def __init__(self, invariants: Invariants, trace: Trace) -> None:
        """Create the ledger; losses and commits are reported by `invariants`."""
        self._trace = trace
        #: How many records were acknowledged with acks=all.
        self.acknowledged_count = 0
        self._invariants = invariants
        #: Record numbers acknowledged with acks=all, by producer and partition, with their offsets
        #: (-1: the response had none).
        self._accepted: dict[tuple[str, TopicPartition], dict[int, int]] = {}
        #: Names of idempotent producers: their records must not repeat.
        self._idempotent: set[str] = set()
        #: Record numbers that a producer gave up after a loss: they may be in the log, out of
        #: order.
        self._given_up: defaultdict[tuple[str, TopicPartition], set[int]] = defaultdict(set)
        #: How many acknowledged records are no longer expected because of a loss.
        self.excused_count = 0
        #: Batches that consumers got beyond the committed end while no leader could be checked;
        #: they are checked once one can.
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
        invariants.losses.on_loss = self._drop_lost
        invariants.on_commit = self._committed_by_leader

    def record(self, subject: str, text: str) -> None:
        """Add a line to the trace of the run."""
        self._trace.add(subject, text)

    def record_begin(self, transaction: SentTransaction) -> None:
        """Record the start of a transaction."""
        self.transactions.record_begin(transaction)
        if transaction.copied is not None:
            self.copies.record_begin(transaction.copied, transaction)

    def record_ids(self, transactional_id: str, ids: Ids) -> None:
        """Record the producer id and epoch that InitProducerId returned to an instance."""
        self._fences.record_ids(transactional_id, ids)

    def fence_of(
        self, transactional_id: str, ids: Ids, partition: TopicPartition | None
    ) -> Fence | None:
        """Return the fence that must reject a request with these ids; None if it may succeed.

        A fence is a partition and its leader epoch in which InitProducerId returned a later
        producer epoch. Without `partition` it is the `__transaction_state` partition of the
        transactional id.
        """
        if partition is None:
            partition = self._coordinator_of(TRANSACTION_TOPIC, transactional_id)
        return self._fences.fence_of(transactional_id, ids, partition)

    def check_fenced_success(self, fence: Fence, host: str, request_name: str) -> None:
        """Check the success of a request of an instance that was fenced when it was sent."""
        self._fences.check_success(fence, host, request_name)

    def resumes(self, group_id: str) -> Mapping[TopicPartition, int]:
        """Return, for each partition, the smallest offset that a copier may find committed now."""
        return self.copies.floors(group_id)

    def check_resume(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int],
        floors: Mapping[TopicPartition, int],
        host: str,
    ) -> None:
        """Check the committed offsets at which a copier resumes, which broker `host` returned.

        `floors` is the result of `resumes` before the request.
        """
        is_leader = self.leads(host, self._coordinator_of(OFFSETS_TOPIC, group_id))
        self.copies.check_resume(group_id, offsets, floors, is_leader=is_leader)

    def _coordinator_of(self, topic: str, key: str) -> TopicPartition:
        """Return the coordinator partition of a group id or transactional id."""
        count = sum(row.topic == topic for row in self._invariants.topics.rows)
        return TopicPartition(topic, coordinator_partition(key, max(count, 1)))

    def check_assignment(
        self, group_id: str, generation_id: int, member_id: str, partitions: list[TopicPartition]
    ) -> None:
        """Check that no other member has these partitions in the same generation of the group."""
        self.groups.check_assignment(group_id, generation_id, member_id, partitions)

    def record_commit(
        self, group_id: str, partition: TopicPartition, generation_id: int, member_id: str
    ) -> Commit:
        """Record that a member sends an offset commit now; return its numbered record."""
        return self.groups.record_commit(group_id, partition, generation_id, member_id)

    def record_response(self, commit: Commit, code: int) -> None:
        """Record the response to an offset commit, and check that the commit was allowed."""
        self.groups.record_response(commit, code)

    def broke(self, rule: str, text: str, partition: TopicPartition | None) -> None:
        """Report a violation of a rule to the invariants."""
        self._invariants.broke(rule, text, partition)

    def is_doomed(self, partition: TopicPartition) -> bool:
        """Return True if the deletion of a partition was requested."""
        return self._invariants.history(partition).is_doomed

    def loss_count(self, partition: TopicPartition) -> int:
        """Return how often records of a partition were lost in a way that Kafka allows too."""
        return len(self._invariants.history(partition).losses)

    def resume_at(self, partition: TopicPartition, position: int) -> int | None:
        """Return the offset at which a reader of lost records resumes; None if it read none."""
        return self._invariants.history(partition).resume_at(position)

    def record_abandoned(self, producer: SimulatedProducer, batch: SentBatch) -> None:
        """Record a batch that is not sent again and may or may not be in the log."""
        numbers_ = range(batch.first_number, batch.first_number + batch.count)
        self._given_up[producer.name, batch.partition].update(numbers_)

    def _committed_by_leader(self, partition: TopicPartition, batch: BatchView) -> None:
        """Pass committed batches of __consumer_offsets to the rules about generations."""
        if partition.topic == OFFSETS_TOPIC:
            self.groups.lives.take(batch)

    def _drop_lost(self, partition: TopicPartition, loss: Loss) -> None:
        """Stop expecting the acknowledged records that a partition has lost by an excused fault."""
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
        """Return True if the broker of a machine is running and is the leader in the store."""
        state = self._invariants.history(partition).state
        is_there = self._invariants.leading_log(partition) is not None
        return state is not None and host == f"b{state.leader}" and is_there

    def leader_epoch(self, partition: TopicPartition) -> int:
        """Return the leader epoch in the store; -1 if there is none."""
        history = self._invariants.histories.get(partition)
        return -1 if history is None or history.state is None else history.state.leader_epoch

    def is_written(self, producer: SimulatedProducer, batch: SentBatch) -> bool:
        """Return True if the leader's log has a batch, even if the producer got no response.

        Also True if old records were deleted, as the log may have had it.
        """
        if self._invariants.history(batch.partition).start > 0:
            return True
        return batch.first_number in self._offsets_of(producer, batch.partition)

    def is_committed(self, producer: SimulatedProducer, batch: SentBatch) -> bool:
        """Return True if a batch is, or was, in the leader's log and will not be lost."""
        offset = self._offsets_of(producer, batch.partition).get(batch.first_number)
        return offset is None or offset < self._invariants.history(batch.partition).committed_end

    def is_overtaken(self, producer: SimulatedProducer, batch: SentBatch) -> bool:
        """Return True if the leader's log has only later batches of the producer.

        The producer may have no response to the later ones yet.
        """
        first_number = next(iter(self._offsets_of(producer, batch.partition)), None)
        return first_number is not None and batch.first_number < first_number

    def is_forgotten(self, producer: SimulatedProducer, batch: SentBatch) -> bool:
        """Return True if a cleaning removed the batch before this one from the leader's log.

        A cleaning keeps the last batch of each producer. If that batch is truncated later, the log
        has an earlier batch and none in between, in Kafka too.
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
                for content in _read_chunks(log)
                for _, name, number in numbers(content)
                if name == producer.name
            }
        return before not in kept

    def _offsets_of(self, producer: SimulatedProducer, partition: TopicPartition) -> dict[int, int]:
        """Return the offsets of a producer's records in the leader's log, by record number.

        Records that a cleaning may have removed are included.
        """
        log, keys = (
            self._invariants.leading_log(partition),
            self._invariants.history(partition).keys,
        )
        found = [] if keys is None else [(r.offset, r.producer, r.number) for r in keys.records()]
        with self._invariants.without_disk_faults():
            for content in () if log is None else _read_chunks(log):
                found += numbers(content)
        return {number: offset for offset, name, number in found if name == producer.name}

    def record_acknowledged(
        self, producer: SimulatedProducer, batch: SentBatch, base_offset: int
    ) -> None:
        """Record a batch that a leader accepted; check rule R8: with acks=all it is committed.

        `base_offset` is -1 if the response has none, as for a repeated batch.
        """
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
            # A leader from before the loss returned the same response for a retried batch.
            or (
                history.is_lost(base_offset, end_offset)
                and self._invariants.is_led_in_an_epoch_before_loss(batch.partition)
            )
        )
        if is_lost:
            # The response was still being delivered when a leader without the batch was elected.
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
        """Check the records that a consumer read from a position against the committed ones.

        Returns the offset after the last record, None without one. While no leader is up, the
        records are checked later.
        """
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

    def on_damaged_batch(
        self, consumer: str, host: str, partition: TopicPartition, base_offset: int
    ) -> None:
        """Check rule R14: bit rot on the disk of broker `host` explains a wrong checksum.

        `base_offset` is that of the batch that the consumer received.
        """
        self._trace.add(consumer, f"{partition} at {base_offset} from {host}: wrong checksum")
        if not self._invariants.rots.explains(host, partition, base_offset):
            text = f"{consumer} was given {partition} at {base_offset} damaged by {host}"
            self._invariants.broke("R14", text, partition)

    def _check_read(self, consumer: str, partition: TopicPartition, batch: BatchView) -> None:
        """Check rule R14: a batch that a consumer read is or was committed."""
        history = self._invariants.history(partition)
        if not history.has(batch) and not history.was_committed(batch):
            committed = history.committed.get(batch.base_offset)
            text = f"{consumer} read {id_of(batch)} of {partition}, committed {committed}"
            self._invariants.broke("R14", text, partition)

    def check_all(self, *, is_end: bool = False) -> None:
        """Check the batches read while no leader was up, once their offsets are committed.

        With `is_end` all of them are checked now.
        """
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
        """Check rule L7: records that a consumer of a compacted topic did not get were superseded.

        `span` is the range of offsets [start, end) that the consumer has read.
        """
        history, now_ms = self._invariants.history(partition), self._invariants.now_ms
        start, end = max(span[0], history.required_start), span[1]
        if history.is_lost(*span):
            # A leader from before a loss returns the records that it has.
            return
        fault = history.cleaning_fault(batches(content), start, end, now_ms)
        if fault:
            text = f"{consumer} read {partition} from {start} to {end}, which {fault}"
            self._invariants.broke("L7", text, partition)

    def forget(self, topic: str) -> None:
        """Stop expecting records of a deleted topic."""
        for key in [key for key in self._accepted if key[1].topic == topic]:
            del self._accepted[key]
        for partition in [key for key in self._unseen if key.topic == topic]:
            del self._unseen[partition]

    def start_of(self, partition: TopicPartition) -> int:
        """Return the offset below which old records may have been deleted."""
        return self._invariants.history(partition).start

    # At rest

    def check_end(
        self, nodes: Mapping[int, SimulatedBroker], partitions: Iterable[TopicPartition]
    ) -> None:
        """Check the in-sync replicas of every partition, once the cluster is quiescent."""
        self.check_all(is_end=True)
        of_leaders: dict[TopicPartition, bytes] = {}
        for partition in partitions:
            contents = {}
            state = self._invariants.history(partition).state
            for broker_id in () if state is None else state.isr:
                broker = nodes[broker_id].broker
                assert broker is not None
                log = broker.storage.replica_manager.partitions[partition].log
                contents[broker_id] = b"".join(_read_chunks(log))
            self._check_same(partition, contents)
            if partition.topic not in INTERNAL_TOPICS:
                of_leaders[partition] = content = next(iter(contents.values()))
                self._check_records(partition, content)
        self.transactions.check_end(of_leaders)

    def _check_same(self, partition: TopicPartition, contents: Mapping[int, bytes]) -> None:
        """Check rule R1: the replicas' records are equal, apart from deleted ones at the start.

        `contents` has the batches by broker. In a compacted topic each replica must have the last
        record of each key (L7).
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
        contents = {broker_id: _drop_forks(history, c) for broker_id, c in contents.items()}
        # Each replica deletes old records independently.
        first_id, first = min(contents.items(), key=lambda item: len(item[1]))
        for broker_id, content in contents.items():
            if not content.endswith(first) or (content != first and not history.start):
                self._invariants.broke(
                    "R1",
                    f"{partition}: {broker_id} has {batch_ids(content)[-3:]}, "
                    f"{first_id} {batch_ids(first)[-3:]}",
                )

    def _check_cleaned(self, partition: TopicPartition, contents: Mapping[int, bytes]) -> None:
        """Check rule L7: each replica of a compacted topic has the last record of each key."""
        history, now_ms = self._invariants.history(partition), self._invariants.now_ms
        for broker_id, content in contents.items():
            fault = history.fault_of(batches(content), history.committed_end, now_ms)
            if fault:
                self._invariants.broke("L7", f"{partition}: {broker_id} {fault}", partition)

    def _check_records(self, partition: TopicPartition, content: bytes) -> None:
        """Check that a leader's log has each accepted record (R2).

        They are in order (T6), and exist once if the producer is idempotent (T5).
        """
        found: dict[str, list[tuple[int, int]]] = {}
        history = self._invariants.history(partition)
        keys, start = history.keys, self.start_of(partition)
        # Replicas of compacted topics are checked before. A log that is loaded again has no state
        # of producers whose records are all below its start.
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
            missing = sorted(required_numbers(accepted, start, forked) - set(there))
            if missing:
                self._invariants.broke(
                    "R2", f"{partition}: lost {missing[:5]} of {name}, {len(missing)} in all", key
                )
            if name in self._idempotent:
                self._check_once(partition, name, there)
            elif not first_writes_are_in_order(placed, forked):
                self._invariants.broke("T6", f"{partition}: {name} out of order", key)

    def _check_once(self, partition: TopicPartition, name: str, there: list[int]) -> None:
        """Check that an idempotent producer's records exist only once (T5), in order (T6)."""
        twice = sorted(number for number, count in Counter(there).items() if count > 1)
        if twice:
            self._invariants.broke("T5", f"{partition}: {name} has {twice[:5]} twice", partition)
        elif there != sorted(there):
            self._invariants.broke("T6", f"{partition}: {name} out of order", partition)


def required_numbers(accepted: Mapping[int, int], start: int, forked: frozenset[int]) -> set[int]:
    """Return the numbers of the accepted records that a log must have.

    Records below the log start offset are deleted, and at forked offsets each replica may have
    different records.
    """
    return {
        number
        for number, offset in accepted.items()
        if (offset >= start or not start) and offset not in forked
    }


def first_writes_are_in_order(placed: Iterable[tuple[int, int]], forked: frozenset[int]) -> bool:
    """Return True if the first occurrences of a retrying producer's numbers are in order.

    `placed` has offsets and numbers in log order, without the forked offsets, at which replicas may
    have different records. A fork may hide the start of a batch that the producer sent again later:
    consecutive numbers directly after a fork do not count as first occurrences.
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


def _drop_forks(history: History, content: bytes) -> bytes:
    """Return the bytes of a log without the batches that overlap a fork.

    A fork is a range of offsets at which replicas may have different records of one epoch.
    """
    if not history.forks:
        return content
    return b"".join(
        bytes(batch.raw)
        for batch in batches(content)
        if not history.is_forked(batch.base_offset, batch.last_offset + 1)
    )


def _read_chunks(log: LocalLog) -> Iterable[bytes]:
    """Yield all batches of a log, in chunks of one read each."""
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
