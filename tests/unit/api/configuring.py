"""A broker's settings over a store, for the handlers that describe and change them."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any

from engine.admin.config_admin import ConfigAdmin
from engine.admin.config_alteration import ConfigAlteration
from engine.api.alter_configs import AlterConfigs
from engine.api.describe_configs import DescribeConfigs
from engine.api.incremental_alter_configs import IncrementalAlterConfigs
from engine.config.settings import BrokerSettings
from engine.host.coroutine import drive
from engine.host.memory import ManualClock
from engine.wire.structs import message_class
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.memory_journal import MemoryJournal
from engine.znode.paths import CONFIG_CHANGES, CONTROLLER, PERSISTENT_PATHS, config_path
from engine.znode.store import ZnodeStore
from engine.znode.values import (
    ControllerRegistration,
    decode_config,
    decode_config_change,
    encode_config,
    encode_controller,
)
from tests.unit.api.asking import ask, cluster

STATIC = {"broker.id": "1", "zookeeper.connect": "here:2181", "num.io.threads": "8"}
TOPIC, BROKER, LOGGER, CLIENT_METRICS = 2, 4, 8, 16
SET, DELETE, APPEND, SUBTRACT = range(4)


class Levels:
    """Loggers that are two."""

    def __init__(self) -> None:
        self.own: dict[str, str] = {"root": "INFO"}

    def levels(self) -> Mapping[str, str]:
        return {name: self.own.get(name, self.own["root"]) for name in ("root", "kafka.a")}

    def set_level(self, name: str, level: str) -> None:
        self.own[name] = level

    def unset_level(self, name: str) -> None:
        del self.own[name]


class Stage:
    """Broker 1 with its handlers."""

    def __init__(self, *, has_controller: bool = True, policy: Any = None) -> None:
        self.client = EmbeddedZnodeClient(
            ZnodeStore(MemoryJournal(), ManualClock(wall_ms=1_000_000)), 18_000
        )
        self.do(self.client.connect())
        for path in PERSISTENT_PATHS:
            self.do(self.client.create(path))
        if has_controller:
            self.do(self.client.create(CONTROLLER, encode_controller(ControllerRegistration(1, 5))))
        self.settings = BrokerSettings(STATIC)
        self.levels = Levels()
        cache = cluster()
        admin = self.admin = ConfigAdmin(self.client)
        alteration = ConfigAlteration(
            1, cache, admin, lambda: self.settings, lambda _before, _after: None, policy
        )
        self.describe = DescribeConfigs(1, cache, admin, lambda: self.settings, self.levels)
        self.alter = AlterConfigs(alteration)
        self.incremental = IncrementalAlterConfigs(alteration, self.levels)

    def do(self, work: Coroutine[Any, None, Any]) -> Any:
        return drive(work).result()

    def put(self, entity: str, config: Mapping[str, str]) -> None:
        self.do(self.client.create(config_path(entity), encode_config(config)))

    def stored(self, entity: str) -> dict[str, str]:
        path = config_path(entity)
        return decode_config(self.do(self.client.get(path))[0], path)

    def is_stored(self, entity: str) -> bool:
        return self.do(self.client.exists(config_path(entity))) is not None

    def changes(self) -> list[str]:
        found = []
        for name in self.do(self.client.children(CONFIG_CHANGES)):
            path = f"{CONFIG_CHANGES}/{name}"
            found.append(decode_config_change(self.do(self.client.get(path))[0], path))
        return found

    def replace(self, kind: int, name: str, config: Mapping[str, str | None], **more: Any) -> Any:
        """Alter one resource the old way; returns code and message."""
        request = message_class("AlterConfigsRequest")
        resource = request.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[request.AlterableConfig(name=k, value=v) for k, v in config.items()],
        )
        (answer,) = ask(self.alter, "AlterConfigs", 2, resources=[resource], **more).responses
        return answer.error_code, answer.error_message

    def operate(
        self, kind: int, name: str, *operations: tuple[int, str, str | None], **more: Any
    ) -> Any:
        """Alter one resource step by step; returns code and message."""
        request = message_class("IncrementalAlterConfigsRequest")
        configs = [
            request.AlterableConfig(config_operation=operation, name=key, value=value)
            for operation, key, value in operations
        ]
        resource = request.AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=configs
        )
        reply = ask(self.incremental, "IncrementalAlterConfigs", 1, resources=[resource], **more)
        (answer,) = reply.responses
        return answer.error_code, answer.error_message
