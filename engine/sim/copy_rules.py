"""Rule X1: a group's copies have each record of a source partition exactly once.

A transaction copies the records of a partition from the group's committed offset on, and commits
the offset after them (KIP-447). So the ranges of committed transactions adjoin:

```
        0 ──────> 7 ──────> 12 ──────> 20        committed for the group at the end: 20
          copied    copied     copied
```

| checked | claim |
|---|---|
| when a copier fetches offsets | the committed offset comes from a transaction whose commit was |
|  | requested, and from none before one whose commit was acknowledged |
| at the end | each committed transaction begins where another one ended, and the last ends at |
|  | the committed offset |

That the output of a committed transaction exists, once and in all partitions, is checked by
`transaction_rules.py`. Excused are partitions that lost records where Kafka loses them too, all
partitions after a coordinator lost records, and a group whose offsets came from a former leader
that did not know of its successor: such a response may be out of date, in Kafka too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.model import TopicPartition
from engine.naming import INTERNAL_TOPICS
from engine.sim.histories import History
from engine.sim.sent_transactions import Copied, SentOutcome, SentTransaction

#: Returns True if a transaction is committed, according to logs or else its producer; None if
#: unknown.
IsCommitted = Callable[[SentTransaction], bool | None]
_MAY_COUNT = frozenset((SentOutcome.COMMITTED, SentOutcome.UNKNOWN))


class CopyRules:
    """Checks all copies of a run."""

    def __init__(
        self,
        histories: Mapping[TopicPartition, History],
        broke: Callable[[str, str, TopicPartition | None], None],
    ) -> None:
        """Create the rules; `broke` reports a violation by its rule, text and partition."""
        self._histories = histories
        self._broke = broke
        #: Copied ranges of each group and source partition, with their transactions.
        self._copies: dict[tuple[str, TopicPartition], list[tuple[Copied, SentTransaction]]] = {}
        #: Groups that got committed offsets from a broker that no longer led their partition.
        self._misled: set[str] = set()

    @property
    def committed_count(self) -> int:
        """Return the number of copy transactions that were acknowledged as committed."""
        return sum(
            transaction.outcome is SentOutcome.COMMITTED
            for copies in self._copies.values()
            for _, transaction in copies
        )

    def is_excused(self, group_id: str, partition: TopicPartition) -> bool:
        """Return True if a group's copies of a partition are not checked.

        Records of it may be lost or differ, or a broker that was not the leader misled the group.
        """
        return group_id in self._misled or any(
            bool(history.losses or history.forks or history.excuse)
            for key, history in self._histories.items()
            if key == partition or key.topic in INTERNAL_TOPICS
        )

    def record_begin(self, copied: Copied, transaction: SentTransaction) -> None:
        """Record that a transaction begins that copies the records described by `copied`."""
        copies = self._copies.setdefault((copied.group_id, copied.partition), [])
        copies.append((copied, transaction))

    def floors(self, group_id: str) -> dict[TopicPartition, int]:
        """Return the smallest offset that can be committed now, for each partition of a group."""
        return {
            partition: max(
                (
                    copied.next_offset
                    for copied, transaction in copies
                    if transaction.outcome is SentOutcome.COMMITTED
                ),
                default=0,
            )
            for (of_group, partition), copies in self._copies.items()
            if of_group == group_id
        }

    def check_resume(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int],
        floors: Mapping[TopicPartition, int],
        *,
        is_leader: bool,
    ) -> None:
        """Check rule X1: the offsets at which a copier resumes are those of committed transactions.

        Offset 0 means none. `floors` has the smallest possible committed offsets when the copier
        sent its request; `is_leader` is False if another broker than the coordinator's leader
        responded.
        """
        if not is_leader:
            self._misled.add(group_id)
        for partition, offset in offsets.items():
            if self.is_excused(group_id, partition):
                continue
            copies = self._copies.get((group_id, partition), ())
            if offset < floors.get(partition, 0):
                text = f"{offset} is committed, and {floors[partition]} was before"
                self._broke("X1", f"{group_id}, {partition}: {text}", None)
            elif offset and not any(
                copied.next_offset == offset and transaction.outcome in _MAY_COUNT
                for copied, transaction in copies
            ):
                text = f"{offset} is committed, by no transaction that was"
                self._broke("X1", f"{group_id}, {partition}: {text}", None)

    def check_end(
        self, group_id: str, offsets: Mapping[TopicPartition, int], is_committed: IsCommitted
    ) -> None:
        """Check rule X1: a group's copies adjoin, and end at its final committed offsets."""
        for (of_group, partition), copies in sorted(self._copies.items(), key=lambda it: it[0]):
            if of_group != group_id or self.is_excused(group_id, partition):
                continue
            ends = {transaction: is_committed(transaction) for _, transaction in copies}
            if None in ends.values():
                continue
            committed = [copied for copied, transaction in copies if ends[transaction]]
            if fault := chain_fault(committed, max(offsets.get(partition, 0), 0)):
                self._broke("X1", f"{group_id}, {partition}: {fault}", None)


def chain_fault(committed: list[Copied], end_offset: int) -> str:
    """Return as text why copied ranges do not adjoin up to an offset; empty if they do."""
    position = 0
    for copied in sorted(committed, key=lambda it: (it.first_offset, it.next_offset)):
        if copied.first_offset != position:
            verb = "twice" if copied.first_offset < position else "never"
            span = sorted((copied.first_offset, position))
            return f"{span[0]} to {span[1]} is copied {verb}"
        position = copied.next_offset
    if position != end_offset:
        return f"copied up to {position}, {end_offset} is committed"
    return ""
