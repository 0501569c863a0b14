"""Steps as requests: the error of each, and what is not sent."""

from __future__ import annotations

from typing import Any

import pytest

from engine.declared.resources import DeclaredPassword, ResourceKind
from engine.declared.state_reading import ordered_entity
from engine.declared.step_execution import check_passwords, perform, step_groups, validate_steps
from engine.declared.step_making import rule_step
from engine.declared.steps import (
    ChangeSettings,
    CreateTopic,
    MoveReplicas,
    Operation,
    SetCredential,
    StateStep,
    StepAction,
)
from engine.errors import ApiError, EngineError
from engine.kafka_errors import INVALID_CONFIG, NONE, POLICY_VIOLATION, SECURITY_DISABLED
from engine.security.scram import ScramMechanism
from engine.wire import messages
from tests.unit.client.fake_broker import FakeCluster
from tests.unit.declared.states import rule


def step(operation: Operation) -> StateStep:
    return StateStep(StepAction.CREATE, ResourceKind.TOPICS, "x", (), operation)


def codes(errors: Any) -> list[int | None]:
    return [error.code if isinstance(error, ApiError) else None for error in errors]


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster(
        {
            "CreateAcls": (1, 3),
            "CreateTopics": (2, 7),
            "IncrementalAlterConfigs": (0, 1),
            "AlterUserScramCredentials": (0, 0),
        }
    )


def test_one_rule_that_is_refused_leaves_the_others(cluster: FakeCluster) -> None:
    def answer(request: Any, _version: int, _address: object) -> Any:
        response = messages.CreateAclsResponse
        rows = [
            response.AclCreationResult(
                error_code=SECURITY_DISABLED if creation.principal == "User:b" else NONE
            )
            for creation in request.creations
        ]
        return response(results=rows)

    cluster.handlers["CreateAcls"] = answer
    (group,) = step_groups([rule_step(StepAction.CREATE, rule(user)) for user in "abc"])
    assert [None, SECURITY_DISABLED, None] == codes(perform(cluster.client(), group))


def test_topics_are_checked_without_being_created(cluster: FakeCluster) -> None:
    requests = []

    def answer(request: Any, _version: int, _address: object) -> Any:
        requests.append(request)
        response = messages.CreateTopicsResponse
        code = {"bad": POLICY_VIOLATION}
        return response(
            topics=[
                response.CreatableTopicResult(name=t.name, error_code=code.get(t.name, NONE))
                for t in request.topics
            ]
        )

    cluster.handlers["CreateTopics"] = answer
    steps = [
        step(CreateTopic("good", None, None, (), {})),
        rule_step(StepAction.CREATE, rule("a")),
        step(CreateTopic("bad", 1, 2, (), {"a": "b"})),
    ]
    assert [None, None, POLICY_VIOLATION] == codes(validate_steps(cluster.client(), steps))
    assert [True, True] == [request.validate_only for request in requests]
    (of_good,), (of_bad,) = (request.topics for request in requests)
    assert (-1, -1) == (of_good.num_partitions, of_good.replication_factor)
    assert (1, 2) == (of_bad.num_partitions, of_bad.replication_factor)


def test_a_broker_that_does_not_answer_keeps_no_other_from_its_settings(
    cluster: FakeCluster,
) -> None:
    def answer(request: Any, _version: int, address: tuple[str, int]) -> Any:
        response = messages.IncrementalAlterConfigsResponse
        rows = [
            response.AlterConfigsResourceResponse(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                error_code=INVALID_CONFIG if address[1] == 9002 else NONE,
            )
            for resource in request.resources
        ]
        return response(responses=rows)

    cluster.handlers["IncrementalAlterConfigs"] = answer
    group = [
        step(ChangeSettings(ResourceKind.BROKERS, name, {"a": "b", "c": None}))
        for name in ("", "1", "2")
    ]
    assert [None, None, INVALID_CONFIG] == codes(perform(cluster.client(), group))
    cluster.brokers = [1]
    errors = perform(cluster.client(), group)
    assert [False, False, True] == [isinstance(error, EngineError) for error in errors]


def test_a_password_that_is_not_there_is_known_before_and_sends_nothing(
    cluster: FakeCluster,
) -> None:
    sha_256, sha_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
    group = [
        step(SetCredential("a", sha_256, None, DeclaredPassword("P", None))),
        step(SetCredential("a", sha_512, None, DeclaredPassword("P", None))),
        step(SetCredential("b", sha_512, None, None)),
        step(SetCredential("c", sha_512, None, DeclaredPassword("P", ""))),
    ]
    first, second, third = check_passwords(group)
    assert "users: a needs a password, and ${P} is not set" == str(first)
    assert "users: b needs a password, and no password is declared" == str(second)
    assert "users: c needs a password, and ${P} is empty" == str(third)
    assert all(perform(cluster.client(), group))
    assert [] == cluster.requested_apis()


def test_settings_of_brokers_and_of_topics_are_requests_of_their_own() -> None:
    of_brokers, of_topics = ResourceKind.BROKERS, ResourceKind.TOPICS
    steps = [
        StateStep(StepAction.CHANGE, kind, "x", (), ChangeSettings(kind, "1", {"a": "b"}))
        for kind in (of_brokers, of_brokers, of_topics)
    ]
    assert [[of_brokers] * 2, [of_topics]] == [[s.kind for s in g] for g in step_groups(steps)]


def test_requests_have_a_bound_and_moves_are_one_plan() -> None:
    topics = [step(CreateTopic(str(number), None, None, (), {})) for number in range(60)]
    moves = [step(MoveReplicas(str(number), 2, ())) for number in range(60)]
    assert [50, 10, 60] == [len(group) for group in step_groups([*topics, *moves])]


def test_an_entity_has_its_parts_in_one_order() -> None:
    parts = (("other", "x"), ("ip", "i"), ("client-id", "c"), ("user", None))
    assert ["user", "client-id", "ip", "other"] == [kind for kind, _ in ordered_entity(parts)]
