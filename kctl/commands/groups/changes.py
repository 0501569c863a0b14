"""Implementation of `kctl groups delete`, `delete-offsets` and `remove-members`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.group_admin import (
    MemberToRemove,
    delete_groups,
    delete_offsets,
    remove_members,
)
from engine.client.groups import GroupDescription, MemberView, committed_offsets
from engine.errors import EngineError
from engine.model import TopicPartition
from kctl import exits
from kctl.arguments import counted
from kctl.command_results import ItemFailures, end_with
from kctl.commands.groups.listing import describe_existing_group, host_text
from kctl.connect import ClusterOptions, cluster_named, connect
from kctl.console import confirm, notify, report_error
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow
from kctl.selection import select_partitions

DELETE_COLUMNS = (
    Column("group", "GROUP", is_name=True),
    Column("partitions", "PARTITIONS", right=True),
    Column("result", "RESULT"),
)
DELETE_OFFSETS_COLUMNS = (
    Column("group", "GROUP"),
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("committed_offset", "COMMITTED", right=True),
    Column("result", "RESULT"),
)
REMOVE_COLUMNS = (
    Column("group", "GROUP"),
    Column("client_id", "CLIENT", is_name=True),
    Column("client_host", "HOST"),
    Column("instance_id", "INSTANCE", kind="string?"),
    Column("member_id", "MEMBER"),
    Column("result", "RESULT"),
)
_SHOWN_MAX = 5


class GroupHasMembers(EngineError):
    """The group has members, but the change requires a group without members."""

    hint = "stop its members, or name them to `kctl groups remove-members`; then try again"

    def __init__(self, group: GroupDescription) -> None:
        """Create the error for `group`; its message names the first members."""
        members = sorted(group.members, key=lambda member: (member.client_id, member.member_id))
        named = [f"{member.client_id} at {host_text(member)}" for member in members]
        more = ", …" if len(named) > _SHOWN_MAX else ""
        super().__init__(
            f"group {group.group_id} is in use ({group.state}): "
            f"{counted(len(named), 'member')}: {', '.join(named[:_SHOWN_MAX])}{more}"
        )
        self.group_id = group.group_id
        self.members = [member.member_id for member in members]


class NoSuchMember(EngineError):
    """No member of the group has this member id or instance id."""

    hint = "`kctl groups members GROUP -o wide` shows the ids"

    def __init__(self, group_id: str, name: str) -> None:
        super().__init__(f"group {group_id} has no member {name}")
        self.name = name


class NoMemberChosen(EngineError):
    """No option names the members to remove."""

    exit_code = exits.USAGE

    def __init__(self) -> None:
        super().__init__("which members? Give --member, --instance-id or --all")


class RemoveRequest(NamedTuple):
    """The options of `kctl groups remove-members`."""

    group_id: str
    member_ids: Sequence[str]
    instance_ids: Sequence[str]
    is_all: bool
    dry_run: bool
    yes: bool
    output: str


def describe_inactive_group(client: KafkaClient, group_id: str) -> GroupDescription:
    """Describe a group that is to be deleted; raises GroupHasMembers if it is in use.

    Errors: also GROUP_ID_NOT_FOUND.
    """
    group = describe_existing_group(client, group_id)
    if group.members:
        raise GroupHasMembers(group)
    return group


# Deletion of groups


def delete_groups_of_options(
    options: ClusterOptions, group_ids: list[str], *, dry_run: bool, yes: bool, output: str
) -> int:
    """Delete groups with their committed offsets, after confirmation; returns the exit code.

    A group with members is refused; the others are deleted.
    """
    check_format(output)
    counts: dict[str, int] = {}
    failures = ItemFailures()
    with connect(options) as client:
        for group_id in dict.fromkeys(group_ids):
            try:
                describe_inactive_group(client, group_id)
                counts[group_id] = len(committed_offsets(client, group_id))
            except EngineError as error:
                failures.report(error, group_id)
        results: dict[str, EngineError | None] = dict.fromkeys(counts)
        if counts and not dry_run:
            what = (
                f"Delete {_group_names(list(counts))} with all offsets of {cluster_named(client)}"
            )
            confirm(what, yes=yes)
            results = delete_groups(client, counts)
    rows: list[OutputRow] = []
    result = "would be deleted" if dry_run else "deleted"
    for group_id, error_of_one in results.items():
        if error_of_one is not None:
            failures.report(error_of_one, group_id)
        else:
            row = {"group": group_id, "partitions": counts[group_id], "result": result}
            rows.append(row)
    return failures.end_with(DELETE_COLUMNS, rows, output)


def _group_names(names: Sequence[str]) -> str:
    """Return `group a`, `groups a, b`, or `12 groups (a, b, c, …)`, for a prompt."""
    if len(names) <= _SHOWN_MAX:
        return f"{'group' if len(names) == 1 else 'groups'} {', '.join(names)}"
    return f"{len(names)} groups ({', '.join(names[:3])}, …)"


# Deletion of offsets


def delete_committed(
    options: ClusterOptions,
    group_id: str,
    topics: list[str],
    *,
    dry_run: bool,
    yes: bool,
    output: str,
) -> int:
    """Delete a group's committed offsets of topics, after confirmation; returns the exit code.

    `topics` are TOPIC or TOPIC:PARTITIONS. Partitions without a committed offset are passed over.
    """
    check_format(output)
    with connect(options) as client:
        describe_existing_group(client, group_id)
        committed = committed_offsets(client, group_id)
        _, partitions, errors = select_partitions(client, topics)
        for error in errors:
            report_error(error)
        failures = len(errors)
        known = {key: committed[key] for key in partitions if key in committed}
        results: dict[TopicPartition, EngineError | None] = dict.fromkeys(known)
        if known and not dry_run:
            count = counted(len(known), "partition")
            what = f"Delete what {group_id} has committed for {count} of {cluster_named(client)}"
            confirm(what, yes=yes)
            results = delete_offsets(client, group_id, known)
    if not known and not failures:
        notify("nothing to delete: the group has committed nothing for these partitions")
    rows: list[OutputRow] = []
    result = "would be deleted" if dry_run else "deleted"
    for partition, error_of_one in results.items():
        if error_of_one is not None:
            report_error(error_of_one, str(partition))
            failures += 1
            continue
        rows.append(
            {
                "group": group_id,
                "topic": partition.topic,
                "partition": partition.partition,
                "committed_offset": known[partition],
                "result": result,
            }
        )
    return end_with(DELETE_OFFSETS_COLUMNS, rows, output, failures=failures)


# Removal of members


def remove_group_members(options: ClusterOptions, request: RemoveRequest) -> int:
    """Remove members from a group by LeaveGroup, after confirmation; returns the exit code.

    Errors: NoMemberChosen if no option selects a member.
    """
    check_format(request.output)
    if not (request.member_ids or request.instance_ids or request.is_all):
        raise NoMemberChosen
    with connect(options) as client:
        group = describe_existing_group(client, request.group_id)
        chosen, failures = _select_members(group, request)
        results: dict[str, EngineError | None] = {m.member_id: None for m in chosen}
        if chosen and not request.dry_run:
            count = counted(len(chosen), "member")
            what = f"Remove {count} of group {group.group_id} of {cluster_named(client)}"
            confirm(what, yes=request.yes)
            removed = remove_members(client, group.group_id, [_identity(m) for m in chosen])
            results = {
                member.member_id: error
                for member, error in zip(chosen, removed.values(), strict=True)
            }
    if not group.members:
        notify(f"group {group.group_id} has no members")
    rows: list[OutputRow] = []
    for member in chosen:
        error_of_one = results[member.member_id]
        if error_of_one is not None:
            report_error(error_of_one, member.member_id)
            failures += 1
        else:
            rows.append(_member_row(group.group_id, member, is_done=not request.dry_run))
    return end_with(REMOVE_COLUMNS, rows, request.output, failures=failures)


def _select_members(
    group: GroupDescription, request: RemoveRequest
) -> tuple[list[MemberView], int]:
    """Return the members to remove, and the number of given ids that no member has.

    An error is printed for each of these ids.
    """
    members = sorted(group.members, key=lambda member: (member.client_id, member.member_id))
    if request.is_all:
        return members, 0
    missing = {*request.member_ids} - {member.member_id for member in members}
    missing |= {*request.instance_ids} - {member.group_instance_id for member in members}
    for name in sorted(missing):
        report_error(NoSuchMember(group.group_id, name))
    chosen = [
        member
        for member in members
        if member.member_id in request.member_ids
        or member.group_instance_id in request.instance_ids
    ]
    return chosen, len(missing)


def _identity(member: MemberView) -> MemberToRemove:
    """Return a member's identity for LeaveGroup: the instance id of a static member."""
    if member.group_instance_id is not None:
        return MemberToRemove("", member.group_instance_id)
    return MemberToRemove(member.member_id)


def _member_row(group_id: str, member: MemberView, *, is_done: bool) -> OutputRow:
    """Return the row of a removed member; `is_done` is false in a dry run."""
    return {
        "group": group_id,
        "client_id": member.client_id,
        "client_host": host_text(member),
        "instance_id": member.group_instance_id,
        "member_id": member.member_id,
        "result": "removed" if is_done else "would be removed",
    }
