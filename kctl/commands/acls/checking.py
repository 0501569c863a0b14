"""Implementation of `kctl acls check`: whether a user may do something, and which rule decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.config_admin import ConfigResourceType, Resource, describe_configs
from engine.errors import ApiError, EngineError
from engine.security.acl_cache import Requester
from engine.security.acl_decision import (
    AclDecision,
    AclReason,
    AclResult,
    AuthorizerSettings,
    decide,
    hosts_named,
)
from engine.security.acl_jobs import NeededRule
from engine.security.acls import (
    WILDCARD_HOST,
    WILDCARD_NAME,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclPattern,
    PatternType,
)
from engine.security.principals import super_users_of
from kctl import exits
from kctl.command_results import end_with
from kctl.commands.acls.listing import EVERY_RULE, described
from kctl.commands.acls.rule_texts import (
    RULE_COLUMNS,
    cli_name,
    create_commands,
    parse_host,
    parse_operations,
    parse_pattern_type,
    parse_principal,
    parse_resource,
    resource_text,
    rule_row,
    rule_text,
    rule_that_allows,
)
from kctl.commands.acls.wanted_rules import RulesNotClear, RulesRequest, rules_for_job
from kctl.connect import ClusterOptions, connect
from kctl.console import notify
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow

CHECK_COLUMNS: Final = (
    Column("principal", "PRINCIPAL"),
    Column("host", "HOST"),
    Column("operation", "OPERATION"),
    Column("resource_type", "TYPE", wide=True),
    Column("resource_name", "RESOURCE", is_name=True),
    Column("pattern", "PATTERN", wide=True),
    Column("result", "RESULT"),
    Column("reason", "REASON", wide=True),
    Column("why", "WHY"),
    Column("rule", "RULE", wide=True, kind="object?", fields=RULE_COLUMNS),
)
_ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"
_SUPER_USERS: Final = "super.users"


class CheckRequest(NamedTuple):
    """The options of `kctl acls check`."""

    user: str
    operation: str | None
    resource: str | None
    host: str | None
    job: RulesRequest
    super_users: Sequence[str]
    allow_everyone: bool | None
    output: str


class AccessCheck(NamedTuple):
    """An operation on a resource, from a host; `*` stands for every host without a rule."""

    host: str
    needed: NeededRule


def check_permissions(options: ClusterOptions, request: CheckRequest) -> int:
    """Print whether a principal may perform each operation, and why (`kctl acls check`).

    One row for each permission and host. Returns exit code 4 if one is not allowed. With `--for`,
    the commands that create the missing rules are printed, too.
    """
    check_format(request.output)
    principal = parse_principal(request.user)
    host = None if request.host is None else parse_host(request.host)
    wanted = _permissions_to_check(request)
    with connect(options) as client:
        rules = described(client, [EVERY_RULE])
        settings = _authorizer_settings(client, request)
    checks = _access_checks(rules, principal, wanted, host)
    decisions = {
        check: decide(
            rules,
            Requester(principal, check.host),
            check.needed.operation,
            check.needed.resource,
            settings,
        )
        for check in checks
    }
    rows = [_decision_row(principal, check, decision) for check, decision in decisions.items()]
    code = end_with(CHECK_COLUMNS, rows, request.output)
    refused = [check for check, decision in decisions.items() if not decision.is_allowed]
    if refused and request.job.job is not None:
        _print_create_commands(principal, refused, decisions)
    return exits.PROBLEMS_FOUND if refused else code


def _permissions_to_check(request: CheckRequest) -> list[NeededRule]:
    """Return the permissions to check, of `--for` or of OPERATION and RESOURCE.

    Errors: RulesNotClear, UnreadableArgument.
    """
    if request.job.job is not None:
        if request.operation is not None:
            raise RulesNotClear("--for sets both: leave out OPERATION and RESOURCE")
        return [
            need._replace(resource=_as_prefix(need.resource)) for need in rules_for_job(request.job)
        ]
    if request.operation is None or request.resource is None:
        raise RulesNotClear(
            "may do what? Give OPERATION and RESOURCE, or --for JOB",
            "as in `kctl acls check alice read topic:orders`",
        )
    if any(request.job.resources) or request.job.inputs:
        raise RulesNotClear("names of topics, groups and ids go with --for")
    resource = parse_resource(request.resource, parse_pattern_type(request.job.pattern))
    return [
        NeededRule(_as_prefix(resource), operation)
        for operation in parse_operations([request.operation])
    ]


def _as_prefix(resource: AclPattern) -> AclPattern:
    """Return the resource `*` as the empty prefix, which every name matches; others unchanged.

    To ask about `*` is to ask about all names: a rule on one name alone must not decide it.
    """
    if resource.name == WILDCARD_NAME:
        return AclPattern(resource.kind, "", PatternType.PREFIXED)
    return resource


def _access_checks(
    rules: Sequence[AclBinding],
    principal: str,
    wanted: Sequence[NeededRule],
    host: str | None,
) -> list[AccessCheck]:
    """Return a check for each permission and host.

    If `host` is None, the hosts are `*` and each host that an ACL names for the principal and the
    resource.
    """
    checks = []
    for needed in wanted:
        named = hosts_named(rules, (principal, WILDCARD_PRINCIPAL), needed.resource)
        hosts = [WILDCARD_HOST, *named] if host is None else [host]
        checks += [AccessCheck(one, needed) for one in hosts]
    return checks


def _authorizer_settings(client: KafkaClient, request: CheckRequest) -> AuthorizerSettings:
    """Return the two settings that the authorizer decides by: from the options, else from a broker.

    If the brokers hide a value that no option gives, a note is printed, and the decision may be
    UNKNOWN.
    """
    shown = _read_authorizer_settings(client)
    allows: bool | None = False
    if _ALLOW_EVERYONE in shown:
        value = shown[_ALLOW_EVERYONE]
        allows = None if value is None else value.strip().lower() == "true"
    if request.allow_everyone is not None:
        allows = request.allow_everyone
    elif allows is None:
        notify(f"note: brokers hide {_ALLOW_EVERYONE}; give --allow-everyone or --deny-everyone")
    super_users, _ = super_users_of(shown.get(_SUPER_USERS) or "")
    if request.super_users:
        super_users = frozenset(map(parse_principal, request.super_users))
    elif _SUPER_USERS in shown and shown[_SUPER_USERS] is None:
        notify("note: brokers hide super.users; give --super-user for those that are to count")
    return AuthorizerSettings(super_users, allows)


def _read_authorizer_settings(client: KafkaClient) -> dict[str, str | None]:
    """Read the authorizer's settings from the broker with the lowest id.

    A value is None if the broker hides it or the request fails; a setting that the broker does not
    return is missing from the result.
    """
    hidden: dict[str, str | None] = {_ALLOW_EVERYONE: None, _SUPER_USERS: None}
    brokers = client.brokers_view().brokers
    resource = Resource(ConfigResourceType.BROKER, str(min(brokers)))
    try:
        entries = describe_configs(client, [resource], names=list(hidden))[resource]
    except ApiError:
        return hidden
    if isinstance(entries, EngineError):
        return hidden
    return {entry.name: entry.value for entry in entries}


def _decision_row(principal: str, check: AccessCheck, decision: AclDecision) -> OutputRow:
    """Return the row of one check: the rule that would allow it, the result, and the reason.

    `rule` is the existing rule that decides; None if no rule does.
    """
    resource = check.needed.resource
    row = rule_row(rule_that_allows(principal, check.host, check.needed.operation, resource))
    del row["permission"]
    return {
        **row,
        "result": decision.result.value,
        "reason": decision.reason.value,
        "why": _reason_text(check, decision),
        "rule": None if decision.rule is None else rule_row(decision.rule),
    }


def _reason_text(check: AccessCheck, decision: AclDecision) -> str:
    """Return the text of column `why`: the deciding rule, or the setting if no rule matches."""
    if decision.rule is not None:
        return rule_text(decision.rule)
    operation = cli_name(check.needed.operation)
    resource = resource_text(check.needed.resource)
    if decision.reason is AclReason.SUPER_USER:
        return "a super user"
    if decision.reason is AclReason.NO_RULE_ALLOWS:
        return f"no rule allows it to {operation} {resource}"
    end = {
        AclResult.ALLOWED: "is true",
        AclResult.DENIED: "is false",
        AclResult.UNKNOWN: "decides, and is not known",
    }
    return f"no rule is about {resource}, and {_ALLOW_EVERYONE} {end[decision.result]}"


def _print_create_commands(
    principal: str, refused: Sequence[AccessCheck], decisions: dict[AccessCheck, AclDecision]
) -> None:
    """Print `kctl acls create` commands for refused checks, not for those a DENY rule refuses."""
    missing = [
        rule_that_allows(principal, check.host, check.needed.operation, check.needed.resource)
        for check in refused
        if decisions[check].reason is not AclReason.DENYING_RULE
    ]
    if missing:
        notify("rules are missing; to create them:")
        notify(create_commands(missing))
