"""Our authorizer decides what Kafka's AclAuthorizer decided for the same rules and requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.security.acls import AclOperation, AclResource
from tests.compat.authorizer.__main__ import differences
from tests.compat.authorizer.cases import Case, case_of, decisions_of

_STORED = Path(__file__).parents[2] / "golden" / "authorizer" / "decisions-3.9.1.jsonl"
_CASES: list[Case] = [json.loads(line) for line in _STORED.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("number", range(len(_CASES)))
def test_each_request_is_decided_as_by_kafka(number: int) -> None:
    case = _CASES[number]
    assert differences(case, case) == []


def test_the_stored_requests_are_of_every_kind_and_of_both_decisions() -> None:
    requests = [request for case in _CASES for request in case["requests"]]
    decisions = "".join(case["decisions"] for case in _CASES)
    assert len(requests) == len(decisions) >= 300
    assert min(decisions.count(digit) for digit in "01") > 90
    assert {kind for *_, kind, _ in requests} == {
        kind.name for kind in AclResource if kind > AclResource.ANY
    }
    assert {request[3] for request in requests} == {
        operation.name
        for operation in AclOperation
        if AclOperation.ANY < operation < AclOperation.TWO_PHASE_COMMIT
    }
    assert 40 < sum(request[-1] is None for request in requests) < 120


def test_a_seed_gives_the_same_requests_again() -> None:
    assert case_of(7) == case_of(7) != case_of(8)


def test_no_request_is_of_an_operation_that_the_class_does_not_have() -> None:
    drawn = [case_of(seed) for seed in range(20)]
    operations = {request[3] for case in drawn for request in case["requests"]}
    operations |= {rule[5] for case in drawn for rule in case["rules"]}
    assert "CREATE_TOKENS" in operations
    assert AclOperation.TWO_PHASE_COMMIT.name not in operations


def test_rules_that_are_lost_are_noticed() -> None:
    lost = [
        case
        for case in _CASES
        if decisions_of(case, {}).of_broker != case["decisions"]
    ]  # fmt: skip
    assert len(lost) > len(_CASES) // 2
