"""What a broker knows of the cluster, and how it forgets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.model import TopicPartition
from engine.replication.metadata_cache import BrokerNode, Endpoint, MetadataCache, PartitionMetadata

#: Topics that were created one after the other on a real 3.9.1, and its Metadata after each.
REAL: dict[str, Any] = json.loads(
    (Path(__file__).parent / "metadata_orders_3_9_1.json").read_text()
)

ID = bytes(range(16))
NODE = BrokerNode(1, (Endpoint("PLAINTEXT", "here", 9092),), "r1")
STATE = PartitionMetadata(1, 0, (1,), 0, (1,))


def filled() -> MetadataCache:
    cache = MetadataCache(1, "cluster")
    states = {TopicPartition("t", 0): STATE, TopicPartition("t", 1): STATE._replace(leader_id=-1)}
    cache.update(1, [NODE], states, {"t": ID})
    return cache


def test_topics_are_found_by_name_and_by_id() -> None:
    cache = filled()
    assert cache.partition(TopicPartition("t", 0)) == STATE
    assert cache.topic_name(ID) == "t"
    assert cache.topic_ids["t"] == ID
    assert cache.leader_count() == 1
    assert not cache.is_known(TopicPartition("t", 2))


def test_a_topic_goes_with_its_last_partition() -> None:
    cache = filled()
    assert cache.update(1, [NODE], {TopicPartition("t", 0): None}, {}) == [TopicPartition("t", 0)]
    assert cache.topic_name(ID) == "t"
    cache.update(1, [NODE], {TopicPartition("t", 1): None}, {})
    assert cache.topic_name(ID) is None
    assert "t" not in cache.topics


def test_the_id_of_an_unknown_topic_that_is_deleted_is_not_kept() -> None:
    cache = filled()
    other = bytes(16)
    cache.update(1, [NODE], {TopicPartition("gone", 0): None}, {"gone": other})
    assert cache.topic_name(other) is None
    assert cache.topic_name(ID) == "t"


def test_a_full_update_leaves_nothing_else() -> None:
    cache = filled()
    fewer = {TopicPartition("t", 0): STATE}
    assert [TopicPartition("t", 1)] == cache.update(1, [NODE], fewer, {"t": ID}, is_full=True)
    assert {"t": {0: STATE}} == cache.topics
    cache.update(1, [NODE], {}, {}, is_full=True)
    assert ({}, {}, None) == (cache.topics, cache.topic_ids, cache.topic_name(ID))


def test_news_that_comes_again_after_later_news_is_ignored() -> None:
    cache = filled()
    key = TopicPartition("t", 0)
    later = STATE._replace(leader_id=2, leader_epoch=3, partition_epoch=4)
    cache.update(1, [NODE], {key: later}, {"t": ID})
    for late in (STATE, later._replace(isr=(1, 2), partition_epoch=3)):
        cache.update(1, [NODE], {key: late}, {"t": ID}, is_full=True)
        assert later == cache.partition(key)
    # Brokers go and come without a new epoch.
    offline = later._replace(offline_replicas=(1,))
    cache.update(1, [NODE], {key: offline}, {"t": ID})
    assert offline == cache.partition(key)
    # Another topic of the same name begins again.
    cache.update(1, [NODE], {key: STATE}, {"t": bytes(16)})
    assert STATE == cache.partition(key)


def test_a_topic_that_is_made_again_has_only_its_new_id() -> None:
    cache = filled()
    cache.update(1, [NODE], {}, {"t": bytes(16)})
    assert cache.topic_name(ID) is None
    assert cache.topic_name(bytes(16)) == "t"


def test_brokers_that_are_left_out_are_gone() -> None:
    cache = filled()
    cache.update(None, [], {}, {})
    assert not cache.is_alive(1)
    assert cache.controller_id is None


def test_partitions_that_have_a_leader_are_counted() -> None:
    cache = filled()
    cache.update(1, [NODE], {TopicPartition("t", 2): STATE}, {"t": ID})
    assert 2 == cache.leader_count()


def test_clients_get_this_broker_while_no_controller_named_any() -> None:
    cache = MetadataCache(1, "cluster")
    assert [] == list(cache.brokers_to_notify())
    cache.own = NODE
    assert [NODE] == list(cache.brokers_to_notify())
    other = NODE._replace(broker_id=2)
    cache.update(2, [other], {}, {})
    assert [other] == list(cache.brokers_to_notify())


def test_every_update_raises_the_version() -> None:
    cache = filled()
    before = cache.version
    cache.update(1, [NODE], {}, {})
    assert cache.version == before + 1


def test_an_endpoint_is_chosen_by_its_listener() -> None:
    assert NODE.endpoint("PLAINTEXT") == Endpoint("PLAINTEXT", "here", 9092)
    assert NODE.endpoint("SSL") is None


def test_listeners_run_after_an_update_with_its_topics() -> None:
    cache = filled()
    seen: list[tuple[int, frozenset[str]]] = []
    cache.on_update(lambda topics: seen.append((cache.version, topics)))
    cache.update(1, [NODE], {TopicPartition("u", 3): STATE}, {})
    assert seen == [(cache.version, frozenset(["u"]))]


def test_a_fault_of_one_who_hears_of_updates_leaves_none_of_the_others_out() -> None:
    cache = MetadataCache(1, "cluster")
    heard: list[frozenset[str]] = []

    def fail(_topics: frozenset[str]) -> None:
        raise KeyError("a fault")

    cache.on_update(fail)
    cache.on_update(heard.append)
    with pytest.raises(KeyError):
        cache.update(1, [], {}, {})
    assert [frozenset()] == heard


def test_partitions_and_few_topics_come_in_the_order_of_a_real_broker() -> None:
    cache = MetadataCache(1, "cluster")
    for step in REAL["steps"]:
        created = step["created"].items()
        partitions = {TopicPartition(name, i): STATE for name, n in created for i in range(n)}
        cache.update(1, [NODE], partitions, {})
        if len(step["topics"]) <= 4:
            assert [name for name, _ in step["topics"]] == list(cache.topics)
        for name, order in step["topics"]:
            assert order == cache.partition_order(name), (name, step["created"])


def test_maps_are_copied_as_often_as_there_were_updates_of_partitions() -> None:
    cache, key = MetadataCache(1, "cluster"), TopicPartition("other", 0)
    cache.update(1, [NODE], {TopicPartition("t", index): STATE for index in range(3)}, {})
    assert [0, 1, 2] == cache.partition_order("t")
    # Brokers alone copy nothing.
    cache.update(1, [NODE], {}, {})
    assert [0, 1, 2] == cache.partition_order("t")
    cache.update(1, [NODE], {key: STATE}, {})
    assert [0, 2, 1] == cache.partition_order("t")


def test_partitions_that_are_deleted_are_in_no_order() -> None:
    cache = MetadataCache(1, "cluster")
    states = {TopicPartition("t", index): STATE for index in range(6)}
    cache.update(1, [NODE], states, {})
    assert [0, 5, 4, 1, 2, 3] == cache.partition_order("t")
    cache.update(1, [NODE], {TopicPartition("t", 4): None}, {})
    assert [0, 5, 1, 2, 3] == cache.partition_order("t")
    cache.update(1, [NODE], dict.fromkeys(states), {})
    assert [] == cache.partition_order("t")
