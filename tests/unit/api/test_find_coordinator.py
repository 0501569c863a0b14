"""FindCoordinator without coordinators, in the form of every version."""

from __future__ import annotations

import pytest

from engine.api.find_coordinator import FindCoordinator
from tests.unit.api.asking import ask


@pytest.mark.parametrize("version", range(4))
def test_one_key_is_answered_at_the_top(version: int) -> None:
    reply = ask(FindCoordinator(), "FindCoordinator", version, key="g")
    assert (15, -1, "", -1) == (reply.error_code, reply.node_id, reply.host, reply.port)
    assert [] == reply.coordinators


@pytest.mark.parametrize("version", range(4, 7))
def test_keys_are_answered_in_a_list(version: int) -> None:
    reply = ask(FindCoordinator(), "FindCoordinator", version, coordinator_keys=["a", "b"])
    assert [("a", 15, -1, -1), ("b", 15, -1, -1)] == [
        (each.key, each.error_code, each.node_id, each.port) for each in reply.coordinators
    ]


@pytest.mark.parametrize(
    ("version", "key_type", "code"), [(5, 1, 15), (5, 2, 42), (6, 2, 15), (6, 3, 42)]
)
def test_types_of_coordinators_belong_to_versions(version: int, key_type: int, code: int) -> None:
    reply = ask(
        FindCoordinator(), "FindCoordinator", version, key_type=key_type, coordinator_keys=["a"]
    )
    assert [code] == [each.error_code for each in reply.coordinators]


def test_the_list_has_no_messages() -> None:
    reply = ask(FindCoordinator(), "FindCoordinator", 4, coordinator_keys=["a"])
    assert [""] == [each.error_message for each in reply.coordinators]
