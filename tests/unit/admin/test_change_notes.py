"""Changes that brokers hear of by a note: a writer may die after any of its requests."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

from engine.admin.acl_admin import AclAdmin
from engine.admin.config_admin import ConfigAdmin
from engine.admin.token_admin import TokenAdmin, TokenLifetimes
from engine.broker.stored_passwords import re_encode_passwords
from engine.host.coroutine import drive
from engine.host.memory import ManualClock, SeededEntropy
from engine.security.acl_cache import AclCache
from engine.security.acls import (
    AccessEntry,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    EntryFilter,
    PatternFilter,
    PatternType,
)
from engine.security.delegation_tokens import TokenCache, token_hmac
from engine.security.password_encoder import EncoderSettings, PasswordEncoder
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.errors import NoNode, SessionExpired
from engine.znode.memory_journal import MemoryJournal
from engine.znode.model import ANY_VERSION, Operation, OperationResult, Stat
from engine.znode.paths import CONTROLLER
from engine.znode.store import ZnodeStore
from engine.znode.values import ControllerRegistration, encode_controller

PATTERN = AclPattern(AclResource.TOPIC, "t", PatternType.PREFIXED)
ENTRY = AccessEntry("User:bob", "*", AclOperation.READ, AclPermission.ALLOW)
EVERY_ENTRY = EntryFilter(None, None, AclOperation.ANY, AclPermission.ANY)
OWNER = "User:alice"
#: More than any change needs.
REQUESTS = 6
NOTES = (
    "/config/changes",
    "/kafka-acl-changes",
    "/kafka-acl-extended-changes",
    "/delegation_token/token_changes",
)


class MortalClient(EmbeddedZnodeClient):
    """A session that ends after so many writes."""

    writes_left = 1_000

    def _use_up(self) -> None:
        if self.writes_left == 0:
            raise SessionExpired(self.session_id)
        self.writes_left -= 1

    async def create(self, path: str, data: bytes | None = None, **how: bool) -> str:
        self._use_up()
        return await super().create(path, data, **how)

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        self._use_up()
        return await super().set(path, data, version)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self._use_up()
        await super().delete(path, version)

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        self._use_up()
        return await super().multi(operations)


class Stage:
    """A broker's ways to change what others hear of."""

    def __init__(self) -> None:
        clock = ManualClock()
        self.client = MortalClient(ZnodeStore(MemoryJournal(), clock), 1 << 30)
        self.do(self.client.connect())
        for path in ("/config", "/config/changes", "/config/topics", "/config/brokers"):
            self.do(self.client.create(path))
        self.do(self.client.create(CONTROLLER, encode_controller(ControllerRegistration(1, 0))))
        self.configs = ConfigAdmin(self.client)
        self.rules = AclAdmin(self.client, AclCache())
        cache = TokenCache("secret", lambda: b"salt")
        lifetimes = TokenLifetimes(1_000, 9_000)
        self.tokens = TokenAdmin(
            self.client, cache, lifetimes, clock=clock, entropy=SeededEntropy(1)
        )
        self.do(self.rules.create_paths())
        self.do(self.tokens.create_paths())

    def do(self, work: Coroutine[Any, None, Any]) -> Any:
        return drive(work).result()

    def configure(self, entity: str, **settings: str) -> Coroutine[Any, None, Any]:
        return self.configs.change(entity, lambda _: settings)

    def encoder(self, secret: str) -> PasswordEncoder:
        settings = EncoderSettings(secret, "AES/CBC/PKCS5Padding", None, 128, 1_000)
        return PasswordEncoder(settings, SeededEntropy(2))

    def hmac(self) -> bytes:
        (token,) = self.tokens.cache.tokens
        return token_hmac("secret", token.token_id)

    def entity(self, path: str) -> object:
        """Return what is stored of an entity; of a parent, what is stored of its children."""
        try:
            names = self.do(self.client.children(path))
            children = [self.entity(f"{path}/{name}") for name in names]
            return self.do(self.client.get(path))[0], children
        except NoNode:
            return None

    def note_count(self) -> int:
        return sum(len(self.do(self.client.children(parent))) for parent in NOTES)


class Change(NamedTuple):
    """A change of the entity at `path`, behind another one."""

    path: str
    before: Callable[[Stage], Coroutine[Any, None, Any]] | None
    change: Callable[[Stage], Coroutine[Any, None, Any]]


def _added(stage: Stage) -> Coroutine[Any, None, Any]:
    return stage.rules.create([AclBinding(PATTERN, ENTRY)])


def _removed(stage: Stage) -> Coroutine[Any, None, Any]:
    return stage.rules.delete([AclFilter(PatternFilter(*PATTERN), EVERY_ENTRY)])


def _made(stage: Stage) -> Coroutine[Any, None, Any]:
    return stage.tokens.create(OWNER, OWNER, (), -1)


def _with_password(stage: Stage) -> Coroutine[Any, None, Any]:
    password = stage.encoder("one").encode("hidden")
    return stage.configure("brokers/1", **{"listener.name.l.ssl.key.password": password})


_ACL, _TOKENS = "/kafka-acl-extended/prefixed/Topic/t", "/delegation_token/tokens"
_QUOTA = "users/bob/clients/c"
CHANGES = {
    "first setting": Change(
        "/config/topics/t", None, lambda stage: stage.configure("topics/t", a="1")
    ),
    "next setting": Change(
        "/config/topics/t",
        lambda stage: stage.configure("topics/t", a="1"),
        lambda stage: stage.configure("topics/t", a="2"),
    ),
    "last quota": Change(
        f"/config/{_QUOTA}",
        lambda stage: stage.configure(_QUOTA, rate="1"),
        lambda stage: stage.configure(_QUOTA),
    ),
    "password": Change(
        "/config/brokers/1",
        _with_password,
        lambda stage: re_encode_passwords(
            stage.client, 1, stage.encoder("one"), stage.encoder("two")
        ),
    ),
    "first rule": Change(_ACL, None, _added),
    "last rule": Change(_ACL, _added, _removed),
    "new token": Change(_TOKENS, None, _made),
    "later token": Change(
        _TOKENS, _made, lambda stage: stage.tokens.renew(OWNER, stage.hmac(), 500)
    ),
    "ended token": Change(
        _TOKENS, _made, lambda stage: stage.tokens.expire(OWNER, stage.hmac(), -1)
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_there_with_its_note_whenever_its_writer_dies(name: str) -> None:
    """Source: ZN:config, ZN:acl."""
    path, before, change = CHANGES[name]
    are_changed = []
    for writes in range(REQUESTS):
        stage = Stage()
        if before is not None:
            stage.do(before(stage))
        entity, notes = stage.entity(path), stage.note_count()
        stage.client.writes_left = writes
        with suppress(SessionExpired):
            stage.do(change(stage))
        is_changed = stage.entity(path) != entity
        assert is_changed == (stage.note_count() == notes + 1)
        are_changed.append(is_changed)
    assert [False, True] == [are_changed[0], are_changed[-1]]
