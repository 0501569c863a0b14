"""Implementation of `kctl acls list` and `delete`: rules that match filters."""

from __future__ import annotations

from typing import Final

from engine.client.acl_admin import delete_each, describe_acls
from engine.client.blocking import KafkaClient
from engine.errors import EngineError
from engine.security.acls import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    EntryFilter,
    PatternFilter,
    PatternType,
)
from kctl.arguments import counted
from kctl.command_results import end_with
from kctl.commands.acls.options import FilterOptions, ResourceOptions
from kctl.commands.acls.rule_texts import (
    RULE_COLUMNS,
    in_order,
    parse_member,
    parse_operations,
    parse_principal,
    rule_row,
    rule_text,
)
from kctl.commands.acls.wanted_rules import RulesNotClear, named_resources
from kctl.connect import ClusterOptions, cluster_named, connect
from kctl.console import confirm, notify, report_error
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow

CHANGE_COLUMNS: Final = (*RULE_COLUMNS, Column("result", "RESULT"))
#: Every rule of a cluster.
EVERY_RULE: Final = AclFilter(
    PatternFilter(AclResource.ANY, None, PatternType.ANY),
    EntryFilter(None, None, AclOperation.ANY, AclPermission.ANY),
)
_PROMPT_RULES_MAX: Final = 3
#: Pattern types of filters; MATCH selects every pattern that applies to a name.
_FILTER_TYPES: Final = (
    PatternType.ANY,
    PatternType.MATCH,
    PatternType.LITERAL,
    PatternType.PREFIXED,
)


def list_rules(
    options: ClusterOptions, filters: FilterOptions, resources: ResourceOptions, output: str
) -> int:
    """Print a row for each rule that matches the options; returns the exit code."""
    check_format(output)
    wanted = filters_of(filters, resources)
    with connect(options) as client:
        rules = described(client, wanted)
    return end_with(RULE_COLUMNS, map(rule_row, rules), output)


def delete_rules(
    options: ClusterOptions,
    filters: FilterOptions,
    resources: ResourceOptions,
    *,
    is_all: bool,
    dry_run: bool,
    yes: bool,
    output: str,
) -> int:
    """Show the rules that match the options, ask for confirmation, and delete them.

    Returns the exit code. Raises RulesNotClear if the options select nothing and `is_all` is not
    set, or select something and it is set.
    """
    check_format(output)
    if is_all == _is_limited(filters, resources):
        raise RulesNotClear("which rules? Give options that select them, or --all for every one")
    wanted = filters_of(filters, resources)
    with connect(options) as client:
        rules = described(client, wanted)
        if not rules:
            notify("nothing to delete: there is no such rule")
            return end_with(CHANGE_COLUMNS, [], output)
        if dry_run:
            rows = [{**rule_row(rule), "result": "would be deleted"} for rule in rules]
            return end_with(CHANGE_COLUMNS, rows, output)
        confirm(f"Delete {few_rules(rules)} of {cluster_named(client)}", yes=yes)
        rows, failures = delete_exact_rules(client, rules)
    return end_with(CHANGE_COLUMNS, rows, output, failures=failures)


def delete_exact_rules(client: KafkaClient, rules: list[AclBinding]) -> tuple[list[OutputRow], int]:
    """Delete exactly these ACLs; return the rows of those gone and the number of failures.

    `was gone` is the result of a rule that another client deleted in between. Each error is
    printed.
    """
    rows: list[OutputRow] = []
    failures = 0
    results = delete_each(client, list(map(exactly, rules))) if rules else []
    for rule, deleted in zip(rules, results, strict=True):
        if isinstance(deleted, EngineError):
            report_error(deleted, rule_text(rule))
            failures += 1
        else:
            rows.append({**rule_row(rule), "result": "deleted" if deleted else "was gone"})
    return rows, failures


def described(client: KafkaClient, filters: list[AclFilter]) -> list[AclBinding]:
    """Return the rules that match any of the filters, sorted; raises ApiError."""
    return in_order(rule for one in filters for rule in describe_acls(client, one))


def filters_of(filters: FilterOptions, resources: ResourceOptions) -> list[AclFilter]:
    """Return one filter for each combination of resource, principal, host and operation.

    Errors: UnreadableArgument, RulesNotClear.
    """
    principals: list[str | None] = [parse_principal(text) for text in filters.principal or ()]
    hosts: list[str | None] = list(filters.host or ())
    entries = [
        EntryFilter(principal, host, operation, _permission_of(filters.permission))
        for principal in principals or [None]
        for host in hosts or [None]
        for operation in parse_operations(filters.operation or ()) or [AclOperation.ANY]
    ]
    return [
        AclFilter(patterns, entry)
        for patterns in _pattern_filters(filters, resources)
        for entry in entries
    ]


def _pattern_filters(filters: FilterOptions, resources: ResourceOptions) -> list[PatternFilter]:
    """Return a filter for each resource that an option names, or one for every resource.

    `--pattern` is the pattern type to match, ANY if not given. Errors: UnreadableArgument;
    RulesNotClear for `--pattern match` without a name.
    """
    pattern_type = PatternType.ANY
    if filters.pattern is not None:
        pattern_type = parse_member(
            PatternType, filters.pattern, "a type of pattern", _FILTER_TYPES
        )
    named = named_resources(resources, pattern_type)
    if not named and pattern_type is PatternType.MATCH:
        raise RulesNotClear("--pattern match needs a name", "give --topic NAME, --group ID, …")
    found = [PatternFilter(p.kind, p.name, p.pattern_type) for p in named]
    return found or [PatternFilter(AclResource.ANY, None, pattern_type)]


def _permission_of(text: str | None) -> AclPermission:
    """Return the permission of a filter, ANY for None; raises UnreadableArgument."""
    if text is None:
        return AclPermission.ANY
    return parse_member(
        AclPermission, text, "a permission", (AclPermission.ALLOW, AclPermission.DENY)
    )


def _is_limited(filters: FilterOptions, resources: ResourceOptions) -> bool:
    """Return True if any option restricts the selection of rules."""
    return any((*filters, *resources))


def exactly(rule: AclBinding) -> AclFilter:
    """Return the filter that matches this rule and no other, with which DeleteAcls deletes it."""
    pattern: AclPattern = rule.pattern
    return AclFilter(PatternFilter(*pattern), EntryFilter(*rule.entry))


def few_rules(rules: list[AclBinding]) -> str:
    """Return text such as `5 rules (allow User:a to read topic:t; …)`, for a prompt.

    Only the first _PROMPT_RULES_MAX rules are written out.
    """
    named = "; ".join(map(rule_text, rules[:_PROMPT_RULES_MAX]))
    more = "; …" if len(rules) > _PROMPT_RULES_MAX else ""
    return f"{counted(len(rules), 'rule')} ({named}{more})"
