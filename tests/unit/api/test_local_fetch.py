"""A follower of the same process asks in values: the answers are those of a follower elsewhere."""

from __future__ import annotations

import pytest

from engine.host.promise import Promise
from engine.kafka_errors import (
    FENCED_LEADER_EPOCH,
    INCONSISTENT_TOPIC_ID,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.model import TopicPartition
from engine.replication.follower_session import LocalSession
from engine.replication.following.local_fetch import LocalFetch, LocalFetched
from engine.replication.partition_types import EpochEnd, FetchParams, FetchSpec
from engine.replication.watermark import Isolation
from tests.unit.broker.memory_cluster import T0, MemoryCluster

PARAMS = FetchParams(2, 0, 1, 10 << 20, Isolation.LOG_END)


@pytest.fixture
def cluster() -> MemoryCluster:
    cluster = MemoryCluster(is_one_process=True)
    cluster.create_topic(replicas=[(1, 2)])
    cluster.pass_time(2000)
    assert 0 == cluster.produce(1, 3).code()
    return cluster


def ignore(*_given: object) -> None:
    """Take nothing."""


def requested(
    cluster: MemoryCluster,
    spec: FetchSpec,
    key: TopicPartition = T0,
    *,
    broker_id: int = 1,
    params: FetchParams = PARAMS,
    topic_ids: dict[str, bytes] | None = None,
    session: LocalSession | None = None,
) -> Promise[LocalFetched]:
    broker = cluster.brokers[broker_id]
    by_name = broker.metadata_cache.topic_ids if topic_ids is None else topic_ids
    ids = {key: by_name[key.topic]} if key.topic in by_name else {}
    return broker.serve_local("Fetch", 0, LocalFetch(params, {key: spec}, ids, session, ignore))


def test_records_come_with_the_watermark_and_the_start(cluster: MemoryCluster) -> None:
    ((key, answer),) = requested(cluster, FetchSpec(0, 1 << 20, 0)).result().answers
    assert (T0, 0, 3, 0) == (key, answer.error_code, answer.high_watermark, answer.log_start_offset)
    assert cluster.content(1) == bytes(answer.records)


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        (FetchSpec(9, 1 << 20, 0), OFFSET_OUT_OF_RANGE),
        (FetchSpec(0, 1 << 20, -5), FENCED_LEADER_EPOCH),
    ],
)
def test_a_refusal_of_the_leader_is_an_error_code(
    cluster: MemoryCluster, spec: FetchSpec, code: int
) -> None:
    ((_, answer),) = requested(cluster, spec).result().answers
    assert code == answer.error_code


def test_who_does_not_lead_says_so(cluster: MemoryCluster) -> None:
    ((_, answer),) = requested(cluster, FetchSpec(0, 1 << 20, 0), broker_id=2).result().answers
    assert NOT_LEADER_OR_FOLLOWER == answer.error_code


def test_an_unknown_partition_and_another_topic_of_the_name_are_refused(
    cluster: MemoryCluster,
) -> None:
    spec, other = FetchSpec(0, 1 << 20, 0), TopicPartition("t", 7)
    ((_, answer),) = requested(cluster, spec, other).result().answers
    assert UNKNOWN_TOPIC_OR_PARTITION == answer.error_code
    ((_, answer),) = requested(cluster, spec, topic_ids={"t": b"x" * 16}).result().answers
    assert INCONSISTENT_TOPIC_ID == answer.error_code
    ((_, answer),) = requested(cluster, spec, topic_ids={}).result().answers
    assert 0 == answer.error_code


def test_logs_that_diverge_get_the_offset_where(cluster: MemoryCluster) -> None:
    spec = FetchSpec(5, 1 << 20, 0, last_fetched_epoch=0)
    ((_, answer),) = requested(cluster, spec).result().answers
    assert (b"", EpochEnd(0, 3)) == (answer.records, answer.diverging_epoch)


def test_a_session_gets_changes_alone(cluster: MemoryCluster) -> None:
    spec = FetchSpec(3, 1 << 20, 0)
    first = requested(cluster, spec).result()
    assert [(T0, 0, 3)] == [(key, it.error_code, it.high_watermark) for key, it in first.answers]
    session = first.session
    again = requested(cluster, spec, session=session).result()
    assert ([], session) == again
    assert 0 == cluster.produce(1, 1).code()
    ((_, answer),) = requested(cluster, spec, session=session).result().answers
    assert answer.records
    ((_, answer),) = requested(cluster, spec, session=LocalSession(None)).result().answers
    assert answer.records, "a session of another life knows nothing"


def test_a_session_gets_partitions_again_after_an_error_and_when_they_come_back(
    cluster: MemoryCluster,
) -> None:
    spec, fenced = FetchSpec(3, 1 << 20, 0), FetchSpec(3, 1 << 20, -5)
    session = requested(cluster, spec).result().session
    for wrong in (fenced, spec):
        ((_, answer),) = requested(cluster, wrong, session=session).result().answers
        assert (FENCED_LEADER_EPOCH if wrong is fenced else 0) == answer.error_code
    other = TopicPartition("t", 7)
    assert [other] == [
        key for key, _ in requested(cluster, spec, other, session=session).result().answers
    ]
    assert [T0] == [key for key, _ in requested(cluster, spec, session=session).result().answers]


def test_it_waits_for_records_like_any_other(cluster: MemoryCluster) -> None:
    waiting = requested(cluster, FetchSpec(3, 1 << 20, 0), params=PARAMS._replace(max_wait_ms=500))
    assert not waiting.is_kept
    cluster.produce(1, 1)
    ((_, answer),) = waiting.result().answers
    assert answer.records


def test_a_leader_gives_no_more_than_its_own_bound() -> None:
    cluster = MemoryCluster(is_one_process=True, fetch_max_bytes="1024")
    cluster.create_topic(replicas=[(1, 2)])
    cluster.pass_time(2000)
    for _ in range(40):
        cluster.produce(1, 3)
    params = PARAMS._replace(max_wait_ms=500, min_bytes=1 << 20)
    ((_, answer),) = requested(cluster, FetchSpec(0, 1 << 20, 0), params=params).result().answers
    assert 0 < len(answer.records) <= 1024
