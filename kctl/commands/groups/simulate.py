"""What `kctl groups simulate` does: shows what an assignor makes of members and topics.

1. The members of the command line get the partitions of its topics.
2. Members leave, others join; the assignor is asked again.
3. A row for each partition: who has it before and after, and whether it moved.

Nothing is asked of a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from engine.assignors.registry import ASSIGNORS
from engine.assignors.subscription import PartitionRacks, Subscription
from engine.errors import EngineError
from engine.model import TopicPartition
from kctl import exits
from kctl.arguments import UnreadableArgument, counted
from kctl.asking import say
from kctl.command_results import end_with
from kctl.numbers import INT32_MAX, read_whole
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow

COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("member", "MEMBER", kind="string?"),
    Column("member_after", "AFTER", kind="string?"),
    Column("moves", "MOVES"),
)
#: More than any group reads; a typing error must not fill the memory.
_PARTITIONS_MAX = 100_000
_EXPECTED_MEMBER = "NAME or NAME=TOPIC,TOPIC"


class SimulateRequest(NamedTuple):
    """The options of `kctl groups simulate`."""

    assignor: str
    topics: Sequence[str]
    members: Sequence[str]
    leaving: Sequence[str]
    joining: Sequence[str]
    output: str


class UnknownAssignor(EngineError):
    """There is no assignor of this name."""

    exit_code = exits.USAGE

    def __init__(self, name: str) -> None:
        super().__init__(f"no assignor {name!r}; there are {', '.join(ASSIGNORS)}")
        self.name = name


class UnknownMember(EngineError):
    """A member leaves that is not there."""

    exit_code = exits.USAGE

    def __init__(self, name: str) -> None:
        super().__init__(f"no member {name!r} to leave: name it with --member")
        self.name = name


def simulate(request: SimulateRequest) -> int:
    """Print who has each partition before and after; returns the exit code."""
    check_format(request.output)
    if request.assignor not in ASSIGNORS:
        raise UnknownAssignor(request.assignor)
    assign = ASSIGNORS[request.assignor].assign
    topics = topics_of(request.topics)
    before = members_of(request.members, list(topics))
    after = {name: member for name, member in before.items() if name not in request.leaving}
    after |= members_of(request.joining, list(topics))
    for name in request.leaving:
        if name not in before:
            raise UnknownMember(name)
    owners = _owners(assign(topics, before))
    owners_after = _owners(assign(topics, after)) if after else {}
    rows = [
        _row(TopicPartition(topic, row.partition), owners, owners_after)
        for topic, partitions in topics.items()
        for row in partitions
    ]
    if request.leaving or request.joining:
        moves = sum(row["moves"] == "yes" for row in rows)
        say(f"{counted(moves, 'partition')} of {len(rows)} would go to another member")
    return end_with(COLUMNS, rows, request.output)


def topics_of(words: Sequence[str]) -> dict[str, list[PartitionRacks]]:
    """Return the topics of words such as `orders:4`; raises UnreadableArgument."""
    topics = {}
    for word in words:
        name, _, text = word.rpartition(":")
        count = read_whole(text)
        if not name or count is None or not 0 <= count <= min(_PARTITIONS_MAX, INT32_MAX):
            raise UnreadableArgument("a topic", word, "TOPIC:PARTITIONS, as orders:4")
        topics[name] = [PartitionRacks(number) for number in range(count)]
    return topics


def members_of(words: Sequence[str], topics: Sequence[str]) -> dict[str, Subscription]:
    """Return members; one without topics of its own subscribes to all."""
    members = {}
    for word in words:
        name, equals, own = word.partition("=")
        if not name or (equals and not own):
            raise UnreadableArgument("a member", word, _EXPECTED_MEMBER)
        wanted = tuple(own.split(",")) if equals else tuple(topics)
        members[name] = Subscription(wanted)
    return members


def _owners(assignment: Mapping[str, Sequence[TopicPartition]]) -> dict[TopicPartition, str]:
    return {key: member for member, partitions in assignment.items() for key in partitions}


def _row(
    key: TopicPartition,
    owners: Mapping[TopicPartition, str],
    owners_after: Mapping[TopicPartition, str],
) -> OutputRow:
    before, after = owners.get(key), owners_after.get(key)
    return {
        "topic": key.topic,
        "partition": key.partition,
        "member": before,
        "member_after": after,
        "moves": "yes" if before != after else "no",
    }
