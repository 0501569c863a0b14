"""What is wrong with a cluster, each finding with its cause."""

from __future__ import annotations

from typing import Any

import pytest

from engine.client.cluster_admin import LogDirView, ReplicaSize
from engine.client.errors import TimedOut, Unreachable
from engine.client.findings import KINDS, ClusterFacts, HealthFinding, Unanswered, findings_of
from engine.client.health import Throttle
from engine.client.metadata import BrokerView, ClusterView, PartitionView, TopicView
from engine.client.move_progress import MoveFigures
from engine.client.reassignments import OngoingReassignment
from engine.client.settings import Address
from engine.errors import EngineError, api_error
from engine.kafka_errors import CLUSTER_AUTHORIZATION_FAILED, KAFKA_STORAGE_ERROR
from engine.model import TopicPartition

T0 = TopicPartition("t", 0)


def facts(
    *,
    leader: int = 1,
    isr: tuple[int, ...] = (1, 2, 3),
    offline: tuple[int, ...] = (),
    alive: tuple[int, ...] = (1, 2, 3),
    min_isr: int = 1,
    replicas: tuple[int, ...] = (1, 2, 3),
    **more: Any,
) -> ClusterFacts:
    partition = PartitionView(0, leader, 4, replicas, isr, offline)
    brokers = {id_: BrokerView(id_, Address("h", id_)) for id_ in alive}
    topic = TopicView("t", b"x" * 16, False, (partition,))
    view = ClusterView("c", more.pop("controller", alive[0]), brokers, {"t": topic})
    ends = more.pop("ends", {(T0, id_): 10 for id_ in alive})
    return ClusterFacts(
        view, {"t": min_isr}, more.pop("log_dirs", {}), ends, more.pop("throttles", []), **more
    )


def only(found: list[HealthFinding]) -> tuple[str, str, str, str]:
    (finding,) = found
    assert finding.kind in KINDS
    return finding.severity, finding.kind, finding.subject, finding.cause


def test_a_cluster_that_is_well_has_none() -> None:
    assert [] == findings_of(facts())


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"alive": (1, 2)}, "broker 3 is gone"),
        (
            {"offline": (3,)},
            "the replica on broker 3 is offline, its log directory has failed",
        ),
        (
            {"ends": {(T0, 1): 10, (T0, 3): 4}},
            "broker 3 is up and 6 records behind, at 4 of 10",
        ),
        ({}, "broker 3 has all 10 records and is about to join"),
        ({"ends": {(T0, 1): 10}}, "broker 3 is up, how far it is behind is not known"),
    ],
)
def test_who_is_out_of_the_set_and_why(changes: dict[str, Any], cause: str) -> None:
    found = findings_of(facts(isr=(1, 2), **changes))
    assert only(found) == (
        "warning",
        "under-replicated",
        "t-0",
        f"in sync: 1,2 of 1,2,3; {cause}",
    )
    assert T0 == found[0].partition


def test_a_replica_whose_broker_does_not_report_it() -> None:
    refused = api_error(KAFKA_STORAGE_ERROR)
    found = findings_of(facts(isr=(1, 2), ends={(T0, 1): 10, (T0, 3): refused}))
    assert f"broker 3 does not return the end of its replica: {refused}" in found[0].cause


def test_too_few_in_sync_are_critical_and_just_enough_a_warning() -> None:
    low = only(findings_of(facts(isr=(1,), min_isr=2, alive=(1,))))
    assert ("critical", "under-min-isr", "t-0") == low[:3]
    assert "in sync: 1 of 1,2,3, acks=all needs 2; broker 2 is gone; broker 3 is gone" == low[3]
    just = only(findings_of(facts(isr=(1, 2), min_isr=2, alive=(1, 2))))
    assert ("warning", "at-min-isr", "t-0") == just[:3]
    assert (
        "in sync: 1,2 of 1,2,3, acks=all needs 2: none more may be lost; broker 3 is gone"
        == (just[3])
    )
    assert [] == findings_of(facts(min_isr=1, replicas=(1,), isr=(1,), alive=(1,)))


