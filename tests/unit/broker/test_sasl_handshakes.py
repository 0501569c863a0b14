"""What a listener with SASL does at handshakes, right and wrong, is what Kafka's does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.compat.sasl_compare import ACCEPTED
from tests.compat.sasl_handshakes import handshakes, play
from tests.unit.broker.memory_broker import MemoryBroker
from tests.unit.broker.sasl_listeners import MemoryWire, secured_broker

_RECORDED = json.loads(
    (Path(__file__).parents[2] / "golden" / "sasl" / "handshakes-3.9.1.json").read_text()
)
_CASES = {case.name: case for case in handshakes()}


@pytest.fixture(scope="module")
def stage() -> MemoryBroker:
    return secured_broker()


@pytest.mark.parametrize("name", sorted(set(_CASES) - ACCEPTED))
def test_a_handshake_goes_as_at_a_broker_of_3_9_1(stage: MemoryBroker, name: str) -> None:
    case = _CASES[name]
    assert _RECORDED[name] == play(case, MemoryWire(stage, case.listener.upper()))


@pytest.mark.parametrize("name", sorted(ACCEPTED))
def test_another_api_in_place_of_a_token_ends_the_connection_late(
    stage: MemoryBroker, name: str
) -> None:
    case = _CASES[name]
    assert "late closed" == play(case, MemoryWire(stage, case.listener.upper()))[-1]


def test_every_recorded_handshake_is_played() -> None:
    assert set(_RECORDED) == set(_CASES)
