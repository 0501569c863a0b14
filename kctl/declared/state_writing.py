"""Writes the state of a cluster as the text of a file; equal states give equal bytes.

Only settings that are set in the cluster are written, without defaults and the settings from the
brokers' files. A password cannot be read from a cluster: its user gets a reference to a variable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeAlias

from engine.declared.resources import (
    ALL_BROKERS,
    ClusterSetting,
    ClusterTopic,
    CurrentState,
    Entity,
    ResourceKind,
)
from engine.declared.setting_values import OF_MOVES
from engine.declared.step_making import DEFAULT_NAME, entity_text
from engine.security.acls import WILDCARD_HOST, AclBinding, AclResource, PatternType
from engine.security.scram import ScramMechanism
from kctl.arguments import UnreadableArgument
from kctl.commands.acls.rule_texts import cli_name, in_order, parse_host
from kctl.commands.quotas.entities import DEFAULT
from kctl.declared.state_schema import VERSION
from kctl.declared.variables import without_references

if TYPE_CHECKING:
    from yaml.nodes import Node

#: A mapping of the file, in the order of its keys.
_Fields: TypeAlias = dict[str, object]

_WIDTH: Final = 100
_FIELDS: Final = {"user": "user", "client-id": "client_id", "ip": "ip"}


class _Plain(str):
    """A text that is written without quotes, also if YAML would read it as a number or boolean.

    The reader takes all settings as texts.
    """


def state_text(
    state: CurrentState, kinds: Iterable[ResourceKind], *, with_placement: bool = False
) -> str:
    """Return a YAML file that declares a cluster's state, limited to these kinds of resources."""
    sections: _Fields = {"version": VERSION}
    wanted = set(kinds)
    for kind, section in (
        (ResourceKind.BROKERS, _brokers_document(state.brokers)),
        (ResourceKind.TOPICS, _topics_document(state.topics, with_placement=with_placement)),
        (ResourceKind.USERS, _users_document(state.users)),
        (ResourceKind.QUOTAS, _quotas_document(state.quotas)),
        (ResourceKind.ACLS, _acls(state.acls)),
    ):
        if kind in wanted:
            sections[kind.value] = section
    return _yaml_text(sections)


def unreadable_settings(state: CurrentState) -> list[tuple[str, str]]:
    """Return broker and name of each setting that is set but whose value brokers do not return."""
    return [
        (broker or DEFAULT_NAME, name)
        for broker, settings in sorted(state.brokers.items())
        for name, setting in sorted(settings.items())
        if setting.is_set and setting.value is None
    ]


def idle_rules(state: CurrentState) -> list[AclBinding]:
    """Return the ACLs that match no client, because of the form in which their host is written.

    They are not written to the file, which accepts only hosts in the form that brokers compare.
    """
    return [rule for rule in in_order(state.acls) if not _is_host(rule.entry.host)]


def _is_host(host: str) -> bool:
    """Return True if an ACL's host is in the form in which brokers compare it with clients."""
    try:
        return parse_host(host) == host
    except UnreadableArgument:
        return False


def _topics_document(topics: Mapping[str, ClusterTopic], *, with_placement: bool) -> _Fields:
    """Return the section `topics` of the file: fields by name, without internal topics."""
    return {
        name: _topic_fields(topic, with_placement=with_placement)
        for name, topic in sorted(topics.items())
        if not topic.is_internal
    }


def _topic_fields(topic: ClusterTopic, *, with_placement: bool) -> _Fields:
    """Return the declared fields of a topic.

    They have `placement` if that is wanted, or if partitions have different numbers of replicas.
    """
    fields: _Fields = {}
    if with_placement or topic.replication_factor is None:
        fields["placement"] = [list(replicas) for replicas in topic.placement]
    else:
        fields["partitions"] = topic.partitions
        fields["replication_factor"] = topic.replication_factor
    settings = _settings_to_write(topic.settings)
    return fields | ({"settings": settings} if settings else {})


def _settings_to_write(settings: Mapping[str, ClusterSetting]) -> dict[str, str]:
    """Return the settings to write: neither defaults nor hidden values nor throttles of moves."""
    return {
        name: _Plain(without_references(setting.value))
        for name, setting in sorted(settings.items())
        if setting.is_set and setting.value is not None and name not in OF_MOVES
    }


