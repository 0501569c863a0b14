"""Loads that the fast paths of docs/internals/fast_paths.md serve, each of a number of operations.

A load is made anew for each measurement: objects keep methods of others from when they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from engine.client.producing import OutgoingRecord, OutgoingValues, Producer, ProducerOptions
from engine.dump.options import DumpOptions
from engine.dump.rows import RowDump
from engine.host.memory import MemoryFiles
from engine.inspection.verify import VerifyOptions, verify_partition
from engine.log.directory.log_dir import read_log_dir
from engine.log.epoch_store import EpochStore
from engine.log.local_log import LocalLog
from engine.log.log_config import LogConfig
from engine.log.producer_state import AppendOrigin, ProducerState
from engine.log.recovery.segment_replay import SegmentReplay
from engine.log.replica_chunks import split_replica_batches
from engine.records import record_run
from engine.records.batch import BatchView
from engine.records.builder import BatchSettings, build_batch
from engine.records.codec import Codec
from engine.records.record import Record, TimestampType
from engine.records.view import batches_in
from engine.wire import messages
from engine.wire.codec import message_codec
from tests.unit.api.data_stage import T0, DataStage, fetch_request, produce_request
from tests.unit.api.follower import Follower
from tests.unit.broker.memory_broker import MemoryBroker, request_frame
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.broker.test_broker import create_topic
from tests.unit.broker.test_groups import SETTINGS, coordinated
from tests.unit.client.produce_log import ProduceLog
from tests.unit.log.cleaner.cleaned_logs import CONFIG, clean, compacted_log, put
from tests.unit.log.writing import DIR, NOW_MS, end_of_transaction, open_log

_VALUE = b"v" * 100
_SEGMENT = f"{DIR}/00000000000000000000.log"
_HEADERS = (("h", b"x"),)


class Load(NamedTuple):
    """What is measured: `run` does `count` operations, each of the named kind."""

    run: Callable[[], object]
    count: int
    operation: str


def batch_of(
    count: int, codec: Codec = Codec.NONE, headers: tuple[tuple[str, bytes | None], ...] = ()
) -> bytes:
    """Return a batch of records of 100 bytes."""
    kind = TimestampType.CREATE_TIME
    records = [Record(n, NOW_MS, kind, b"key %d" % n, _VALUE, headers) for n in range(count)]
    return bytes(build_batch(records, BatchSettings(codec=codec)))


def log_bytes(batch_count: int, record_count: int, **more: Any) -> bytes:
    """Return the batches of a log."""
    batch, out = bytearray(batch_of(record_count, **more)), bytearray()
    for number in range(batch_count):
        BatchView(memoryview(batch)).patch(base_offset=number * record_count, leader_epoch=0)
        out += batch
    return bytes(out)


def produces(version: int = 9, codec: Codec = Codec.NONE, acks: int = 1, count: int = 1000) -> Load:
    """Produce one batch after the other to a broker over the memory's network."""
    stage = DataStage()
    data = memoryview(bytearray(batch_of(1 if codec is Codec.NONE else 50, codec)))
    body = message_codec("ProduceRequest", version).encode(
        produce_request({"t": [(0, data)]}, acks=acks)
    )

    def run() -> None:
        for _ in range(count):
            stage.send_raw("Produce", version, body)
        assert len(stage.frames) == count
        stage.frames.clear()

    return Load(run, count, "request")


def commits(count: int = 1000) -> Load:
    """Commit the offset of one partition again and again to a broker in memory."""
    stage = MemoryBroker(**SETTINGS).start()
    create_topic(stage.connect(), "t")
    coordinated(stage)
    made = messages.OffsetCommitRequest
    row = made.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    topics = [made.OffsetCommitRequestTopic(name="t", partitions=[row])]
    frame = request_frame("OffsetCommit", 8, made(group_id="g", topics=topics))
    client = stage.connect()
    client.send(frame)

    def run() -> None:
        for _ in range(count):
            client.send(frame)
        assert len(client.frames) == count + 1

    return Load(run, count, "commit")


def appends(codec: Codec = Codec.NONE, records: int = 1, count: int = 1000) -> Load:
    """Append a batch again and again to a log as its leader."""
    log, _ = open_log(MemoryFiles(), LogConfig())
    batch = bytearray(batch_of(records, codec))

    def run() -> None:
        for _ in range(count):
            batch[:8] = bytes(8)
            log.append_as_leader(memoryview(batch), 0, NOW_MS)

    return Load(run, count, "batch")


def marked_ends(count: int = 1000) -> Load:
    """Append the end of a transaction again and again to a log as its leader."""
    log, _ = open_log(MemoryFiles(), LogConfig())
    batch = bytearray(end_of_transaction(4))

    def run() -> None:
        for _ in range(count):
            batch[:8] = bytes(8)
            log.append_as_leader(memoryview(batch), 0, NOW_MS, AppendOrigin.COORDINATOR)

    return Load(run, count, "batch")


def fetches(count: int = 1000) -> Load:
    """Fetch the first records of a partition."""
    stage = DataStage()
    stage.produce(batch_of(1))
    more = {"max_wait_ms": 300, "max_bytes": 1 << 20, "session_epoch": -1}
    body = message_codec("FetchRequest", 17).encode(fetch_request(17, {0: 0}, **more))

    def run() -> None:
        for _ in range(count):
            stage.send_raw("Fetch", 17, body)
        assert len(stage.frames) == count
        stage.frames.clear()

    return Load(run, count, "request")


