"""Convert options, or an entry of a file, to the access rules that they define.

| | rules |
|---|---|
| `--operation` | each principal × host × operation × resource |
| `--for` | the rules that the job needs (`acl_jobs`), for each principal from each host |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from engine.errors import EngineError
from engine.security.acl_jobs import Job, JobNames, NeededRule, needed_rules
from engine.security.acl_operations import SUPPORTED_OPERATIONS, SUPPORTED_SINCE_FOUR
from engine.security.acls import (
    CLUSTER_NAME,
    WILDCARD_HOST,
    AccessEntry,
    AclBinding,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    PatternType,
)
from kctl import exits
from kctl.arguments import UnreadableArgument, is_utf8
from kctl.commands.acls.options import ResourceOptions
from kctl.commands.acls.rule_texts import (
    cli_name,
    parse_operations,
    parse_pattern_type,
    parse_principal,
    resource_text,
)

_NAMED: Final = (
    ("topic", AclResource.TOPIC),
    ("group", AclResource.GROUP),
    ("transactional_id", AclResource.TRANSACTIONAL_ID),
    ("delegation_token", AclResource.DELEGATION_TOKEN),
    ("user", AclResource.USER),
)
#: Required and optional resource options by job.
_OF_JOB: Final[Mapping[Job, tuple[Sequence[str], Sequence[str]]]] = {
    Job.CONSUMER: (("topic",), ("group",)),
    Job.PRODUCER: (("topic",), ()),
    Job.TRANSACTIONAL: (("topic", "transactional_id"), ("input", "group")),
    Job.STREAMS: (("group", "input"), ("topic",)),
}


class RulesNotClear(EngineError):
    """The options do not define rules, or contradict each other."""

    exit_code = exits.USAGE

    def __init__(self, rule: str, hint: str | None = None) -> None:
        super().__init__(rule)
        self.hint = hint


class RulesRequest(NamedTuple):
    """The requested rules, as options and files define them."""

    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    operations: Sequence[str] = ()
    hosts: Sequence[str] = ()
    resources: ResourceOptions = ResourceOptions()
    pattern: str | None = None
    job: str | None = None
    inputs: Sequence[str] = ()


def wanted_rules(request: RulesRequest) -> list[AclBinding]:
    """Return an ACL for each combination of resource, principal, host and operation of a request.

    With a job (`--for`) the resources and operations are those that it needs. Errors:
    RulesNotClear, UnreadableArgument.
    """
    if not (request.allow or request.deny):
        raise RulesNotClear("whose rules? Nobody is named", "give --allow USER or --deny USER")
    if request.job is not None:
        return _rules_of_job(request)
    if request.inputs:
        raise RulesNotClear("--input goes with --for transactional or streams")
    operations = parse_operations(request.operations)
    if not operations:
        raise RulesNotClear("which operations? None is named", "give --operation, or --for JOB")
    resources = named_resources(request.resources, parse_pattern_type(request.pattern))
    if not resources:
        raise RulesNotClear(
            "rules about what? Nothing is named", "give --topic NAME, --group ID, --cluster, …"
        )
    for resource in resources:
        _check_operations(resource, operations)
    return [
        AclBinding(resource, AccessEntry(principal, host, operation, permission))
        for resource in resources
        for principal, permission in _principals(request)
        for host in _hosts(request)
        for operation in operations
    ]


def _rules_of_job(request: RulesRequest) -> list[AclBinding]:
    """Return the ACLs that allow the job of `--for`.

    Errors: RulesNotClear with `--deny` or `--operation`, or if the resources do not fit the job.
    """
    if request.deny or request.operations:
        raise RulesNotClear("--for sets the operations: leave out --deny and --operation")
    return [
        AclBinding(needed.resource, AccessEntry(principal, host, needed.operation, permission))
        for needed in rules_for_job(request)
        for principal, permission in _principals(request)
        for host in _hosts(request)
    ]


def rules_for_job(request: RulesRequest) -> list[NeededRule]:
    """Return the permissions on topics, groups and ids that a job (`--for`) needs.

    Errors: RulesNotClear if a resource is missing or does not fit the job, UnreadableArgument.
    """
    job = _parse_job(request.job or "")
    given: dict[str, Any] = {**request.resources._asdict(), "input": request.inputs}
    # Names of the options that the job requires, and of those that it also accepts.
    needs, may_have = _OF_JOB[job]
    for name in needs:
        if not given[name]:
            raise RulesNotClear(f"--for {job.value} needs {_option(name)}")
    for name, value in given.items():
        if value and name not in (*needs, *may_have):
            raise RulesNotClear(f"--for {job.value} has nothing to do with {_option(name)}")
    for name in (name for names in given.values() if isinstance(names, list) for name in names):
        _check_name(name)
    topics, groups = given["topic"] or (), given["group"] or ()
    names = JobNames(written_topics=topics, read_topics=request.inputs)
    if job is Job.CONSUMER:
        names = JobNames(read_topics=topics, groups=groups)
    elif job is Job.TRANSACTIONAL:
        names = names._replace(groups=groups, transactional_ids=given["transactional_id"] or ())
    elif job is Job.STREAMS:
        names = names._replace(application_id=_application_id(list(groups)))
    return needed_rules(names, pattern_type=parse_pattern_type(request.pattern))


def _application_id(groups: list[str]) -> str:
    """Return the one group of `--for streams`: its application.id, which is the group.id.

    Errors: RulesNotClear if there is not exactly one.
    """
    if len(groups) != 1:
        raise RulesNotClear("--for streams takes one --group: its application.id")
    return groups[0]


def _parse_job(text: str) -> Job:
    """Return the job that `--for` names, in upper or lower case; raises UnreadableArgument."""
    try:
        return Job(text.strip().lower())
    except ValueError:
        expected = ", ".join(job.value for job in Job)
        raise UnreadableArgument("a job", text, f"one of {expected}") from None


def _option(name: str) -> str:
    """Return the option of a field: `transactional_id` as `--transactional-id`."""
    return f"--{name.replace('_', '-')}"


def named_resources(options: ResourceOptions, pattern_type: PatternType) -> list[AclPattern]:
    """Return the distinct resources that options name; raises UnreadableArgument."""
    given = options._asdict()
    found = [
        AclPattern(kind, _check_name(name), pattern_type)
        if kind is not AclResource.USER
        else AclPattern(kind, name if name == "*" else parse_principal(name), pattern_type)
        for option, kind in _NAMED
        for name in given[option] or ()
    ]
    if options.cluster:
        found.append(AclPattern(AclResource.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
    return list(dict.fromkeys(found))


def _check_name(name: str) -> str:
    """Return the name; raises UnreadableArgument if it is empty or not encodable as UTF-8."""
    if not name or not is_utf8(name):
        raise UnreadableArgument("a name", name, "a text of UTF-8 that is not empty")
    return name


def _check_operations(resource: AclPattern, operations: Sequence[AclOperation]) -> None:
    """Raise RulesNotClear for an operation that the resource's type does not support."""
    kind = resource.kind
    supported = (*SUPPORTED_OPERATIONS[kind], *SUPPORTED_SINCE_FOUR.get(kind, ()))
    for operation in operations:
        if operation not in supported:
            names = ", ".join(sorted(map(cli_name, supported)))
            raise RulesNotClear(
                f"{cli_name(operation)} is no operation of {resource_text(resource)}",
                f"a {cli_name(kind)} has {names}",
            )


def _principals(request: RulesRequest) -> list[tuple[str, AclPermission]]:
    """Return the distinct principals of --allow and --deny with their permissions."""
    found = [(parse_principal(name), AclPermission.ALLOW) for name in request.allow]
    found += [(parse_principal(name), AclPermission.DENY) for name in request.deny]
    return list(dict.fromkeys(found))


def _hosts(request: RulesRequest) -> list[str]:
    """Return the distinct hosts that the new rules apply to; `*` alone if `--host` is not given."""
    return list(dict.fromkeys(map(_check_name, request.hosts))) or [WILDCARD_HOST]
