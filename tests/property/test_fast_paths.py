"""Every fast path gives the general path's result: docs/internals/fast_paths.md, walked.

Each row names a function of this file, which sends generated requests, batches and damage both
ways and compares all that can be seen. A profile hook tells that both ways have really run.

Source: D21.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.api.admission import Admission, NoQuotas
from engine.client.producing import (
    OutgoingRecord,
    OutgoingValues,
    Producer,
    ProducerOptions,
)
from engine.dump.filters import Filters
from engine.dump.options import DumpOptions
from engine.dump.rows import RowDump
from engine.errors import ApiError, EngineError
from engine.host.memory import MemoryFiles
from engine.inspection.fast_batches import FastBatches
from engine.inspection.verify import VerifyOptions, verify_partition
from engine.log import checked_batch, replica_chunks
from engine.log.checked_batch import open_fast
from engine.log.cleaner import batch_filter, segment_cleaner
from engine.log.directory.log_dir import read_log_dir
from engine.log.epoch_store import EpochStore
from engine.log.local_log import LocalLog
from engine.log.log_config import LogConfig
from engine.log.producer_state import AppendOrigin, ProducerState
from engine.log.recovery.loader import LoadReport
from engine.log.recovery.segment_replay import SegmentOffsetOverflow, SegmentReplay
from engine.log.validation import LeaderRules
from engine.model import TopicPartition
from engine.native.clean_records import CleanerTier
from engine.native.record_fields import FieldTier
from engine.records import record_run
from engine.records.batch import BatchView
from engine.records.builder import BatchSettings, build_batch
from engine.records.codec import Codec
from engine.records.compression import compress
from engine.records.control import ControlType
from engine.records.record import Record, TimestampType
from engine.records.view import batches_in
from engine.wire import produce_bytes
from engine.wire.codec import message_codec
from engine.wire.produce_bytes import NodeEndpoint, ProducedPartition, encode_produce_response
from tests.compiled_walk import compiled_cleaner_here, compiled_fields_here
from tests.parsed_sources import ONE_PROCESS, nodes_of
from tests.property.fast_commits import commit_requests, commits, loaded_offsets, own_records
from tests.property.fast_replication import (
    follower_fetches,
    remote_fetch_cycles,
    replica_requests,
    replica_responses,
)
from tests.property.test_cleaner_model import Story, Written, written_logs
from tests.unit.api.authorizers import AllowEach
from tests.unit.api.data_stage import DataStage, fetch_request, produce_request
from tests.unit.client.produce_log import ProduceLog
from tests.unit.log.cleaner.cleaned_logs import clean
from tests.unit.log.writing import (
    DIR,
    NOW_MS,
    batches_of,
    end_of_transaction,
    image,
    open_log,
    sent_by,
)

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/internals/fast_paths.md"
T0 = TopicPartition("t", 0)
EXAMPLES = settings(max_examples=60, deadline=None, derandomize=True)


# Batches


def _batch(draw: st.DrawFn) -> bytes:
    codec = draw(st.sampled_from(list(Codec)))
    records = []
    at = draw(st.sampled_from((NOW_MS, NOW_MS - 10_000, 5, -1, 1 << 61)))
    for number in range(draw(st.integers(1, 4))):
        key = draw(st.sampled_from((b"k", None, b"")))
        headers = draw(st.sampled_from(((), (("h", b"v"),), (("h", None),))))
        value = draw(st.sampled_from((None, b"", b"v" * 30, b"w" * 300)))
        kind = TimestampType.CREATE_TIME
        records.append(Record(number, at + number, kind, key, value, headers))
    producer_id = draw(st.sampled_from((-1, -1, 4)))
    has_producer = producer_id >= 0
    settings_ = BatchSettings(
        codec=codec,
        producer_id=producer_id,
        producer_epoch=draw(st.integers(0, 1)) if has_producer else -1,
        base_sequence=draw(st.sampled_from((0, 1, 2, 3, 9))) if has_producer else -1,
        is_transactional=has_producer and draw(st.integers(0, 3)) == 0,
    )
    return bytes(build_batch(records, settings_))


def _changed(draw: st.DrawFn, data: bytes) -> bytes:
    """Return bytes with a header field changed, or damaged, cut, doubled; mostly as they are."""
    changed = bytearray(data)
    match draw(st.integers(0, 11)):
        case 0:
            changed[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
        case 1:
            del changed[draw(st.integers(0, len(data))) :]
        case 2:
            changed += data[: draw(st.sampled_from((1, 13, 70, len(data))))]
        case 3 | 4 | 5 as number:
            at, size = ((35, 8), (57, 4), (21, 2))[number - 3]
            value = draw(st.sampled_from((0, 2, 8, 32, 77)))
            changed[at : at + size] = value.to_bytes(size)
            BatchView(memoryview(changed))  # the header is still there
            crc = checked_batch.crc32c(memoryview(changed)[21:])
            changed[17:21] = crc.to_bytes(4)
    return bytes(changed)


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """Draw what a producer may send as its records."""
    return _changed(draw, _batch(draw))


CONFIGS = st.sampled_from(
    (
        LogConfig(),
        LogConfig(segment_bytes=400, index_interval_bytes=100),
        LogConfig(is_compacted=True),
        LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME),
        LogConfig(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=1000),
        LogConfig(compression_type=Codec.LZ4),
        LogConfig(compression_type=Codec.NONE),
        LogConfig(max_message_bytes=200),
    )
)


def _log_state(log: LocalLog) -> Any:
    return (
        log.log_start_offset,
        log.log_end_offset,
        [bytes(segment.file.read_at(0, segment.size_bytes)) for segment in log.segments],
        [segment.base_offset for segment in log.segments],
        log.epochs.entries,
        log.producers.to_entries(),
    )


@contextmanager
def _without(owner: Any, name: str, answer: Callable[..., Any]) -> Iterator[None]:
    kept = getattr(owner, name)
    setattr(owner, name, answer)
    try:
        yield
    finally:
        setattr(owner, name, kept)


# Produce


@st.composite
def produce_steps(draw: st.DrawFn) -> tuple[int, bytes]:
    """Draw a version and the body of a Produce request."""
    version = draw(st.sampled_from((2, 3, 5, 8, 9, 9, 9, 11, 11)))
    topics: dict[str, list[tuple[int, Any]]] = {}
    for _ in range(draw(st.sampled_from((1, 1, 1, 2)))):
        topic = draw(st.sampled_from(("t", "t", "t", "u")))
        topics.setdefault(topic, []).append((draw(st.integers(0, 2)), draw(batches())))
    id_ = draw(st.sampled_from((None, None, None, "x", ""))) if version >= 3 else None
    acks = draw(st.sampled_from((1, 1, -1, 0, 7)))
    more = {} if id_ is None else {"transactional_id": id_}
    request = produce_request(topics, acks=acks, **more)
    return version, message_codec("ProduceRequest", version).encode(request)


def _stages(**more: Any) -> list[DataStage]:
    """Return a broker of fast paths, one without, and two with an authorizer.

    One authorizer wants to be asked each time, of the other sessions remember what it granted.
    """
    requested, remembered = (
        Admission(AllowEach(is_remembered=is_remembered), NoQuotas())
        for is_remembered in (False, True)
    )
    return [
        DataStage(**more),
        DataStage(is_fast_path=False, **more),
        DataStage(admission=requested, **more),
        DataStage(admission=remembered, **more),
    ]


def _produced(acks: int) -> tuple[int, bytes]:
    """Return a plain produce of version 9."""
    record = Record(0, NOW_MS, TimestampType.CREATE_TIME, b"k", b"v")
    request = produce_request({"t": [(0, bytes(build_batch([record])))]}, acks=acks)
    return 9, message_codec("ProduceRequest", 9).encode(request)


@EXAMPLES
@example([_produced(-1), _produced(1)], LogConfig(), (1, 2))
@given(st.lists(produce_steps(), min_size=1, max_size=5), CONFIGS, st.sampled_from(((1,), (1, 2))))
def produces(steps: list[tuple[int, bytes]], config: LogConfig, isr: tuple[int, ...]) -> None:
    """Send the same produces to four brokers."""
    seen = []
    for stage in _stages(isr=isr):
        log = stage.manager.find(T0).log
        log.configure(config)
        for version, body in steps:
            if stage.client.is_closed:
                stage.connect()
            stage.send_raw("Produce", version, body)
        stage.pass_time(2000)
        partition = stage.manager.find(T0)
        state = (_log_state(log), partition.high_watermark, partition.in_sync)
        seen.append((stage.frames, stage.closed, stage.bad, stage.faults, state))
    assert seen[0] == seen[1] == seen[2] == seen[3]


@EXAMPLES
@given(
    st.integers(0, 11),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 90), st.booleans()), max_size=3),
    st.booleans(),
    st.sampled_from((0, 0, 70)),
)
def produce_answers(
    version: int, parts: list[tuple[int, int, bool]], has_leader: bool, throttle_ms: int
) -> None:
    """Write the same answer by hand and by the table."""
    made = []
    for index, code, has_message in parts:
        found = ProducedPartition(index, code, 7, -1 if version < 2 else 9, -1)
        if has_message and version >= 8:
            found = found._replace(record_errors=((0, "wrong"),), error_message="all wrong")
        made.append(found)
    endpoints = [NodeEndpoint(1, "here", 9)] if has_leader and version >= 10 else []
    throttle_ms = throttle_ms if version >= 1 else 0
    topics = [("t", made)]
    by_table = produce_bytes._encode_generally(version, topics, endpoints, throttle_ms)
    assert encode_produce_response(version, topics, endpoints, throttle_ms) == by_table


# Appending


@EXAMPLES
@given(st.lists(batches(), min_size=1, max_size=6), CONFIGS, st.integers(0, 3))
def appends(sent: list[bytes], config: LogConfig, epoch: int) -> None:
    """Append the same batches to two logs."""
    seen = []
    for is_fast_path in (True, False):
        log, _ = open_log(MemoryFiles(), config)
        log._may_append_fast = is_fast_path and log._may_append_fast
        results: list[Any] = []
        answer = LeaderRules.largest_time_fast if is_fast_path else lambda *_: None
        with _without(LeaderRules, "largest_time_fast", answer):
            if not is_fast_path:
                log.configure(config)
                log._may_append_fast = False
            for batch in sent:
                try:
                    info = log.append_as_leader(memoryview(bytearray(batch)), epoch, NOW_MS)
                    results.append(info)
                except ApiError as error:
                    results.append((type(error), error.code, str(error)))
        seen.append((results, _log_state(log)))
    assert seen[0] == seen[1]


@st.composite
def of_coordinators(draw: st.DrawFn) -> bytes:
    """Draw what coordinators write: records in a transaction, or its end; perhaps damaged."""
    producer_id, epoch = draw(st.sampled_from((4, 4, 5))), draw(st.sampled_from((0, 0, 0, 1)))
    if draw(st.booleans()):
        batch = sent_by(producer_id, 0, producer_epoch=epoch, is_transactional=True)
    else:
        kind = draw(st.sampled_from((ControlType.ABORT, ControlType.COMMIT)))
        batch = end_of_transaction(producer_id, kind, epoch=epoch, by=draw(st.integers(0, 1)))
    return _changed(draw, bytes(batch))


@EXAMPLES
@example([bytes(end_of_transaction(4))], LogConfig(), 0)
@given(st.lists(of_coordinators(), min_size=1, max_size=8), CONFIGS, st.integers(0, 3))
def markers(written: list[bytes], config: LogConfig, epoch: int) -> None:
    """Append the same transactions and their ends to two logs."""
    seen = []
    for is_fast_path in (True, False):
        log, _ = open_log(MemoryFiles(), config)
        log._may_append_fast = is_fast_path and log._may_append_fast
        results: list[Any] = []
        for batch in written:
            try:
                data = memoryview(bytearray(batch))
                origin = AppendOrigin.COORDINATOR
                results.append(log.append_as_leader(data, epoch, NOW_MS, origin))
            except ApiError as error:
                results.append((type(error), error.code, str(error)))
        aborted = [segment.aborted for segment in log.segments]
        seen.append((results, _log_state(log), aborted, log.producers.first_unstable_offset(9)))
    assert seen[0] == seen[1]


@EXAMPLES
@given(
    st.sampled_from([codec for codec in Codec if codec]),
    st.binary(max_size=300),
    st.sampled_from((1, 1, 400)),
    st.integers(0, 1 << 30),
    st.integers(0, 5),
)
def openings(codec: Codec, payload: bytes, times: int, place: int, kind: int) -> None:
    """Open the same compressed bytes, some of them damaged, cut or of two parts."""
    packed = bytearray(compress(codec, payload * times))
    if kind == 0:
        packed[place % len(packed)] ^= 1 << (place % 8)
    elif kind == 1:
        del packed[place % len(packed) :]
    elif kind == 2:
        packed += compress(codec, payload)
    data = memoryview(bytes(61) + bytes(packed))
    fast = open_fast(data, codec)
    opened, fault = checked_batch._decompress(data, codec, 1 << 20)
    if fast is not None:
        assert (bytes(fast[0]), fast[1]) == (opened, fault)
    elif kind > 2 and codec is not Codec.NONE:
        assert len(opened) == len(payload * times)
        pytest.fail("data as producers send it is off the fast path")


# What is written already


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Draw the bytes of a segment: epochs, producers, markers, perhaps damage."""
    out, offset, epoch = bytearray(), 0, 0
    for _ in range(draw(st.integers(1, 6))):
        epoch += draw(st.sampled_from((0, 0, 0, 1, 2)))
        if draw(st.integers(0, 5)) == 0:
            batch = memoryview(bytearray(end_of_transaction(4)))
        elif draw(st.integers(0, 5)) == 0:
            batch = memoryview(bytearray(sent_by(4, 0, 2, is_transactional=True)))
        else:
            batch = memoryview(bytearray(_batch(draw)))
        offset += draw(st.sampled_from((0, 0, 0, 3)))
        view = BatchView(batch)
        view.patch(base_offset=offset, leader_epoch=epoch)
        offset = view.next_offset
        out += batch
    return _changed(draw, bytes(out)) if draw(st.integers(0, 2)) == 0 else bytes(out)