def copies(sizes: dict[int, int]) -> dict[int, list[LogDirView]]:
    """Return what brokers tell of their replicas of t-0."""
    return {
        id_: [LogDirView("/data", None, (ReplicaSize(T0, size_bytes, 0, False),), None, None)]
        for id_, size_bytes in sizes.items()
    }


@pytest.mark.parametrize(
    ("isr", "kinds", "cause"),
    [
        ((1, 2), ["move"], "2,1 become 2,3; broker 3 has 40 of 100 bytes"),
        ((1, 2, 3), ["move"], "2,1 become 2,3; broker 3 is in sync"),
        # As many as there are without the one that is brought, whichever they are.
        ((1, 3), ["move"], "2,1 become 2,3; broker 3 is in sync"),
        ((1,), ["at-min-isr", "move"], "2,1 become 2,3; broker 3 has 40 of 100 bytes"),
    ],
)
def test_what_a_reassignment_brings_is_not_missing(
    isr: tuple[int, ...], kinds: list[str], cause: str
) -> None:
    moved = facts(replicas=(2, 3, 1), isr=isr, log_dirs=copies({1: 100, 2: 100, 3: 40}))
    partition = moved.view.topics["t"].partitions[0]._replace(adding=(3,))
    topic = moved.view.topics["t"]._replace(partitions=(partition,))
    move = OngoingReassignment((2, 3, 1), (3,), (1,))
    moved = moved._replace(view=moved.view._replace(topics={"t": topic}), moves={T0: move})
    found = findings_of(moved)
    assert kinds == [finding.kind for finding in found]
    assert ("notice", cause) == (found[-1].severity, found[-1].cause)
    if len(found) > 1:
        assert "broker 2 has all 10 records" in found[0].cause
        assert "broker 3" not in found[0].cause


def test_a_partition_without_a_leader_says_who_could_help() -> None:
    offline = findings_of(facts(leader=-1, isr=(3,), alive=(1, 2)))
    assert ("critical", "offline", "t-0") == only(offline)[:3]
    assert "in sync were 3, which are gone; 1,2 may lack records" in offline[0].cause
    nobody = findings_of(facts(leader=-1, isr=(3,), alive=(7,)))
    assert "all replicas are on brokers that are gone: 1,2,3" in nobody[0].cause


def test_the_rest_of_the_cluster() -> None:
    gone = only(findings_of(facts(controller=9)))
    assert ("critical", "no-controller", "cluster") == gone[:3]
    failed = LogDirView("/data", api_error(KAFKA_STORAGE_ERROR), (), None, None)
    assert ("critical", "log-dir", "broker 2") == only(findings_of(facts(log_dirs={2: [failed]})))[
        :3
    ]
    away = only(findings_of(facts(leader=2)))
    assert ("notice", "not-preferred", "t-0") == away[:3]
    assert "broker 2 leads, 1 is preferred and in sync" == away[3]
    slow = Throttle("broker", "1", "leader.replication.throttled.rate", "5")
    assert ("notice", "throttle", "broker 1", "leader.replication.throttled.rate=5") == only(
        findings_of(facts(throttles=[slow]))
    )
    never = only(findings_of(facts(min_isr=4)))
    assert ("warning", "impossible-min-isr", "t") == never[:3]


