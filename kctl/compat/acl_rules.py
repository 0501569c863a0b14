"""The access rules that options of `kafka-acls` define.

| | topics | groups | transactional ids | cluster |
|---|---|---|---|---|
| --producer | Write, Describe, Create | | Write, Describe | IdempotentWrite, with --idempotent |
| --consumer | Read, Describe | Read | | |
| neither | operations of --operation (default All) on each named resource | | | |

Source: AclCommand.getResourceFilterToAcls, AclEntry.supportedOperations of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from engine.security.acl_operations import SUPPORTED_OPERATIONS, SUPPORTED_SINCE_FOUR
from engine.security.acls import (
    CLUSTER_NAME,
    WILDCARD_HOST,
    AccessEntry,
    AclOperation,
    AclPermission,
    AclResource,
    PatternFilter,
    PatternType,
    from_name,
    pascal_name,
)
from kctl.compat.java_admin import ILLEGAL_ARGUMENT
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_options import GivenOptions, refused
from kctl.compat.releases import Release

#: Access entries by resource.
Rules = dict[PatternFilter, list[AccessEntry]]

_Op: Final = AclOperation
_CLUSTER: Final = PatternFilter(AclResource.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
#: Option and kind of each resource, in the order of Kafka's tool.
_RESOURCES: Final = (
    ("topic", AclResource.TOPIC),
    ("group", AclResource.GROUP),
    ("transactional-id", AclResource.TRANSACTIONAL_ID),
    ("delegation-token", AclResource.DELEGATION_TOKEN),
    ("user-principal", AclResource.USER),
)


def rules_to_add(given: GivenOptions, release: Release) -> Rules:
    """Return the rules that kafka-acls --add creates, by resource pattern.

    Errors: OptionsRefused without a principal, for a pattern type that rules cannot have;
    ToolFailure.
    """
    chosen = _pattern_type(given)
    if chosen in (PatternType.ANY, PatternType.MATCH):
        raise refused(
            f"A '--resource-pattern-type' value of '{chosen.name}' is not valid when adding acls."
        )
    rules = rules_of_resources(given, release)
    if not all(rules.values()):
        raise refused(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )
    return rules


def rules_of_resources(given: GivenOptions, release: Release) -> Rules:
    """Return the rules that the options define: access entries by resource pattern.

    A resource has no entries if no principal is named; `--remove` then means all of its rules.
    Errors: OptionsRefused, ToolFailure.
    """
    rules: Rules = {}
    if not given.has("producer") and not given.has("consumer"):
        entries = _access_entries(given, _operations(given))
        rules = {pattern: list(entries) for pattern in _needed_filters(given)}
    if given.has("producer"):
        _merge(rules, _producer_rules(given))
    if given.has("consumer"):
        _merge(rules, _consumer_rules(given))
    _check_operations(rules, release)
    return rules


def _merge(rules: Rules, others: Rules) -> None:
    """Add the access entries of `others` to `rules` in place, without duplicates.

    --producer and --consumer may name the same resource.
    """
    for pattern, entries in others.items():
        found = rules.setdefault(pattern, [])
        found += [entry for entry in entries if entry not in found]


def _producer_rules(given: GivenOptions) -> Rules:
    """Return the rules of --producer: Write, Describe, Create of topics; Write, Describe of ids.

    With --idempotent also IdempotentWrite on the cluster.
    """
    on_topics = _access_entries(given, (_Op.WRITE, _Op.DESCRIBE, _Op.CREATE))
    on_ids = _access_entries(given, (_Op.WRITE, _Op.DESCRIBE))
    kinds = {AclResource.TOPIC: on_topics, AclResource.TRANSACTIONAL_ID: on_ids}
    rules = {
        pattern: list(kinds[pattern.kind])
        for pattern in _needed_filters(given)
        if pattern.kind in kinds
    }
    if given.has("idempotent"):
        rules[_CLUSTER] = _access_entries(given, (_Op.IDEMPOTENT_WRITE,))
    return rules


def _consumer_rules(given: GivenOptions) -> Rules:
    """Return the rules of --consumer: Read and Describe of topics, Read of groups."""
    kinds = {
        AclResource.TOPIC: _access_entries(given, (_Op.READ, _Op.DESCRIBE)),
        AclResource.GROUP: _access_entries(given, (_Op.READ,)),
    }
    return {
        pattern: list(kinds[pattern.kind])
        for pattern in _needed_filters(given)
        if pattern.kind in kinds
    }


def _operations(given: GivenOptions) -> Sequence[AclOperation]:
    """Return the operations of --operation; All if the option is not given."""
    names = given.texts("operation") or ["All"]
    return [_operation(name.strip()) for name in names]


def _operation(name: str) -> AclOperation:
    """Return the operation of a name such as `AlterConfigs`, UNKNOWN for one with `_`.

    As in Kafka's tool, which matches names without `_` only.
    """
    return AclOperation.UNKNOWN if "_" in name else from_name(AclOperation, name)


def _access_entries(given: GivenOptions, operations: Iterable[AclOperation]) -> list[AccessEntry]:
    """Return an entry for each principal, host and operation of the options; raises ToolFailure."""
    entries = []
    for word, permission in (("allow", AclPermission.ALLOW), ("deny", AclPermission.DENY)):
        principals = parse_principals(given, f"{word}-principal")
        hosts = [host.strip() for host in given.texts(f"{word}-host")] or [WILDCARD_HOST]
        entries += [
            AccessEntry(principal, host, operation, permission)
            for principal in principals
            for operation in operations
            for host in hosts
        ]
    return list(dict.fromkeys(entries))


def parse_principals(given: GivenOptions, option: str) -> list[str]:
    """Return the distinct principals of an option; raises ToolFailure for one without a type."""
    principals = [text.strip() for text in given.texts(option)]
    for principal in principals:
        if ":" not in principal:
            raise ToolFailure(
                ILLEGAL_ARGUMENT,
                f"expected a string in format principalType:principalName but got {principal}",
            )
    return list(dict.fromkeys(principals))


def _pattern_type(given: GivenOptions) -> PatternType:
    """Return the pattern type, LITERAL by default; raises ToolFailure."""
    has_type = given.has("resource-pattern-type")
    text = given.needed("resource-pattern-type") if has_type else "LITERAL"
    known = [t for t in PatternType if t.name == text.upper() and t is not PatternType.UNKNOWN]
    if not known:
        raise ToolFailure(
            "joptsimple.OptionArgumentConversionException",
            f"Cannot parse argument '{text}' of option resource-pattern-type",
        )
    return known[0]


def resource_filters(given: GivenOptions) -> list[PatternFilter]:
    """Return a filter for each resource that options name, empty if none is named.

    Errors: ToolFailure.
    """
    pattern_type = _pattern_type(given)
    found = []
    for option, kind in _RESOURCES:
        found += [PatternFilter(kind, name.strip(), pattern_type) for name in given.texts(option)]
        has_cluster = given.has("cluster") or given.has("idempotent")
        if kind is AclResource.TOPIC and pattern_type is PatternType.LITERAL and has_cluster:
            found.append(_CLUSTER)
    return list(dict.fromkeys(found))


def _needed_filters(given: GivenOptions) -> list[PatternFilter]:
    """Return a filter for each resource that options name; raises OptionsRefused if none is."""
    found = resource_filters(given)
    if not found:
        raise refused(
            "You must provide at least one resource: --topic <topic> or --cluster or "
            "--group <group> or --delegation-token <Delegation Token ID>"
        )
    return found


def _check_operations(rules: Rules, release: Release) -> None:
    """Raise OptionsRefused for an operation that a resource's type does not support.

    Kafka 4 supports more operations than 3.9, and lists them in another format.
    """
    for pattern, entries in rules.items():
        supported = SUPPORTED_OPERATIONS[pattern.kind]
        if release.is_four:
            supported = SUPPORTED_SINCE_FOUR.get(pattern.kind, ()) + supported
        if any(entry.operation not in supported for entry in entries):
            named = (
                f"[{', '.join(operation.name for operation in supported)}]"
                if release.is_four
                else ", ".join(map(pascal_name, supported))
            )
            raise refused(f"ResourceType {pattern.kind.name} only supports operations {named}")
