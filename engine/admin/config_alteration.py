"""Changes of the settings of a topic or of brokers: checked, then written.

| resource | allowed |
|---|---|
| a topic | an existing topic, topic keys, consistent values |
| this broker, all brokers | keys that may change at run time (`config.change`), valid values |
| a listener's TLS and SASL | settings with which the broker could start |
| a password of this broker | encrypted with `password.encoder.secret`; without one only checked |
| any of them | changes that the operator's policy allows (`policies.py`), which is called last |

Source: ConfigAdminManager, ZkAdminManager, AdminZkClient of 3.9.1.
Differs: invalid settings in a broker's znode are dropped as in Kafka, but passwords that cannot be
decrypted are kept, while Kafka drops them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from engine.admin.config_admin import ConfigAdmin, usable_broker_overrides
from engine.admin.config_errors import InvalidConfiguration, InvalidRequest, UnknownTopic
from engine.admin.policies import AlterConfigRequest, Policy
from engine.config.broker_config import BrokerConfig
from engine.config.change import (
    check_broker_change,
    check_local_retention,
    check_open_listeners,
    check_thread_counts,
    is_encrypted,
    is_only_by_listener,
    is_only_per_broker,
)
from engine.config.key import ConfigKey, UpdateMode, broker_keys, topic_keys
from engine.config.settings import BrokerSettings
from engine.config.topic_config import check_topic_overrides
from engine.errors import ConfigError
from engine.replication.metadata_cache import MetadataCache
from engine.security.password_encoder import NoCipher, PasswordEncoder
from engine.znode.paths import BROKER_CONFIGS, DEFAULT_ENTITY, TOPIC_CONFIGS

#: Raises ConfigError if a listener could not be opened with the settings after a change.
CheckListeners: TypeAlias = Callable[[BrokerSettings, BrokerSettings], None]
_TOPIC: Final = "TOPIC"
_BROKER: Final = "BROKER"


def _do_nothing() -> None:
    """Do nothing: the default of `reload_stores`."""


class Edit(NamedTuple):
    """A requested change of a resource's settings."""

    #: Returns the new settings, given the present ones and the keys of the resource.
    apply: Callable[[Mapping[str, str], Mapping[str, ConfigKey]], dict[str, str]]
    #: The settings in the request; None for deleted ones.
    named: Mapping[str, str | None]


