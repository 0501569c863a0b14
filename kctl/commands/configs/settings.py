"""Implementation of `kctl configs` and `kctl topics configs`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.client import config_admin
from engine.client.config_admin import (
    ConfigChange,
    ConfigEntry,
    ConfigOp,
    ConfigResourceType,
    Resource,
    Synonym,
)
from engine.errors import EngineError
from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.command_results import end_with
from kctl.connect import ClusterOptions, cluster_named, connect
from kctl.console import notify, report_error
from kctl.render import TABLES, Column, check_format
from kctl.render.rows import OutputRow
from kctl.selection import select_topics
from kctl.setting_checks import find_unset_errors, missing_settings, notes_on_unknown, with_hint

_KINDS = {
    ConfigResourceType.TOPIC: "topic",
    ConfigResourceType.BROKER: "broker",
    ConfigResourceType.BROKER_LOGGER: "broker-logger",
}
_DEFAULTS = "default"

_SYNONYM_COLUMNS = (
    Column("name", "NAME"),
    Column("value", "VALUE", kind="string?"),
    Column("source", "SOURCE"),
)
CONFIG_COLUMNS = (
    Column("resource_type", "OF"),
    Column("resource_name", "NAME"),
    Column("key", "KEY", is_name=True),
    Column("value", "VALUE", kind="string?"),
    Column("source", "SOURCE"),
    Column("is_read_only", "READ-ONLY", wide=True, kind="boolean"),
    Column("is_sensitive", "SENSITIVE", wide=True, kind="boolean"),
    Column("type", "TYPE", wide=True, kind="string?"),
    Column("synonyms", "BEHIND IT", wide=True, kind="object[]", fields=_SYNONYM_COLUMNS),
)
DOCUMENTATION_COLUMN = Column(
    "documentation", "DOCUMENTATION", beneath=True, kind="string?", is_optional=True
)
# HTML tags, and a stray %n, in Kafka's documentation; placeholders such as <port> are kept.
_TAGS = r"</?(?:a|b|code|em|i|strong|tt)\b[^<>]*>"
_BREAKS = r"</?(?:br|li|ol|p|pre|ul)\b[^<>]*>|%n"
CHANGE_COLUMNS = (
    Column("resource_type", "OF"),
    Column("resource_name", "NAME", is_name=True),
    Column("change", "CHANGE"),
    Column("result", "RESULT"),
)


class NoResource(EngineError):
    """The options name no topic, broker or logger."""

    exit_code = exits.USAGE
    hint = "give --topic NAME, --broker ID, --broker-defaults or --broker-logger ID"

    def __init__(self) -> None:
        super().__init__("settings of what? Nothing is named")


class DescribeRequest(NamedTuple):
    """The options of `kctl configs describe`."""

    resources: list[Resource]
    keys: list[str]
    all: bool
    doc: bool
    output: str


class ChangeRequest(NamedTuple):
    """The options of `kctl configs set` and `unset`."""

    resources: list[Resource]
    changes: list[ConfigChange]
    dry_run: bool
    output: str


def named_resources(
    topics: list[str] | None,
    brokers: list[int] | None,
    broker_defaults: bool,
    loggers: list[int] | None,
) -> list[Resource]:
    """Return the distinct topics, brokers, broker defaults and loggers that options name.

    Errors: NoResource if there is none.
    """
    resources = [Resource(ConfigResourceType.TOPIC, name) for name in topics or ()]
    resources += [Resource(ConfigResourceType.BROKER, str(number)) for number in brokers or ()]
    # The empty name is the cluster-wide default of all brokers.
    resources += [Resource(ConfigResourceType.BROKER, "")] * broker_defaults
    resources += [
        Resource(ConfigResourceType.BROKER_LOGGER, str(number)) for number in loggers or ()
    ]
    if not resources:
        raise NoResource
    return list(dict.fromkeys(resources))


def parse_change(text: str) -> ConfigChange:
    """Parse `key=value`, `key+=value` or `key-=value`; raises UnreadableArgument."""
    key, equals, value = text.partition("=")
    ops = {"+": ConfigOp.APPEND, "-": ConfigOp.SUBTRACT}
    op = ops.get(key[-1:], ConfigOp.SET)
    if op is not ConfigOp.SET:
        key = key[:-1]
    if not key or not equals:
        raise UnreadableArgument("a change", text, "KEY=VALUE, KEY+=VALUE or KEY-=VALUE")
    return ConfigChange(op, key, value)


def parse_removals(keys: Sequence[str]) -> list[ConfigChange]:
    """Return a DELETE change for each key; raises UnreadableArgument for `key=value`."""
    for key in keys:
        if "=" in key:
            raise UnreadableArgument("the name of a setting", key, "KEY")
    return [ConfigChange(ConfigOp.DELETE, key) for key in keys]


def describe_topic_configs(
    options: ClusterOptions,
    names: list[str],
    match: str | None,
    *,
    all_: bool,
    doc: bool,
    output: str,
) -> int:
    """Print the settings of named and matching topics; returns the exit code.

    `all_` adds those with default values, `doc` their documentation.
    """
    check_format(output)
    with connect(options) as client:
        _, topics, errors = select_topics(client, names, match)
    for error in errors:
        report_error(error)
    if not topics:
        return end_with(CONFIG_COLUMNS, [], output, failures=len(errors))
    resources = [Resource(ConfigResourceType.TOPIC, topic.name) for topic in topics]
    request = DescribeRequest(resources, [], all=all_, doc=doc, output=output)
    code = describe_configs(options, request)
    return exits.FAILED if errors else code


def describe_configs(options: ClusterOptions, request: DescribeRequest) -> int:
    """Print a row for each setting of the requested resources; returns the exit code."""
    check_format(request.output)
    with connect(options) as client:
        configs = config_admin.describe_configs(
            client,
            request.resources,
            names=request.keys or None,
            with_synonyms=True,
            with_documentation=request.doc,
        )
    rows: list[dict[str, object]] = []
    failures = 0
    is_table = request.output in TABLES
    # A setting requested by name is shown even if its value is a default.
    shows_all = request.all or bool(request.keys)
    for resource in request.resources:
        entries = configs.get(resource, [])
        if isinstance(entries, EngineError):
            report_error(entries, _resource_label(resource))
            failures += 1
            continue
        for absent in missing_settings(resource, request.keys, entries):
            report_error(absent, _resource_label(resource))
            failures += 1
        shown = [entry for entry in entries if shows_all or not entry.is_default]
        rows += [_setting_row(resource, entry, is_table=is_table) for entry in shown]
    columns = (*CONFIG_COLUMNS, DOCUMENTATION_COLUMN) if request.doc else CONFIG_COLUMNS
    return end_with(columns, rows, request.output, failures=failures)


def change_configs(options: ClusterOptions, request: ChangeRequest) -> int:
    """Change settings incrementally, and print a row for each resource; returns the exit code.

    A key to unset that is not set is no failure. With --dry-run brokers only validate.
    """
    check_format(request.output)
    unset = [change.name for change in request.changes if change.op is ConfigOp.DELETE]
    with connect(options) as client:
        refused, not_set = find_unset_errors(client, request.resources, unset)
        wanted = {r: request.changes for r in request.resources if r not in refused}
        if unset and wanted and not request.dry_run:
            notify(f"unset {', '.join(unset)} of {cluster_named(client)}")
        results: dict[Resource, EngineError | None] = dict(refused)
        results |= config_admin.alter_configs(client, wanted, validate_only=request.dry_run)
    rows = []
    failures = 0
    for resource in request.resources:
        error = results.get(resource)
        if error is not None:
            report_error(with_hint(error, resource, request.changes), _resource_label(resource))
            failures += 1
            continue
        rows.append(_changed_row(resource, request, not_set.get(resource, [])))
        for line in notes_on_unknown(resource, _names_set(request.changes)):
            notify(line)
    return end_with(CHANGE_COLUMNS, rows, request.output, failures=failures)


def _changed_row(
    resource: Resource, request: ChangeRequest, not_set: Sequence[str]
) -> dict[str, object]:
    """Return the row of a changed resource; the result is `was not set` if no key was set.

    `not_set` are the keys to unset that had no value.
    """
    result = "would be changed" if request.dry_run else "changed"
    if all(change.name in not_set for change in request.changes):
        result = "was not set"
    return {
        "resource_type": _KINDS[resource.kind],
        "resource_name": resource.name or _DEFAULTS,
        "change": ", ".join(_change_text(change) for change in request.changes),
        "result": result,
    }


def _names_set(changes: Sequence[ConfigChange]) -> list[str]:
    """Return the names of the settings that changes set, append to or subtract from."""
    return [change.name for change in changes if change.op is not ConfigOp.DELETE]


def _change_text(change: ConfigChange) -> str:
    """Return a change as `unset KEY`, `KEY=VALUE`, `KEY+=VALUE` or `KEY-=VALUE`."""
    signs = {ConfigOp.SET: "=", ConfigOp.APPEND: "+=", ConfigOp.SUBTRACT: "-="}
    if change.op is ConfigOp.DELETE:
        return f"unset {change.name}"
    return f"{change.name}{signs[change.op]}{change.value}"


def _resource_label(resource: Resource) -> str:
    """Return a resource as text for messages, such as `broker 1`."""
    return f"{_KINDS[resource.kind]} {resource.name or _DEFAULTS}"


def _setting_row(resource: Resource, entry: ConfigEntry, *, is_table: bool) -> OutputRow:
    """Return a setting as an output row.

    `is_table`: documentation is shown without Kafka's HTML tags.
    """
    row = {
        "resource_type": _KINDS[resource.kind],
        "resource_name": resource.name or _DEFAULTS,
        "key": entry.name,
        "value": entry.value,
        "source": source_text(entry.source.name),
        "is_read_only": entry.is_read_only,
        "is_sensitive": entry.is_sensitive,
        "type": entry.type,
        "synonyms": [_synonym(synonym) for synonym in entry.synonyms],
    }
    if entry.documentation is not None:
        row["documentation"] = plain_text(entry.documentation) if is_table else entry.documentation
    return row


def plain_text(markup: str) -> str:
    """Return Kafka's documentation of a setting without HTML tags and entities."""
    import html
    import re

    text = re.sub(_BREAKS, " ", re.sub(_TAGS, "", markup))
    return " ".join(html.unescape(text).split())


def _synonym(synonym: Synonym) -> OutputRow:
    """Return a synonym, a value of the setting at another level, as an output row."""
    source = source_text(synonym.source.name)
    return {"name": synonym.name, "value": synonym.value, "source": source}


def source_text(name: str) -> str:
    """Return the short name of a setting's source: DYNAMIC_TOPIC_CONFIG as `dynamic-topic`."""
    return name.removesuffix("_CONFIG").lower().replace("_", "-")
