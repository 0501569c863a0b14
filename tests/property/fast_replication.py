"""The fast paths of replication between processes, and those beside them, on the same inputs.

Run by the table of docs/internals/fast_paths.md, see `test_fast.py`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.api.fast_follower_fetch import FastFollowerFetch
from engine.errors import ApiError, EngineError
from engine.log.log_messages import LogStartReason
from engine.model import TopicPartition
from engine.replication.following.fast_fetch_cycle import FastFetchCycle
from engine.replication.partition import Partition
from engine.replication.partition_types import FetchSpec, PartitionState
from engine.replication.replica_manager import ReplicaManager
from engine.wire.codec import message_codec
from engine.wire.fast_fetch_bytes import TAGS_AFTER_RECORDS
from engine.wire.fast_replica_bytes import (
    FETCH_KEY,
    ReplicaFetch,
    ReplicaLimits,
    encode_replica_fetch_fast,
    encode_replica_response_head,
    read_replica_fetch_fast,
    read_replica_response_fast,
)
from engine.wire.fetch_bytes import (
    FetchedPartition,
    FetchResponse,
    decode_fetch_request,
    encode_fetch_response,
)
from engine.wire.headers import encode_request_header, read_request_header, response_header_bytes
from engine.wire.structs import message_class
from tests.unit.api.data_stage import TOPIC_ID, DataStage, produce_request
from tests.unit.api.follower import Follower
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.log.writing import sent

EXAMPLES = settings(max_examples=60, deadline=None, derandomize=True)
FEW = settings(max_examples=12, deadline=None, derandomize=True)
_PARTS = [TopicPartition("t", 0), TopicPartition("t", 1)]


# Bytes


_INT = st.integers(-(1 << 31), (1 << 31) - 1)
_OFFSET = st.sampled_from((-1, 0, 7, 1 << 40))
_LIMITS = st.builds(
    ReplicaLimits, st.integers(15, 17), _INT, _INT, _INT, _INT, st.integers(0, 9), _OFFSET
)
_REQUESTS = st.builds(
    ReplicaFetch,
    _INT, _LIMITS, _INT, st.binary(min_size=16, max_size=16), _INT, _INT, _OFFSET, _INT, _OFFSET,
    _INT,
)  # fmt: skip
_FLIPS = st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 7)), max_size=2)


def _flipped(frame: bytes, flips: list[tuple[int, int]], cut: int) -> bytes:
    changed = bytearray(frame)
    for place, bit in flips:
        changed[place % len(changed)] ^= 1 << bit
    return bytes(changed[: len(changed) - cut])


@EXAMPLES
@given(_REQUESTS, st.sampled_from(("broker-1-fetcher-0", "", "b" * 255)), _FLIPS, st.integers(0, 1))
def replica_requests(
    request: ReplicaFetch, client_id: str, flips: list[tuple[int, int]], cut: int
) -> None:
    """Write and read a follower's request, and damage of it."""
    limits = request.limits
    made = message_class("FetchRequest")
    message = made(
        max_wait_ms=limits.max_wait_ms,
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        session_id=limits.session_id,
        session_epoch=request.session_epoch,
        replica_state=made.ReplicaState(
            replica_id=limits.replica_id, replica_epoch=limits.replica_epoch
        ),
        topics=[
            made.FetchTopic(
                topic_id=request.topic_id,
                partitions=[
                    made.FetchPartition(
                        partition=request.partition,
                        current_leader_epoch=request.current_leader_epoch,
                        fetch_offset=request.fetch_offset,
                        last_fetched_epoch=request.last_fetched_epoch,
                        log_start_offset=request.log_start_offset,
                        partition_max_bytes=request.partition_max_bytes,
                    )
                ],
            )
        ],
    )
    head = encode_request_header(FETCH_KEY, limits.version, request.correlation_id, client_id)
    frame = head + message_codec("FetchRequest", limits.version).encode(message)
    assert frame == encode_replica_fetch_fast(client_id.encode(), request)
    assert request == read_replica_fetch_fast(memoryview(frame))
    changed = memoryview(_flipped(frame, flips, cut))
    fast = read_replica_fetch_fast(changed)
    if fast is not None:
        key, version, correlation_id, _, position = read_request_header(changed)
        requested = decode_fetch_request(changed[position:], version)
        ((topic, (partition,)),) = requested.topics
        assert (FETCH_KEY, fast.correlation_id, fast.topic_id) == (key, correlation_id, topic)
        assert fast.limits == (
            version, requested.max_wait_ms, requested.min_bytes, requested.max_bytes,
            requested.session_id, requested.replica_id, requested.replica_epoch,
        )  # fmt: skip
        assert (fast.session_epoch, *fast[4:]) == (requested.session_epoch, *partition)
        assert (0, [], "") == (requested.isolation_level, requested.forgotten, requested.rack_id)


