"""Access rules as text: `User:alice`, `describe-configs`, `topic:orders`, rows of rules.

| resource | text |
|---|---|
| one topic | `topic:orders` |
| all whose names begin with pay- | `topic:pay-…` |
| every topic | `topic:*` |
| the cluster | `cluster` |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from engine.java_text import format_java_address
from engine.security.acls import (
    CLUSTER_NAME,
    WILDCARD_HOST,
    WILDCARD_NAME,
    AccessEntry,
    AclBinding,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    PatternType,
)
from engine.security.principals import user_principal
from kctl.arguments import UnreadableArgument, is_utf8
from kctl.render import Column
from kctl.render.rows import OutputRow

RULE_COLUMNS: Final = (
    Column("principal", "PRINCIPAL", is_name=True),
    Column("host", "HOST"),
    Column("permission", "PERMISSION"),
    Column("operation", "OPERATION"),
    Column("resource_type", "RESOURCE"),
    Column("resource_name", "NAME"),
    Column("pattern", "PATTERN"),
)
W = TypeVar("W", AclOperation, AclResource, PatternType, AclPermission)


def cli_name(member: W) -> str:
    """Return a member's name as commands write it: DESCRIBE_CONFIGS as `describe-configs`."""
    return member.name.lower().replace("_", "-")


def parse_member(kind: type[W], text: str, what: str, allowed: Iterable[W]) -> W:
    """Return the member of `allowed` with this name, in any case, with or without `-` and `_`.

    `what` names the argument in the error. Errors: UnreadableArgument.
    """
    members = list(allowed)
    wanted = text.strip().lower().replace("_", "").replace("-", "")
    for member in members:
        if cli_name(member).replace("-", "") == wanted:
            return member
    raise UnreadableArgument(what, text, f"one of {', '.join(map(cli_name, members))}")


def parse_operations(texts: Iterable[str]) -> list[AclOperation]:
    """Parse names of operations; one text may have several, separated by commas.

    Duplicates are dropped. Errors: UnreadableArgument.
    """
    names = [name for text in texts for name in text.split(",")]
    concrete = [operation for operation in AclOperation if operation > AclOperation.ANY]
    found = [parse_member(AclOperation, name, "an operation", concrete) for name in names]
    return list(dict.fromkeys(found))


def parse_principal(text: str) -> str:
    """Return `User:alice` for `alice`, `TYPE:NAME` unchanged; raises UnreadableArgument."""
    kind, colon, name = text.strip().partition(":")
    if not is_utf8(text) or not kind or (colon and not name):
        raise UnreadableArgument("a principal", text, "USER, or TYPE:NAME as in User:alice")
    return text.strip() if colon else user_principal(kind)


def parse_host(text: str) -> str:
    """Parse the host of a rule: `*`, or an IP address, which becomes the text brokers compare with.

    Brokers resolve no host names: a rule for a name applies to no client, so a name is refused.
    Errors: UnreadableArgument.
    """
    from ipaddress import ip_address

    if text == WILDCARD_HOST:
        return text
    try:
        ip_address(text)
    except ValueError:
        raise UnreadableArgument("a host", text, "an address as 10.0.0.9, or *") from None
    return format_java_address(text)


def parse_pattern_type(text: str | None) -> PatternType:
    """Parse `literal` or `prefixed`; None gives LITERAL. Raises UnreadableArgument."""
    if text is None:
        return PatternType.LITERAL
    return parse_member(
        PatternType, text, "a type of pattern", (PatternType.LITERAL, PatternType.PREFIXED)
    )


def parse_resource(text: str, pattern_type: PatternType) -> AclPattern:
    """Parse `TYPE:NAME`, as in `topic:orders`, or `cluster`; raises UnreadableArgument."""
    kind_name, colon, name = text.partition(":")
    if kind_name == "cluster" and name in ("", CLUSTER_NAME):
        return AclPattern(AclResource.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
    if not colon or not name or not is_utf8(text):
        raise UnreadableArgument("a resource", text, "TYPE:NAME as in topic:orders, or cluster")
    kinds = [kind for kind in AclResource if kind > AclResource.ANY]
    kind = parse_member(AclResource, kind_name, "a type of resource", kinds)
    return AclPattern(kind, name, pattern_type)


def resource_text(pattern: AclPattern) -> str:
    """Return a resource as `TYPE:NAME` for messages; a prefixed pattern ends in `…`."""
    if pattern.kind is AclResource.CLUSTER:
        return cli_name(pattern.kind)
    name = pattern.name
    if pattern.pattern_type is PatternType.PREFIXED:
        name = f"{name}…" if name else WILDCARD_NAME
    return f"{cli_name(pattern.kind)}:{name}"


def rule_text(rule: AclBinding) -> str:
    """Return a rule as a phrase: `allow User:alice to read topic:orders`."""
    pattern, entry = rule
    where = "" if entry.host == WILDCARD_HOST else f" from {entry.host}"
    return (
        f"{cli_name(entry.permission)} {entry.principal}{where} to {cli_name(entry.operation)} "
        f"{resource_text(pattern)}"
    )


def rule_row(rule: AclBinding) -> OutputRow:
    """Return a rule as an output row with the columns of RULE_COLUMNS."""
    pattern, entry = rule
    return {
        "principal": entry.principal,
        "host": entry.host,
        "permission": cli_name(entry.permission),
        "operation": cli_name(entry.operation),
        "resource_type": cli_name(pattern.kind),
        "resource_name": pattern.name,
        "pattern": cli_name(pattern.pattern_type),
    }


def in_order(rules: Iterable[AclBinding]) -> list[AclBinding]:
    """Return the rules sorted by resource, then by principal, without duplicates."""
    return sorted(set(rules))


def create_commands(rules: Sequence[AclBinding]) -> str:
    """Return `kctl acls create` commands, one a line, that add these rules of one principal."""
    import shlex

    principal = rules[0].entry.principal
    by_pattern: dict[tuple[AclPattern, str], list[AclOperation]] = {}
    for pattern, entry in rules:
        by_pattern.setdefault((pattern, entry.host), []).append(entry.operation)
    commands = []
    for (pattern, host), operations in by_pattern.items():
        arguments = ["kctl", "acls", "create", "--allow", principal]
        arguments += ["--operation", ",".join(map(cli_name, operations))]
        if pattern.kind is AclResource.CLUSTER:
            arguments.append("--cluster")
        else:
            arguments += [f"--{cli_name(pattern.kind)}", pattern.name]
        if pattern.pattern_type is PatternType.PREFIXED:
            arguments += ["--pattern", "prefixed"]
        if host != WILDCARD_HOST:
            arguments += ["--host", host]
        commands.append(shlex.join(arguments))
    return "\n".join(commands)


def rule_that_allows(
    principal: str, host: str, operation: AclOperation, resource: AclPattern
) -> AclBinding:
    """Return the ALLOW rule for one principal, host, operation and resource.

    A prefixed pattern with an empty name, which matches every name, becomes the literal `*`.
    """
    if resource.pattern_type is PatternType.PREFIXED and not resource.name:
        resource = AclPattern(resource.kind, WILDCARD_NAME, PatternType.LITERAL)
    return AclBinding(resource, AccessEntry(principal, host, operation, AclPermission.ALLOW))
