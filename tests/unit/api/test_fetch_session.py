"""Fetch sessions: news, order, epochs, and who makes room for whom."""

from __future__ import annotations

import pytest

from engine.api.fetch_session import (
    FetchContext,
    FetchedPartitions,
    FetchSessionCache,
    SessionPartition,
    SessionResponse,
)
from engine.host.memory import SeededEntropy
from engine.limits import FETCH_SESSION_EVICTION_MS
from engine.model import TopicPartition
from engine.replication.metadata_cache import MetadataCache, PartitionMetadata
from engine.wire.fetch_bytes import FetchedPartition, FetchRequest, RequestedPartition

TOPIC_ID = bytes(range(16))
OLD_MS = FETCH_SESSION_EVICTION_MS + 1


def request(
    offsets: dict[int, int] | None = None,
    *,
    session: int = 0,
    epoch: int = 0,
    topic: str | bytes = "t",
    forget: tuple[int, ...] = (),
    replica_id: int = -1,
) -> FetchRequest:
    requested = [
        RequestedPartition(i, -1, offset, -1, -1, 100) for i, offset in (offsets or {}).items()
    ]
    topics = [(topic, requested)] if requested else []
    forgotten = [(topic, list(forget))] if forget else []
    return FetchRequest(replica_id, 0, 1, 100, 0, session, epoch, topics, forgotten)


def found(partition: SessionPartition, **more: object) -> FetchedPartition:
    return FetchedPartition(partition.index, 0, 5, 5, 0)._replace(**more)  # type: ignore[arg-type]


class Stage:
    """A cache, and answers as a log would give them."""

    def __init__(self, slots: int = 3) -> None:
        self.metadata = MetadataCache(1, "cluster")
        self.cache = FetchSessionCache(self.metadata, SeededEntropy(1), slots=slots)
        self.now_ms = 0

    def ask(self, requested: FetchRequest, version: int = 12) -> FetchContext:
        return self.cache.open_context(requested, version, self.now_ms)

    def open(self, count: int = 1, *, replica_id: int = -1, version: int = 12) -> int:
        """Start a session of some partitions; return its id."""
        requested = request(dict.fromkeys(range(count), 0), replica_id=replica_id)
        return answered(self.ask(requested, version)).session_id

    def has(self, session: int, epoch: int = 1) -> bool:
        """Return whether a session is there, without using it."""
        return answered(self.ask(request(session=session, epoch=epoch + 1))).error_code == 71


def answered(context: FetchContext, **of_first: object) -> SessionResponse:
    """Answer all partitions, the first one with something else."""
    answers: FetchedPartitions = [(partition, found(partition)) for partition in context.partitions]
    if of_first:
        first = answers[0][0]
        answers[0] = (first, found(first, **of_first))
    return context.answer(answers)


def told(answer: SessionResponse) -> list[int]:
    return [partition.index for partition, _ in answer.partitions]


def order(context: FetchContext) -> list[int]:
    return [partition.index for partition in context.partitions]


@pytest.mark.parametrize(
    "news",
    [
        {"records": b"x"},
        {"high_watermark": 6},
        {"log_start_offset": 1},
        {"error_code": 6, "high_watermark": 5},
        {"diverging": (1, 2)},
    ],
)
def test_news_is_sent_and_nothing_else(news: dict[str, object]) -> None:
    stage = Stage()
    session = stage.open(3)
    quiet = stage.ask(request(session=session, epoch=1))
    assert [] == told(answered(quiet))
    assert [0] == told(answered(stage.ask(request(session=session, epoch=2)), **news))


def test_the_end_of_an_error_is_news() -> None:
    stage = Stage()
    session = stage.open(2)
    answered(stage.ask(request(session=session, epoch=1)), error_code=6)
    assert [0] == told(answered(stage.ask(request(session=session, epoch=2))))
    assert [] == told(answered(stage.ask(request(session=session, epoch=3))))


def test_partitions_with_bytes_go_to_the_back() -> None:
    stage = Stage()
    session = stage.open(3)
    first = stage.ask(request(session=session, epoch=1))
    answered(first, records=b"x")
    assert [1, 2, 0] == order(stage.ask(request(session=session, epoch=2)))


def test_partitions_are_added_changed_and_forgotten() -> None:
    stage = Stage()
    session = stage.open(2)
    context = stage.ask(request({1: 77, 4: 0}, session=session, epoch=1, forget=(0, 9)))
    assert [(1, 77), (4, 0)] == [(p.key[1], p.spec.fetch_offset) for p in context.partitions]
    assert [4] == told(answered(context))


def test_a_session_without_partitions_ends() -> None:
    stage = Stage()
    session = stage.open(1)
    gone = answered(stage.ask(request(session=session, epoch=1, forget=(0,))))
    assert (0, 0) == (gone.session_id, gone.error_code)
    assert 0 == len(stage.cache)


