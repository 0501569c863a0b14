"""`kafka-client-metrics`: subscriptions to client metrics, which ZooKeeper brokers refuse.

Source: ClientMetricsCommand of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TextIO

from engine.client.blocking import KafkaClient
from engine.client.config_admin import (
    ConfigChange,
    ConfigEntry,
    ConfigOp,
    ConfigResourceType,
    Resource,
    alter_configs,
    describe_configs,
)
from engine.errors import EngineError
from engine.host.ports import Files
from engine.ids import uuid_text
from kctl import exits
from kctl.compat.configs_views import request_client_metrics_names
from kctl.compat.java_admin import ILLEGAL_ARGUMENT, admin_call, admin_failure, raise_first
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_log import log_failure
from kctl.compat.java_numbers import is_java_number
from kctl.compat.java_options import (
    HELP,
    VERSION,
    GivenOptions,
    ToolOption,
    exclude,
    refused,
)
from kctl.compat.releases import Release

SUMMARY = "Shows and changes which metrics clients are to send."
_OPTIONS = (
    ToolOption("bootstrap-server", "Brokers to ask first. Required.", "HOST:PORT,..."),
    ToolOption("command-config", "Client properties.", "FILE"),
    ToolOption("alter", "Change a subscription."),
    ToolOption("delete", "Delete a subscription."),
    ToolOption("describe", "Show a subscription, or all."),
    ToolOption("list", "List the names of subscriptions."),
    ToolOption("name", "The name of a subscription.", "NAME"),
    ToolOption("generate-name", "Alter: under a random name."),
    ToolOption("interval", "Alter: milliseconds between two reports.", "NUMBER"),
    ToolOption("match", "Alter: which clients.", "KEY=VALUE,..."),
    ToolOption("metrics", "Alter: the first letters of metrics.", "PREFIX,..."),
    HELP,
    VERSION,
)
_LOGGER: Final = "org.apache.kafka.tools.ClientMetricsCommand"
_ACTIONS: Final = ("alter", "delete", "describe", "list")
_OF_ALTER: Final = ("generate-name", "interval", "match", "metrics")
_NAME_BYTES: Final = 16


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options of kafka-client-metrics, the same in each release."""
    del release
    return _OPTIONS


def check_options(given: GivenOptions) -> str:
    """Validate the options of kafka-client-metrics, and return the one action they request.

    Errors: OptionsRefused, ToolFailure.
    """
    actions = [name for name in _ACTIONS if given.has(name)]
    if len(actions) != 1:
        raise refused(
            "Command must include exactly one action: --alter, --delete, --describe or --list."
        )
    if not given.has("bootstrap-server"):
        raise ToolFailure(ILLEGAL_ARGUMENT, "--bootstrap-server must be specified.")
    _check_interval(given)
    exclude(given, "delete", _OF_ALTER)
    exclude(given, "describe", _OF_ALTER)
    exclude(given, "list", ("name", *_OF_ALTER))
    if given.has("alter") and given.has("name") == given.has("generate-name"):
        message = "One of --name or --generate-name must be specified with --alter."
        raise ToolFailure(ILLEGAL_ARGUMENT, message)
    if given.has("delete") and not given.has("name"):
        message = "A client metrics resource name must be specified with --delete."
        raise ToolFailure(ILLEGAL_ARGUMENT, message)
    return actions[0]


def _check_interval(given: GivenOptions) -> None:
    """Raise ToolFailure unless --interval is an integer or empty."""
    text = given.text("interval") if given.has("interval") else None
    if text and not is_java_number(text):
        message = "Invalid interval value. Enter an integer, or leave empty to reset."
        raise ToolFailure(ILLEGAL_ARGUMENT, message)


def perform(
    given: GivenOptions,
    action: str,
    connect: Callable[[], KafkaClient],
    files: Files,
    out: TextIO,
    err: TextIO,
) -> int:
    """Run kafka-client-metrics: perform `action` on subscriptions; returns the exit code."""
    del files
    try:
        with connect() as client:
            _perform_action(client, given, action, out)
    except ToolFailure as failure:
        if failure.java_class.startswith("java.nio."):
            raise
        out.write(f"Error while executing client metrics command : {failure}\n")
        log_failure(err, failure, _LOGGER)
        return exits.FAILED
    return exits.OK


def _perform_action(client: KafkaClient, given: GivenOptions, action: str, out: TextIO) -> None:
    """Change, delete, list or print client metrics subscriptions; raises ToolFailure."""
    if action == "alter":
        _alter_subscription(client, given, out)
    elif action == "list":
        out.writelines(
            f"{name}\n" for name in request_client_metrics_names(client, is_four=given.is_four)
        )
    elif action == "delete":
        name = given.needed("name")
        entries = _request_settings(client, name)
        _change(client, name, [ConfigChange(ConfigOp.DELETE, e.name, e.value) for e in entries])
        out.write(f"Deleted client metrics config for {name}.\n")
    else:
        _print_subscriptions(client, given, out)


def _print_subscriptions(client: KafkaClient, given: GivenOptions, out: TextIO) -> None:
    """Print the settings of the named client metrics subscription, or of all."""
    names = (
        [given.needed("name")]
        if given.has("name")
        else request_client_metrics_names(client, is_four=given.is_four)
    )
    if (
        given.is_four
        and given.has("name")
        and names[0] not in request_client_metrics_names(client, is_four=given.is_four)
    ):
        shown = f"The client metric resource {names[0]}"
        out.write(f"{shown} doesn't exist and doesn't have dynamic config.\n")
        return
    for name in names:
        out.write(f"Client metrics configs for {name} are:\n")
        out.writelines(
            f"  {entry.name}={entry.value}\n" for entry in _request_settings(client, name)
        )


def _alter_subscription(client: KafkaClient, given: GivenOptions, out: TextIO) -> None:
    """Set or delete settings of a client metrics subscription.

    Without --name it gets a random name. An empty value deletes a setting.
    """
    if given.has("name"):
        name = given.needed("name")
    else:
        name = uuid_text(client.entropy.random_bytes(_NAME_BYTES))
    values = {}
    if given.has("interval"):
        text = given.text("interval") or ""
        # An empty value restores the default.
        values["interval.ms"] = text and str(int(text))
    for option in ("metrics", "match"):
        if given.has(option):
            values[option] = ",".join(given.texts(option))
    changes = [
        ConfigChange(ConfigOp.SET if value else ConfigOp.DELETE, key, value)
        for key, value in values.items()
    ]
    _change(client, name, changes)
    out.write(f"Altered client metrics config for {name}.\n")


def _request_settings(client: KafkaClient, name: str) -> list[ConfigEntry]:
    """Request the settings of a client metrics subscription; raises ToolFailure."""
    resource = Resource(ConfigResourceType.CLIENT_METRICS, name)
    with admin_call("describeConfigs"):
        found = describe_configs(client, [resource], is_sorted=False)[resource]
    if isinstance(found, EngineError):
        raise admin_failure(found, "describeConfigs")
    return found


def _change(client: KafkaClient, name: str, changes: list[ConfigChange]) -> None:
    """Change settings of a client metrics subscription; raises ToolFailure."""
    resource = Resource(ConfigResourceType.CLIENT_METRICS, name)
    with admin_call("incrementalAlterConfigs"):
        results = alter_configs(client, {resource: changes})
    raise_first({key.name: error for key, error in results.items()})
