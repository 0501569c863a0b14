"""Implementation of `kctl acls create` and `apply`: create the wanted rules that are missing."""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.client.acl_admin import create_each
from engine.client.blocking import KafkaClient
from engine.host.input_file import read_input
from engine.security.acls import AclBinding
from kctl import exits
from kctl.arguments import counted
from kctl.command_results import end_with
from kctl.commands.acls.listing import (
    CHANGE_COLUMNS,
    EVERY_RULE,
    delete_exact_rules,
    described,
    few_rules,
)
from kctl.commands.acls.rule_texts import in_order, parse_host, rule_row, rule_text
from kctl.commands.acls.rules_file import parse_rules_file
from kctl.commands.acls.wanted_rules import RulesRequest, wanted_rules
from kctl.connect import ClusterOptions, cluster_named, connect
from kctl.console import confirm, notify, report_error
from kctl.render import check_format
from kctl.render.rows import OutputRow

_EXISTS: Final = "exists"


class ApplyRequest(NamedTuple):
    """The options of `kctl acls apply`."""

    path: str
    prune: bool
    dry_run: bool
    yes: bool
    output: str


class RulesDifference(NamedTuple):
    """The wanted rules that are missing or present, and the cluster's rules that are not wanted."""

    missing: list[AclBinding]
    present: list[AclBinding]
    surplus: list[AclBinding]


def compare_rules(wanted: list[AclBinding], existing: list[AclBinding]) -> RulesDifference:
    """Compare the wanted ACLs with the cluster's: missing, present and surplus, each sorted."""
    wanted_rules, existing_rules = set(wanted), set(existing)
    return RulesDifference(
        in_order(wanted_rules - existing_rules),
        in_order(wanted_rules & existing_rules),
        in_order(existing_rules - wanted_rules),
    )


def create_rules(
    options: ClusterOptions, request: RulesRequest, *, dry_run: bool, output: str
) -> int:
    """Create the missing rules and print a row for each wanted rule; returns the exit code."""
    check_format(output)
    wanted = wanted_rules(request._replace(hosts=list(map(parse_host, request.hosts))))
    with connect(options) as client:
        diff = compare_rules(wanted, described(client, [EVERY_RULE]))
        rows, failures = _create_missing(client, diff.missing, dry_run=dry_run)
    rows += _rows(diff.present, _EXISTS)
    return end_with(CHANGE_COLUMNS, rows, output, failures=failures)


def apply_file(options: ClusterOptions, request: ApplyRequest) -> int:
    """Create a file's missing ACLs and, with --prune, delete surplus ones; returns the exit code.

    Prints a row for each rule. ACLs are created before any is deleted, so that no client loses
    access in between; if one cannot be created, none is deleted.
    """
    check_format(request.output)
    wanted = parse_rules_file(read_input(request.path), request.path)
    with connect(options) as client:
        diff = compare_rules(wanted, described(client, [EVERY_RULE]))
        surplus = diff.surplus if request.prune else []
        if surplus and not request.dry_run:
            what = f"Delete {few_rules(surplus)} that {request.path} does not have"
            confirm(f"{what}, of {cluster_named(client)}", yes=request.yes)
        rows, failures = _create_missing(client, diff.missing, dry_run=request.dry_run)
        if request.dry_run:
            rows += _rows(surplus, "would be deleted")
        elif failures and surplus:
            notify(f"{counted(len(surplus), 'rule')} not deleted, for not all could be created")
        else:
            deleted, failed = delete_exact_rules(client, surplus)
            rows, failures = rows + deleted, failures + failed
    rows += _rows(diff.present, _EXISTS)
    _print_surplus_note(diff, request)
    code = end_with(CHANGE_COLUMNS, rows, request.output, failures=failures)
    if request.dry_run and (diff.missing or surplus):
        return exits.CHANGES_PENDING
    return code


def _print_surplus_note(diff: RulesDifference, request: ApplyRequest) -> None:
    """Print how many surplus rules are kept without `--prune`, or that nothing is to change."""
    if diff.surplus and not request.prune:
        count = counted(len(diff.surplus), "rule")
        notify(f"note: {count} of the cluster not in {request.path}; --prune deletes them")
    elif not diff.missing and not diff.surplus:
        notify("nothing to change: the cluster has these rules and no others")


def _create_missing(
    client: KafkaClient, rules: list[AclBinding], *, dry_run: bool
) -> tuple[list[OutputRow], int]:
    """Create ACLs unless `dry_run`; return the rows of the created ones and the number of failures.

    The error of each failure is printed.
    """
    if dry_run or not rules:
        return _rows(rules, "would be created"), 0
    rows: list[OutputRow] = []
    failures = 0
    for rule, error in zip(rules, create_each(client, rules), strict=True):
        if error is not None:
            report_error(error, rule_text(rule))
            failures += 1
        else:
            rows += _rows([rule], "created")
    return rows, failures


def _rows(rules: list[AclBinding], result: str) -> list[OutputRow]:
    """Return a row for each rule, all with the same result."""
    return [{**rule_row(rule), "result": result} for rule in rules]
