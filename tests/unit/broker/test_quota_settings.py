"""Limits are read from the znodes: all of them again, and one after a change."""

from __future__ import annotations

from typing import Any

import pytest

from engine.broker.quota_settings import QuotaSettings
from engine.host.coroutine import drive
from engine.host.memory import ManualClock
from engine.security.quota_limits import QuotaOwner
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.errors import ZnodeConnectionLost
from engine.znode.memory_journal import MemoryJournal
from engine.znode.store import ZnodeStore


class Stage:
    """A store with the rates of connections, and a broker's limits of them."""

    def __init__(self) -> None:
        self.znodes = EmbeddedZnodeClient(ZnodeStore(MemoryJournal(), ManualClock()), 18_000)
        drive(self.znodes.connect()).result()
        for path in ("/config", "/config/ips", "/config/users", "/config/clients"):
            drive(self.znodes.create(path, b"")).result()
        self.quotas = QuotaSettings(self.znodes, lambda host: host if host[0].isdigit() else None)
        self.changes: list[tuple[int | None, int | None]] = []
        self.quotas.on_change = lambda: self.changes.append(self.rates())

    def set(self, name: str, rate: str, *, is_new: bool = False) -> None:
        value = f'{{"version":1,"config":{{"connection_creation_rate":"{rate}"}}}}'.encode()
        path = f"/config/ips/{name}"
        if is_new:
            drive(self.znodes.create(path, value)).result()
        else:
            drive(self.znodes.set(path, value)).result()

    def rates(self) -> tuple[int | None, int | None]:
        return self.quotas.rates.rate_of("10.0.0.1"), self.quotas.rates.rate_of("10.0.0.2")

    def load(self) -> None:
        drive(self.quotas.load()).result()


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.set("<default>", "5", is_new=True)
    stage.set("10.0.0.1", "7", is_new=True)
    stage.load()
    return stage


def test_rates_of_before_count_until_all_are_read_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (7, 5) == stage.rates()
    seen = []
    get = stage.znodes.get

    async def seen_get(path: str) -> Any:
        seen.append(stage.rates())
        return await get(path)

    monkeypatch.setattr(stage.znodes, "get", seen_get)
    stage.set("10.0.0.1", "8")
    stage.load()
    assert {(7, 5)} == set(seen)
    assert (8, 5) == stage.rates()


def test_a_read_that_fails_leaves_all_rates(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def lost(path: str) -> Any:
        raise ZnodeConnectionLost(path)

    stage.set("10.0.0.1", "8")
    monkeypatch.setattr(stage.znodes, "get", lost)
    with pytest.raises(ZnodeConnectionLost):
        stage.load()
    assert (7, 5) == stage.rates()


def test_what_a_failed_read_removed_is_notified(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = QuotaOwner("", "c")
    stage.quotas.limits.take(owner, {"producer_byte_rate": "5"})

    async def lost(path: str) -> Any:
        raise ZnodeConnectionLost(path)

    monkeypatch.setattr(stage.znodes, "get", lost)
    owners = []
    stage.quotas.on_change = lambda: owners.append(stage.quotas.limits.owners())
    with pytest.raises(ZnodeConnectionLost):
        stage.load()
    assert [set()] == owners


def test_rates_that_are_removed_go(stage: Stage) -> None:
    drive(stage.znodes.delete("/config/ips/<default>")).result()
    stage.load()
    assert (7, None) == stage.rates()
    drive(stage.znodes.delete("/config/ips/10.0.0.1")).result()
    drive(stage.quotas.apply("ips/10.0.0.1")).result()
    assert [(7, 5), (7, None), (None, None)] == stage.changes


@pytest.mark.parametrize("name", ["<default>", "10.0.0.1"])
def test_a_rate_that_is_no_number_leaves_that_of_before(stage: Stage, name: str) -> None:
    stage.set(name, "many")
    stage.load()
    assert (7, 5) == stage.rates()
    drive(stage.quotas.apply(f"ips/{name}")).result()
    assert (7, 5) == stage.rates()


def test_a_host_without_an_address_has_no_rate(stage: Stage) -> None:
    stage.set("nowhere", "9", is_new=True)
    stage.load()
    assert {"10.0.0.1": 7} == stage.quotas.rates.by_address


def test_a_rate_that_is_no_number_leaves_that_of_another_host_of_its_address() -> None:
    stage = Stage()
    stage.quotas = QuotaSettings(stage.znodes, lambda _host: "10.0.0.1")
    for name, rate in (("a", "3"), ("b", "3")):
        stage.set(name, rate, is_new=True)
    stage.load()
    stage.set("a", "7")
    stage.set("b", "many")
    stage.load()
    assert {"10.0.0.1": 7} == stage.quotas.rates.by_address
