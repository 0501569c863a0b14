"""A cluster whose transaction coordinator dies at a write that the test chooses, and its clients.

Writes are records of `__transaction_state` and requests with markers. Who dies comes back after a
while, from what its disk had synced. Clients send a request again as long as its error is
retriable, or the connection has ended, or nothing was answered in time.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from engine.client.fetched_records import aborted_of, visible_records
from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.naming import coordinator_partition
from engine.transactions.records import decode_transaction_record
from engine.transactions.transaction import Transaction
from engine.wire.structs import message_class
from tests.unit.broker.memory_cluster import MemoryCluster, Requested
from tests.unit.log.writing import sent

COUNT = 2
#: Each broker leads one of them, the coordinator among them.
T0, T1, T2 = PARTITIONS = tuple(TopicPartition("t", index) for index in range(3))
STATE = TopicPartition("__transaction_state", coordinator_partition("x", COUNT))
OFFSETS = TopicPartition("__consumer_offsets", coordinator_partition("g", COUNT))
TRANSACTION_TIMEOUT_MS = 8_000
ID_EXPIRATION_MS = 30_000
#: Settings of transactions that are short, so that the tests are.
SETTINGS = {
    "transaction_state_log_num_partitions": str(COUNT),
    "offsets_topic_num_partitions": str(COUNT),
    "offsets_topic_replication_factor": "3",
    "transaction_abort_timed_out_transaction_cleanup_interval_ms": "2000",
    "transaction_remove_expired_transaction_cleanup_interval_ms": "2000",
    "transactional_id_expiration_ms": str(ID_EXPIRATION_MS),
}
_GROUP, _TRANSACTIONS = 0, 1
_RESTART_MS = 1_500
_ANSWER_MS_MAX = 2_000
_ATTEMPTS_MAX = 200
#: Retriable, CONCURRENT_TRANSACTIONS and UNSTABLE_OFFSET_COMMIT among them.
_RETRIED = frozenset((3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 51, 56, 88))


class Moment(Enum):
    """When a coordinator dies, seen from one of its writes."""

    BEFORE = "before"
    BEGUN = "as it has begun"
    DONE = "as it is done"


class Death(NamedTuple):
    """The write at which the first coordinator dies, counted from 1."""

    number: int
    moment: Moment

    def __str__(self) -> str:
        return f"{self.moment.value}: write {self.number}"


class MortalCoordinator(MemoryCluster):
    """Three brokers, of which the one that coordinates id x may die."""

    def __init__(self, death: Death | None, *, is_one_process: bool) -> None:
        self.death = death
        #: What the first coordinator has written while it was counted.
        self.writes: list[str] = []
        self.dead: list[int] = []
        self._due_ms: dict[int, int] = {}
        self._counted_id: int | None = None
        #: What happens, once, before the next request with markers.
        self.before_markers: Callable[[], None] | None = None
        super().__init__(is_one_process=is_one_process, **SETTINGS)
        replicas = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
        self.create_topic("t", replicas, min_insync_replicas="1")
        self.until(lambda: self.transaction_coordinator is not None)
        self.until(lambda: self.coordinator("g", _GROUP) is not None)

    # What happens

    def pass_time(self, duration_ms: int, step_ms: int = 100) -> None:
        """Let time go by; brokers that are down for long enough start again."""
        for _ in range(duration_ms // step_ms):
            super().pass_time(step_ms, step_ms)
            for broker_id, due_ms in tuple(self._due_ms.items()):
                if self.clock.monotonic_ms() >= due_ms:
                    del self._due_ms[broker_id]
                    self.start(broker_id)

    def until(self, is_so: Callable[[], bool]) -> None:
        """Let time go by until something is so."""
        for _ in range(_ATTEMPTS_MAX):
            if is_so():
                return
            self.pass_time(100)
        raise AssertionError("it does not come")

    def settle(self) -> None:
        """Let all brokers come back, and what they have begun come to its end."""
        self.until(lambda: not self._due_ms)
        self.pass_time(2_000, step_ms=200)

    def die(self, broker_id: int) -> None:
        """End a broker for a while, from within a call or not."""
        self.end_at_once(broker_id)
        self.dead.append(broker_id)
        self._due_ms[broker_id] = self.clock.monotonic_ms() + _RESTART_MS

    def count_writes(self) -> None:
        """Count what the present coordinator writes from now on, and let it die in time."""
        self._counted_id = self.transaction_coordinator
        for broker_id in tuple(self.brokers):
            self._watch_writes(broker_id)

    def _watch_writes(self, broker_id: int) -> None:
        """Have the writes of one broker go through `_write`, until it starts again."""
        transactions = self.brokers[broker_id].transactions
        log, channels = transactions.coordinator.registry._log, transactions.channels
        append, write = log.append, channels.write

        def append_or_die(partition: int, records: Any, *, timeout_ms: int) -> Promise[int]:
            _, transaction = decode_transaction_record(records[0])
            what = "Dead" if transaction is None else transaction.state.value
            return self._write(
                broker_id, what, lambda: append(partition, records, timeout_ms=timeout_ms)
            )

        def write_or_die(leader_id: int, markers: Any) -> Promise[Any]:
            before, self.before_markers = self.before_markers, None
            if before is not None:
                before()
            return self._write(broker_id, "markers", lambda: write(leader_id, markers))

        log.append = append_or_die  # type: ignore[method-assign]
        channels.write = write_or_die  # type: ignore[method-assign, assignment]

    def _write(self, broker_id: int, what: str, write: Callable[[], Promise[Any]]) -> Promise[Any]:
        if broker_id in self.dead:
            # Only what the process was in the middle of.
            return Promise()
        if broker_id != self._counted_id:
            return write()
        self.writes.append(what)
        if self.death is None or self.death.number != len(self.writes):
            return write()
        if self.death.moment is Moment.BEFORE:
            self.die(broker_id)
            return Promise()
        written = write()
        if self.death.moment is Moment.BEGUN:
            self.die(broker_id)
        else:
            written.watch(lambda: self.die(broker_id))
        return Promise()

    # What is seen

    def coordinator(self, key: str, kind: int) -> int | None:
        """Return the coordinator of an id or a group, None while no broker knows it."""
        for broker_id in tuple(self.brokers):
            answer = self.ask(broker_id, "FindCoordinator", 3, key=key, key_type=kind).answer()
            if answer is not None and answer.error_code == 0 and answer.node_id in self.brokers:
                return int(answer.node_id)
        return None

    @property
    def transaction_coordinator(self) -> int | None:
        """Return the coordinator of id x."""
        return self.coordinator("x", _TRANSACTIONS)

    def leader(self, key: TopicPartition) -> int | None:
        """Return the leader of a partition, None while it is down."""
        leader = self.stored(key).leader
        return leader if leader in self.brokers else None

    def is_waiting(self, key: TopicPartition) -> bool:
        """Return whether readers of committed records do not get all that is replicated."""
        leader = self.leader(key)
        assert leader is not None
        partition = self.partition(leader, key)
        return partition.last_stable_offset < partition.high_watermark

    def known(self) -> dict[str, object]:
        """Return what the coordinator knows of each id."""
        broker_id = self.transaction_coordinator
        assert broker_id is not None
        registry = self.brokers[broker_id].transactions.coordinator.registry
        return {one.transactional_id: _known(one) for one in registry.transactions()}

    def replayed(self) -> dict[str, object]:
        """Return what the log of the coordinator says of each id."""
        broker_id = self.transaction_coordinator
        assert broker_id is not None
        log = self.brokers[broker_id].transactions.coordinator.registry._log
        found: dict[str, object] = {}
        for _, record in log.read(STATE.partition):
            transactional_id, transaction = decode_transaction_record(record)
            found.pop(transactional_id, None)
            if transaction is not None:
                found[transactional_id] = _known(transaction)
        return found

    def committed(self, key: TopicPartition) -> list[str]:
        """Return the values that a reader of committed records gets."""
        request = message_class("FetchRequest")
        partition = request.FetchPartition(
            partition=key.partition, fetch_offset=0, partition_max_bytes=1 << 20
        )
        topic = request.FetchTopic(topic=key.topic, partitions=[partition])
        leader = self.leader(key)
        assert leader is not None
        answer = self.ask(
            leader,
            "Fetch",
            11,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            isolation_level=1,
            topics=[topic],
        ).answer()
        (row,) = answer.responses[0].partitions
        assert 0 == row.error_code
        seen = visible_records(row.records or b"", 0, aborted_of(row))
        return [bytes(record.value or b"").decode() for record, _ in seen.records]


class Client:
    """One instance of a transactional producer, which retries."""

    def __init__(self, cluster: MortalCoordinator, transactional_id: str = "x") -> None:
        self._cluster = cluster
        self._id = transactional_id
        self.producer_id, self.epoch = -1, -1
        self._sequences: dict[TopicPartition, int] = {}

    def init(self) -> int:
        """Get a producer id and an epoch, a higher one if there is one."""
        answer = self._ask_coordinator(
            "InitProducerId",
            4,
            _own_code,
            transactional_id=self._id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
        )
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()
        return int(answer.error_code)

    def add(self, *keys: TopicPartition) -> int:
        """Add partitions to the transaction."""
        request = message_class("AddPartitionsToTxnRequest")
        topic = request.AddPartitionsToTxnTopic(
            name="t", partitions=[key.partition for key in keys]
        )
        return _added_code(
            self._ask_coordinator(
                "AddPartitionsToTxn",
                3,
                _added_code,
                v3_and_below_transactional_id=self._id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=[topic],
            )
        )

    def add_offsets(self) -> int:
        """Add the offsets of the group to the transaction."""
        fields = {"transactional_id": self._id, "group_id": "g", **self._ids()}
        return _own_code(self._ask_coordinator("AddOffsetsToTxn", 3, _own_code, **fields))

    def end(self, *, is_commit: bool) -> int:
        """Commit or abort."""
        fields = {"transactional_id": self._id, "committed": is_commit, **self._ids()}
        return _own_code(self._ask_coordinator("EndTxn", 3, _own_code, **fields))

    def send(self, key: TopicPartition, *values: str) -> int:
        """Send records, each a batch of its own."""
        for value in values:
            sequence = self._sequences.get(key, 0)
            code = self._send(key, value, sequence)
            if code:
                return code
            self._sequences[key] = sequence + 1
        return 0

    def _send(self, key: TopicPartition, value: str, sequence: int) -> int:
        request = message_class("ProduceRequest")
        batch = sent(
            value=value.encode(),
            base_sequence=sequence,
            is_transactional=True,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
        )
        data = request.PartitionProduceData(index=key.partition, records=batch)
        topic = request.TopicProduceData(name=key.topic, partition_data=[data])
        return _produced_code(
            self._ask(
                lambda: self._cluster.leader(key),
                "Produce",
                9,
                _produced_code,
                acks=-1,
                timeout_ms=1_000,
                transactional_id=self._id,
                topic_data=[topic],
            )
        )

    def commit_offset(self, offset: int) -> int:
        """Commit an offset of the group in the transaction."""
        request = message_class("TxnOffsetCommitRequest")
        row = request.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = request.TxnOffsetCommitRequestTopic(name="t", partitions=[row])
        return _row_code(
            self._ask(
                lambda: self._cluster.coordinator("g", _GROUP),
                "TxnOffsetCommit",
                3,
                _row_code,
                transactional_id=self._id,
                group_id="g",
                topics=[topic],
                **self._ids(),
            )
        )

    def committed_offset(self) -> int:
        """Return the offset of the group as a new member of it would get it."""
        request = message_class("OffsetFetchRequest")
        topic = request.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
        answer = self._ask(
            lambda: self._cluster.coordinator("g", _GROUP),
            "OffsetFetch",
            7,
            lambda found: found.error_code or _row_code(found),
            group_id="g",
            topics=[topic],
            require_stable=True,
        )
        return int(answer.topics[0].partitions[0].committed_offset)

    def describe(self) -> Any:
        """Return the description of the id."""
        answer = self._ask_coordinator(
            "DescribeTransactions", 0, _described_code, transactional_ids=[self._id]
        )
        return answer.transaction_states[0]

    def _ids(self) -> dict[str, int]:
        return {"producer_id": self.producer_id, "producer_epoch": self.epoch}

    def _ask_coordinator(
        self, name: str, version: int, code_of: Callable[[Any], int], **fields: Any
    ) -> Any:
        find = lambda: self._cluster.coordinator(self._id, _TRANSACTIONS)  # noqa: E731
        return self._ask(find, name, version, code_of, **fields)

    def _ask(
        self,
        find: Callable[[], int | None],
        name: str,
        version: int,
        code_of: Callable[[Any], int],
        **fields: Any,
    ) -> Any:
        """Ask whom `find` finds until the answer is no retriable error."""
        for _ in range(_ATTEMPTS_MAX):
            broker_id = find()
            if broker_id is not None:
                answer = self._answer(self._cluster.ask(broker_id, name, version, **fields))
                if answer is not None and code_of(answer) not in _RETRIED:
                    return answer
            self._cluster.pass_time(100)
        raise AssertionError(f"{name} is not answered")

    def _answer(self, requested: Requested) -> Any:
        for _ in range(_ANSWER_MS_MAX // 100):
            if requested.answer() is not None or not requested.is_open:
                break
            self._cluster.pass_time(100)
        return requested.answer()


def _known(one: Transaction) -> object:
    """Return the fields of an id that its log has."""
    return (
        one.producer_id,
        one.producer_epoch,
        one.timeout_ms,
        one.state,
        set(one.partitions),
        one.start_ms,
        one.last_update_ms,
    )


def _own_code(answer: Any) -> int:
    return int(answer.error_code)


def _added_code(answer: Any) -> int:
    (topic,) = answer.results_by_topic_v3_and_below
    return max(int(row.partition_error_code) for row in topic.results_by_partition)


def _produced_code(answer: Any) -> int:
    return int(answer.responses[0].partition_responses[0].error_code)


def _row_code(answer: Any) -> int:
    return int(answer.topics[0].partitions[0].error_code)


def _described_code(answer: Any) -> int:
    return int(answer.transaction_states[0].error_code)