def test_the_final_epoch_ends_a_session_and_a_first_one_replaces_it() -> None:
    stage = Stage()
    session = stage.open(1)
    assert 0 == answered(stage.ask(request({0: 0}, session=session, epoch=-1))).session_id
    assert 0 == len(stage.cache)
    session = stage.open(1)
    other = answered(stage.ask(request({0: 0}, session=session, epoch=0))).session_id
    assert other not in (0, session)
    assert 1 == len(stage.cache)


def test_an_answer_that_a_later_request_overtook_is_an_error() -> None:
    stage = Stage()
    session = stage.open(1)
    first = stage.ask(request(session=session, epoch=1))
    second = stage.ask(request(session=session, epoch=2))
    late = answered(first)
    assert (71, session, []) == (late.error_code, late.session_id, late.partitions)
    assert 0 == answered(second).error_code


def test_epochs_begin_again_after_the_largest() -> None:
    stage = Stage()
    session = stage.open(1)
    stage.cache._sessions[session].epoch = 0x7FFFFFFF
    assert 0 == answered(stage.ask(request(session=session, epoch=0x7FFFFFFF))).error_code
    assert 0 == answered(stage.ask(request(session=session, epoch=1))).error_code


def test_names_and_ids_do_not_mix() -> None:
    stage = Stage()
    session = stage.open(1, version=12)
    assert 106 == answered(stage.ask(request(session=session, epoch=1), version=13)).error_code


def test_the_name_of_a_topic_may_come_later_than_its_id() -> None:
    stage = Stage()
    session = answered(stage.ask(request({0: 0}, topic=TOPIC_ID), version=13)).session_id
    assert [None] == [
        p.topic_partition
        for p in stage.ask(request(session=session, epoch=1), version=13).partitions
    ]
    here = PartitionMetadata(1, 0, (1,), 0, (1,))
    stage.metadata.update(1, (), {TopicPartition("t", 0): here}, {"t": TOPIC_ID})
    assert [TopicPartition("t", 0)] == [
        p.topic_partition
        for p in stage.ask(request(session=session, epoch=2), version=13).partitions
    ]


def test_a_partition_named_twice_is_asked_once() -> None:
    context = Stage().ask(request({0: 0})._replace(topics=[("t", [requested(1), requested(2)])]))
    assert [2] == [partition.spec.fetch_offset for partition in context.partitions]


def requested(offset: int) -> RequestedPartition:
    return RequestedPartition(0, -1, offset, -1, -1, 100)


def test_a_full_cache_keeps_young_sessions() -> None:
    stage = Stage(slots=2)
    sessions = [stage.open(1), stage.open(1)]
    assert 0 == stage.open(50)
    assert all(stage.has(session) for session in sessions)


def test_a_session_unused_for_long_makes_room() -> None:
    stage = Stage(slots=2)
    unused, used = stage.open(9), stage.open(1)
    stage.now_ms = OLD_MS
    answered(stage.ask(request(session=used, epoch=1)))
    assert 0 != stage.open(1)
    assert (False, True) == (stage.has(unused), stage.has(used, 2))


def test_an_old_session_gives_way_to_a_larger_one_only() -> None:
    stage = Stage(slots=2)
    small, large = stage.open(2), stage.open(9)
    stage.now_ms = OLD_MS
    for session in (small, large):
        answered(stage.ask(request(session=session, epoch=1)))
    assert 0 == stage.open(1)
    assert 0 != stage.open(3)
    assert (False, True) == (stage.has(small, 2), stage.has(large, 2))


@pytest.mark.parametrize("replica_id", [0, 3])
def test_a_follower_pushes_out_young_consumers_but_no_follower(replica_id: int) -> None:
    stage = Stage(slots=2)
    consumer, follower = stage.open(9), stage.open(1, replica_id=2)
    assert 0 != stage.open(1, replica_id=replica_id)
    assert (False, True) == (stage.has(consumer), stage.has(follower))
    assert 0 == stage.open(50, replica_id=4)


def test_epoch_0_starts_a_session_even_in_the_place_of_another() -> None:
    stage = Stage()
    first = stage.open(2)
    again = answered(stage.ask(request({0: 0}, session=first, epoch=0)))
    assert (1, 0) == (len(again.partitions), again.error_code)
    assert again.session_id not in (0, first)
    assert 70 == answered(stage.ask(request(session=first, epoch=1))).error_code


def test_the_epoch_after_the_last_one_is_1() -> None:
    stage = Stage()
    session = stage.open(1)
    kept = stage.cache.find_ongoing(session, 1, uses_ids=False)
    assert kept is not None
    kept.epoch = (1 << 31) - 1
    assert 0 == answered(stage.ask(request(session=session, epoch=(1 << 31) - 1))).error_code
    assert 1 == kept.epoch
