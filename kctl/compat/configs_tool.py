"""`kafka-configs`: its options, their valid combinations, and its failures.

If the tool itself refuses a call, a sentence is printed on stderr; another failure is printed with
the arguments and its trace.

Source: ConfigCommand.main, ConfigCommandOptions.checkArgs of 3.9.1 and 4.3.0.

Differs: no request is sent to ZooKeeper; a host name of --ip is not resolved.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final, TextIO

from engine.client.blocking import KafkaClient
from engine.errors import EngineError
from engine.host.name_lookup import LookupFailed, look_up
from engine.host.ports import Files
from kctl import exits
from kctl.compat.configs_changes import alter_entity_configs
from kctl.compat.configs_entities import (
    DEFAULT_FLAGS,
    NAME_FLAGS,
    ConfigsRefused,
    Entities,
    entity_types,
    parse_entities,
)
from kctl.compat.configs_views import print_entity_configs
from kctl.compat.java_admin import admin_failure
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_numbers import is_java_number
from kctl.compat.java_options import HELP, VERSION, GivenOptions, ToolOption, exclude, refused
from kctl.compat.releases import Release

SUMMARY = "Shows and changes settings of topics, brokers, loggers; quotas; SCRAM credentials."
_OPTIONS = (
    ToolOption("bootstrap-server", "Brokers to ask first.", "HOST:PORT,..."),
    ToolOption("bootstrap-controller", "Controllers to ask first.", "HOST:PORT,..."),
    ToolOption("command-config", "Client properties.", "FILE"),
    ToolOption("describe", "Show what is set."),
    ToolOption("alter", "Change what is set."),
    ToolOption("entity-type", "topics, clients, users, brokers, ips, broker-loggers.", "TYPE"),
    ToolOption("entity-name", "The name of one of --entity-type.", "NAME"),
    ToolOption("entity-default", "The default of --entity-type."),
    ToolOption("all", "Describe: also settings with their default."),
    ToolOption("add-config", "Alter: set these; lists in brackets.", "KEY=VALUE,..."),
    ToolOption("add-config-file", "Alter: set those of a file.", "FILE"),
    ToolOption("delete-config", "Alter: remove these.", "KEY,..."),
    ToolOption("topic", "A topic.", "NAME"),
    ToolOption("client", "A client id.", "NAME"),
    ToolOption("client-defaults", "The default of clients."),
    ToolOption("user", "A user.", "NAME"),
    ToolOption("user-defaults", "The default of users."),
    ToolOption("broker", "A broker.", "ID"),
    ToolOption("broker-defaults", "The default of brokers."),
    ToolOption("broker-logger", "The loggers of a broker.", "ID"),
    ToolOption("ip", "An address.", "ADDRESS"),
    ToolOption("ip-defaults", "The default of addresses."),
    HELP,
    VERSION,
)
_OPTIONS_3 = (
    ToolOption("force", "Without questions."),
    ToolOption("zookeeper", "Not served.", "HOST:PORT"),
    ToolOption("zk-tls-config-file", "Not served.", "FILE"),
)
_OPTIONS_4 = (
    ToolOption("client-metrics", "A subscription of client metrics.", "NAME"),
    ToolOption("group", "A group.", "NAME"),
)
_BY_SERVER: Final = (
    "topics",
    "clients",
    "users",
    "brokers",
    "ips",
    "broker-loggers",
    "client-metrics",
)
_BY_SERVER_4: Final = (*_BY_SERVER[:5], "client-metrics", "groups", "broker-loggers")
_BY_ZOOKEEPER: Final = ("users", "brokers")
_SERVERS: Final = ("bootstrap-server", "bootstrap-controller")
_MAY_BE_DEFAULT: Final = ("users", "clients", "brokers", "ips")


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options that kafka-configs has in a release."""
    return (*_OPTIONS, *(_OPTIONS_4 if release.is_four else _OPTIONS_3))


def check_options(given: GivenOptions) -> Entities:
    """Validate the options of kafka-configs, and return the entities that they name.

    Errors: OptionsRefused, ConfigsRefused.
    """
    if given.has("alter") == given.has("describe"):
        raise refused("Command must include exactly one action: --describe, --alter")
    exclude(given, "describe", ("add-config", "delete-config"))
    _check_types(given)
    entities = parse_entities(given)
    _check_servers(given)
    _check_names(given, entities)
    if given.has("alter"):
        _check_alter(given, entities)
    return entities