@EXAMPLES
@given(logs())
def batch_runs(data: bytes) -> None:
    """Read the records of batches as columns, with compiled code where there is some."""
    reader = compiled_fields_here()
    with pytest.MonkeyPatch.context() as patch, suppress(EngineError):
        patch.setattr(FieldTier, "read", None if reader is None else staticmethod(reader))
        for batch in batches_in(memoryview(data), allow_partial_tail=True):
            assert isinstance(batch, BatchView)
            seen = record_run.read_runs(batch)
            patch.setattr(FieldTier, "read", None)
            assert seen == [run._replace(**_lists(run)) for run in record_run.read_runs(batch)]
            patch.setattr(FieldTier, "read", None if reader is None else staticmethod(reader))


@EXAMPLES
@given(logs(), st.sampled_from((None, None, 1, 2)))
def dumped_rows(data: bytes, max_records: int | None) -> None:
    """Dump a segment as rows, by the run and record by record, up to the damage if there is any."""
    files = MemoryFiles()
    files.make_dir("/t-0")
    files.replace_file("/t-0/00000000000000000000.log", data)
    options = DumpOptions(filters=Filters(max_records=max_records))
    seen = []
    for is_fast_path in (True, False):
        dump = RowDump(files, options, headers_only=False)
        shown: list[Any] = []
        with pytest.MonkeyPatch.context() as patch:
            if not is_fast_path:
                patch.setattr(dump, "_dump_records_fast", lambda row, batch: None)
            try:
                for rows in dump.dump_rows(["/t-0/00000000000000000000.log"]):
                    shown += rows.iter_rows()
            except EngineError as error:
                shown.append(str(error))
        seen.append((shown, dump.problem_count))
    assert seen[0] == seen[1]


