"""How a cluster is as a whole: counts of partitions, and who is throttled."""

from __future__ import annotations

from typing import Any

from engine.client.health import ClusterHealth, Throttle, request_health
from engine.wire.structs import message_class
from tests.unit.client.fake_broker import FakeCluster

RATE = "leader.replication.throttled.rate"
LIST = "follower.replication.throttled.replicas"


class SettingsCluster(FakeCluster):
    """Topic t with four partitions: two lack a replica, one of them and another a leader."""

    def __init__(self) -> None:
        super().__init__()
        self.leaders = {("t", 0): 1, ("t", 1): 2, ("t", 2): -1, ("t", 3): -1}
        self.handlers["DescribeConfigs"] = self.configs
        self.handlers["ListPartitionReassignments"] = self.moves
        #: Values that were set, by the name of a topic or a broker, and a default that is one.
        self.values = {("t", LIST): ("0:1", 1), ("2", RATE): ("5", 2), ("1", RATE): ("9", 5)}
        self.refused: set[str] = set()
        self.described: list[str] = []

    def metadata(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        answer = super().metadata(body, version, address)
        for topic in answer.topics:
            for row in topic.partitions:
                row.isr_nodes = [1] if row.partition_index in (1, 2) else [1, 2]
        return answer

    def moves(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        return message_class("ListPartitionReassignmentsResponse")(topics=[])

    def configs(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("DescribeConfigsResponse")
        value = response.DescribeConfigsResourceResult
        self.described += [row.resource_name for row in body.resources]
        return response(
            results=[
                response.DescribeConfigsResult(
                    error_code=29 if row.resource_name in self.refused else 0,
                    resource_type=row.resource_type,
                    resource_name=row.resource_name,
                    configs=[
                        value(name=name, value=text, config_source=source)
                        for (of, name), (text, source) in self.values.items()
                        if of == row.resource_name and name in row.configuration_keys
                    ],
                )
                for row in body.resources
            ]
        )


def health(cluster: SettingsCluster, *broker_ids: int) -> ClusterHealth:
    with cluster.client() as client:
        return request_health(client, broker_ids)


def test_partitions_are_counted_and_what_was_set_is_a_throttle() -> None:
    cluster = SettingsCluster()
    found = health(cluster, 1, 2, 9)
    assert (1, 2, 2) == (found.controller_id, found.under_replicated, found.offline)
    throttles = [Throttle("topic", "t", LIST, "0:1"), Throttle("broker", "2", RATE, "5")]
    assert throttles == found.throttles
    # Broker 9 is not alive, and nobody would answer for it.
    assert {"t", "1", "2"} == set(cluster.described)


def test_a_broker_that_hides_its_settings_is_no_throttle_and_no_error() -> None:
    cluster = SettingsCluster()
    cluster.refused = {"t"}
    assert [Throttle("broker", "2", RATE, "5")] == health(cluster, 2).throttles


def test_of_no_broker_and_an_empty_value_there_is_no_throttle() -> None:
    cluster = SettingsCluster()
    cluster.values = {("t", LIST): ("", 1), ("t", "min.insync.replicas"): ("2", 1)}
    assert [] == health(cluster).throttles
    assert ["t"] == cluster.described


def test_what_is_set_for_all_brokers_is_one_throttle_of_them_all() -> None:
    cluster = SettingsCluster()
    cluster.values = {(id_, RATE): ("5", 3) for id_ in ("1", "2")}
    assert [Throttle("broker", "default", RATE, "5")] == health(cluster, 1, 2).throttles
    cluster.values["2", RATE] = ("9", 2)
    both = [Throttle("broker", "default", RATE, "5"), Throttle("broker", "2", RATE, "9")]
    assert both == health(cluster, 1, 2).throttles
