"""Rules T1 to T7: the records and markers of transactions in logs, once a cluster is quiescent.

| rule | claim |
|---|---|
| T1 | all records of a transaction are committed in every partition, or none; a read_committed |
|    | consumer gets the committed records, and no others |
| T2 | a transaction whose commit was acknowledged is committed, an aborted one is not |
| T3 | each transaction in a partition is ended there, once |
| T4 | no batch has an epoch below that of an earlier batch or marker of its producer |
| T5 | each record exists only once |
| T7 | at the end no transaction is open: the last stable offset is the high watermark |

Excused are partitions that lost records where Kafka loses them too, and all transactions after the
coordinator's own log did. If old records may be deleted, the remaining ones are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from engine.model import TopicPartition
from engine.records.batch import BatchView
from engine.records.control import ControlType, parse_marker
from engine.sim.histories import History
from engine.sim.records import batches
from engine.sim.sent_transactions import SentOutcome, SentTransaction

TRANSACTION_TOPIC = "__transaction_state"

#: Whether a transaction must be committed, by the outcome that its producer knows.
_MUST_BE_COMMITTED = {SentOutcome.COMMITTED: True, SentOutcome.ABORTED: False}
#: A record of a transaction: its producer and number.
Numbered = tuple[str, int]


class LogFault(NamedTuple):
    """A rule that a log breaks, with a description."""

    rule: str
    text: str


class MarkedLog:
    """One partition's log, read from its start: which records each marker commits or aborts."""

    def __init__(self, content: bytes) -> None:
        """Read the log's bytes; broken rules are added to `faults`."""
        #: Each record with a marker, by producer and number: True if committed, False if aborted.
        self.ended: dict[Numbered, bool] = {}
        #: Records of transactions without a marker, by producer id.
        self.open: dict[int, list[Numbered]] = {}
        self.faults: list[LogFault] = []
        #: Highest epoch of each producer id up to the present batch.
        self._epochs: dict[int, int] = {}
        for batch in batches(content):
            if batch.is_transactional:
                self._apply_batch(batch)

    def _apply_batch(self, batch: BatchView) -> None:
        """Check a batch's producer epoch (rule T4) and duplicates (T5).

        A marker ends open records.
        """
        producer_id, epoch = batch.producer_id, batch.producer_epoch
        if epoch < self._epochs.get(producer_id, epoch):
            text = f"epoch {epoch} of {producer_id} follows {self._epochs[producer_id]}"
            self.faults.append(LogFault("T4", f"{text} at {batch.base_offset}"))
        self._epochs[producer_id] = max(epoch, self._epochs.get(producer_id, epoch))
        if batch.is_control:
            self._end(batch)
            return
        for record in batch.records():
            name, number = bytes(record.value or b"").decode().split(":")
            key = name, int(number)
            is_open = key in self.open.get(producer_id, ())
            if key in self.ended or is_open:
                self.faults.append(LogFault("T5", f"{name}:{number} twice, at {record.offset}"))
            self.open.setdefault(producer_id, []).append(key)

    def _end(self, batch: BatchView) -> None:
        """Record for each open record of the marker's producer whether the marker commits it."""
        (record,) = batch.records()
        is_commit = parse_marker(record).control_type is ControlType.COMMIT
        for key in self.open.pop(batch.producer_id, ()):
            self.ended[key] = is_commit