def _lists(run: record_run.RecordRun) -> dict[str, Any]:
    columns = run._asdict().items()
    return {name: list(column) for name, column in columns if isinstance(column, tuple)}


@EXAMPLES
@given(logs(), st.sampled_from((0, 0, 2)), st.sampled_from((1 << 20, 300)))
def replicas(data: bytes, end_offset: int, segment_bytes: int) -> None:
    """Cut the same answer of a leader into chunks."""
    seen = []
    for take in (replica_chunks._parse_fast, lambda *_: ([], 0)):
        with _without(replica_chunks, "_parse_fast", take):
            try:
                seen.append(
                    replica_chunks.split_replica_batches(
                        memoryview(data), log_end_offset=end_offset, segment_bytes=segment_bytes
                    )
                )
            except EngineError as error:
                seen.append([(type(error), str(error))])  # type: ignore[list-item]
    assert seen[0] == seen[1]


@EXAMPLES
@given(
    st.lists(st.tuples(batches(), st.sampled_from((0, 0, 0, 2, -1)), st.sampled_from((0, 0, 1)))),
    CONFIGS,
)
def followed(sent: list[tuple[bytes, int, int]], config: LogConfig) -> None:
    """Append what a leader may send, one answer after the other, to two logs."""
    seen = []
    for is_fast_path in (True, False):
        log, _ = open_log(MemoryFiles(), config)
        fast = LocalLog.append_as_follower_fast if is_fast_path else lambda *_: None
        results: list[Any] = []
        with _without(LocalLog, "append_as_follower_fast", fast):
            for batch, gap, epoch in sent:
                data = memoryview(bytearray(batch))
                with suppress(EngineError, ValueError, struct.error):
                    place = max(0, log.log_end_offset + gap)
                    BatchView(data).patch(base_offset=place, leader_epoch=epoch)
                try:
                    results.append(log.append_as_follower(data, NOW_MS))
                except (EngineError, AssertionError) as error:
                    results.append((type(error), str(error)))
        seen.append((results, _log_state(log)))
    assert seen[0] == seen[1]


