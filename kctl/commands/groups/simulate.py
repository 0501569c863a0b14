"""Implementation of `kctl groups simulate`: print how an assignor assigns topics to members.

1. The given members get the partitions of the given topics.
2. Members leave and join; the assignor runs again with the former assignment. A cooperative
   assignor runs until no member revokes a partition.
3. A row for each partition: its member before and after, whether it moves, and whether a
   remaining member revokes it during the rebalance, even if the same member gets it back.

No request is sent to a cluster.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from engine.assignors.rebalance import given_up, is_cooperative, rebalance
from engine.assignors.registry import ASSIGNORS
from engine.assignors.subscription import Assignment, PartitionRacks, Subscription, Topics
from engine.errors import EngineError
from engine.model import TopicPartition
from kctl import exits
from kctl.arguments import UnreadableArgument, counted
from kctl.command_results import end_with
from kctl.console import notify
from kctl.numbers import INT32_MAX, read_whole
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow

COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("member", "MEMBER", kind="string?"),
    Column("member_after", "AFTER", kind="string?"),
    Column("moves", "MOVES"),
    Column("revoked", "REVOKED"),
)
#: Maximum number of partitions of a topic, so that a typing error cannot use up the memory.
_PARTITIONS_MAX = 100_000
_EXPECTED_MEMBER = "NAME or NAME=TOPIC,TOPIC"
_EXPECTED_TOPIC = "TOPIC:PARTITIONS, as orders:4, or with racks, as orders:4@r1+r2,r2+r3"


class SimulateRequest(NamedTuple):
    """The options of `kctl groups simulate`."""

    assignor: str
    topics: Sequence[str]
    members: Sequence[str]
    leaving: Sequence[str]
    joining: Sequence[str]
    output: str
    racks: Sequence[str] = ()


class UnknownAssignor(EngineError):
    """No assignor has this name."""

    exit_code = exits.USAGE

    def __init__(self, name: str) -> None:
        super().__init__(f"no assignor {name!r}; there are {', '.join(ASSIGNORS)}")
        self.name = name


class UnknownMember(EngineError):
    """An option names a member that is not given by --member."""

    exit_code = exits.USAGE

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"no member {name!r} to {what}: name it with --member")
        self.name = name


def simulate(request: SimulateRequest) -> int:
    """Print which member has each partition before and after members join or leave.

    Runs Kafka's assignor on the given topics and members, without a cluster. Returns the exit code.
    """
    check_format(request.output)
    if request.assignor not in ASSIGNORS:
        raise UnknownAssignor(request.assignor)
    assignor = ASSIGNORS[request.assignor]
    topics = parse_topics(request.topics)
    before, after = _memberships(request, list(topics))
    # The last of the rebalances that it takes until the assignment no longer changes.
    had = rebalance(assignor, topics, before, {})[-1]
    if not request.leaving and not request.joining:
        return end_with(COLUMNS, _rows(topics, had, had, set()), request.output)
    kept = {name: keys for name, keys in had.items() if name not in request.leaving}
    assignments = rebalance(assignor, topics, after, kept)
    revoked = _revoked_partitions(kept, assignments, is_cooperative=is_cooperative(assignor))
    rows = _rows(topics, had, assignments[-1], revoked)
    moves = sum(row["moves"] == "yes" for row in rows)
    notify(
        f"{counted(moves, 'partition')} of {len(rows)} would go to another member; "
        f"{len(revoked)} revoked, {counted(len(assignments), 'rebalance')}"
    )
    return end_with(COLUMNS, rows, request.output)


def _memberships(
    request: SimulateRequest, topics: Sequence[str]
) -> tuple[dict[str, Subscription], dict[str, Subscription]]:
    """Return the members' subscriptions before and after the change, each by member name.

    Errors: UnreadableArgument, UnknownMember.
    """
    before = parse_members(request.members, topics)
    joining = parse_members(request.joining, topics)
    for name in request.leaving:
        if name not in before:
            raise UnknownMember(name, "leave")
    for name, rack in parse_racks(request.racks).items():
        if name not in before and name not in joining:
            raise UnknownMember(name, "be in a rack")
        for members in (before, joining):
            if name in members:
                members[name] = members[name]._replace(rack_id=rack)
    staying = {name: member for name, member in before.items() if name not in request.leaving}
    return before, staying | joining


def parse_topics(arguments: Sequence[str]) -> dict[str, list[PartitionRacks]]:
    """Parse topics such as `orders:4@r1+r2,r2+r3` into the replicas' racks of each partition.

    The rows of racks, after `@`, apply to the partitions in turn. Errors: UnreadableArgument.
    """
    topics = {}
    for argument in arguments:
        size, at, racks = argument.partition("@")
        name, _, text = size.rpartition(":")
        count = read_whole(text)
        if not name or count is None or not 0 <= count <= min(_PARTITIONS_MAX, INT32_MAX):
            raise UnreadableArgument("a topic", argument, _EXPECTED_TOPIC)
        replicas = [frozenset(row.split("+")) for row in racks.split(",")] if at else [frozenset()]
        if any("" in row for row in replicas):
            raise UnreadableArgument("a topic", argument, _EXPECTED_TOPIC)
        topics[name] = [PartitionRacks(n, replicas[n % len(replicas)]) for n in range(count)]
    return topics


def parse_members(arguments: Sequence[str], topics: Sequence[str]) -> dict[str, Subscription]:
    """Parse members as NAME or NAME=TOPIC,…; one without topics subscribes to all of `topics`.

    Errors: UnreadableArgument.
    """
    members = {}
    for argument in arguments:
        name, equals, own = argument.partition("=")
        if not name or (equals and not own):
            raise UnreadableArgument("a member", argument, _EXPECTED_MEMBER)
        wanted = tuple(own.split(",")) if equals else tuple(topics)
        members[name] = Subscription(wanted)
    return members


def parse_racks(arguments: Sequence[str]) -> dict[str, str]:
    """Parse members' racks such as `c0=r1`; raises UnreadableArgument."""
    racks = {}
    for argument in arguments:
        name, _, rack = argument.rpartition("=")
        if not name or not rack:
            raise UnreadableArgument("a member's rack", argument, "NAME=RACK")
        racks[name] = rack
    return racks