def test_a_broker_that_counts_as_live_and_does_not_answer_is_reported_with_all_that_it_leads() -> (
    None
):
    refused = Unreachable("b2", 9092, "Connection refused")
    for error in (refused, TimedOut("DescribeLogDirs", 9)):
        gone = findings_of(facts(silent={2: error}, leader=1, controller=1))
        assert [("critical", "unreachable", "broker 2")] == [one[:3] for one in gone]
        assert gone[0].cause == f"it counts as live, and does not answer: {error}"
    found = findings_of(facts(silent={1: refused}, min_isr=3, isr=(1, 2)))
    assert [
        ("critical", "no-controller", "cluster"),
        ("critical", "unreachable", "broker 1"),
        # The worst of the partition: nobody can even read it.
        ("critical", "silent-leader", "t-0"),
    ] == [one[:3] for one in found]
    assert "broker 1 is the controller and does not answer" in found[0].cause
    assert "it counts as live and leads 1 partition, and does not answer" in found[1].cause
    assert "broker 1 leads and does not answer; in sync: 1,2 of 1,2,3" == found[2].cause
    assert T0 == found[2].partition
    known = facts(silent={1: refused})
    of_kraft = known._replace(view=known.view._replace(is_controller_known=False))
    assert "no-controller" not in [one.kind for one in findings_of(of_kraft)]


@pytest.mark.parametrize(
    ("error", "severity"),
    [
        (TimedOut("DescribeConfigs to h:1", 500), "warning"),
        (api_error(CLUSTER_AUTHORIZATION_FAILED), "notice"),
        (api_error(KAFKA_STORAGE_ERROR), "warning"),
    ],
)
def test_what_could_not_be_asked_is_a_finding(error: EngineError, severity: str) -> None:
    unanswered = Unanswered("cluster", "the settings of topics", error)
    (found,) = findings_of(facts(unanswered=[unanswered]))
    cause = f"the settings of topics are not known: {error}"
    assert (severity, "unasked", "cluster", cause) == found[:4]


def test_a_move_has_figures_of_its_own() -> None:
    moved = facts(replicas=(2, 3, 1), isr=(2, 1), log_dirs=copies({2: 100, 3: 40}), leader=2)
    partition = moved.view.topics["t"].partitions[0]._replace(adding=(3,))
    topic = moved.view.topics["t"]._replace(partitions=(partition,))
    moved = moved._replace(
        view=moved.view._replace(topics={"t": topic}),
        moves={T0: OngoingReassignment((2, 3, 1), (3,), (1,))},
    )
    for rates, rate, left_s in (({}, None, None), ({T0: 20.0}, 20, 3), ({T0: -5.0}, 0, None)):
        (found,) = findings_of(moved._replace(rates=rates))
        assert MoveFigures((2, 1), (2, 3), 40, 100, rate, left_s) == found.move


def test_the_worst_comes_first() -> None:
    slow = Throttle("topic", "t", "leader.replication.throttled.replicas", "*")
    found = findings_of(facts(leader=2, isr=(2, 1), min_isr=1, throttles=[slow], controller=9))
    assert ["critical", "warning", "notice", "notice"] == [one.severity for one in found]


def test_findings_of_one_broker_have_a_cause_in_common() -> None:
    for of_one, of_other, shared in (
        (
            {"isr": (1, 2), "alive": (1, 2)},
            {"isr": (2, 1), "replicas": (3, 2, 1), "leader": 2, "alive": (1, 2)},
            "broker 3 is gone",
        ),
        (
            {"isr": (1,), "ends": {(T0, 1): 9, (T0, 2): 5, (T0, 3): 8}},
            {"isr": (1,), "replicas": (2, 1, 3), "ends": {(T0, 1): 8, (T0, 2): 1, (T0, 3): 3}},
            "acks=all needs the 1 in sync: none more may be lost; broker 2 is up and behind; "
            "broker 3 is up and behind",
        ),
        (
            {"leader": -1, "isr": (3, 2), "alive": (1,)},
            {"leader": -1, "isr": (2, 3), "replicas": (2, 3), "alive": (1, 2, 3)},
            "no leader; in sync were 2,3, which are gone",
        ),
    ):
        found = [findings_of(facts(**given))[0] for given in (of_one, of_other)]
        assert [shared, shared] == [one.shared_cause for one in found]
        assert found[0].cause != found[1].cause