def _check_types(given: GivenOptions) -> None:
    """Raise ConfigsRefused for repeated, unknown, missing or uncombinable entity types."""
    types = entity_types(given)
    twice = [kind for index, kind in enumerate(types) if kind in types[:index]]
    if twice:
        raise ConfigsRefused(f"Duplicate entity type(s) specified: {','.join(twice)}")
    is_by_server = given.is_four or any(map(given.has, _SERVERS))
    allowed: tuple[str, ...] = _BY_ZOOKEEPER
    if is_by_server:
        allowed = _BY_SERVER_4 if given.is_four else _BY_SERVER
    by = "--bootstrap-server or --bootstrap-controller" if is_by_server else "--zookeeper"
    for kind in types:
        if kind not in allowed:
            raise ConfigsRefused(
                f"Invalid entity type {kind}, the entity type must be one of "
                f"{', '.join(allowed)} with a {by} argument"
            )
    if not types:
        raise ConfigsRefused("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {"users", "clients"}:
        raise ConfigsRefused("Only 'users' and 'clients' entity types may be specified together")
    if any(map(given.has, ("entity-name", "entity-type", "entity-default"))) and any(
        given.has(flag) for flag in (*NAME_FLAGS, *DEFAULT_FLAGS)
    ):
        raise ConfigsRefused(
            "--entity-{type,name,default} should not be used in conjunction with specific entity "
            "flags"
        )


def _check_servers(given: GivenOptions) -> None:
    """Raise ConfigsRefused unless exactly one server option is given."""
    count = sum(map(given.has, (*_SERVERS, "zookeeper")))
    if given.is_four:
        if count == 0:
            raise ConfigsRefused(
                "Either --bootstrap-server or --bootstrap-controller must be specified."
            )
        if count > 1:
            raise ConfigsRefused(
                "Only one of --bootstrap-server or --bootstrap-controller can be specified."
            )
        return
    if count == 0:
        raise ConfigsRefused(
            "One of the required --bootstrap-server, --boostrap-controller, or --zookeeper "
            "arguments must be specified"
        )
    if count > 1:
        raise ConfigsRefused(
            "Only one of --bootstrap-server, --boostrap-controller, and --zookeeper can be "
            "specified"
        )
    if given.has("all") and given.has("zookeeper"):
        raise ConfigsRefused("--bootstrap-server must be specified for --all")
    if given.has("zk-tls-config-file") and not given.has("zookeeper"):
        raise ConfigsRefused(
            "Only the --zookeeper option can be used with the --zk-tls-config-file option."
        )


def _check_names(given: GivenOptions, entities: Entities) -> None:
    """Raise ConfigsRefused for malformed entity names, or one missing that --describe needs."""
    head = entities.types[0]
    if entities.has_name and {"brokers", "broker-loggers"} & set(entities.types):
        for option in ("entity-name", "broker", "broker-logger"):
            text = given.text(option) if given.has(option) else None
            if text is not None and not is_java_number(text):
                raise ConfigsRefused(
                    f"The entity name for {head} must be a valid integer broker id, but it is: "
                    f"{text}"
                )
    if entities.has_name and "ips" in entities.types:
        for option in ("entity-name", "ip"):
            text = given.text(option) if given.has(option) else None
            if text is not None and not _is_address(text):
                raise ConfigsRefused(
                    f"The entity name for {head} must be a valid IP or resolvable host, but it "
                    f"is: {text}"
                )
    is_default = "" in entities.names and not set(_MAY_BE_DEFAULT) & set(entities.types)
    if given.is_four and given.has("describe") and is_default:
        named = ",".join(entities.types)
        raise ConfigsRefused(f"--entity-default must not be specified with --describe of {named}")
    if given.has("describe") and "broker-loggers" in entities.types and not entities.has_name:
        named = ",".join(entities.types)
        raise ConfigsRefused(f"an entity name must be specified with --describe of {named}")


def _is_address(text: str) -> bool:
    """Return True if a text is `<default>`, an IP address, or a name that resolves to one.

    A DNS query may block.
    """
    return text == "<default>" or not isinstance(look_up(text), LookupFailed)


def _check_alter(given: GivenOptions, entities: Entities) -> None:
    """Raise ConfigsRefused for --alter without an entity or without a change."""
    if set(_MAY_BE_DEFAULT) & set(entities.types):
        if not entities.names:
            raise ConfigsRefused(
                "an entity-name or default entity must be specified with --alter of users, "
                "clients, brokers or ips"
            )
    elif not entities.has_name:
        named = ",".join(entities.types)
        raise ConfigsRefused(f"an entity name must be specified with --alter of {named}")
    has_add, has_file = given.has("add-config"), given.has("add-config-file")
    if has_add and has_file:
        raise ConfigsRefused("Only one of --add-config or --add-config-file must be specified")
    if not (has_add or has_file or given.has("delete-config")):
        raise ConfigsRefused(
            "At least one of --add-config, --add-config-file, or --delete-config must be "
            "specified with --alter"
        )


def perform(
    given: GivenOptions,
    entities: Entities,
    connect: Callable[[], KafkaClient],
    files: Files,
    out: TextIO,
    err: TextIO,
) -> int:
    """Run kafka-configs: change or print settings of entities; returns the exit code."""
    try:
        if given.has("alter") and len(entities.types) != len(entities.names):
            raise ConfigsRefused("An entity name must be specified for every entity type")
        with connect() as client:
            if given.has("alter"):
                alter_entity_configs(client, given, entities, files, out)
            else:
                print_entity_configs(client, given, entities, out)
    except ConfigsRefused as error:
        err.write(f"{error}\n")
        return exits.FAILED
    except EngineError as error:
        failure = admin_failure(error, "describeConfigs")
        if isinstance(failure, ToolFailure) and failure.java_class.startswith("joptsimple."):
            err.write(f"{failure}\n")
            return exits.FAILED
        arguments = " ".join(given.call_arguments)
        err.write(f"Error while executing config command with args '{arguments}'\n")
        trace = failure.trace() if isinstance(failure, ToolFailure) else f"{failure}\n"
        err.write(trace)
        return exits.FAILED
    finally:
        sys.stdout.flush()
    return exits.OK
