"""Settings of topics, brokers and other entities in znodes: read, and changed as in Kafka.

```
read /controller and the entity ── compute the new settings ──┐
     ^                                                        v
     └── changed meanwhile  ── multi { check /controller · set or create /config/<entity>
                                        · create /config/changes/config_change_<S> }
```

The entity and its change note are written together: a broker that sees the note reads the new
settings, and none keeps the old ones because the writer crashed between two writes.

Nodes of users, clients and addresses are deleted with their last setting (`emptied_entities.py`).

Source: ZN:config; KafkaZkClient.setOrCreateEntityConfigs, AdminZkClient.changeEntityConfig.
Differs: settings that changed meanwhile are read again; in Kafka the last writer wins. Kafka writes
the note in a separate request: if that is never sent, running brokers keep the old settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from engine.admin.emptied_entities import delete_emptied, goes_when_empty, has_children
from engine.config.change import check_broker_change, is_encrypted
from engine.config.value import HIDDEN
from engine.errors import ApiError, ConfigError
from engine.kafka_errors import NOT_CONTROLLER
from engine.security.password_encoder import NoCipher, PasswordEncoder, PasswordUnreadable
from engine.znode.client import ZnodeClient
from engine.znode.errors import BadVersion, NodeExists, NoNode
from engine.znode.json_text import InvalidZnodeValue
from engine.znode.model import Check, Create, Operation, SetData
from engine.znode.paths import (
    CONFIG_CHANGE_PREFIX,
    CONTROLLER,
    config_path,
)
from engine.znode.values import (
    decode_config,
    decode_controller,
    encode_config,
    encode_config_change,
)

Compute: TypeAlias = Callable[[Mapping[str, str]], Mapping[str, str]]
#: Index of the note in the transaction that writes an entity.
_NOTE_INDEX = 2


class NoController(ApiError):
    """There is no controller, or a KRaft controller: settings cannot be changed."""

    def __init__(self, reason: str) -> None:
        super().__init__(NOT_CONTROLLER, reason)
        self.reason = reason


def change_note(entity_path: str) -> Create:
    """Return the operation that creates a change note, which the brokers watch.

    `entity_path` is the changed entity, such as `topics/t`.
    """
    return Create(CONFIG_CHANGE_PREFIX, encode_config_change(entity_path), sequential=True)


class ConfigAdmin:
    """Reads and changes settings of entities, which are named as in a change note: `topics/t`."""

    def __init__(self, znodes: ZnodeClient) -> None:
        self._znodes = znodes

    async def read(self, entity_path: str) -> dict[str, str]:
        """Return an entity's settings, empty without a znode; raises InvalidZnodeValue.

        `entity_path` is relative to `/config`, such as `topics/t`.
        """
        config, _ = await self._read(config_path(entity_path))
        return config

    async def change(
        self, entity_path: str, compute: Compute, *, validate_only: bool = False
    ) -> None:
        """Change an entity's settings and write a change note, which notifies all brokers.

        `compute` returns the new settings from the present ones; it is repeated after a concurrent
        write. `validate_only` only calls it. Raises the errors of `compute` and the store,
        NoController, InvalidZnodeValue.
        """
        path = config_path(entity_path)
        note = change_note(entity_path)
        while True:
            current, version = await self._read(path)
            changed = compute(current)
            if validate_only:
                return
            may_go = not changed and goes_when_empty(entity_path)
            if may_go and not await has_children(self._znodes, path):
                is_done = await delete_emptied(self._znodes, path, version, note)
            else:
                is_done = await self._write(path, encode_config(changed), version, note)
            if is_done:
                return

    async def _read(self, path: str) -> tuple[dict[str, str], int | None]:
        """Return the settings in a znode and its version; ({}, None) without a node."""
        try:
            data, stat = await self._znodes.get(path)
        except NoNode:
            return {}, None
        return decode_config(data, path), stat.version

    async def _write(self, path: str, data: bytes, version: int | None, note: Create) -> bool:
        """Write an entity's znode and the change note, if the controller is the same at that time.

        Returns False if the entity was changed since it was read at `version` (None: no node).
        """
        guard = Check(CONTROLLER, await self._controller_version())
        write: Operation
        if version is None:
            await self._create_parents(path)
            write = Create(path, data)
        else:
            write = SetData(path, data, version)
        try:
            await self._znodes.multi((guard, write, note))
        except (BadVersion, NodeExists, NoNode) as error:
            if error.operation_index == _NOTE_INDEX:
                raise
            return False
        return True

    async def _controller_version(self) -> int:
        """Return the version of `/controller`, which each write checks.

        Raises NoController if there is no controller, or a KRaft one.
        """
        try:
            data, stat = await self._znodes.get(CONTROLLER)
        except NoNode:
            raise NoController("there is no controller now") from None
        try:
            registration = decode_controller(data, CONTROLLER)
        except InvalidZnodeValue as error:
            raise NoController(f"there is no controller now: {error}") from error
        if registration.kraft_controller_epoch > 0:
            raise NoController("the controller is one of a KRaft quorum")
        return stat.version

    async def _create_parents(self, path: str) -> None:
        """Create the missing ancestors of a path as persistent nodes without data."""
        names = path.split("/")[1:-1]
        for count in range(1, len(names) + 1):
            try:
                await self._znodes.create("/" + "/".join(names[:count]))
            except NodeExists:
                continue


def usable_broker_overrides(
    overrides: Mapping[str, str],
    on_unusable: Callable[[ConfigError], None],
    *,
    per_broker: bool,
    passwords: PasswordEncoder | None = None,
) -> dict[str, str]:
    """Return the usable settings in the znode of a broker, or of all brokers; decrypted.

    Each setting is checked separately, and `on_unusable` gets the error of one that is invalid.
    Limits on changes of thread numbers do not apply. Without `passwords` encrypted settings are
    unusable.
    Source: DynamicBrokerConfig.fromPersistentProps.
    """
    usable = {}
    for name, text in overrides.items():
        try:
            value = _decrypt(name, text, passwords) if is_encrypted(name) else text
            check_broker_change({name: value}, per_broker=per_broker)
            usable[name] = value
        except ConfigError as error:
            on_unusable(error)
    return usable


def _decrypt(name: str, text: str, passwords: PasswordEncoder | None) -> str:
    """Return a decrypted password setting; raises ConfigError if that is impossible."""
    if passwords is None:
        raise ConfigError(name, HIDDEN, "is encrypted, and this broker has no key for it")
    try:
        return passwords.decode(text)
    except (PasswordUnreadable, NoCipher) as error:
        raise ConfigError(name, HIDDEN, f"could not be decoded: {error}") from error
