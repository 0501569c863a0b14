"""The fast path of a produce answers and appends exactly as the other does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from engine.api.produce import ADMIN_CLIENT_ID
from engine.model import TopicPartition
from engine.records.codec import Codec
from engine.replication.isr import InSyncSet
from engine.wire.codec import message_codec
from engine.wire.fast_produce_bytes import PRODUCE_KEY
from engine.wire.headers import encode_request_header
from engine.wire.structs import message_class
from tests.unit.api.data_stage import produce_request
from tests.unit.broker.memory_broker import MemoryBroker
from tests.unit.broker.test_broker import create_topic
from tests.unit.log.writing import sent, sent_by

T0 = TopicPartition("t", 0)


def damaged() -> memoryview:
    """Return a batch whose checksum is wrong."""
    records = sent(3)
    records[-1] ^= 1
    return records


def at_offset(base_offset: int) -> memoryview:
    """Return a batch that has an offset already."""
    records = sent(2)
    records[:8] = base_offset.to_bytes(8)
    return records


#: Batches one after the other to partition 0 of t.
SENT: dict[str, Callable[[], list[Any]]] = {
    "one record": lambda: [sent(1)],
    "several batches": lambda: [sent(3), sent(1), sent(7)],
    **{
        codec.label: (lambda codec=codec: [sent(5, codec=codec)])  # type: ignore[misc]
        for codec in Codec
    },
    "a large batch": lambda: [sent(40, value=bytes(1000))],
    "a wrong checksum": lambda: [sent(2), damaged(), sent(1)],
    "sequences in order, repeated, with a gap": lambda: [
        sent_by(5, 0, 2),
        sent_by(5, 2, 1),
        sent_by(5, 2, 1),
        sent_by(5, 9, 1),
    ],
    "in a transaction without its id": lambda: [sent_by(5, 0, is_transactional=True)],
    "an old time": lambda: [sent(1, at_ms=1)],
    "an offset of its own": lambda: [at_offset(77)],
    "two batches at once": lambda: [memoryview(bytearray(bytes(sent(1)) + bytes(sent(2))))],
    "nothing": lambda: [memoryview(b"")],
    "half a batch": lambda: [sent(3)[:70]],
    "null": lambda: [None],
}


@contextmanager
def broker(*, has_fast_path: bool) -> Iterator[MemoryBroker]:
    """Run a broker with topic t of one partition, with the fast path or without."""
    stage = MemoryBroker()
    stage.start()
    if not has_fast_path:
        stage.broker.table.serve_fast.clear()
    create_topic(stage.connect(), "t")
    yield stage
    stage.stop()


def frames_of(
    records: Any, *, version: int = 9, acks: int = 1, client_id: str | None = "c", topic: str = "t"
) -> bytes:
    """Return a request frame for one partition."""
    content = None if records is None else bytes(records)
    request = produce_request({topic: [(0, content)]}, acks=acks)
    head = encode_request_header(0, version, 77, client_id)
    return head + message_codec("ProduceRequest", version).encode(request)


def outcome(stage: MemoryBroker, frames: list[bytes]) -> tuple[list[bytes], bool, bytes]:
    """Return answers, whether the connection ended, and what the log has then."""
    client = stage.connect()
    for frame in frames:
        client.send(frame)
    partition = stage.broker.storage.replica_manager.find(T0)
    assert not stage.faults
    content = stage.files.read_bytes("/data/t-0/00000000000000000000.log")
    return client.frames, client.is_closed, content + bytes([partition.high_watermark])


@pytest.mark.parametrize("version", [3, 7, 8, 9, 10, 11])
@pytest.mark.parametrize("acks", [-1, 0, 1, 2])
@pytest.mark.parametrize("name", SENT)
def test_the_fast_path_answers_and_appends_as_the_other(name: str, acks: int, version: int) -> None:
    found = []
    for has_fast_path in (True, False):
        with broker(has_fast_path=has_fast_path) as stage:
            frames = [frames_of(one, version=version, acks=acks) for one in SENT[name]()]
            found.append(outcome(stage, frames))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "more",
    [
        {"client_id": None},
        {"client_id": ""},
        {"client_id": "é"},
        {"client_id": ADMIN_CLIENT_ID},
        {"topic": "unknown"},
        {"topic": "__consumer_offsets"},
        {"topic": "__consumer_offsets", "client_id": ADMIN_CLIENT_ID},
    ],
    ids=str,
)
def test_it_does_so_for_every_client_and_topic(more: dict[str, Any]) -> None:
    found = []
    for has_fast_path in (True, False):
        with broker(has_fast_path=has_fast_path) as stage:
            found.append(outcome(stage, [frames_of(sent(1), **more)]))
    assert found[0] == found[1]


def test_it_does_so_with_too_few_replicas_in_sync() -> None:
    found = []
    for has_fast_path in (True, False):
        with broker(has_fast_path=has_fast_path) as stage:
            stage.broker.storage.replica_manager.find(T0).in_sync = InSyncSet(())
            found.append(outcome(stage, [frames_of(sent(1), acks=-1), frames_of(sent(1), acks=1)]))
    assert found[0] == found[1]


@pytest.mark.parametrize("acks", [-1, 1])
def test_fast_requests_take_the_fast_path(acks: int) -> None:
    with broker(has_fast_path=True) as stage:
        refused: list[bytes] = []
        fast = stage.broker.table.serve_fast[PRODUCE_KEY]

        def watched(frame: memoryview, session: Any) -> Any:
            answer = fast(frame, session)
            if answer is None:
                refused.append(bytes(frame))
            return answer

        stage.broker.table.serve_fast[PRODUCE_KEY] = watched
        frames = [frames_of(sent(count), acks=acks) for count in (1, 3, 40)]
        answers, _, _ = outcome(stage, frames)
        assert 3 == len(answers)
        assert not refused


def test_a_waiting_reader_is_notified_of_records_that_the_fast_path_appends() -> None:
    with broker(has_fast_path=True) as stage:
        reader, writer = stage.connect(), stage.connect()
        request = _fetch("t")
        reader.send(encode_request_header(1, 11, 77, "r") + request)
        assert not reader.frames
        writer.send(frames_of(sent(1)))
        assert reader.frames


def _fetch(topic: str) -> bytes:
    codec = message_codec("FetchRequest", 11)
    made = message_class("FetchRequest")
    requested = made.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return codec.encode(
        made(
            max_wait_ms=5000,
            min_bytes=1,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=[made.FetchTopic(topic=topic, partitions=[requested])],
        )
    )
