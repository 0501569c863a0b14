from __future__ import annotations

from engine.client.metadata import cluster_view
from engine.errors import api_error
from engine.kafka_errors import is_retriable, kafka_error, kafka_errors
from engine.model import TopicPartition
from tests.unit.client.fake_broker import FakeCluster


def test_a_view_knows_partitions_by_number_even_if_one_is_missing() -> None:
    cluster = FakeCluster()
    cluster.leaders = {("t", 0): 1, ("t", 2): 2}
    view = cluster_view(cluster.metadata(_all(), 12, ("", 0)))
    found = view.partition(TopicPartition("t", 2))
    assert found is not None
    assert 2 == found.leader
    assert view.partition(TopicPartition("t", 1)) is None
    assert view.partition(TopicPartition("u", 0)) is None


def test_brokers_of_kraft_name_no_controller() -> None:
    cluster = FakeCluster()
    assert cluster.client().view([]).is_controller_known
    cluster = FakeCluster()
    cluster.handlers["DescribeQuorum"] = cluster.api_versions
    view = cluster.client().view([])
    assert (1, False) == (view.controller_id, view.is_controller_known)


def test_health_is_reported_by_claims() -> None:
    view = cluster_view(FakeCluster().metadata(_all(), 12, ("", 0)))
    topic = view.topics["t"]
    partition = topic.partitions[0]
    assert (True, 2) == (topic.has_id, topic.replication_factor)
    assert (False, True) == (partition.is_under_replicated, partition.has_leader)
    assert partition._replace(isr=(1,)).is_under_replicated
    assert not partition._replace(leader=-1).has_leader


def _all() -> object:
    class Request:
        topics = None

    return Request()


def test_codes_have_names_and_meanings() -> None:
    assert 135 == len(kafka_errors())
    assert "NOT_LEADER_OR_FOLLOWER" == kafka_error(6).name
    assert (True, True) == (is_retriable(6), kafka_error(6).needs_metadata)
    assert (False, False) == (is_retriable(0), is_retriable(29))
    assert all(
        code.meaning and code.meaning[0].islower()
        for code in kafka_errors().values()
        if code.code != 21
    )


def test_a_code_of_a_later_release_is_final_and_named_by_its_number() -> None:
    found = api_error(999)
    assert ("ERROR_999", 999) == (found.name, found.code)
    assert not is_retriable(999)


def test_the_brokers_own_words_come_first() -> None:
    assert "INVALID_CONFIG: No such key" == str(api_error(40, "No such key"))