def waiting_fetches(count: int = 500) -> Load:
    """Fetch at the end of a partition, and produce there: the fetch waits, and is completed."""
    stage = DataStage()
    data = memoryview(bytearray(batch_of(1)))
    produce = message_codec("ProduceRequest", 9).encode(produce_request({"t": [(0, data)]}, acks=1))
    more = {"max_wait_ms": 300, "max_bytes": 1 << 20, "session_epoch": -1}
    fetch = message_codec("FetchRequest", 17)

    def run() -> None:
        log = stage.manager.find(T0).log
        for _ in range(count):
            request = fetch_request(17, {0: log.log_end_offset}, **more)
            stage.send_raw("Fetch", 17, fetch.encode(request))
            stage.send_raw("Produce", 9, produce)
        assert len(stage.frames) == 2 * count
        stage.frames.clear()

    return Load(run, count, "fetch that waits")


def follower_fetches(count: int = 300) -> Load:
    """Append to a partition that a follower fetches by its session over the memory's network."""
    stage = DataStage((1, 2, 3))
    follower = Follower(stage)
    data = memoryview(bytearray(batch_of(1)))
    body = message_codec("ProduceRequest", 9).encode(produce_request({"t": [(0, data)]}, acks=1))
    for _ in range(3):
        follower.ask("fast")

    def run() -> None:
        for _ in range(count):
            stage.send_raw("Produce", 9, body)
            follower.ask("fast")

    return Load(run, count, "append")


def fetch_cycles(count: int = 100) -> Load:
    """Produce to a partition with a replica in each of three processes."""
    cluster = MemoryCluster(is_one_process=False, min_insync_replicas="2")
    cluster.create_topic(replicas=[(1, 2, 3)])
    cluster.pass_time(2000)
    leader = cluster.stored(T0).leader

    def run() -> None:
        for _ in range(count):
            cluster.produce(leader, 1, key=T0)
            cluster.pass_time(10, 10)

    return Load(run, count, "append")


def followed(count: int = 1000) -> Load:
    """Append what a leader gave, one batch at a time."""
    log, _ = open_log(MemoryFiles(), LogConfig())
    batch = bytearray(batch_of(1))

    def run() -> None:
        for _ in range(count):
            data = memoryview(batch)
            BatchView(data).patch(base_offset=log.log_end_offset, leader_epoch=0)
            log.append_as_follower(data, NOW_MS)

    return Load(run, count, "batch")


def chunks(batch_count: int = 1000) -> Load:
    """Check a leader's response of many batches."""
    data = memoryview(log_bytes(batch_count, 1))
    cut = partial(split_replica_batches, data, log_end_offset=0, segment_bytes=1 << 30)
    return Load(cut, batch_count, "batch")


def _written(data: bytes) -> tuple[MemoryFiles, LocalLog]:
    files = MemoryFiles()
    log, _ = open_log(files, LogConfig())
    log.active_segment.file.append((data,))
    return files, log


def replays(batch_count: int = 2000) -> Load:
    """Replay a segment as after a crash."""
    files, log = _written(log_bytes(batch_count, 1))

    def run() -> None:
        epochs, producers = EpochStore(files, DIR, ()), ProducerState()
        SegmentReplay(log.active_segment, epochs, producers).replay(4096)

    return Load(run, batch_count, "batch")


def verifications(batch_count: int = 2000) -> Load:
    """Verify a partition's directory."""
    files, log = _written(log_bytes(batch_count, 1))
    log.close_files()

    def run() -> None:
        found = read_log_dir(files, DIR.rsplit("/", 1)[0])
        verify_partition(files, found.partitions[0], found.state, VerifyOptions())

    return Load(run, batch_count, "batch")


def dumps(batch_count: int = 200, record_count: int = 10) -> Load:
    """Dump a segment as rows."""
    files, log = _written(log_bytes(batch_count, record_count))
    log.close_files()

    def run() -> None:
        dump = RowDump(files, DumpOptions(), headers_only=False)
        for rows in dump.dump_rows([_SEGMENT]):
            rows.iter_rows()

    return Load(run, batch_count * record_count, "record")


def runs(*, headers: bool = False) -> Load:
    """Read the records of batches as columns."""
    data = memoryview(log_bytes(100, 50, headers=_HEADERS if headers else ()))
    batches: Sequence[Any] = list(batches_in(data, allow_partial_tail=False))

    def run() -> None:
        for batch in batches:
            record_run.read_runs(batch)

    return Load(run, 5000, "record")


def outgoing(*, at_once: bool, count: int = 10_000) -> Load:
    """Give records to a producer, at once or one by one."""
    values = [_VALUE] * count

    def run() -> None:
        producer = Producer(ProduceLog().client(), ProducerOptions(linger_ms=1 << 40))
        if at_once:
            producer.add_fast(OutgoingValues("t", values, None, None, (), 0), range(count))
        else:
            for place, value in enumerate(values):
                producer.add(OutgoingRecord("t", None, value, (), NOW_MS, 0), place)
        producer.flush()

    return Load(run, count, "record")


def cleanings(batch_count: int = 200, record_count: int = 20) -> Load:
    """Clean a log in which every key has been written again."""
    total = batch_count * record_count
    files = MemoryFiles()
    log = compacted_log(files, CONFIG._replace(segment_bytes=1 << 20))
    for number in range(batch_count):
        first = number * record_count
        put(log, *((b"%d" % (n % 1000), _VALUE) for n in range(first, first + record_count)))
    log.roll(NOW_MS)
    return Load(partial(clean, log, files), total, "record")
