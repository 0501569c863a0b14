"""One resource changed: what may be set, then written; shared by both APIs that do it.

| resource | allowed |
|---|---|
| a topic | one that is known, keys of topics, values that fit each other |
| this broker, all brokers | what may change at run time (`config.change`), values that fit |
| a password of this broker | only in a request that writes nothing: no secret encrypts it |

Source: ConfigAdminManager, ZkAdminManager, AdminZkClient of 3.9.1.
Differs: with password.encoder.secret Kafka encrypts passwords; here they are refused, also in a
request that writes nothing. Settings in a broker's znode that no broker goes by are dropped as in
Kafka, encrypted passwords are kept, where Kafka drops those that it cannot decrypt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from engine.admin.config_admin import ConfigAdmin, usable_broker_overrides
from engine.api.admission import NotAuthorized
from engine.api.config_resources import (
    RESOURCE_TYPES,
    AlteredResource,
    InvalidConfiguration,
    InvalidRequest,
    ResourceResult,
    ResourceType,
    UnknownTopic,
    require_own_id,
    result_of,
)
from engine.api.promised import promised
from engine.config.broker_config import BrokerConfig
from engine.config.change import check_broker_change, check_thread_counts, is_encrypted
from engine.config.key import ConfigKey, UpdateMode, broker_keys, topic_keys
from engine.config.settings import BrokerSettings
from engine.config.topic_config import check_topic_overrides
from engine.errors import ConfigError, EngineError
from engine.host.promise import Promise
from engine.replication.metadata_cache import MetadataCache
from engine.znode.paths import BROKER_CONFIGS, DEFAULT_ENTITY, TOPIC_CONFIGS

R = TypeVar("R", bound=AlteredResource)
T = TypeVar("T")

#: Returns new settings from those that are set, given the keys of the resource.
Edit: TypeAlias = Callable[[Mapping[str, str], Mapping[str, ConfigKey]], dict[str, str]]


class ConfigAlteration:
    """Changes settings of topics and of this broker; `settings` returns the broker's of now."""

    def __init__(
        self,
        broker_id: int,
        metadata_cache: MetadataCache,
        admin: ConfigAdmin,
        settings: Callable[[], BrokerSettings],
    ) -> None:
        self.broker_id = broker_id
        self._metadata_cache = metadata_cache
        self._admin = admin
        self._settings = settings

    async def alter(self, resource: AlteredResource, edit: Edit, *, validate_only: bool) -> None:
        """Change one resource of a request.

        Errors: ApiError, ConfigError, those of the store.
        """
        kind, name = resource.resource_type, resource.resource_name
        if kind == ResourceType.TOPIC:
            await self._alter_topic(name, edit, validate_only=validate_only)
        elif kind == ResourceType.BROKER:
            await self._alter_broker(name, edit, validate_only=validate_only)
        elif kind in RESOURCE_TYPES:
            label = ResourceType(kind).name
            raise InvalidRequest(
                f"AlterConfigs is only supported for topics and brokers, but resource type is "
                f"{label}"
            )
        else:
            raise InvalidRequest(f"Unknown resource type {kind}")

    async def _alter_topic(self, topic: str, edit: Edit, *, validate_only: bool) -> None:
        if not topic:
            raise InvalidRequest("Default topic resources are not allowed.")
        if topic not in self._metadata_cache.topics:
            raise UnknownTopic(topic)

        def compute(current: Mapping[str, str]) -> dict[str, str]:
            changed = edit(current, topic_keys())
            check_topic_overrides(changed, self._settings())
            return changed

        await self._admin.change(f"{TOPIC_CONFIGS}/{topic}", compute, validate_only=validate_only)

    async def _alter_broker(self, name: str, edit: Edit, *, validate_only: bool) -> None:
        if name:
            require_own_id(name, self.broker_id)
        per_broker = bool(name)

        def compute(current: Mapping[str, str]) -> dict[str, str]:
            settings = self._settings()
            kept = usable_broker_overrides(current, _pass_over, per_broker=per_broker)
            passwords = {key: text for key, text in current.items() if is_encrypted(key)}
            changed = edit({**kept, **passwords}, broker_keys())
            checked = {k: text for k, text in changed.items() if passwords.get(k) != text}
            _check_broker(checked, settings, per_broker=per_broker)
            _check_passwords(checked, settings, per_broker=per_broker, is_written=not validate_only)
            return changed

        entity = str(self.broker_id) if per_broker else DEFAULT_ENTITY
        await self._admin.change(f"{BROKER_CONFIGS}/{entity}", compute, validate_only=validate_only)


def _pass_over(_error: ConfigError) -> None:
    """Say nothing: the reader of the settings has said it."""


def _check_broker(
    changed: Mapping[str, str], settings: BrokerSettings, *, per_broker: bool
) -> None:
    """Raise InvalidRequest or ConfigError unless a broker, or all, may be set to these."""
    keys = broker_keys()
    fixed = [n for n in changed if n in keys and keys[n].update_mode is UpdateMode.READ_ONLY]
    if fixed:
        raise InvalidRequest(f"Cannot update these configs dynamically: Set({', '.join(fixed)})")
    check_broker_change(changed, per_broker=per_broker)
    if per_broker:
        after = settings.with_dynamic(changed, settings.dynamic_default)
    else:
        after = settings.with_dynamic(settings.dynamic_broker, changed)
    config = BrokerConfig.of(after)
    check_thread_counts(settings, after, [listener.name for listener in config.bound_listeners])


def _check_passwords(
    changed: Mapping[str, str], settings: BrokerSettings, *, per_broker: bool, is_written: bool
) -> None:
    """Raise InvalidConfiguration for passwords that would have to be encrypted."""
    names = ", ".join(name for name in changed if is_encrypted(name))
    if not names:
        return
    if settings.set_text("password.encoder.secret") is not None:
        raise InvalidConfiguration(
            f"this broker does not encrypt passwords: set them in its file, {names}"
        )
    if is_written and per_broker:
        raise InvalidConfiguration(
            f"without password.encoder.secret no password can be kept: set it in the file, {names}"
        )
    if is_written:
        raise InvalidConfiguration(f"a password can be set only for one broker: {names}")


def altered_rows(
    make_row: Callable[..., T], results: Iterable[tuple[R, ResourceResult]]
) -> list[T]:
    """Return the row of a response for each resource that was to be changed."""
    return [
        make_row(
            error_code=result.code,
            error_message=result.message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource, result in results
    ]


def alter_each(
    resources: Sequence[R], alter: Callable[[R], Awaitable[None]]
) -> Promise[list[tuple[R, ResourceResult]]]:
    """Change the resources one by one and promise the result of each.

    A resource that is named twice is refused both times, and nothing of it changed.
    """
    counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)

    async def result_of_altering(resource: R) -> ResourceResult:
        kind, name = resource.resource_type, resource.resource_name
        try:
            if counts[kind, name] > 1:
                raise InvalidRequest("Each resource must appear at most once.")
            await alter(resource)
        except NotAuthorized as error:
            # Kafka has words for it for loggers alone.
            is_logger = kind == ResourceType.BROKER_LOGGER
            return ResourceResult(error.code, error.detail if is_logger else None)
        except EngineError as error:
            return result_of(error, kind, name)
        return ResourceResult()

    async def work() -> list[tuple[R, ResourceResult]]:
        return [(resource, await result_of_altering(resource)) for resource in resources]

    return promised(work())
