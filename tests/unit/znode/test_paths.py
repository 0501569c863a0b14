"""Paths as real brokers created them."""

from __future__ import annotations

import pytest

from engine.model import TopicPartition
from engine.znode import paths

P = paths


def test_paths_are_kafkas() -> None:
    partition = TopicPartition("t1", 7)
    assert "/brokers/ids/3" == P.broker_path(3)
    assert "/brokers/topics/t1" == P.topic_path("t1")
    assert "/brokers/topics/t1/partitions" == P.partitions_path("t1")
    assert "/brokers/topics/t1/partitions/7" == P.partition_path(partition)
    assert "/brokers/topics/t1/partitions/7/state" == P.partition_state_path(partition)
    assert "/admin/delete_topics/t1" == P.delete_topic_path("t1")
    assert "/config/topics/t1" == P.topic_config_path("t1") == P.config_path("topics/t1")
    assert "/config/brokers/3" == P.broker_config_path(3)
    assert "/config/brokers/<default>" == P.broker_config_path(None)
    assert "/kafka-acl/Topic/t1" == P.acl_path("Topic", "t1", prefixed=False)
    assert "/kafka-acl-extended/prefixed/Topic/pre" == P.acl_path("Topic", "pre", prefixed=True)
    assert "/delegation_token/tokens/x" == P.delegation_token_path("x")


def test_entities_of_quotas_are_sanitized() -> None:
    assert "users/b%20ob%2Fx" == P.quota_entity_path(user="b ob/x")
    assert "users/al/clients/c1" == P.quota_entity_path(user="al", client_id="c1")
    assert "clients/<default>" == P.quota_entity_path(client_id=P.DEFAULT_ENTITY)
    assert "users/<default>/clients/a%2A" == (
        P.quota_entity_path(user=P.DEFAULT_ENTITY, client_id="a*")
    )
    assert "ips/10.0.0.1" == P.quota_entity_path(ip="10.0.0.1")


@pytest.mark.parametrize("name", ["a~b", "é", "%", "+ &=", "CN=x,O=y", "a*.-_", "\U0001f600"])
def test_a_sanitized_name_comes_back(name: str) -> None:
    assert name == P.unsanitized(P.sanitized(name))
    assert all(character.isalnum() or character in "%._-" for character in P.sanitized(name))


def test_sequences_are_the_ten_digits() -> None:
    assert 12 == P.sequence_of("config_change_0000000012")
    for name in ("config_change_12", "", "x-000000001", "config_change_-147483648"):
        with pytest.raises(P.NotSequential):
            P.sequence_of(name)
