"""`kafka-configs --alter`.

Source: ConfigCommand.alterConfig, parseConfigsToBeAdded of 3.9.1 and 4.3.0.

Differs: settings of a broker are changed one by one, not replaced as a complete set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TextIO

from engine.client.blocking import KafkaClient
from engine.client.config_admin import (
    ConfigChange,
    ConfigOp,
    ConfigResourceType,
    Resource,
    alter_configs,
)
from engine.client.quota_admin import alter_quotas
from engine.client.scram_admin import NewCredential, alter_credentials
from engine.config.java_properties import parse_properties
from engine.host.ports import FileMissing, FileRefused, Files
from engine.security.scram import ScramMechanism
from kctl.compat.configs_entities import ConfigsRefused, Entities
from kctl.compat.configs_views import quota_entity, request_quotas, request_settings
from kctl.compat.java_admin import admin_call, raise_first
from kctl.compat.java_client import unreadable_properties_failure
from kctl.compat.java_numbers import java_number
from kctl.compat.java_options import GivenOptions
from kctl.compat.java_order import names_in_java_order
from kctl.compat.java_split import java_split, java_split_pattern

_RESOURCES: Final = {
    "topics": ConfigResourceType.TOPIC,
    "brokers": ConfigResourceType.BROKER,
    "broker-loggers": ConfigResourceType.BROKER_LOGGER,
    "client-metrics": ConfigResourceType.CLIENT_METRICS,
    "groups": ConfigResourceType.GROUP,
}
_QUOTAS: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
_IP_QUOTAS: Final = ("connection_creation_rate",)
_MECHANISMS: Final = {mechanism.key: mechanism for mechanism in ScramMechanism}
_NOT_IN_BRACKETS: Final = r"(?=[^\]]*(?:\[|$))"
_KEY: Final = re.compile(r"[a-zA-Z0-9._-]*")
_CREDENTIAL: Final = re.compile(r"(?:iterations=(-?[0-9]*),)?password=(.*)")
_DOUBLE: Final = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?"
)
_ITERATIONS_MIN: Final = 4096
_FORMAT_VERSION: Final = "message.format.version"


def alter_entity_configs(
    client: KafkaClient, given: GivenOptions, entities: Entities, files: Files, out: TextIO
) -> None:
    """Change the settings of an entity by kafka-configs --alter, and print the result.

    Settings of users, clients and addresses are quotas or SCRAM credentials. Errors: ToolFailure,
    ConfigsRefused.
    """
    kind, name = entities.types[0], entities.names[0]
    added = _settings_to_add(given, files, out)
    deleted = [
        key.strip() for text in given.texts("delete-config") for key in java_split(text, ",")
    ]
    if kind in _RESOURCES:
        _alter_resource(client, (kind, name), added, deleted, is_strict=not given.is_four)
    elif kind == "ips":
        unknown = [key for key in (*added, *deleted) if key not in _IP_QUOTAS]
        if unknown:
            raise ConfigsRefused(
                "Only connection quota configs can be added for 'ips' using --bootstrap-server. "
                f"Unexpected config names: {','.join(unknown)}"
            )
        _alter_quotas(client, entities, added, deleted)
    else:
        _alter_users(client, entities, added, deleted)
    if name:
        out.write(f"Completed updating config for {kind[:-1]} {name}.\n")
    else:
        out.write(f"Completed updating default config for {kind} in the cluster.\n")


def _settings_to_add(given: GivenOptions, files: Files, out: TextIO) -> dict[str, str]:
    """Return the settings of --add-config-file and --add-config, in the order of Java's map.

    Errors: ConfigsRefused, ToolFailure.
    """
    added: dict[str, str] = {}
    if given.has("add-config-file"):
        path = given.needed("add-config-file")
        try:
            added = parse_properties(files.read_bytes(path), path)
        except (FileMissing, FileRefused) as error:
            raise unreadable_properties_failure(path, error) from error
    if given.has("add-config"):
        added |= parse_added_configs(given.needed("add-config"), is_four=given.is_four)
    if _FORMAT_VERSION in added and not given.is_four:
        out.write(
            f"WARNING: The configuration {_FORMAT_VERSION}={added[_FORMAT_VERSION]} is specified. "
            "This configuration will be ignored if the version is newer than the "
            "inter.broker.protocol.version specified in the broker or if the "
            "inter.broker.protocol.version is 3.0 or newer. This configuration is deprecated and "
            "it will be removed in Apache Kafka 4.0.\n"
        )
    for key in added:
        if not _KEY.fullmatch(key):
            raise ConfigsRefused(f"Invalid character found for config key: {key}")
    return {key: added[key] for key in names_in_java_order(added)}


def parse_added_configs(text: str, *, is_four: bool) -> dict[str, str]:
    """Parse `key=value,…` of --add-config; commas in brackets belong to a value.

    Errors: ConfigsRefused.
    """
    pairs = [
        re.split(rf"\s*=\s*{_NOT_IN_BRACKETS}", part)
        for part in java_split_pattern(text, f",{_NOT_IN_BRACKETS}")
    ]
    if any(len(pair) != 2 for pair in pairs):
        lists = ' or  "key=[val1,val2]" to group values which contain commas' if is_four else ""
        raise ConfigsRefused(
            "requirement failed: Invalid entity config: all configs to be added must be in the "
            f'format "key=val"{lists}.'
        )
    return {key.strip(): re.sub(r"\[?\]?", "", value).strip() for key, value in pairs}


def _alter_resource(
    client: KafkaClient,
    entity: tuple[str, str],
    added: Mapping[str, str],
    deleted: Sequence[str],
    *,
    is_strict: bool,
) -> None:
    """Set and delete settings of a topic, broker, logger or other resource with settings.

    `entity` is (type, name). With `is_strict`, as in 3.9.1, the deletion of a setting that is not
    set is refused. Errors: ConfigsRefused, ToolFailure.
    """
    kind, name = entity
    if is_strict or kind == "broker-loggers":
        _check_settings(client, entity, added, deleted)
    changes = [ConfigChange(ConfigOp.SET, key, value) for key, value in added.items()]
    changes += [ConfigChange(ConfigOp.DELETE, key, "") for key in deleted]
    resource = Resource(_RESOURCES[kind], name)
    with admin_call("incrementalAlterConfigs"):
        results = alter_configs(client, {resource: changes})
    raise_first({key.name: error for key, error in results.items()})


def _check_settings(
    client: KafkaClient,
    entity: tuple[str, str],
    added: Mapping[str, str],
    deleted: Sequence[str],
) -> None:
    """Raise ConfigsRefused for changes that the tool refuses before it sends them.

    These are unknown loggers, deletions of settings that are not set, and sensitive broker settings
    whose values the call does not repeat.
    """
    kind, name = entity
    settings = {entry.name: entry for entry in request_settings(client, kind, name)}
    if kind == "broker-loggers":
        unknown = [key for key in (*deleted, *added) if key not in settings]
        if unknown:
            raise ConfigsRefused(f"Invalid broker logger(s): {','.join(unknown)}")
    _need_all(deleted, settings)
    if kind == "brokers":
        hidden = [
            entry.name
            for entry in settings.values()
            if entry.value is None and entry.name not in added and entry.name not in deleted
        ]
        if hidden:
            raise ConfigsRefused(
                "All sensitive broker config entries must be specified for --alter, missing "
                f"entries: Set({', '.join(hidden)})"
            )


def _need_all(deleted: Sequence[str], known: Iterable[str]) -> None:
    """Raise ConfigsRefused if a setting to delete is not in `known`, those that are set."""
    unknown = [key for key in deleted if key not in set(known)]
    if unknown:
        raise ConfigsRefused(f"Invalid config(s): {','.join(unknown)}")


def _alter_users(
    client: KafkaClient, entities: Entities, added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    """Change quotas of users and clients, or SCRAM credentials of a user.

    A call changes one kind of them. Errors: ConfigsRefused, ToolFailure.
    """
    unknown_added = [key for key in added if key not in (*_QUOTAS, *_MECHANISMS)]
    unknown_deleted = [key for key in deleted if key not in (*_QUOTAS, *_MECHANISMS)]
    scram_added = [key for key in added if key in _MECHANISMS]
    scram_deleted = [key for key in deleted if key in _MECHANISMS]
    is_quota = any(key in _QUOTAS for key in (*added, *deleted))
    if entities.types[0] == "clients" or len(entities.types) == 2:
        _refuse_unexpected("Only quota", "added", "clients", unknown_added + scram_added)
        _refuse_unexpected("Only quota", "deleted", "clients", unknown_deleted + scram_deleted)
    else:
        _refuse_unexpected("Only quota and SCRAM credential", "added", "users", unknown_added)
        _refuse_unexpected("Only quota and SCRAM credential", "deleted", "users", unknown_deleted)
        if scram_added or scram_deleted:
            if not all(entities.names):
                raise ConfigsRefused(
                    "The use of --entity-default or --user-defaults is not allowed with User "
                    "SCRAM Credentials using --bootstrap-server."
                )
            if is_quota:
                raise ConfigsRefused(
                    "Cannot alter both quota and SCRAM credential configs simultaneously for "
                    "'users' using --bootstrap-server."
                )
    if is_quota:
        _alter_quotas(client, entities, added, deleted)
        return
    credentials = [parse_credential(key, added[key]) for key in scram_added]
    with admin_call("alterUserScramCredentials"):
        mechanisms = [_MECHANISMS[key] for key in scram_deleted]
        alter_credentials(client, entities.names[0], mechanisms, credentials)


def _refuse_unexpected(what: str, how: str, kind: str, unexpected: Sequence[str]) -> None:
    """Raise ConfigsRefused if `unexpected` names settings that this kind of entity cannot have.

    The message names them as Scala prints its collections.
    """
    if unexpected:
        collection = "Set" if how == "added" else "ArrayBuffer"
        raise ConfigsRefused(
            f"{what} configs can be {how} for '{kind}' using --bootstrap-server. Unexpected "
            f"config names: {collection}({', '.join(unexpected)})"
        )


def parse_credential(mechanism_name: str, text: str) -> NewCredential:
    """Parse `iterations=N,password=TEXT` into a credential; raises ConfigsRefused."""
    mechanism = _MECHANISMS[mechanism_name]
    match = _CREDENTIAL.fullmatch(text)
    if match is None:
        raise ConfigsRefused(f"Invalid credential property {mechanism.name}={text}")
    given, password = match.groups()
    is_default = given in (None, "-1")
    iterations = _ITERATIONS_MIN if is_default else java_number(given)
    if iterations < _ITERATIONS_MIN:
        raise ConfigsRefused(
            f"Iterations {iterations} is less than the minimum {_ITERATIONS_MIN} required for "
            f"{mechanism_name}"
        )
    return NewCredential(mechanism, iterations, password.encode())


def _alter_quotas(
    client: KafkaClient, entities: Entities, added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    """Set and delete quotas of the entity that the types and names define together.

    Errors: ConfigsRefused for malformed values and quotas to delete that are not set; ToolFailure.
    """
    found = next(iter(request_quotas(client, entities).values()), {})
    _need_all(deleted, found)
    changes: dict[str, float | None] = {}
    for key, text in added.items():
        if not _DOUBLE.fullmatch(text):
            raise ConfigsRefused(f"Cannot parse quota configuration value for {key}: {text}")
        changes[key] = float(text.rstrip("fFdD"))
    changes |= dict.fromkeys(deleted)
    with admin_call("alterClientQuotas"):
        alter_quotas(client, quota_entity(entities), changes)
