"""Append to and read a coordinator topic, `__consumer_offsets` or `__transaction_state`.

Groups and transactional ids keep their partition while the broker runs, even if the topic gets more
partitions: the count at the start of the broker, or at the creation of the topic, is used. Brokers
that start later use the new count, and find nothing in partitions that other brokers do not use.

Source: GroupMetadataManager.startup, appendForGroup, TransactionStateManager.startup,
appendTransactionToLog of 3.9.1.
Differs: for a topic that is created while the broker runs, its actual partition count is used;
Kafka uses the setting.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple, TypeVar

from engine.errors import ApiError
from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.ids import uuid_text
from engine.kafka_errors import NOT_LEADER_OR_FOLLOWER
from engine.log.local_log import DATA_ATTRIBUTES, LocalLog
from engine.log.producer_state import AppendOrigin
from engine.model import TopicPartition, new_tuple
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec
from engine.records.one_record import encode_record
from engine.records.view import RecordBatch, batches_in
from engine.replication.delayed_produce import ProduceResult, ProduceResults
from engine.replication.metadata_cache import MetadataCache
from engine.replication.replica_manager import ReplicaManager
from engine.znode.client import ZnodeClient
from engine.znode.errors import NoNode
from engine.znode.json_text import InvalidZnodeValue
from engine.znode.paths import topic_path
from engine.znode.values import TopicAssignment, decode_topic

T = TypeVar("T")

_log = logging.getLogger("kafka.server.KafkaServer")


class Waiting(NamedTuple):
    """The acks and the timeout (ms) of an append."""

    required_acks: int
    timeout_ms: int


class CoordinatorTopic:
    """Appends to one coordinator topic, and reads it."""

    def __init__(
        self,
        topic: str,
        replica_manager: ReplicaManager,
        metadata_cache: MetadataCache,
        clock: Clock,
        *,
        made_with: int = 1,
        stored: TopicAssignment | None = None,
    ) -> None:
        """Create access to a coordinators' topic, `__consumer_offsets` or `__transaction_state`.

        `made_with` is the partition count with which brokers create the topic. `stored` is the
        topic in the metadata store at the start of the broker, None without one.
        """
        self._topic = topic
        self._replica_manager = replica_manager
        #: Fast path of an append; bound here because each offset commit uses it.
        self._append_own_fast = replica_manager.append_own_fast
        self._metadata_cache = metadata_cache
        self._clock = clock
        self._made_with = made_with
        #: The partition count by which groups or transactional ids are assigned. Kept once all
        #: partitions are known, also when partitions are added; None before, and after a deletion
        #: of the topic.
        self._count = None if stored is None else len(stored.partitions)
        #: The topic id as text: another id means that the topic was recreated. None until known.
        self._topic_id = None if stored is None else stored.topic_id
        metadata_cache.on_update(self._note_count)

    def partition_count(self) -> int | None:
        """Return the partition count by which group or transactional ids are mapped to partitions.

        None if the topic does not exist yet.
        """
        return self._count or self._known_count() or None

    def _known_count(self) -> int:
        """Return the topic's partition count in the metadata cache, 0 without the topic."""
        return len(self._metadata_cache.topics.get(self._topic, ()))

    def _note_count(self, updated: Collection[str]) -> None:
        """Store the partition count of a new topic; remove it if the topic was deleted.

        Called with the topics of each UpdateMetadata.
        """
        if self._topic not in updated:
            return
        known, topic_id = self._known_count(), self._metadata_cache.topic_ids.get(self._topic)
        id_text = None if topic_id is None else uuid_text(topic_id)
        if not known or (id_text is not None and self._topic_id not in (None, id_text)):
            # The topic was deleted, and may have been recreated.
            self._count = None
        self._topic_id = id_text
        # Some partitions of a new topic may have no leader yet, and come in a later update.
        if self._count is None and known >= self._made_with:
            self._count = known

    def append(
        self,
        partition: int,
        records: Sequence[tuple[bytes, bytes | None]],
        settings: BatchSettings,
        waiting: Waiting,
        written_as: Callable[[ProduceResult], T],
    ) -> Promise[T]:
        """Append keys and values as one batch; the promise is kept once enough replicas have it.

        Its value is the result of `written_as`. It is kept even if the client that caused the
        append closes its connection: a coordinator's state must equal its written records.
        """
        key = TopicPartition(self._topic, partition)
        now_ms = self._clock.wall_ms()
        is_plain = settings.codec is Codec.NONE and not settings.is_transactional
        if is_plain and settings.producer_id < 0 and len(records) == 1:
            ((own_key, own_value),) = records
            own = self.append_fast(
                partition, own_key, own_value, settings.base_sequence, waiting, now_ms
            )
            if isinstance(own, Promise):
                return own.then(written_as)
            if own is not None:
                return Promise.of(
                    written_as(ProduceResult(None, own) if isinstance(own, int) else own)
                )
        builder = BatchBuilder(settings)
        for record_key, value in records:
            builder.append(now_ms, record_key, value)
        batch = memoryview(builder.build())
        written = self._replica_manager.append_records_fast(
            key,
            batch,
            waiting.required_acks,
            waiting.timeout_ms,
            origin=AppendOrigin.COORDINATOR,
            is_internal_allowed=True,
            fast_attributes=DATA_ATTRIBUTES,
        )
        if isinstance(written, ProduceResult):
            return Promise.of(written_as(written))
        appended = written or self._replica_manager.append_records(
            {key: batch},
            waiting.required_acks,
            waiting.timeout_ms,
            origin=AppendOrigin.COORDINATOR,
        )

        def result(results: ProduceResults) -> T:
            """Convert the result of the only partition."""
            return written_as(results[key])

        if isinstance(appended, Promise):
            return appended.unabandonable().then(result)
        return Promise.of(result(appended))

    def append_fast(
        self,
        partition: int,
        key: bytes,
        value: bytes | None,
        base_sequence: int,
        waiting: Waiting,
        now_ms: int,
    ) -> int | ProduceResult | Promise[ProduceResult] | None:
        """Append one record without a codec, as `append` does.

        Returns None, with nothing done, if it cannot. Returns the record's offset if it is written
        and no other replica has to follow, else the result or a promise of it.
        """
        topic_partition = new_tuple(TopicPartition, (self._topic, partition))
        required_acks, timeout_ms = waiting
        written = self._append_own_fast(
            topic_partition,
            encode_record(now_ms, key, value, base_sequence),
            required_acks,
            timeout_ms,
            now_ms,
        )
        if isinstance(written, Promise):
            return written.unabandonable().then(lambda results: results[topic_partition])
        return written

    def batches(self, partition: int, buffer_bytes: int) -> Iterator[RecordBatch]:
        """Yield all batches of a partition in order, up to its present log end offset.

        A coordinator loads its state from them. Raises ApiError or StorageError if the log cannot
        be read.
        """
        key = TopicPartition(self._topic, partition)
        log = self._log(key)
        offset, end = log.log_start_offset, log.log_end_offset
        while offset < end:
            # Between two batches the log may move to another directory, so its files are not kept
            # open.
            piece = self._log(key).read(offset, buffer_bytes)
            try:
                data = memoryview(piece.read())
            finally:
                piece.release()
            before = offset
            for batch in batches_in(data, allow_partial_tail=True):
                if batch.last_offset >= offset:
                    yield batch
                    offset = batch.last_offset + 1
            if offset == before:
                # Offsets up to the end that have no records: they were cleaned away.
                return

    def end_offset(self, partition: int) -> int:
        """Return the log end offset of a partition, 0 if it is not on this broker."""
        replica = self._replica_manager.partitions.get(TopicPartition(self._topic, partition))
        return 0 if replica is None else replica.log.log_end_offset

    def is_committed(self, partition: int, end_offset: int) -> bool:
        """True if the partition's high watermark has reached `end_offset` (exclusive).

        False also if the partition is not on this broker.
        """
        replica = self._replica_manager.partitions.get(TopicPartition(self._topic, partition))
        return replica is not None and replica.high_watermark >= end_offset

    def _log(self, key: TopicPartition) -> LocalLog:
        """Return the partition's log; raise NOT_LEADER_OR_FOLLOWER without a replica here."""
        replica = self._replica_manager.partitions.get(key)
        if replica is None:
            raise ApiError(NOT_LEADER_OR_FOLLOWER, f"{key} is not on this broker")
        return replica.log


async def read_stored_topic(znodes: ZnodeClient, topic: str) -> TopicAssignment | None:
    """Return a topic from the metadata store, None if it is absent or cannot be parsed."""
    path = topic_path(topic)
    try:
        data, _ = await znodes.get(path)
        return decode_topic(data, path)
    except NoNode:
        return None
    except InvalidZnodeValue as error:
        _log.error("The partitions of %s are not known yet: %s", topic, error)
        return None