def _log_of(data: bytes, files: MemoryFiles) -> tuple[LocalLog, LoadReport]:
    log, report = open_log(files, LogConfig())
    log.active_segment.file.append((data,))
    return log, report


@EXAMPLES
@given(logs())
def replays(data: bytes) -> None:
    """Replay the same segment after a crash."""
    seen = []
    for see in (SegmentReplay._add_fast, lambda *_: False):
        files = MemoryFiles()
        log, _ = _log_of(data, files)
        epochs, producers = EpochStore(files, DIR, ()), ProducerState()
        replay = SegmentReplay(log.active_segment, epochs, producers)
        failure = None
        with _without(SegmentReplay, "_add_fast", see):
            try:
                replay.replay(100)
            except SegmentOffsetOverflow as error:
                failure = str(error)
        seen.append(
            (failure, replay.good_bytes, replay.next_offset, replay.aborted, epochs.entries,
             producers.to_entries(), vars_of(replay.builder))
        )  # fmt: skip
    assert seen[0] == seen[1]


def vars_of(thing: Any) -> dict[str, Any]:
    """Return the fields of an object, as far as they are plain values."""
    names = getattr(thing, "__slots__", None) or vars(thing)
    return {
        name: repr(getattr(thing, name))
        for name in names
        if " at 0x" not in repr(getattr(thing, name))
    }


