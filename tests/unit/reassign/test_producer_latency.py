"""What a producer waits, seen by records of a topic that was named for it."""

from __future__ import annotations

import pytest

from engine.errors import ApiError
from engine.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION
from engine.model import TopicPartition
from engine.reassign.journal_state import ExecutionSettings
from engine.reassign.producer_latency import ProducerLatency
from engine.reassign.throttles import ThrottleRates
from tests.unit.reassign.moved_cluster import MovedTopic


@pytest.fixture
def moved() -> MovedTopic:
    moved = MovedTopic(replica_lag_time_max_ms="5000", broker_session_timeout_ms="60000")
    configs = {"cleanup_policy": "compact", "min_insync_replicas": "2"}
    moved.cluster.create_topic("canary", [(1, 3), (3, 1)], **configs)
    moved.cluster.pass_time(1000)
    return moved


def ends(moved: MovedTopic) -> list[int]:
    keys = ((1, TopicPartition("canary", 0)), (3, TopicPartition("canary", 1)))
    return [moved.cluster.partition(leader, key).log.log_end_offset for leader, key in keys]


def test_each_partition_gets_a_record_that_compacted_topics_take_too(moved: MovedTopic) -> None:
    latency = ProducerLatency(moved.client, "canary")
    assert latency.measure_ms() < 1000
    latency.measure_ms()
    assert [2, 2] == ends(moved)


def test_a_replica_that_does_not_follow_is_waited_for(moved: MovedTopic) -> None:
    latency = ProducerLatency(moved.client, "canary")
    typical_ms = latency.measure_ms()
    moved.cluster.cut_power(3)
    assert latency.measure_ms() > typical_ms + 1000


def test_a_topic_that_is_not_there_is_an_error(moved: MovedTopic) -> None:
    with pytest.raises(ApiError) as error:
        ProducerLatency(moved.client, "nothing")
    assert UNKNOWN_TOPIC_OR_PARTITION == error.value.code


def test_an_adaptive_execution_writes_to_it_and_ends_as_any_other(moved: MovedTopic) -> None:
    settings = ExecutionSettings(ThrottleRates(20_000_000), True, latency_topic="canary")
    moved.begin(settings)
    assert "canary" == moved.state().begun.settings.latency_topic
    assert moved.execution().run(moved.looks.append).is_clean
    assert ends(moved)[0] >= 1