@EXAMPLES
@given(
    st.integers(15, 17),
    st.tuples(_INT, _INT, _INT),
    st.tuples(_OFFSET, _OFFSET, _OFFSET),
    st.sampled_from((1, 126, 127, 128, 16_383, 16_384, 70_000)),
    _FLIPS,
    st.integers(0, 1),
)
def replica_responses(
    version: int,
    numbers: tuple[int, int, int],
    offsets: tuple[int, int, int],
    size: int,
    flips: list[tuple[int, int]],
    cut: int,
) -> None:
    """Write and read a leader's response, and damage of it."""
    correlation_id, session_id, index = numbers
    records = b"r" * size
    part = FetchedPartition(index, 0, *offsets, records)
    parts = encode_fetch_response(version, FetchResponse([(TOPIC_ID, [part])], 0, session_id))
    frame = response_header_bytes(FETCH_KEY, version, correlation_id) + b"".join(parts)  # type: ignore[arg-type]
    head = encode_replica_response_head(
        correlation_id, session_id, TOPIC_ID, (index, *offsets), size
    )
    assert frame == head + records + TAGS_AFTER_RECORDS
    watermark, _, start = offsets
    told = (session_id, TOPIC_ID, index, watermark, start, records)
    assert told == read_replica_response_fast(memoryview(frame))
    changed = memoryview(_flipped(frame, flips, cut))
    fast = read_replica_response_fast(changed)
    if fast is not None:
        whole = message_codec("FetchResponse", version).decode(changed[5:])
        ((topic,), error) = whole.responses, whole.error_code
        (row,) = topic.partitions
        assert (0, 0, 0, -1) == (error, whole.throttle_time_ms, row.error_code,
                                 row.preferred_read_replica)  # fmt: skip
        assert fast == (
            whole.session_id, topic.topic_id, row.partition_index, row.high_watermark,
            row.log_start_offset, bytes(row.records),
        )  # fmt: skip
        assert -1 == row.diverging_epoch.epoch


# The leader's side


_INDEX = st.sampled_from((0, 0, 0, 1))
_ASKS = ("fast",) * 6 + ("nothing", "all", "little", "rack", "forget", "wrong")
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), _INDEX, st.integers(1, 60)),
        st.tuples(st.just("produce"), _INDEX, st.integers(1, 3)),
        st.tuples(st.just("fetch"), st.just(0), st.sampled_from(_ASKS)),
        st.tuples(st.just("fetch"), st.just(0), st.just("fast")),
        st.tuples(st.just("other"), _INDEX, st.integers(0, 3)),
        st.tuples(st.sampled_from(("wait", "elect", "delete")), _INDEX, st.just(0)),
        st.tuples(st.sampled_from(("expire", "leave", "return")), _INDEX, st.booleans()),
    ),
    min_size=6,
    max_size=24,
)
_BEGIN = [("append", 0, 1), ("append", 1, 1)] + [("fetch", 0, "fast")] * 3
_ROUND = [("produce", 0, 1), ("fetch", 0, "fast"), ("other", 0, 0)]


def _perform(stage: DataStage, follower: Follower, step: tuple[str, int, Any]) -> None:
    kind, index, what = step
    manager, key = stage.manager, _PARTS[index]
    match kind:
        case "append":
            info = manager.find(key).append(memoryview(bytearray(sent(what))), 1)
            manager.perform(info.effects)
        case "produce":
            body = message_codec("ProduceRequest", 9).encode(
                produce_request({"t": [(index, sent(what))]}, acks=-1, timeout_ms=400)
            )
            stage.send_raw("Produce", 9, body)
        case "fetch":
            follower.ask(what)
        case "other":
            _follow(manager, key, what)
        case "wait":
            stage.pass_time(600)
        case "elect":
            here = manager.find(key)
            state = PartitionState(1, here.leader_epoch + 1, (1, 2, 3), 0, (1, 2, 3))
            manager.perform(here.become_leader(state).effects)
        case "expire" | "leave" | "return":
            # What nobody is told of shows when all is looked at: at a deadline, or soon after it.
            stage.pass_time(600)
            if what:
                follower.ask("nothing")
            _change_unseen(manager.find(key), kind)
            if what:
                stage.pass_time(600)
            else:
                follower.ask("nothing")
        case _:
            offset = manager.find(key).high_watermark
            manager.delete_records({key: offset}, 0)
    stage.timers.run_until_idle()


def _change_unseen(here: Partition, kind: str) -> None:
    """Raise the start of a log as retention does, or take the follower off the replicas or back."""
    if kind == "expire":
        watermark = here.high_watermark
        here.log.maybe_increment_log_start_offset(
            watermark, watermark, LogStartReason.SEGMENT_DELETION
        )
        return
    replicas = (1, 3) if kind == "leave" else (1, 2, 3)
    epochs = here.leader_epoch, here.partition_epoch + 1
    here.become_leader(PartitionState(1, epochs[0], (1, 3), epochs[1], replicas))