@EXAMPLES
@given(logs())
def verifications(data: bytes) -> None:
    """Verify the same partition offline."""
    seen = []
    for take in (FastBatches.take, lambda *_: False):
        files = MemoryFiles()
        log, _ = _log_of(data, files)
        log.close_files()
        with _without(FastBatches, "take", take), suppress(EngineError):
            found = read_log_dir(files, DIR.rsplit("/", 1)[0])
            report = verify_partition(files, found.partitions[0], found.state, VerifyOptions())
            seen.append(repr(report))
    assert len(seen) == 2
    assert seen[0] == seen[1]


# Fetch


@st.composite
def fetch_steps(draw: st.DrawFn) -> tuple[str, Any]:
    """Draw something that happens to a partition and its readers."""
    kinds = ("append", "fetch", "fetch", "open", "go on", "go on", "wait", "follow")
    kind = draw(st.sampled_from(kinds))
    if kind == "append":
        return kind, _batch(draw)
    if kind == "wait":
        return kind, draw(st.sampled_from((10, 600)))
    if kind == "follow":
        return kind, draw(st.integers(0, 8))
    more = {
        "max_wait_ms": draw(st.sampled_from((0, 300))),
        "min_bytes": draw(st.sampled_from((1, 1, 200))),
        "max_bytes": draw(st.sampled_from((1 << 20, 1 << 20, 100))),
        "isolation_level": draw(st.sampled_from((0, 1))),
    }
    behind = draw(st.sampled_from((0, 0, 0, 1, 5, -1)))
    if kind == "open":
        return kind, (17, behind, 0, more | {"max_wait_ms": 0})
    epoch = draw(st.sampled_from((-1, -1, 0)))
    return kind, (draw(st.sampled_from((4, 10, 11, 12, 17, 17))), behind, epoch, more)


