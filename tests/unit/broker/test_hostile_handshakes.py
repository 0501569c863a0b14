"""Whatever comes before authentication ends its own connection, and nothing of it is served."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from tests.unit.broker.handshake_storm import BEFORE, HandshakeStorm
from tests.unit.broker.memory_broker import MemoryBroker
from tests.unit.broker.sasl_listeners import MemoryWire, secured_broker

_IDLE_MS = 30_000
_CONNECTIONS = 150
#: `connection.failed.authentication.delay.ms`.
_DELAY_MS = 100


@pytest.fixture
def stage() -> Iterator[MemoryBroker]:
    stage = secured_broker(connections_max_idle_ms=str(_IDLE_MS))
    yield stage
    stage.stop()
    assert not stage.faults


@pytest.mark.parametrize("seed", range(4))
def test_any_bytes_before_authentication_are_refused(
    stage: MemoryBroker, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = Random(f"handshakes {seed}")
    storm = HandshakeStorm(stage, monkeypatch)
    wires = [storm.throw(rng) for _ in range(_CONNECTIONS)]
    assert storm.served == 0
    assert storm.decoded == {f"{name}Request" for name in BEFORE}
    assert storm.log_in()
    stage.pass_time(2 * _IDLE_MS)
    assert [wire for wire in wires if not wire.is_closed] == []


def test_an_authentication_that_goes_on_for_ever_ends_at_its_deadline(stage: MemoryBroker) -> None:
    wires = [MemoryWire(stage, "SASL") for _ in range(1000)]
    rubbish, silent = wires[::2], wires[1::2]
    rng = Random(1)
    for wire in rubbish:
        wire.send(b"\0\0\0\x14" + rng.randbytes(20))
    for duration_ms in (0, _DELAY_MS, _IDLE_MS - _DELAY_MS - 1):
        assert not any(wire.is_closed for wire in silent)
        stage.pass_time(duration_ms)
    assert all(wire.is_closed for wire in rubbish)
    stage.pass_time(_DELAY_MS)
    assert all(wire.is_closed for wire in silent)
