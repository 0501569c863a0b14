"""`kafka-acls`: adds, removes and lists access rules.

Source: AclCommand of 3.9.1 and 4.3.0.

Differs: resources and entries are printed in the order of the options, or of the response.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from engine.client.acl_admin import create_acls, delete_acls, describe_acls
from engine.client.blocking import KafkaClient
from engine.security.acls import (
    AccessEntry,
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
from kctl import exits
from kctl.compat.acl_rules import (
    Rules,
    parse_principals,
    resource_filters,
    rules_of_resources,
    rules_to_add,
)
from kctl.compat.java_admin import admin_call, as_execution_failure
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_options import (
    HELP,
    VERSION,
    GivenOptions,
    ToolOption,
    exclude,
    refused,
)
from kctl.compat.releases import Release
from kctl.compat.tool_call import ToolCall

SUMMARY = "Shows and changes who may do what."
_BOTH: Final = (
    ToolOption("bootstrap-server", "Brokers to ask first.", "HOST:PORT,..."),
    ToolOption("command-config", "Client properties.", "FILE", True),
    ToolOption("add", "Add rules."),
    ToolOption("remove", "Remove rules."),
    ToolOption("list", "List rules."),
    ToolOption("topic", "A topic; * is every one.", "NAME"),
    ToolOption("group", "A consumer group; * is every one.", "NAME"),
    ToolOption("cluster", "The cluster."),
    ToolOption("transactional-id", "A transactional id; * is every one.", "ID"),
    ToolOption("delegation-token", "A delegation token; * is every one.", "ID"),
    ToolOption("user-principal", "A user whose tokens are meant.", "TYPE:NAME"),
    ToolOption("resource-pattern-type", "ANY, MATCH, LITERAL (default) or PREFIXED.", "TYPE"),
    ToolOption("operation", "Read, Write, ...; All without it.", "NAME"),
    ToolOption("allow-principal", "Who is allowed.", "TYPE:NAME"),
    ToolOption("deny-principal", "Who is denied.", "TYPE:NAME"),
    ToolOption("allow-host", "From where; * without it.", "HOST"),
    ToolOption("deny-host", "From where; * without it.", "HOST"),
    ToolOption("principal", "List: the rules of this one alone.", "TYPE:NAME", True),
    ToolOption("producer", "What a producer needs for a topic."),
    ToolOption("consumer", "What a consumer needs for a topic and a group."),
    ToolOption("idempotent", "With --producer: an idempotent one."),
    ToolOption("force", "Do not ask before rules are removed."),
    HELP,
    VERSION,
)
_THREE: Final = (
    ToolOption("authorizer", "Not served.", "CLASS"),
    ToolOption("authorizer-properties", "Not served.", "KEY=VALUE"),
    ToolOption("zk-tls-config-file", "Not served.", "FILE"),
)
_FOUR: Final = (ToolOption("bootstrap-controller", "Not served.", "HOST:PORT,..."),)
_NOT_SERVED: Final = (
    "authorizer",
    "authorizer-properties",
    "zk-tls-config-file",
    "bootstrap-controller",
)
_EVERY_ENTRY: Final = EntryFilter(None, None, AclOperation.ANY, AclPermission.ANY)
_EVERY_PATTERN: Final = PatternFilter(AclResource.ANY, None, PatternType.ANY)


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options that kafka-acls has in a release."""
    return _BOTH + (_FOUR if release.is_four else _THREE)


def run(call: ToolCall, given: GivenOptions) -> int:
    """Run kafka-acls: list, add or remove rules, and print the results; returns the exit code."""
    _check_options(given, call.release)
    call.admit(given.names(), ",".join(given.texts("bootstrap-server")))
    try:
        is_add = given.has("add")
        # The tool of 3.9.1 parses the rules before it creates a client, that of 4.3.0 afterwards.
        rules = rules_to_add(given, call.release) if is_add and not call.is_four else {}
        path = given.text("command-config")
        if path is None and given.has("command-config"):
            call.out.write("Did not load any properties since the property file is not specified\n")
        properties = call.properties(path)
        servers = given.needed("bootstrap-server")
        with call.client(servers, properties) as client:
            if is_add:
                _add_rules(call, rules or rules_to_add(given, call.release), client)
            elif given.has("remove"):
                _remove_rules(call, given, client)
            else:
                _list_rules(call, given, client)
    except ToolFailure as failure:
        call.out.write(f"Error while executing ACL command: {failure}\n{failure.trace()}\n")
        return exits.FAILED
    return exits.OK


