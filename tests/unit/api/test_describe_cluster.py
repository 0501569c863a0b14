"""The cluster as DescribeCluster tells it."""

from __future__ import annotations

import pytest

from engine.api.describe_cluster import DescribeCluster
from engine.replication.metadata_cache import BrokerNode, Endpoint, MetadataCache
from tests.unit.api.asking import CLUSTER_ID, INSIDE, OUTSIDE, ask, cluster


@pytest.mark.parametrize("version", [0, 1])
def test_brokers_are_listed_by_the_listener_of_the_request(version: int) -> None:
    handler = DescribeCluster(cluster())
    reply = ask(handler, "DescribeCluster", version)
    assert (0, CLUSTER_ID, 1) == (reply.error_code, reply.cluster_id, reply.controller_id)
    # In the order of the map that Kafka keeps brokers in.
    assert [(2, "two", 9092, None), (1, "one", 9092, "rack1")] == [
        (each.broker_id, each.host, each.port, each.rack) for each in reply.brokers
    ]
    reply = ask(handler, "DescribeCluster", version, OUTSIDE)
    assert [(1, "one.example")] == [(each.broker_id, each.host) for each in reply.brokers]


def test_a_broker_lists_itself_until_a_controller_sends_others() -> None:
    cache = MetadataCache(1, CLUSTER_ID)
    handler = DescribeCluster(cache)
    assert [] == ask(handler, "DescribeCluster", 1).brokers
    cache.own = BrokerNode(1, (Endpoint(INSIDE, "one", 9092),))
    (told,) = ask(handler, "DescribeCluster", 1).brokers
    assert (1, "one", 9092) == (told.broker_id, told.host, told.port)
    cache.update(2, [BrokerNode(2, (Endpoint(INSIDE, "two", 9092),))], {}, {})
    assert [2] == [each.broker_id for each in ask(handler, "DescribeCluster", 1).brokers]


def test_a_controller_that_clients_cannot_find_is_left_out() -> None:
    cache = cluster()
    cache.update(2, cache.brokers.values(), {}, {})
    handler = DescribeCluster(cache)
    assert 2 == ask(handler, "DescribeCluster", 1).controller_id
    assert -1 == ask(handler, "DescribeCluster", 1, OUTSIDE).controller_id


@pytest.mark.parametrize(
    ("endpoint_type", "code", "message"),
    [
        (
            2,
            114,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
            "CONTROLLER",
        ),
        (0, 115, "Unsupported endpoint type 0"),
        (9, 115, "Unsupported endpoint type 9"),
    ],
)
def test_only_brokers_are_here(endpoint_type: int, code: int, message: str) -> None:
    reply = ask(DescribeCluster(cluster()), "DescribeCluster", 1, endpoint_type=endpoint_type)
    assert (code, message) == (reply.error_code, reply.error_message)
    assert [] == reply.brokers


def test_operations_are_listed_when_requested() -> None:
    handler = DescribeCluster(cluster())
    assert -(1 << 31) == ask(handler, "DescribeCluster", 1).cluster_authorized_operations
    reply = ask(handler, "DescribeCluster", 1, include_cluster_authorized_operations=True)
    assert 8096 == reply.cluster_authorized_operations
