"""All facts about a cluster by a deadline, even if brokers hang."""

from __future__ import annotations

from typing import Any

import pytest

from engine.client.errors import TimedOut, Unreachable
from engine.client.fact_gathering import gather_facts
from engine.client.findings import ClusterFacts, findings_of
from engine.client.reassignments import OngoingReassignment
from engine.errors import ApiError
from engine.kafka_errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    NOT_CONTROLLER,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.model import TopicPartition
from engine.wire.headers import api
from engine.wire.structs import message_class
from tests.unit.client.fake_broker import FakeCluster

_APIS = ("DescribeLogDirs", "DescribeConfigs", "ListPartitionReassignments", "ListOffsets")
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
#: The clock of a fake begins there.
_BEGAN_MS = 1000


class CheckedCluster(FakeCluster):
    """Brokers 1, 2 and 3, of which some leave some questions unanswered."""

    def __init__(self) -> None:
        super().__init__()
        self.brokers = [1, 2, 3]
        self.silent: set[int] = set()
        self.unanswered: set[tuple[str, int]] = set()
        self.sizes = {1: 100, 2: 100, 3: 0}
        self.moves: dict[int, tuple[list[int], list[int], list[int]]] = {}
        self.log_dirs_error = 0
        self.topic_error = 0
        for name in _APIS:
            self.handlers[name] = getattr(self, name)
        for name, handler in list(self.handlers.items()):
            self.handlers[name] = self._unless_silent(name, handler)

    def _unless_silent(self, name: str, handler: Any) -> Any:
        def answer(body: Any, version: int, address: tuple[str, int]) -> Any:
            number = address[1] - 9000
            if number in self.silent or (name, number) in self.unanswered:
                return None
            return handler(body, version, address)

        return answer

    def api_versions(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        answer = super().api_versions(body, version, address)
        known = {row.api_key for row in answer.api_keys}
        for name in _APIS:
            row = api(name)
            if row.key not in known:
                low, high = row.stable
                version_row = message_class("ApiVersionsResponse").ApiVersion
                answer.api_keys.append(
                    version_row(api_key=row.key, min_version=low, max_version=high)
                )
        return answer

    def DescribeLogDirs(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("DescribeLogDirsResponse")
        number = address[1] - 9000
        if self.log_dirs_error:
            return response(error_code=self.log_dirs_error)
        topic = response.DescribeLogDirsTopic(name="t")
        topic.partitions.append(
            response.DescribeLogDirsPartition(
                partition_index=0, partition_size=self.sizes[number], offset_lag=0
            )
        )
        if number == 3:
            self.sizes[3] += 30
        return response(results=[response.DescribeLogDirsResult(log_dir="/d", topics=[topic])])

    def DescribeConfigs(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("DescribeConfigsResponse")
        number = address[1] - 9000
        kinds = {row.resource_type for row in body.resources}
        if ("topics", number) in self.unanswered and 2 in kinds:
            return None
        results = []
        for row in body.resources:
            value = response.DescribeConfigsResourceResult
            configs = [value(name="min.insync.replicas", value="2", config_source=1)]
            results.append(
                response.DescribeConfigsResult(
                    error_code=self.topic_error if row.resource_type == 2 else 0,
                    resource_type=row.resource_type,
                    resource_name=row.resource_name,
                    configs=configs if row.resource_type == 2 else [],
                )
            )
        return response(results=results)

    def ListPartitionReassignments(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("ListPartitionReassignmentsResponse")
        if address[1] - 9000 != self.controller:
            return response(error_code=NOT_CONTROLLER)
        rows = [
            response.OngoingPartitionReassignment(
                partition_index=number, replicas=r, adding_replicas=a, removing_replicas=g
            )
            for number, (r, a, g) in self.moves.items()
        ]
        topics = [response.OngoingTopicReassignment(name="t", partitions=rows)] if rows else []
        return response(topics=topics)

    def ListOffsets(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        return message_class("ListOffsetsResponse")(topics=[])


@pytest.fixture
def cluster() -> CheckedCluster:
    return CheckedCluster()


def gathered(cluster: CheckedCluster, timeout_ms: int = 4000) -> ClusterFacts:
    facts = gather_facts(cluster.client(1, 2, 3), None, timeout_ms)
    assert cluster.clock.now_ms <= _BEGAN_MS + timeout_ms
    return facts


def kinds(facts: ClusterFacts) -> list[tuple[str, str]]:
    found = findings_of(facts)
    return [(one.kind, one.subject) for one in found if one.kind != "not-preferred"]


def test_a_sound_cluster_is_asked_once_and_without_waiting(cluster: CheckedCluster) -> None:
    facts = gathered(cluster)
    assert ({}, []) == (facts.silent, facts.unanswered)
    assert {"t": 2} == facts.min_isr
    assert {1, 2, 3} == set(facts.log_dirs)
    assert _BEGAN_MS == cluster.clock.now_ms


def test_the_ends_of_replicas_are_requested_where_some_lack(cluster: CheckedCluster) -> None:
    told, asked = cluster.handlers["Metadata"], []

    def ends(body: Any, version: int, address: tuple[str, int]) -> Any:
        asked.append([t.name for t in body.topics])
        return cluster.ListOffsets(body, version, address)

    def lacking(body: Any, version: int, address: tuple[str, int]) -> Any:
        answer = told(body, version, address)
        answer.topics[0].partitions[0].isr_nodes = []
        return answer

    cluster.handlers["ListOffsets"] = ends
    gathered(cluster)
    assert [] == asked
    cluster.handlers["Metadata"] = lacking
    gathered(cluster)
    assert asked


@pytest.mark.parametrize("silent", [1, 2, 3])
def test_a_silent_broker_is_found_beside_all_else(cluster: CheckedCluster, silent: int) -> None:
    cluster.controller = 2
    cluster.silent = {silent}
    facts = gathered(cluster)
    assert [silent] == list(facts.silent)
    assert {"t": 2} == facts.min_isr
    found = kinds(facts)
    led = {1: "t-0", 2: "t-1"}
    assert ("unreachable", f"broker {silent}") in found
    assert (silent in led) == (("silent-leader", led.get(silent)) in found)
    assert (silent == 2) == (("no-controller", "cluster") in found)
    assert not any(kind == "unasked" for kind, _ in found)


def test_two_silent_brokers_take_no_longer_than_one(cluster: CheckedCluster) -> None:
    cluster.silent = {1, 2}
    cluster.controller = 3
    assert {1, 2} == set(gathered(cluster).silent)


def test_nobody_who_answers_is_an_error_in_time(cluster: CheckedCluster) -> None:
    cluster.silent = {1, 2, 3}
    with pytest.raises((Unreachable, TimedOut)):
        gathered(cluster)
    assert cluster.clock.now_ms <= _BEGAN_MS + 4000


def test_settings_that_one_broker_does_not_report_are_requested_from_another(
    cluster: CheckedCluster,
) -> None:
    cluster.unanswered = {("topics", 1)}
    facts = gathered(cluster)
    assert {"t": 2} == facts.min_isr
    assert ({}, []) == (facts.silent, facts.unanswered)


def test_facts_that_no_broker_reports_are_a_finding_and_the_rest_is_kept(
    cluster: CheckedCluster,
) -> None:
    cluster.unanswered = {("topics", number) for number in (1, 2, 3)}
    cluster.unanswered.add(("ListPartitionReassignments", 1))
    facts = gathered(cluster)
    assert {"the settings of topics", "the reassignments under way"} == {
        unanswered.what for unanswered in facts.unanswered
    }
    assert {("unasked", "cluster"), ("unasked", "broker 1")} == set(kinds(facts))
    assert {1, 2, 3} == set(facts.log_dirs)


def test_a_controller_that_moves_meanwhile_is_asked_where_it_is(cluster: CheckedCluster) -> None:
    told = cluster.handlers["Metadata"]
    views: list[int] = [1]

    def metadata(body: Any, version: int, address: tuple[str, int]) -> Any:
        answer = told(body, version, address)
        answer.controller_id = views.pop(0) if views else 2
        return answer

    cluster.handlers["Metadata"] = metadata
    cluster.controller = 2
    cluster.moves = {0: ([2, 3, 1], [3], [1])}
    facts = gathered(cluster)
    assert {T0: OngoingReassignment((2, 3, 1), (3,), (1,))} == facts.moves
    assert [] == facts.unanswered
    assert 2 == facts.view.controller_id


def test_what_we_may_not_ask_is_a_notice(cluster: CheckedCluster) -> None:
    cluster.log_dirs_error = CLUSTER_AUTHORIZATION_FAILED
    facts = gathered(cluster)
    assert {"unasked"} == {kind for kind, _ in kinds(facts)}
    assert {"notice"} == {one.severity for one in findings_of(facts)}


def test_settings_of_a_topic_that_we_may_not_see_are_unasked(cluster: CheckedCluster) -> None:
    cluster.topic_error = TOPIC_AUTHORIZATION_FAILED
    facts = gathered(cluster)
    assert ({}, ["the settings of topics"]) == (facts.min_isr, [u.what for u in facts.unanswered])
    (unanswered,) = facts.unanswered
    assert isinstance(unanswered.error, ApiError)
    assert TOPIC_AUTHORIZATION_FAILED == unanswered.error.code


def test_a_topic_that_is_deleted_meanwhile_leaves_nothing_unasked(cluster: CheckedCluster) -> None:
    cluster.topic_error = UNKNOWN_TOPIC_OR_PARTITION
    facts = gathered(cluster)
    assert ({}, []) == (facts.min_isr, facts.unanswered)


def test_two_measurements_show_how_fast_a_move_is(cluster: CheckedCluster) -> None:
    cluster.moves = {0: ([2, 3, 1], [3], [1])}
    facts = gathered(cluster, 8000)
    # Between both is a second, and the look for events on a connection that was idle.
    assert {T0: 30.0 / 1.001} == facts.rates
    # Without the time for it, there is no rate and a verdict all the same.
    assert {} == gathered(CheckedCluster(), 900).rates


def test_a_cluster_that_answers_when_the_time_is_up_is_not_called_sound(
    cluster: CheckedCluster,
) -> None:
    told = cluster.handlers["Metadata"]

    def late(body: Any, version: int, address: tuple[str, int]) -> Any:
        cluster.clock.now_ms = _BEGAN_MS + 4000
        return told(body, version, address)

    cluster.handlers["Metadata"] = late
    assert [("unasked", "cluster")] == kinds(gathered(cluster))


@pytest.mark.parametrize("answered", [[False, True], [True, False]])
def test_a_copy_that_one_of_two_looks_does_not_see_has_no_rate(
    cluster: CheckedCluster, answered: list[bool]
) -> None:
    cluster.moves = {0: ([2, 3, 1], [3], [1])}
    told = cluster.handlers["DescribeLogDirs"]

    def sometimes(body: Any, version: int, address: tuple[str, int]) -> Any:
        is_copy = address[1] == 9003
        return told(body, version, address) if not is_copy or answered.pop(0) else None

    cluster.handlers["DescribeLogDirs"] = sometimes
    assert {} == gathered(cluster, 20_000).rates
    assert [] == answered