_NOW: dict[str, Any] = {
    "max_wait_ms": 0,
    "min_bytes": 1,
    "max_bytes": 1 << 20,
    "isolation_level": 0,
}
_LATER = _NOW | {"max_wait_ms": 300}


@EXAMPLES
@example(
    first=[bytes(sent_by(4, 0))],
    steps=[("open", (17, 0, 0, _NOW)), ("go on", (17, 0, 0, _NOW)), ("go on", (17, 0, 0, _LATER))],
    config=LogConfig(),
    isr=(1,),
)
@given(
    st.lists(batches(), min_size=1, max_size=3),
    st.lists(fetch_steps(), min_size=2, max_size=10),
    st.sampled_from((LogConfig(), LogConfig(segment_bytes=400, index_interval_bytes=100))),
    st.sampled_from(((1,), (1,), (1, 2))),
)
def fetches(
    first: list[bytes], steps: list[tuple[str, Any]], config: LogConfig, isr: tuple[int, ...]
) -> None:
    """Let the same things happen to three brokers."""
    steps = [("append", batch) for batch in first] + steps
    seen = []
    for stage in _stages(isr=isr):
        stage.manager.find(T0).log.configure(config)
        ongoing = [0, 0]
        for kind, what in steps:
            if kind == "append":
                partition = stage.manager.find(T0)
                with suppress(ApiError):
                    info = partition.append(memoryview(bytearray(what)), 1)
                    stage.manager.perform(info.effects)
            elif kind == "wait":
                stage.pass_time(what)
            elif kind == "follow":
                if len(isr) > 1:
                    stage.follow(min(what, stage.manager.find(T0).log.log_end_offset))
            else:
                _fetch(stage, kind, what, ongoing)
        stage.pass_time(1000)
        seen.append((stage.frames, stage.closed, stage.bad, stage.faults))
    assert seen[0] == seen[1] == seen[2] == seen[3]


def _fetch(stage: DataStage, kind: str, what: Any, ongoing: list[int]) -> None:
    """Send a fetch without a session or for a new one, or the next of the last session."""
    version, behind, epoch, more = what
    offset = max(stage.manager.find(T0).log.log_end_offset - behind, 0)
    if kind == "go on" and ongoing[0]:
        ongoing[1] += 1
        more = {**more, "session_id": ongoing[0], "session_epoch": ongoing[1]}
        request = fetch_request(17, {0: offset} if behind else {}, **more)
        version = 17
    else:
        if version >= 7:
            more = {**more, "session_epoch": epoch}
        request = fetch_request(version, {0: offset}, **more)
    before = len(stage.frames)
    body = message_codec("FetchRequest", version).encode(request)
    stage.send_raw("Fetch", version, body)
    if kind == "open" and len(stage.frames) > before:
        # Behind correlation id, tags, throttle time and error.
        ongoing[:] = [int.from_bytes(stage.frames[-1][11:15]), 0]