def _follow(manager: ReplicaManager, key: TopicPartition, behind: int) -> None:
    """Let broker 3 be so far behind."""
    here = manager.find(key)
    spec = FetchSpec(max(0, here.log.log_end_offset - behind), 1, log_start_offset=0)
    manager.perform(here.record_follower_fetch(3, spec, here.log.log_end_offset))


def _seen_of(stage: DataStage, follower: Follower) -> Any:
    state = []
    for key in _PARTS:
        here = stage.manager.find(key)
        log = here.log
        ends = {id_: progress.log_end_offset for id_, progress in here.followers.items()}
        state.append((log.read(log.log_start_offset, 1 << 20).read(), here.high_watermark, ends))
    return (
        follower.frames, stage.frames, stage.faults, stage.bad, stage.closed, stage.proposed,
        sessions_of(stage), state,
    )  # fmt: skip


def sessions_of(stage: DataStage) -> Any:
    """Return the sessions of a broker with all that is known of them, but for the time."""
    return [
        (session.id, session.epoch, [
            (partition.key, partition.spec, partition.high_watermark, partition.log_start_offset)
            for partition in session.partitions.values()
        ])
        for session in stage.sessions._sessions.values()
    ]  # fmt: skip


@EXAMPLES
@example(steps=_ROUND * 4)
@example(steps=[*_ROUND, ("produce", 0, 1), ("produce", 0, 1), *_ROUND, ("produce", 1, 1)] * 2)
@example(steps=[*_ROUND, ("expire", 0, True), *_ROUND, ("leave", 1, True), ("return", 1, False)])
@example(steps=[("append", 0, 60)] * 20 + [("append", 0, 60), ("fetch", 0, "fast")] * 3)
@given(_STEPS)
def follower_fetches(steps: list[tuple[str, int, Any]]) -> None:
    """Let the same things happen to a leader whose sessions stand, and to one that looks at all."""
    seen = []
    for is_fast_path in (True, False):
        stage = DataStage((1, 2, 3), is_fast_path=is_fast_path)
        follower = Follower(stage)
        for step in [*_BEGIN, *steps]:
            with suppress(ApiError):
                _perform(stage, follower, step)
        stage.pass_time(1000)
        seen.append(_seen_of(stage, follower))
    assert seen[0] == seen[1]


# The follower's side


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("produce"), _INDEX, st.integers(1, 40)),
        st.tuples(st.just("produce"), _INDEX, st.just(1)),
        st.tuples(st.sampled_from(("wait", "bounce", "crash", "grow")), _INDEX, st.just(0)),
    ),
    min_size=4,
    max_size=10,
)


def _happen(cluster: MemoryCluster, event: tuple[str, int, int], codes: list[Any]) -> None:
    kind, index, count = event
    match kind:
        case "produce":
            key = _PARTS[index]
            requested = cluster.produce(cluster.stored(key).leader, count, key=key)
            cluster.pass_time(300)
            codes.append(requested.code())
        case "bounce":
            cluster.stop(3)
            cluster.start(3)
            cluster.pass_time(2000)
        case "crash":
            cluster.cut_power(2)
            cluster.pass_time(1000)
            cluster.start(2)
            cluster.pass_time(3000)
        case "grow":
            cluster.create_topic(f"u{len(codes)}")
            codes.append(None)
        case _:
            cluster.pass_time(700)


@FEW
@example(events=[("produce", 0, 1)] * 3 + [("produce", 1, 1), ("crash", 0, 0), ("produce", 0, 1)])
@given(EVENTS)
def remote_fetch_cycles(events: list[tuple[str, int, int]]) -> None:
    """Let the same happen to brokers of three processes, with fast fetch cycles and without."""
    seen = []
    fast = FastFetchCycle.read, FastFollowerFetch.answer
    for is_fast_path in (True, False):
        if not is_fast_path:
            FastFetchCycle.read = lambda *_: None  # type: ignore[method-assign]
            FastFollowerFetch.answer = lambda *_: None  # type: ignore[method-assign]
        try:
            seen.append(outcome_of(events, is_one_process=False))
        finally:
            FastFetchCycle.read, FastFollowerFetch.answer = fast  # type: ignore[method-assign]
    assert seen[0] == seen[1]


def outcome_of(events: list[tuple[str, int, int]], *, is_one_process: bool) -> Any:
    """Let events happen to three brokers; return what they answer and what they have then."""
    cluster = MemoryCluster(is_one_process=is_one_process, min_insync_replicas="2")
    cluster.create_topic(replicas=[(1, 2, 3), (2, 3, 1)])
    cluster.pass_time(2000)
    codes: list[Any] = []
    for event in events:
        with suppress(EngineError):
            _happen(cluster, event, codes)
    cluster.pass_time(5000)
    found = {
        (id_, key): (cluster.content(id_, key), cluster.ends(key)[id_])
        for id_ in (1, 2, 3)
        for key in _PARTS
    }
    assert len({content for (_, key), (content, _) in found.items() if key == _PARTS[0]}) == 1
    return codes, found, [sorted(cluster.stored(key).isr) for key in _PARTS]
