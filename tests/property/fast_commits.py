"""The fast path of commits and the way beside it, on the same requests.

Run by the table of docs/internals/fast_paths.md, see `test_fast_paths.py`.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.broker.coordinator_topic import CoordinatorTopic, Waiting
from engine.groups.group import Group
from engine.groups.group_offsets import CommittedOffset
from engine.groups.loaded_groups import LoadedGroups
from engine.groups.ports import GroupRecord, LoadedRecords
from engine.groups.records import build_group_record, build_offset_record
from engine.host.memory import MemoryFiles
from engine.log.log_config import LONG_MAX, LogConfig
from engine.model import TopicPartition
from engine.records.builder import BatchSettings
from engine.records.codec import Codec
from engine.records.record import TimestampType
from engine.replication.delayed_fetch import FetchResult
from engine.replication.delayed_produce import ProduceResult
from engine.replication.isr import InSyncSet
from engine.replication.metadata_cache import MetadataCache
from engine.replication.partition import Partition
from engine.replication.topic_counts import COUNT_NAMES, TopicCounts
from engine.wire.codec import message_codec
from engine.wire.fast_commit_bytes import encode_offset_value_fast, read_commit_fast
from engine.wire.headers import api, encode_request_header
from engine.wire.structs import message_class
from tests.unit.broker.memory_broker import MemoryBroker
from tests.unit.broker.test_broker import create_topic
from tests.unit.broker.test_groups import SETTINGS, coordinated
from tests.unit.groups.stage import loaded_record
from tests.unit.log.writing import PARTITION
from tests.unit.replication.replicas import FOLLOWER, LEADER, Broker

FEW = settings(max_examples=40, deadline=None, derandomize=True)
_OFFSETS = TopicPartition("__consumer_offsets", 0)
_KEY = api("OffsetCommit").key
_MEMBER = "its own"

_FLIPS = (None,) * 8 + tuple((at, bit) for at in range(40) for bit in (0, 7))

Commit = dict[str, Any]

_COMMITS = st.fixed_dictionaries(
    {
        "version": st.sampled_from((1, 2, 7, 8, 8, 8, 9, 9, 9)),
        "client_id": st.sampled_from(("app", "", "c" * 256)),
        "group_id": st.sampled_from(("g", "g", "g", "h", "", "ü" * 70)),
        "generation": st.sampled_from((-1, -1, 0, 1)),
        "member_id": st.sampled_from(("", _MEMBER, _MEMBER, "another's")),
        "instance_id": st.sampled_from((None, None, "i")),
        "partitions": st.sampled_from(
            ((("t", 0),),) * 5 + ((("t", 1),), (("u", 0),), (("t", 0), ("t", 1)), ())
        ),
        "offset": st.sampled_from((0, 7, -1, -9, (1 << 63) - 1)),
        "leader_epoch": st.sampled_from((-1, 0, 5)),
        "metadata": st.sampled_from(("", "", None, "m", "ä" * 20, "x" * 61, "y" * 200)),
        "flip": st.sampled_from(_FLIPS),
        "more": st.sampled_from((b"", b"", b"", b"\0", b"more")),
    }
)  # fmt: skip
_PLAIN: Commit = {
    "version": 9,
    "client_id": "app",
    "group_id": "g",
    "generation": -1,
    "member_id": "",
    "instance_id": None,
    "partitions": (("t", 0),),
    "offset": 7,
    "leader_epoch": 0,
    "metadata": "m",
    "flip": None,
    "more": b"",
}
_BARE = {**_PLAIN, "metadata": ""}
_OF_MEMBER = {**_PLAIN, "generation": 1, "member_id": _MEMBER, "offset": 8}


@FEW
@example([_PLAIN, "join", _OF_MEMBER, _PLAIN, "pass", _OF_MEMBER])
@example([_BARE, _BARE, {**_BARE, "version": 8}, {**_BARE, "partitions": (("t", 1),)}])
@example([{**_PLAIN, "group_id": "new"}, {**_PLAIN, "metadata": "x" * 61}, _PLAIN, "end", _PLAIN])
@given(st.lists(st.one_of(_COMMITS, st.sampled_from(("join", "pass", "end"))), max_size=8))
def commits(steps: list[Commit | str]) -> None:
    """Have the same commits reach two brokers, one of which serves none on the fast path."""
    seen = []
    for is_fast_path in (True, False):
        stage = MemoryBroker(
            **SETTINGS,
            offset_metadata_max_bytes="60",
            group_initial_rebalance_delay_ms="0",
            group_min_session_timeout_ms="1",
        ).start()
        create_topic(stage.connect(), "t")
        coordinated(stage)
        if not is_fast_path:
            del stage.broker.table.serve_fast[_KEY]
        seen.append(_Consumer(stage).run(steps))
        stage.stop()
    assert seen[0] == seen[1]


class _Consumer:
    """A member of group g, or none, that sends what is drawn."""

    def __init__(self, stage: MemoryBroker) -> None:
        self.stage = stage
        self.client = stage.connect()
        self.member_id = ""

    def run(self, steps: list[Commit | str]) -> Any:
        """Take the steps; returns all that can be seen."""
        frames = []
        for step in steps:
            if isinstance(step, dict):
                if self.client.is_closed:
                    self.client = self.stage.connect()
                self.client.send(_frame(step, self.member_id))
                frames.append((tuple(self.client.frames), self.client.is_closed))
                self.client.frames.clear()
            elif step == "join":
                self._join()
            elif step == "end":
                self.stage.connect().ask("DeleteGroups", 2, groups_names=["g"])
            else:
                self.stage.pass_time(900)
        return frames, self._state()

    def _join(self) -> None:
        client = self.stage.connect()
        joining = message_class("JoinGroupRequest")
        fields = {"session_timeout_ms": 1_000, "rebalance_timeout_ms": 1_000}
        joined = client.ask(
            "JoinGroup",
            3,
            group_id="g",
            protocol_type="consumer",
            protocols=[joining.JoinGroupRequestProtocol(name="range")],
            **fields,
        )
        if joined is None or joined.error_code:
            return
        self.member_id = joined.member_id
        client.ask(
            "SyncGroup",
            3,
            group_id="g",
            generation_id=joined.generation_id,
            member_id=joined.member_id,
        )

    def _state(self) -> Any:
        groups = self.stage.broker.groups.registry.groups
        log = self.stage.broker.storage.replica_manager.find(_OFFSETS).log
        return (
            {
                name: (group.state, group.offsets.all(), group.offsets.is_empty)
                for name, group in groups.items()
            },
            [bytes(segment.file.read_at(0, segment.size_bytes)) for segment in log.segments],
            self.stage.broker.groups.delays.next_deadline_ms(),
            [(name, str(fault)) for name, fault in self.stage.faults],
        )


def _frame(commit: Commit, member_id: str) -> bytes:
    version, request = commit["version"], message_class("OffsetCommitRequest")
    topics: dict[str, list[Any]] = {}
    for topic, index in commit["partitions"]:
        row = request.OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=commit["offset"],
            committed_metadata=commit["metadata"],
        )
        if version >= 6:
            row.committed_leader_epoch = commit["leader_epoch"]
        topics.setdefault(topic, []).append(row)
    message = request(
        group_id=commit["group_id"],
        generation_id_or_member_epoch=commit["generation"],
        member_id=member_id if commit["member_id"] == _MEMBER else commit["member_id"],
        topics=[
            request.OffsetCommitRequestTopic(name=name, partitions=rows)
            for name, rows in topics.items()
        ],
    )
    if version >= 7:
        message.group_instance_id = commit["instance_id"]
    body = message_codec("OffsetCommitRequest", version).encode(message)
    frame = bytearray(encode_request_header(_KEY, version, 77, commit["client_id"]) + body)
    if commit["flip"] is not None:
        at, bit = commit["flip"]
        # Behind key and version: another API is no commit.
        frame[4 + at % (len(frame) - 4)] ^= 1 << bit
    return bytes(frame) + commit["more"]


@FEW
@given(_COMMITS)
def commit_requests(commit: Commit) -> None:
    """Read the same request by hand and by the table, and write its record both ways."""
    frame = _frame(commit, "member-1")
    read = read_commit_fast(memoryview(frame))
    if read is None:
        return
    version = commit["version"]
    header = encode_request_header(_KEY, version, 77, commit["client_id"])
    request, _ = message_codec("OffsetCommitRequest", version).decode_at(
        memoryview(frame)[len(header) :], 0
    )
    (topic,) = request.topics
    (row,) = topic.partitions
    head = read.head
    assert (request.group_id, request.generation_id_or_member_epoch) == head[:2]
    assert (request.member_id, request.group_instance_id) == head[2:4]
    assert (topic.name, row.partition_index) == head.topic_partition
    assert (row.committed_offset, row.committed_leader_epoch) == (read.offset, read.leader_epoch)
    assert (row.committed_metadata or "") == read.metadata
    value = message_codec("OffsetCommitValue", 3).encode(
        message_class("OffsetCommitValue")(
            offset=read.offset,
            leader_epoch=read.leader_epoch,
            metadata=read.metadata,
            commit_timestamp=99,
        )
    )
    assert b"\0\3" + value == encode_offset_value_fast(
        read.offset, read.leader_epoch, read.metadata, 99
    )


_TEXTS = st.sampled_from(("g", "t", "ä" * 70, "", "x" * 300))
_RECORDS = st.fixed_dictionaries(
    {
        "group": _TEXTS,
        "topic": _TEXTS,
        "partition": st.sampled_from((0, 1, -1, 7)),
        "metadata": _TEXTS,
        "offset": st.sampled_from((0, 5, (1 << 63) - 1, -1)),
        "expire_ms": st.sampled_from((None, None, None, 9)),
        "is_tombstone": st.sampled_from((False, False, False, True)),
        "is_group": st.sampled_from((False, False, False, True)),
        "producer_id": st.sampled_from((-1, -1, -1, 4)),
        "flip": st.sampled_from((None,) * 12 + tuple(range(120))),
        "size_change": st.sampled_from((0, 0, 0, 0, -1, 1)),
    }
)


@FEW
@given(st.lists(_RECORDS, max_size=12))
def loaded_offsets(drawn: list[dict[str, Any]]) -> None:
    """Load the same records, some of them damaged, with the fast path and without."""
    entries = _few(_entry(at, record) for at, record in enumerate(drawn))
    seen = []
    for is_fast_path in (True, False):
        loaded = LoadedGroups()
        if not is_fast_path:
            loaded._apply_fast = iter  # type: ignore[method-assign]
        for entry in entries:
            loaded.apply_records(entry)
        groups = [
            (group.group_id, group.state, group.generation_id, group.offsets._committed)
            for group in loaded.iter_groups()
        ]
        seen.append((groups, loaded.pending))
    assert seen[0] == seen[1]


def _few(entries: Iterable[LoadedRecords]) -> list[LoadedRecords]:
    """Return records that follow each other, and have one producer or none, in one piece."""
    return [
        LoadedRecords([one for entry in alike for one in entry.records], producer_id)
        for producer_id, alike in groupby(entries, lambda entry: entry.open_producer_id)
    ]


def _entry(log_offset: int, drawn: dict[str, Any]) -> LoadedRecords:
    if drawn["is_group"]:
        record = build_group_record(Group(drawn["group"], 5), {})
    else:
        committed = CommittedOffset(drawn["offset"], 3, drawn["metadata"], 8, drawn["expire_ms"])
        key = TopicPartition(drawn["topic"], drawn["partition"])
        record = build_offset_record(
            drawn["group"], key, None if drawn["is_tombstone"] else committed
        )
    key_bytes, value = bytearray(record.key), record.value
    if value is not None and drawn["flip"] is not None:
        both = bytearray(record.key + value)
        both[drawn["flip"] % len(both)] ^= 1
        key_bytes, value = both[: len(key_bytes)], bytes(both[len(key_bytes) :])
    if value is not None and drawn["size_change"]:
        value = value[:-1] if drawn["size_change"] < 0 else value + b"\0"
    record = GroupRecord(bytes(key_bytes), value)
    return loaded_record(log_offset, record, drawn["producer_id"])


_OWN = st.tuples(
    st.sampled_from((b"", b"key", b"k" * 63, b"k" * 64, b"k" * 1024)),
    st.sampled_from((None, b"", b"value", b"v" * 64, b"v" * 9_000)),
    st.sampled_from((-1, 0, 7)),
    st.sampled_from((-1, -1, -1, 0, 1)),
)
_LOGS = st.fixed_dictionaries(
    {
        "segment_bytes": st.sampled_from((1 << 30, 300)),
        "max_message_bytes": st.sampled_from((1 << 20, 1 << 20, 150)),
        "compression_type": st.sampled_from((None, None, Codec.NONE, Codec.GZIP)),
        "message_timestamp_type": st.sampled_from(
            (TimestampType.CREATE_TIME,) * 3 + (TimestampType.LOG_APPEND_TIME,)
        ),
        "is_compacted": st.booleans(),
        "flush_messages": st.sampled_from((LONG_MAX, LONG_MAX, 1, 2)),
        "message_timestamp_before_max_ms": st.sampled_from((1 << 62, 0)),
        "message_timestamp_after_max_ms": st.sampled_from((1 << 62, 0)),
    }
)
_CHANGES = ("follow", "read", "pass", "epoch", "truncate", "alone", "lose", "freeze", "fail")
_STEPS = st.lists(st.one_of(_OWN, _OWN, st.sampled_from(_CHANGES)), max_size=8)
#: In-sync replicas, and how many of them have to be.
_REPLICAS = st.sampled_from((((1,), 1), ((1, 2), 1), ((1, 2), 2), ((1, 2), 3)))


@FEW
@example(((1, 2), 1), {}, ["read", (b"k", b"v", 0, -1), "follow", (b"k", None, -1, -1), "pass"])
@example(((1,), 1), {}, [(b"k", b"v", 0, -1), "epoch", (b"k", b"v", 0, 0), (b"k", b"v", 0, 1)])
@example(((1,), 1), {"max_message_bytes": 75}, [(b"key", b"value", 0, 1), (b"key", b"valu", 0, 1)])
@example(((1, 2), 1), {}, [(b"k", b"v", 0, 1), "truncate", (b"k", b"v", 0, 1)])
@example(((1, 2), 1), {}, [(b"k", b"v", 0, -1), "alone", (b"k", b"v", 0, -1)])
@example(((1,), 1), {"flush_messages": 1}, ["pass", (b"k", b"v", 0, 1), "lose", (b"k", b"v", 0, 1)])
@example(((1,), 1), {}, ["freeze", (b"k", b"v", 0, 1)])
@given(_REPLICAS, _LOGS, _STEPS)
def own_records(
    replicas: tuple[tuple[int, ...], int], config: dict[str, Any], steps: list[Any]
) -> None:
    """Append the records of a coordinator to two brokers, to one of them as any other batches."""
    seen = []
    for is_fast_path in (True, False):
        isr, min_isr = replicas
        broker = Broker(isr, min_isr=min_isr, log_config=LogConfig()._replace(**config))
        topic = CoordinatorTopic(
            PARTITION.topic, broker.manager, MetadataCache(1, "cluster"), broker.clock
        )
        if not is_fast_path:
            topic._append_own_fast = _nothing
        seen.append(_appended(broker, topic, steps))
    assert seen[0] == seen[1]


def _nothing(*_arguments: Any) -> None:
    return None


def _appended(broker: Broker, topic: CoordinatorTopic, steps: list[Any]) -> Any:
    """Take the steps; returns all that can be seen."""
    results: list[Any] = []
    partition, log = broker.partition, broker.partition.log
    for step in steps:
        if isinstance(step, tuple):
            key, value, sequence, acks = step
            settings_of_batch = BatchSettings(base_sequence=sequence)
            written = topic.append(
                PARTITION.partition, [(key, value)], settings_of_batch, Waiting(acks, 100), _result
            )
            written.then(results.append)
        elif step == "follow":
            broker.fetch(log.log_end_offset, FOLLOWER, log_start_offset=0)
        elif step == "read":
            broker.fetch(log.log_end_offset)
        elif step == "pass":
            broker.pass_time(100)
        elif step == "epoch":
            partition.leader_epoch += 1
        else:
            _change(partition, step)
        results.append((partition.high_watermark, broker.manager.delayed_produce_count))
    newest = partition.newest
    if newest is not None and newest[1:3] == (log.log_end_offset, partition.leader_epoch):
        assert log.read(newest.first_offset, 1 << 20).read().startswith(newest.data)
    assert isinstance(log._files, MemoryFiles)
    return (
        results,
        # What a truncation owes is paid by the next append.
        log._files.unsynced_changes(),
        log.last_flush_ms,
        newest,
        [[_read(result) for _, result in fetched] for fetched in broker.fetches],
        log.epochs.entries,
        [bytes(segment.file.read_at(0, segment.size_bytes)) for segment in log.segments],
        [segment.largest for segment in log.segments],
        _counted(partition.counts),
    )


def _change(partition: Partition, step: str) -> None:
    """Take what appends have to notice: a log that was truncated, a partition that refuses."""
    log = partition.log
    if step == "alone":
        partition.in_sync = InSyncSet((LEADER,))
        partition._is_alive = _is_leader
    elif step == "truncate":
        partition.truncate_to(max(log.log_end_offset - 1, 0))
        partition.leader_epoch += 1
    elif step == "lose":
        partition.leader_id = FOLLOWER.replica_id
    elif step == "freeze":
        partition.config = partition.config._replace(is_read_only=True)
    else:
        assert isinstance(log._files, MemoryFiles)
        log._files.fail("write", errno.EIO, path_end=".log")


def _is_leader(broker_id: int) -> bool:
    return broker_id == LEADER


def _read(result: FetchResult) -> Any:
    code = None if result.error is None else result.error.code
    return code, result.high_watermark, result.records and bytes(result.records.read())


def _counted(counts: TopicCounts) -> list[int]:
    """Return all counts, those of the fast path among them."""
    counts.add_pending_counts()
    return [getattr(counts, name) for name in COUNT_NAMES]


def _result(result: ProduceResult) -> Any:
    return (None if result.error is None else str(result.error)), result.base_offset