def _check_options(given: GivenOptions, release: Release) -> None:
    """Raise OptionsRefused for contradictory options. Source: AclCommandOptions.checkArgs."""
    for name in _NOT_SERVED:
        if given.has(name):
            raise refused(f"--{name} is not served here: use --bootstrap-server")
    if not given.has("bootstrap-server"):
        raise refused(
            "One of --bootstrap-server or --bootstrap-controller must be specified"
            if release.is_four
            else 'Missing required argument "[authorizer-properties]"'
        )
    if [given.has(name) for name in ("list", "add", "remove")].count(True) != 1:
        raise refused("Command must include exactly one action: --list, --add, --remove. ")
    principals = ("allow-host", "allow-principal", "deny-host", "deny-principal")
    exclude(given, "list", ("producer", "consumer", *principals))
    for role in ("producer", "consumer"):
        exclude(given, role, ("operation", "deny-principal", "deny-host"))
    if given.has("principal") and not given.has("list"):
        raise refused("The --principal option is only available if --list is set")
    if given.has("producer") and not given.has("topic"):
        raise refused("With --producer you must specify a --topic")
    if given.has("idempotent") and not given.has("producer"):
        raise refused("The --idempotent option is only available if --producer is set")
    if given.has("consumer") and not _fits_a_consumer(given):
        raise refused(
            "With --consumer you must specify a --topic and a --group and no --cluster or "
            "--transactional-id option should be specified."
        )


def _fits_a_consumer(given: GivenOptions) -> bool:
    """Return True if --consumer has topic and group, and no options of other roles.

    That is required of --consumer. With --producer, --cluster and --transactional-id are valid,
    too.
    """
    has_both = given.has("topic") and given.has("group")
    of_others = given.has("cluster") or given.has("transactional-id")
    return has_both and (given.has("producer") or not of_others)


# -- adding


def _add_rules(call: ToolCall, rules: Rules, client: KafkaClient) -> None:
    """Create the rules of --add, and print them by resource; raises ToolFailure.

    The tool of 4.3.0 skips existing rules.
    """
    if call.is_four:
        rules = _drop_present(call, client, rules)
    end = "\n" if call.is_four else " \n"
    for pattern, entries in rules.items():
        lines = "\n".join(f"\t{entry_text(entry)}" for entry in entries)
        call.out.write(f"Adding ACLs for resource `{pattern_text(pattern)}`: \n {lines}{end}\n")
        bindings = [AclBinding(_pattern(pattern), entry) for entry in entries]
        with _waited_call("createAcls"):
            create_acls(client, bindings)


def _drop_present(call: ToolCall, client: KafkaClient, rules: Rules) -> Rules:
    """Return the rules that do not exist yet, and print the existing ones. Source: 4.3.0."""
    left: Rules = {}
    for pattern, entries in rules.items():
        present = {entry for _, entry in _described(client, pattern)}
        for entry in entries:
            if entry in present:
                call.out.write(
                    f"Acl (pattern={pattern_text(pattern)}, entry={entry_text(entry)}) "
                    "already exists.\n"
                )
        missing = [entry for entry in entries if entry not in present]
        if missing:
            left[pattern] = missing
    return left


def _pattern(wanted: PatternFilter) -> AclPattern:
    """Return the resource pattern of a filter with a name, for a new rule."""
    assert wanted.name is not None
    return AclPattern(wanted.kind, wanted.name, wanted.pattern_type)


# -- removing


def _remove_rules(call: ToolCall, given: GivenOptions, client: KafkaClient) -> None:
    """Delete the rules of --remove, each resource after confirmation.

    If no principal is named, all rules of the resource are deleted. Errors: ToolFailure,
    OptionsRefused.
    """
    for pattern, entries in rules_of_resources(given, call.release).items():
        if not _is_confirmed(call, given, pattern, entries):
            continue
        if entries:
            filters = [AclFilter(pattern, EntryFilter(*entry)) for entry in entries]
        else:
            filters = [AclFilter(pattern, _EVERY_ENTRY)]
        with _waited_call("deleteAcls"):
            delete_acls(client, filters)