class ConfigAlteration:
    """Changes the settings of topics and of this broker; `settings` returns the present ones."""

    def __init__(
        self,
        broker_id: int,
        metadata_cache: MetadataCache,
        admin: ConfigAdmin,
        settings: Callable[[], BrokerSettings],
        check_listeners: CheckListeners,
        policy: Policy[AlterConfigRequest] | None = None,
        passwords: PasswordEncoder | None = None,
        reload_stores: Callable[[], None] = _do_nothing,
    ) -> None:
        """Create the handler of changes to the settings of topics and brokers.

        `check_listeners` is called with the settings before and after a change; it raises for an
        invalid one. `reload_stores` reads replaced key stores again; it raises
        InvalidConfiguration.
        """
        self.broker_id = broker_id
        self._metadata_cache = metadata_cache
        self._admin = admin
        self._settings = settings
        self._check_listeners = check_listeners
        self._policy = policy
        self._passwords = passwords
        self._reload_stores = reload_stores

    async def alter_topic(self, topic: str, edit: Edit, *, validate_only: bool) -> None:
        """Change a topic's settings, or with `validate_only` only check the change.

        Raises UnknownTopic, ConfigError, and the errors of the policy and the store.
        """
        if topic not in self._metadata_cache.topics:
            # Invalid operations are rejected before the unknown topic.
            edit.apply({}, topic_keys())
            raise UnknownTopic(topic)

        def compute(current: Mapping[str, str]) -> dict[str, str]:
            """Return the topic's overrides after the edit.

            Raises if they or the policy reject it.
            """
            changed = edit.apply(current, topic_keys())
            check_topic_overrides(changed, self._settings())
            self._validate_by_policy(_TOPIC, topic, edit)
            return changed

        await self._admin.change(f"{TOPIC_CONFIGS}/{topic}", compute, validate_only=validate_only)

    async def alter_broker(self, edit: Edit, *, per_broker: bool, validate_only: bool) -> None:
        """Change the settings of this broker, or of all brokers without `per_broker`.

        `validate_only` only checks the change. Raises InvalidRequest, InvalidConfiguration,
        ConfigError, and the errors of the policy and the store.
        """

        def compute(current: Mapping[str, str]) -> dict[str, str]:
            """Return the stored settings after the edit, passwords encrypted.

            Raises if it is invalid.
            """
            settings = self._settings()
            kept = usable_broker_overrides(
                current, _ignore_unusable, per_broker=per_broker, passwords=self._passwords
            )
            # Passwords that cannot be decrypted are kept unchanged.
            unread = {k: v for k, v in current.items() if is_encrypted(k) and k not in kept}
            changed = edit.apply({**kept, **unread}, broker_keys())
            checked = {k: text for k, text in changed.items() if unread.get(k) != text}
            after = _check_broker(checked, settings, per_broker=per_broker)
            self._check_listeners(settings, after)
            self._validate_by_policy(_BROKER, str(self.broker_id) if per_broker else "", edit)
            if not validate_only:
                _check_passwords(checked, self._passwords, str(self.broker_id) * per_broker)
            if validate_only:
                return changed
            if per_broker:
                self._reload_stores()
            # An unchanged setting keeps its text, salt and all.
            same = {k: current[k] for k, text in kept.items() if checked.get(k) == text}
            new = {k: text for k, text in checked.items() if k not in same}
            return {**changed, **self._encrypt_passwords(new), **same}

        entity = str(self.broker_id) if per_broker else DEFAULT_ENTITY
        await self._admin.change(f"{BROKER_CONFIGS}/{entity}", compute, validate_only=validate_only)

    def _encrypt_passwords(self, changed: Mapping[str, str]) -> dict[str, str]:
        """Return the passwords among settings, encrypted; nothing without a password encoder.

        Raises InvalidConfiguration.
        """
        if self._passwords is None:
            return {}
        try:
            return {
                name: self._passwords.encode(text)
                for name, text in changed.items()
                if is_encrypted(name)
            }
        except NoCipher as error:
            raise InvalidConfiguration(str(error)) from error

    def _validate_by_policy(self, resource_type: str, name: str, edit: Edit) -> None:
        """Call the broker's AlterConfigPolicy, if any, and raise its error.

        `resource_type` and `name` identify the changed topic or broker.
        """
        if self._policy is not None:
            self._policy.validate(AlterConfigRequest(resource_type, name, edit.named))


def _ignore_unusable(_error: ConfigError) -> None:
    """Ignore an unusable setting: it was logged when the settings were read."""


def _check_broker(
    changed: Mapping[str, str], settings: BrokerSettings, *, per_broker: bool
) -> BrokerSettings:
    """Return a broker's settings after a change that is valid.

    Raises InvalidRequest if a setting cannot be changed while the broker runs or at this level,
    and ConfigError for a value.
    """
    keys = broker_keys()
    fixed = [n for n in changed if n in keys and keys[n].update_mode is UpdateMode.READ_ONLY]
    if fixed:
        raise InvalidRequest(f"Cannot update these configs dynamically: Set({', '.join(fixed)})")
    unprefixed = [name for name in changed if is_only_by_listener(name)]
    if unprefixed:
        raise InvalidRequest(
            "These security configs can be dynamically updated only per-listener using the "
            f"listener prefix: HashSet({', '.join(unprefixed)})"
        )
    # Types are checked before values.
    check_broker_change(changed, per_broker=True)
    of_one = [name for name in changed if not per_broker and is_only_per_broker(name)]
    if of_one:
        raise InvalidRequest(
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"Set({', '.join(of_one)})"
        )
    if per_broker:
        after = settings.with_dynamic(changed, settings.dynamic_default)
    else:
        after = settings.with_dynamic(settings.dynamic_broker, changed)
    config = BrokerConfig.parse(after)
    check_thread_counts(settings, after, [listener.name for listener in config.bound_listeners])
    check_local_retention(settings, after)
    check_open_listeners(settings, after, config)
    return after


def _check_passwords(
    changed: Mapping[str, str], passwords: PasswordEncoder | None, broker_name: str
) -> None:
    """Raise InvalidConfiguration if a change has passwords that cannot be encrypted and stored.

    `broker_name` is the resource name, empty for all brokers.

    Source: DynamicBrokerConfig.toPersistentProps.
    """
    if not any(map(is_encrypted, changed)):
        return
    resource = f"ConfigResource(type={_BROKER}, name='{broker_name}')"
    if not broker_name:
        reason = "Password config can be defined only at broker level"
    elif passwords is None:
        reason = "Password encoder secret not configured"
    else:
        return
    raise InvalidConfiguration(f"Invalid config value for resource {resource}: {reason}")