def _revoked_partitions(
    had: Assignment, assignments: Sequence[Assignment], *, is_cooperative: bool
) -> set[TopicPartition]:
    """Return the partitions that remaining members revoke while they rebalance.

    With an eager assignor they revoke all that they have; with a cooperative one, only what moves.
    """
    if not is_cooperative:
        return {key for name in assignments[-1] for key in had.get(name, ())}
    steps = zip((had, *assignments), assignments, strict=False)
    return {key for former, assignment in steps for key in given_up(former, assignment)}


def _rows(
    topics: Topics, had: Assignment, assigned: Assignment, revoked: Container[TopicPartition]
) -> list[OutputRow]:
    """Return a row for each partition, in order of topics, with its member before and after."""
    owners, owners_after = _owners(had), _owners(assigned)
    keys = (TopicPartition(topic, row.partition) for topic, rows in topics.items() for row in rows)
    return [_partition_row(key, owners, owners_after, is_revoked=key in revoked) for key in keys]


def _owners(assignment: Mapping[str, Sequence[TopicPartition]]) -> dict[TopicPartition, str]:
    """Return which member each assigned partition belongs to."""
    return {key: member for member, partitions in assignment.items() for key in partitions}


def _partition_row(
    key: TopicPartition,
    owners: Mapping[TopicPartition, str],
    owners_after: Mapping[TopicPartition, str],
    *,
    is_revoked: bool,
) -> OutputRow:
    """Return the row of a partition; a member is None if the partition is not assigned."""
    before, after = owners.get(key), owners_after.get(key)
    return {
        "topic": key.topic,
        "partition": key.partition,
        "member": before,
        "member_after": after,
        "moves": "yes" if before != after else "no",
        "revoked": "yes" if is_revoked else "no",
    }