def _is_confirmed(
    call: ToolCall, given: GivenOptions, pattern: PatternFilter, entries: Sequence[AccessEntry]
) -> bool:
    """Ask on stdin before rules are removed, unless --force; return True if the answer is yes.

    Errors: ToolFailure without a terminal, with the messages of 4.3.0.
    """
    if given.has("force"):
        return True
    named = f"resource filter `{pattern_text(pattern)}`? (y/n)"
    if entries:
        lines = "\n".join(f"\t{entry_text(entry)}" for entry in entries)
        end = "" if call.is_four else " "
        call.out.write(f"Are you sure you want to remove ACLs: \n {lines}{end}\n from {named}\n")
    else:
        call.out.write(f"Are you sure you want to delete all ACLs for {named}\n")
    call.flush()
    if call.is_four and not call.stdin.isatty():
        # 4.3.0 reads the answer only from a terminal.
        raise ToolFailure("java.lang.NullPointerException", "there is no terminal to answer from")
    return call.stdin.readline().rstrip(b"\r\n").lower() == b"y"


# -- listing


def _list_rules(call: ToolCall, given: GivenOptions, client: KafkaClient) -> None:
    """Print the rules of --list by resource; with --principal for each principal.

    Errors: ToolFailure.
    """
    filters = resource_filters(given) or [_EVERY_PATTERN]
    found: dict[AclPattern, list[AccessEntry]] = {}
    for wanted in filters:
        for pattern, entry in _described(client, wanted):
            if entry not in found.setdefault(pattern, []):
                found[pattern].append(entry)
    principals = parse_principals(given, "principal")
    if not principals:
        _print_rules(call, found)
    for principal in principals:
        call.out.write(f"ACLs for principal `{principal}`\n")
        own = {
            pattern: [entry for entry in entries if entry.principal == principal]
            for pattern, entries in found.items()
        }
        _print_rules(call, {pattern: entries for pattern, entries in own.items() if entries})


def _print_rules(call: ToolCall, rules: Mapping[AclPattern, Iterable[AccessEntry]]) -> None:
    """Print the rules of each resource in the format of the release."""
    begin, end = ("\n", "\n") if call.is_four else (" \n ", " \n")
    for pattern, entries in rules.items():
        lines = "\n".join(f"\t{entry_text(entry)}" for entry in entries)
        named = pattern_text(PatternFilter(*pattern))
        call.out.write(f"Current ACLs for resource `{named}`:{begin}{lines}{end}\n")


def _described(client: KafkaClient, wanted: PatternFilter) -> list[AclBinding]:
    """Request the rules whose resource pattern matches a filter; raises ToolFailure."""
    with _waited_call("describeAcls"):
        return describe_acls(client, AclFilter(wanted, _EVERY_ENTRY))


class _waited_call:  # noqa: N801 - used as a statement
    """Context manager that wraps failures in ExecutionException, like `KafkaFuture.get`."""

    def __init__(self, name: str) -> None:
        self._call = admin_call(name)

    def __enter__(self) -> None:
        """Begin a request whose errors are raised as Java's client raises them."""
        self._call.__enter__()

    def __exit__(self, *error: object) -> None:
        """Raise an error of the request as Java's ExecutionException with its cause."""
        try:
            self._call.__exit__(*error)  # type: ignore[arg-type]
        except ToolFailure as failure:
            raise as_execution_failure(failure) from failure


def pattern_text(pattern: PatternFilter) -> str:
    """Return a pattern in the format of Java's toString."""
    name = "null" if pattern.name is None else pattern.name
    return (
        f"ResourcePattern(resourceType={pattern.kind.name}, name={name}, "
        f"patternType={pattern.pattern_type.name})"
    )


def entry_text(entry: AccessEntry) -> str:
    """Return an entry in the format of Java's toString."""
    return (
        f"(principal={entry.principal}, host={entry.host}, operation={entry.operation.name}, "
        f"permissionType={entry.permission.name})"
    )
