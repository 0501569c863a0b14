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
    create_command,
    host_of,
    operations_of,
    pattern_type_of,
    principal_of,
    resource_of,
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


def check_rules(options: ClusterOptions, request: CheckRequest) -> int:
    """Print a row for each decision; return exit code 4 if an operation is not allowed."""
    check_format(request.output)
    principal = principal_of(request.user)
    host = None if request.host is None else host_of(request.host)
    wanted = _needed(request)
    with connect(options) as client:
        rules = described(client, [EVERY_RULE])
        settings = _settings(client, request)
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
    rows = [_row(principal, check, decision) for check, decision in decisions.items()]
    code = end_with(CHECK_COLUMNS, rows, request.output)
    refused = [check for check, decision in decisions.items() if not decision.is_allowed]
    if refused and request.job.job is not None:
        _propose(principal, refused, decisions)
    return exits.PROBLEMS_FOUND if refused else code


def _needed(request: CheckRequest) -> list[NeededRule]:
    """Return the permissions to check, of `--for` or of OPERATION and RESOURCE.

    Errors: RulesNotClear, UnreadableArgument.
    """
    if request.job.job is not None:
        if request.operation is not None:
            raise RulesNotClear("--for says what is done: leave out OPERATION and RESOURCE")
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
    resource = resource_of(request.resource, pattern_type_of(request.job.pattern))
    return [
        NeededRule(_as_prefix(resource), operation)
        for operation in operations_of([request.operation])
    ]


def _as_prefix(resource: AclPattern) -> AclPattern:
    """Return the resource `*` as the empty prefix, which every name matches; others unchanged."""
    if resource.name == WILDCARD_NAME:
        return AclPattern(resource.kind, "", PatternType.PREFIXED)
    return resource


def _access_checks(
    rules: Sequence[AclBinding],
    principal: str,
    wanted: Sequence[NeededRule],
    host: str | None,
) -> list[AccessCheck]:
    """Return a check per permission and host.

    `host` None stands for `*` and each host that an ACL of the principal and resource names.
    """
    checks = []
    for needed in wanted:
        named = hosts_named(rules, (principal, WILDCARD_PRINCIPAL), needed.resource)
        hosts = [WILDCARD_HOST, *named] if host is None else [host]
        checks += [AccessCheck(one, needed) for one in hosts]
    return checks


def _settings(client: KafkaClient, request: CheckRequest) -> AuthorizerSettings:
    """Return the authorizer's settings: the values of the options, else those a broker returns."""
    shown = _shown_settings(client)
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
        super_users = frozenset(map(principal_of, request.super_users))
    elif _SUPER_USERS in shown and shown[_SUPER_USERS] is None:
        notify("note: brokers hide super.users; give --super-user for those that are to count")
    return AuthorizerSettings(super_users, allows)


def _shown_settings(client: KafkaClient) -> dict[str, str | None]:
    """Read the authorizer's settings from one broker; None for a value that the broker hides."""
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


def _row(principal: str, check: AccessCheck, decision: AclDecision) -> OutputRow:
    """Return the output row of a decision: the requested permission, the result and its reason."""
    resource = check.needed.resource
    row = rule_row(rule_that_allows(principal, check.host, check.needed.operation, resource))
    del row["permission"]
    return {
        **row,
        "result": decision.result.value,
        "reason": decision.reason.value,
        "why": _why(check, decision),
        "rule": None if decision.rule is None else rule_row(decision.rule),
    }


def _why(check: AccessCheck, decision: AclDecision) -> str:
    """Return the reason of a decision as text: the deciding rule, or why no rule decided."""
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


def _propose(
    principal: str, refused: Sequence[AccessCheck], decisions: dict[AccessCheck, AclDecision]
) -> None:
    """Print the commands that create missing rules, not for checks that a DENY rule refuses."""
    missing = [
        rule_that_allows(principal, check.host, check.needed.operation, check.needed.resource)
        for check in refused
        if decisions[check].reason is not AclReason.DENYING_RULE
    ]
    if missing:
        notify("rules are missing; to create them:")
        notify(create_command(missing))