# The table


# Producing


CONTENTS = st.sampled_from(
    (b"", b"v", b"v" * 60, b"w" * 70, b"x" * 130, b"y" * 3_000, b"z" * 9_000)
)


@EXAMPLES
@example([[b"v"] * 9_000], False, None, (), 1 << 20, None, 0)
@example([[b"v" * 3] * 200, [b"w"] * 50], True, None, (), 500, 0, 0)
@given(
    st.lists(st.lists(CONTENTS, max_size=90), max_size=4),
    st.booleans(),
    st.sampled_from((None, b"", b"key")),
    st.sampled_from(((), (("h", b"v"),), (("h", None), ("i", b"x" * 200)))),
    st.sampled_from((0, 300, 5_000, 1 << 20)),
    st.sampled_from((None, 0, 1)),
    st.sampled_from((0, 1, 5_000)),
)
def outgoing(
    chunks: list[list[bytes]],
    has_keys: bool,
    key: bytes | None,
    headers: tuple[tuple[str, bytes | None], ...],
    batch_bytes: int,
    partition: int | None,
    between_ms: int,
) -> None:
    """Produce the same records one by one and at once: the same batches reach each partition."""
    seen = []
    for is_fast_path in (True, False):
        log = ProduceLog()
        clock = cast(Any, log.clock)
        clock.wall_ms = lambda clock=clock: NOW_MS + clock.now_ms * between_ms
        options = ProducerOptions(batch_bytes=batch_bytes, linger_ms=1 << 40)
        producer = Producer(log.client(), options)
        first = 1
        for values in chunks:
            # Waiting for responses takes time here, and is not the same in both.
            clock.now_ms = first
            places = range(first, first + len(values))
            keys = [b"%d" % (place % 7) for place in places] if has_keys else None
            if is_fast_path:
                lines = OutgoingValues("t", values, keys, key, headers, partition)
                producer.add_fast(lines, places)
            else:
                stamp_ms = clock.wall_ms()
                for place, value in zip(places, values, strict=True):
                    own = key if keys is None else keys[place - first]
                    record = OutgoingRecord("t", own, value, headers, stamp_ms, partition)
                    producer.add(record, place)
            first += len(values)
        results = producer.flush()
        assert not [result.error for result in results if result.error]
        batches_seen: dict[TopicPartition, list[bytes]] = {}
        for of_partition, batch in log.batches:
            batches_seen.setdefault(of_partition, []).append(bytes(batch._buffer))
        places_seen = sorted(place for r in results for place in r.batch.places)
        seen.append((batches_seen, places_seen))
    assert seen[0] == seen[1]


# The cleaner


@EXAMPLES
@given(written_logs)
def cleanings(batches: list[Written]) -> None:
    """Clean the same log by where its records lie, and by its records."""
    images = []
    for code, answer in (
        (compiled_cleaner_here(), None),
        (None, None),
        (None, lambda _batch, _data: None),
    ):
        story = Story()
        story.write(batches)
        story.log.roll(NOW_MS)
        with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
            patch.setattr(CleanerTier, "code", code)
            for owner in (batch_filter, segment_cleaner) if answer else ():
                stack.enter_context(_without(owner, "fast_spans", answer))
            clean(story.log, story.files)
        images.append((batches_of(story.log), image(story.files)))
    assert images[0] == images[1] == images[2]


class Row(NamedTuple):
    """A row: the files and names of both ways, and the function of this file."""

    fast: tuple[tuple[str, str], ...]
    other: tuple[tuple[str, str], ...]
    test: str


def _names(cell: str) -> tuple[tuple[str, str], ...]:
    path, *names = re.findall(r"`([^`]+)`", cell)
    return tuple((path, name) for name in names)


