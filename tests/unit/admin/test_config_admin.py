"""Settings in znodes: order of writes, guards, races."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import pytest

from engine.admin.config_admin import ConfigAdmin, NoController, usable_broker_overrides
from engine.errors import ConfigError
from engine.host.coroutine import drive
from engine.host.memory import ManualClock
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.errors import NoNode
from engine.znode.memory_journal import MemoryJournal
from engine.znode.model import Check, Create, Operation, OperationResult, SetData, Stat
from engine.znode.paths import CONTROLLER
from engine.znode.store import ZnodeStore
from engine.znode.values import ControllerRegistration, encode_config, encode_controller


class WatchedClient(EmbeddedZnodeClient):
    """Takes note of writes, and lets somebody else be faster."""

    def __init__(self, store: ZnodeStore) -> None:
        super().__init__(store, 18_000)
        self.writes: list[tuple[str, ...]] = []
        self.before_multi: list[Callable[[], None]] = []
        self.before_get: dict[str, Callable[[], None]] = {}

    async def get(self, path: str) -> tuple[bytes | None, Stat]:
        if path in self.before_get:
            self.before_get.pop(path)()
        return await super().get(path)

    async def create(self, path: str, data: bytes | None = None, **more: bool) -> str:
        created = await super().create(path, data, **more)
        self.writes.append((created,))
        return created

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        if self.before_multi:
            self.before_multi.pop(0)()
        results = await super().multi(operations)
        self.writes.append(tuple(f"{type(each).__name__} {each.path}" for each in operations))
        return results


def do(work: Coroutine[Any, None, Any]) -> Any:
    return drive(work).result()


def client_with(registration: ControllerRegistration | None) -> WatchedClient:
    client = WatchedClient(ZnodeStore(MemoryJournal(), ManualClock()))
    do(client.connect())
    for path in ("/config", "/config/changes", "/config/topics"):
        do(client.create(path))
    if registration is not None:
        do(client.create(CONTROLLER, encode_controller(registration)))
    client.writes.clear()
    return client


def setting(name: str, value: str) -> Callable[[Mapping[str, str]], Mapping[str, str]]:
    return lambda current: {**current, name: value}


def test_the_entity_is_written_with_its_change_notification() -> None:
    client = client_with(ControllerRegistration(1, 0))
    admin = ConfigAdmin(client)
    do(admin.change("topics/t", setting("a", "1")))
    do(admin.change("topics/t", setting("b", "2")))
    assert {"a": "1", "b": "2"} == do(admin.read("topics/t"))
    note = f"{Create.__name__} /config/changes/config_change_"
    assert [
        (f"{Check.__name__} /controller", f"{Create.__name__} /config/topics/t", note),
        (f"{Check.__name__} /controller", f"{SetData.__name__} /config/topics/t", note),
    ] == client.writes
    data, _ = do(client.get("/config/changes/config_change_0000000000"))
    assert b'{"version":2,"entity_path":"topics/t"}' == data


def test_parents_that_are_missing_are_made() -> None:
    client = client_with(ControllerRegistration(1, 0))
    admin = ConfigAdmin(client)
    do(admin.change("users/bob/clients/c", setting("producer_byte_rate", "1")))
    assert {"producer_byte_rate": "1"} == do(admin.read("users/bob/clients/c"))


def test_an_entity_without_a_node_has_no_settings() -> None:
    assert {} == do(ConfigAdmin(client_with(None)).read("topics/t"))


@pytest.mark.parametrize(
    ("entity", "settings"), [("topics/t", {"a": "1"}), ("users/bob", {"a": "1"}), ("users/bob", {})]
)
def test_nothing_is_written_without_a_place_for_the_note(
    entity: str, settings: dict[str, str]
) -> None:
    client = client_with(ControllerRegistration(1, 0))
    do(client.create("/config/users"))
    do(client.create("/config/users/bob", encode_config({"b": "1"})))
    do(client.delete("/config/changes"))
    before = do(ConfigAdmin(client).read(entity))
    with pytest.raises(NoNode):
        do(ConfigAdmin(client).change(entity, lambda _: settings))
    assert before == do(ConfigAdmin(client).read(entity))


def test_somebody_elses_change_is_not_lost() -> None:
    client = client_with(ControllerRegistration(1, 0))
    admin = ConfigAdmin(client)
    path = "/config/topics/t"
    client.before_multi = [
        lambda: do(client.create(path, encode_config({"theirs": "1"}))),
        lambda: do(client.set(path, encode_config({"theirs": "2"}))),
        lambda: do(client.set(CONTROLLER, encode_controller(ControllerRegistration(2, 0)))),
        lambda: do(client.delete(path)),
    ]
    do(admin.change("topics/t", setting("ours", "1")))
    assert {"ours": "1"} == do(admin.read("topics/t"))
    client.before_multi = [lambda: do(client.set(path, encode_config({"theirs": "3"})))]
    do(admin.change("topics/t", setting("ours", "2")))
    assert {"ours": "2", "theirs": "3"} == do(admin.read("topics/t"))


def test_a_quota_goes_also_where_another_removes_its_user_meanwhile() -> None:
    """The user above the quota is read once it is seen that no other client is left there."""
    client = client_with(ControllerRegistration(1, 0))
    admin, quota = ConfigAdmin(client), "users/bob/clients/c"
    do(admin.change(quota, setting("producer_byte_rate", "1")))
    client.before_get["/config/users/bob"] = lambda: do(admin.change(quota, lambda _: {}))
    do(admin.change(quota, lambda _: {}))
    assert [] == do(client.children("/config/users"))
    assert 3 == len(do(client.children("/config/changes")))


@pytest.mark.parametrize("registration", [None, ControllerRegistration(3000, 0, 4)])
def test_nothing_is_written_without_a_controller_of_this_kind(
    registration: ControllerRegistration | None,
) -> None:
    client = client_with(registration)
    with pytest.raises(NoController):
        do(ConfigAdmin(client).change("topics/t", setting("a", "1")))
    assert [] == client.writes


def test_nothing_is_written_while_the_controllers_node_cannot_be_read() -> None:
    client = client_with(ControllerRegistration(1, 0, -1))
    do(client.set("/controller", b"not json"))
    client.writes.clear()
    with pytest.raises(NoController, match="not json"):
        do(ConfigAdmin(client).change("topics/t", setting("a", "1")))
    assert [] == client.writes


def test_what_is_only_validated_is_not_written() -> None:
    client = client_with(None)
    admin = ConfigAdmin(client)
    do(admin.change("topics/t", setting("a", "1"), validate_only=True))
    assert [] == client.writes

    def refuse(current: Mapping[str, str]) -> Mapping[str, str]:
        raise ConfigError("a", "1", "is bad")

    with pytest.raises(ConfigError):
        do(admin.change("topics/t", refuse, validate_only=True))


def test_only_what_a_broker_can_go_by_is_usable() -> None:
    overrides = {
        "num.io.threads": "64",
        "some.plugin.key": "x",
        "broker.id": "7",
        "log.retention.ms": "soon",
        "listener.name.l.ssl.key.password": "secret",
        "advertised.listeners": "PLAINTEXT://x:1",
    }
    refused: list[ConfigError] = []
    usable = usable_broker_overrides(overrides, refused.append, per_broker=False)
    assert {"num.io.threads": "64", "some.plugin.key": "x"} == usable
    assert 4 == len(refused)
    assert "secret" not in " ".join(map(str, refused))
    usable = usable_broker_overrides(overrides, refused.append, per_broker=True)
    assert "advertised.listeners" in usable