def _brokers_document(
    brokers: Mapping[str, Mapping[str, ClusterSetting]],
) -> dict[str | int, object]:
    """Return the section `brokers` of the file: settings by broker.

    The cluster-wide default comes first.
    """
    found: dict[str | int, object] = {}
    for name in sorted(brokers, key=lambda name: int(name or -1)):
        settings = _settings_to_write(brokers[name])
        if settings:
            found[DEFAULT_NAME if name == ALL_BROKERS else int(name)] = {"settings": settings}
    return found


def _users_document(users: Mapping[str, Mapping[ScramMechanism, int]]) -> _Fields:
    """Return the section `users` of the file: mechanisms, and a variable's name as password."""
    variables = _variable_names(users)
    return {
        without_references(name): {
            "mechanisms": {m.key: users[name][m] for m in sorted(users[name])},
            "password": f"${{{variables[name]}}}",
        }
        for name in sorted(users)
        if users[name]
    }


def _variable_names(names: Iterable[str]) -> dict[str, str]:
    """Return a variable name of its own for each user."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(names):
        stem = "PASSWORD_OF_" + re.sub(r"[^A-Z0-9]", "_", name.upper(), flags=re.ASCII)
        variable, number = stem, 1
        while variable in taken:
            number += 1
            variable = f"{stem}_{number}"
        taken.add(variable)
        found[name] = variable
    return found


def _quotas_document(quotas: Mapping[Entity, Mapping[str, float]]) -> list[_Fields]:
    """Return the section `quotas` of the file, sorted by entity.

    Limits without a fraction are integers.
    """
    return [
        {
            **{
                _FIELDS.get(kind, kind): DEFAULT if name is None else without_references(name)
                for kind, name in entity
            },
            "limits": {
                quota: int(amount) if amount.is_integer() else amount
                for quota, amount in sorted(quotas[entity].items())
            },
        }
        for entity in sorted(quotas, key=entity_text)
    ]


def _acls(rules: Iterable[AclBinding]) -> list[_Fields]:
    """Return the section `acls` of the file, without rules of `idle_rules`.

    Rules that differ only in their operation share an entry.
    """
    written = [rule for rule in in_order(rules) if _is_host(rule.entry.host)]
    return [_acl_entry(list(group)) for _, group in groupby(written, key=_entry_key)]


def _entry_key(rule: AclBinding) -> tuple[object, ...]:
    """Return what the rules of one entry share: everything but the operation."""
    return rule.pattern, rule.entry.principal, rule.entry.host, rule.entry.permission


def _acl_entry(rules: list[AclBinding]) -> _Fields:
    """Return the entry for ACLs that differ only in their operation."""
    pattern, entry = rules[0]
    fields: _Fields = {cli_name(entry.permission): without_references(entry.principal)}
    if entry.host != WILDCARD_HOST:
        fields["hosts"] = entry.host
    fields["operations"] = [cli_name(rule.entry.operation) for rule in rules]
    is_cluster = pattern.kind is AclResource.CLUSTER
    kind = cli_name(pattern.kind).replace("-", "_")
    fields[kind] = True if is_cluster else without_references(pattern.name)
    if pattern.pattern_type is PatternType.PREFIXED:
        fields["pattern"] = cli_name(pattern.pattern_type)
    return fields


def _yaml_text(document: _Fields) -> str:
    """Return a document as YAML: keys in the given order, lists of words on one line."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Indents lists, and writes no anchors."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            """Indent the items of a list below its key."""
            super().increase_indent(flow, False)

        def ignore_aliases(self, data: object) -> bool:
            """Return True: equal values are written again, not as an alias."""
            return True

    def plain(dumper: Dumper, text: _Plain) -> Node:
        """Write a text without quotes if YAML reads it as a number or boolean.

        A setting is then written as 3 instead of '3'.
        """
        resolve: Callable[..., str] = dumper.resolve
        tag = resolve(yaml.ScalarNode, str(text), (True, False))
        is_plain = tag.rpartition(":")[2] in ("int", "float", "bool")
        return dumper.represent_scalar(tag, text) if is_plain else dumper.represent_str(text)

    def flow_list(dumper: Dumper, values: list[object]) -> Node:
        """Write a list of words or numbers on one line, other lists item by item."""
        is_flat = all(isinstance(value, str | int) for value in values)
        tag = "tag:yaml.org,2002:seq"
        return dumper.represent_sequence(tag, values, flow_style=is_flat or None)

    Dumper.add_representer(_Plain, plain)
    Dumper.add_representer(list, flow_list)
    return str(
        yaml.dump(
            document,
            Dumper=Dumper,
            sort_keys=False,
            allow_unicode=True,
            width=_WIDTH,
            default_flow_style=False,
        )
    )