class TransactionRules:
    """Checks all transactions of a run."""

    def __init__(
        self,
        histories: Mapping[TopicPartition, History],
        broke: Callable[[str, str, TopicPartition | None], None],
    ) -> None:
        """Create the rules; `broke` reports a violation by its rule, text and partition."""
        self._histories = histories
        self._broke = broke
        self._transactions: list[SentTransaction] = []
        #: Logs of partitions at the end of the run.
        self._logs: dict[TopicPartition, MarkedLog] = {}
        #: Records that read_committed consumers got, by partition.
        self._read: dict[TopicPartition, set[Numbered]] = {}

    def record_begin(self, transaction: SentTransaction) -> None:
        """Record the start of a transaction."""
        self._transactions.append(transaction)

    def read(
        self,
        partition: TopicPartition,
        content: bytes,
        position: int,
        aborted: Iterable[tuple[int, int]],
    ) -> None:
        """Record the records that a read_committed consumer got, without aborted ones.

        `aborted` has producer ids, each with the first offset of one of its aborted transactions.
        """
        waiting = sorted(aborted, key=lambda row: row[1])
        leaving_out: set[int] = set()
        read = self._read.setdefault(partition, set())
        for batch in batches(content):
            while waiting and waiting[0][1] <= batch.last_offset:
                leaving_out.add(waiting.pop(0)[0])
            if batch.is_control:
                leaving_out.discard(batch.producer_id)
            elif batch.is_transactional and batch.producer_id not in leaving_out:
                for record in batch.records():
                    if record.offset >= position:
                        name, number = bytes(record.value or b"").decode().split(":")
                        read.add((name, int(number)))

    def is_excused(self, partition: TopicPartition) -> bool:
        """Return True if the transactions of a partition are not checked.

        Its records, or the coordinator's, may be lost or differ by a fault.
        """
        return any(
            bool(history.losses or history.forks or history.excuse)
            for key, history in self._histories.items()
            if key == partition or key.topic == TRANSACTION_TOPIC
        )

    def check_end(self, contents: Mapping[TopicPartition, bytes]) -> None:
        """Check all transactions and the logs of all partitions that they wrote to."""
        self._logs = {
            partition: MarkedLog(content)
            for partition, content in contents.items()
            if not self.is_excused(partition)
        }
        for partition, log in self._logs.items():
            self._check_log(partition, log)
        for transaction in self._transactions:
            self._check_transaction(transaction)

    def _check_log(self, partition: TopicPartition, log: MarkedLog) -> None:
        """Check that a log has no open transaction at the end (rule T3).

        Rule T1: a read_committed consumer got exactly the records of committed transactions.
        """
        for rule, text in log.faults:
            self._broke(rule, f"{partition}: {text}", partition)
        for producer_id, left in log.open.items():
            text = f"{partition}: {left[:3]} of {producer_id} are never ended"
            self._broke("T3", text, partition)
        if partition not in self._read:
            return
        read = self._read[partition]
        committed = {key for key, is_committed in log.ended.items() if is_committed}
        if self._histories[partition].start:
            # The outcome of deleted records is unknown.
            read &= set(log.ended)
        if wrong := sorted(read - committed):
            text = f"{partition}: a reader of committed records got {wrong[:3]}, which are not"
            self._broke("T1", text, partition)
        if not self._histories[partition].start and (missing := sorted(committed - read)):
            text = f"{partition}: a reader of committed records did not get {missing[:3]}"
            self._broke("T1", text, partition)

    def is_committed(self, transaction: SentTransaction) -> bool | None:
        """Return True if a transaction is committed, by its markers in logs or by the response.

        None if neither shows the outcome.
        """
        for partition in transaction.sent:
            for is_committed in self._outcomes_by_number(transaction, partition).values():
                return is_committed
        return _MUST_BE_COMMITTED.get(transaction.outcome)

    def _outcomes_by_number(
        self, transaction: SentTransaction, partition: TopicPartition
    ) -> dict[int, bool]:
        """Return, by number, True if a record of a transaction in a partition is committed.

        Numbers whose record is not in the log, or not ended, are left out.
        """
        log, producer = self._logs.get(partition), transaction.name.partition("@")[0]
        ended = {} if log is None else log.ended
        numbers = transaction.sent[partition]
        return {n: ended[producer, n] for n in numbers if (producer, n) in ended}

    def _check_transaction(self, transaction: SentTransaction) -> None:
        """Check that a transaction has one outcome (rule T1), that of the response to EndTxn (T2).

        Accepted records must be in the log (R2), unless old records were deleted.
        """
        ends: set[bool] = set()
        for partition in transaction.sent:
            if partition not in self._logs:
                continue
            found = self._outcomes_by_number(transaction, partition)
            ends |= set(found.values())
            missing = sorted(transaction.accepted.get(partition, set()) - set(found))
            if missing and not self._histories[partition].start:
                text = f"{transaction} lacks {missing[:3]} in {partition}"
                self._broke("R2", text, partition)
        if len(ends) > 1:
            self._broke("T1", f"{transaction} is committed in part", None)
        expected = _MUST_BE_COMMITTED.get(transaction.outcome)
        if expected is not None and ends - {expected}:
            text = f"{transaction} was {transaction.outcome.value}, and its records are not"
            self._broke("T2", text, None)