def rows() -> list[Row]:
    """Read the table."""
    found = []
    for line in PAGE.read_text().splitlines():
        if line.startswith("| `engine/"):
            fast, other, _, _, test = (cell.strip() for cell in line.strip("|").split(" | "))
            found.append(Row(_names(fast), _names(other), test.strip("` ")))
    return found


PROPERTIES: dict[str, Callable[[], None]] = {
    function.__name__: function
    for function in (
        produces, produce_answers, appends, openings, batch_runs, dumped_rows, replicas, replays,
        followed, verifications, fetches, outgoing, cleanings, replica_requests,
        replica_responses, follower_fetches, remote_fetch_cycles, commits, commit_requests,
        loaded_offsets, markers, own_records,
    )
}  # fmt: skip


@contextmanager
def noted_calls(codes: set[CodeType]) -> Iterator[None]:
    """Have all code that is called within noted; from CPython 3.12 on at the first call alone."""
    if sys.version_info < (3, 12):

        def note(frame: FrameType, event: str, _argument: object) -> None:
            if event == "call":
                codes.add(frame.f_code)

        before = sys.getprofile()
        sys.setprofile(note)
        try:
            yield
        finally:
            sys.setprofile(before)
        return

    def first_call(code: CodeType, _offset: int) -> object:
        codes.add(code)
        return monitoring.DISABLE

    monitoring = sys.monitoring
    tool, start = monitoring.PROFILER_ID, monitoring.events.PY_START
    monitoring.use_tool_id(tool, "called functions")
    monitoring.register_callback(tool, start, first_call)
    monitoring.restart_events()
    monitoring.set_events(tool, start)
    try:
        yield
    finally:
        monitoring.set_events(tool, 0)
        monitoring.free_tool_id(tool)


@functools.cache
def called_by(test: str) -> frozenset[tuple[str, str]]:
    """Run a property; returns the functions of the engine that ran, each (file, name)."""
    for row in rows():
        for path, name in (*row.fast, *row.other):
            module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
            function = functools.reduce(getattr, name.split("."), module)
            # What is remembered does not run again.
            getattr(function, "cache_clear", lambda: None)()
    codes: set[CodeType] = set()
    with noted_calls(codes):
        PROPERTIES[test]()
    return frozenset(
        (str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname)
        for code in codes
        if code.co_filename.startswith(f"{ROOT}/engine/")
    )


#: The rows of one property run in one process of the test run, which runs that property once.
_ROWS = [
    pytest.param(row, id=row.fast[0][1], marks=pytest.mark.xdist_group(row.test)) for row in rows()
]


@pytest.mark.parametrize("row", _ROWS)
def test_both_ways_of_a_pair_agree(row: Row) -> None:
    called = called_by(row.test)
    for name in (*row.fast, *row.other):
        assert name in called, f"{row.test} has not run {name}"


@ONE_PROCESS
def test_everything_that_is_called_fast_has_a_row() -> None:
    page = PAGE.read_text()
    named = {name for row in rows() for name in row.fast}
    files = {path for path, _ in named}
    missing = []
    for path in sorted((ROOT / "engine").rglob("*.py")):
        file = str(path.relative_to(ROOT))
        if "fast" in path.stem and file not in files:
            missing.append(file)
        for node in nodes_of(path):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            if "fast" not in node.name.lower():
                continue
            has_row = (
                any(file == at and node.name in name.split(".") for at, name in named)
                or f"`{file}` `{node.name}`" in page
            )
            if not has_row:
                missing.append(f"{file} {node.name}")
    assert not missing


@ONE_PROCESS
def test_only_one_word_is_used_for_shortcuts() -> None:
    banned = re.compile(
        r"\b(\w*_lane|lane|ordinary_\w+|\w+_ordinary|\w+_at_once|_careful\w*|\w+_quickly|quick_\w+|_odd_\w+|\w+_plainly)\b"
    )
    allowed = {"walk_plainly"}
    for path in sorted((ROOT / "engine").rglob("*.py")):
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                assert node.name in allowed or not banned.fullmatch(node.name), (path, node.name)
