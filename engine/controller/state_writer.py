"""Change the states of partitions: read, decide, write if the version is unchanged, else repeat.

```
read state ── newer controller wrote it ──> refused
     │
  decide ──── not permitted ──> refused, with the reason
     │
 setData if the version is the one read ── BadVersion ──> read again
     │
 store it in the context
```

Source: CTL-14, C5; KafkaZkClient.updateLeaderAndIsr and its callers' loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from engine.controller.cluster_reader import read_leaderships
from engine.controller.context import ControllerContext, PartitionLeadership
from engine.controller.guarded_znodes import GuardedZnodes
from engine.model import TopicPartition
from engine.znode.errors import BadVersion, NodeError
from engine.znode.model import Operation, SetData, Stat
from engine.znode.paths import partition_state_path
from engine.znode.values import PartitionStateNode, encode_partition_state

#: Returns the state to write, None for no change, or the reason for a refusal.
Decide: TypeAlias = Callable[
    [TopicPartition, PartitionStateNode], "PartitionStateNode | str | None"
]
#: The result for each partition: its present state, or the reason of a refusal.
StateResults: TypeAlias = "dict[TopicPartition, PartitionLeadership | str]"


class StateWriter:
    """Writes states for the state machines, many partitions in one transaction."""

    def __init__(self, context: ControllerContext, znodes: GuardedZnodes) -> None:
        self._context = context
        self._znodes = znodes

    async def change_states(
        self, partitions: Iterable[TopicPartition], decide: Decide
    ) -> StateResults:
        """Read the states of partitions, let `decide` change them, and write them.

        Returns the results. A result is the written state, or a text why it was not written.
        `decide` is called again after a concurrent write. Raises ControllerMoved.
        """
        results: StateResults = {}
        remaining = list(partitions)
        while remaining:
            decided = await self._decide_states(remaining, decide, results)
            remaining = await self.write_states(decided, results)
        return results

    async def write_states(
        self, decided: dict[TopicPartition, PartitionLeadership], results: StateResults
    ) -> list[TopicPartition]:
        """Write partition states if their nodes have the version that was read; add to `results`.

        Returns the partitions whose node has another version: they must be decided again.
        """
        outdated = []
        group_results = await self._znodes.write_groups(
            [_conditional_write(partition, current) for partition, current in decided.items()]
        )
        share = self._znodes.turns.begin()
        for (partition, leadership), group in zip(decided.items(), group_results, strict=True):
            if share.is_over():
                await share.next()
            if isinstance(group, BadVersion):
                outdated.append(partition)
            elif isinstance(group, NodeError):
                results[partition] = str(group)
            else:
                (stat,) = group
                assert isinstance(stat, Stat)
                written = leadership._replace(partition_epoch=stat.version)
                results[partition] = self._store_leadership(partition, written)
        return outdated

    async def _decide_states(
        self, partitions: list[TopicPartition], decide: Decide, results: StateResults
    ) -> dict[TopicPartition, PartitionLeadership]:
        """Read the states of partitions, and return by partition those that `decide` changes.

        Results without a write are put into `results`.
        """
        leaderships = await read_leaderships(self._znodes.client, partitions, self._znodes.turns)
        decided = {}
        share = self._znodes.turns.begin()
        for partition in partitions:
            if share.is_over():
                await share.next()
            current = leaderships.get(partition)
            if current is None:
                results[partition] = "it has no state yet"
                continue
            if current.state.controller_epoch > self._context.epoch:
                results[partition] = "a newer controller wrote its state"
                continue
            new = decide(partition, current.state)
            if isinstance(new, str):
                results[partition] = new
            elif new is None:
                results[partition] = self._store_leadership(partition, current)
            else:
                decided[partition] = PartitionLeadership(new, current.partition_epoch)
        return decided

    def _store_leadership(
        self, partition: TopicPartition, leadership: PartitionLeadership
    ) -> PartitionLeadership:
        """Store a partition's state in the context.

        It has this controller's epoch for later requests.
        """
        state = leadership.state._replace(controller_epoch=self._context.epoch)
        noted = leadership._replace(state=state)
        self._context.leaderships[partition] = noted
        return noted


def _conditional_write(
    partition: TopicPartition, leadership: PartitionLeadership
) -> list[Operation]:
    """Return the write of a partition state, conditional on the version that was read."""
    data = encode_partition_state(leadership.state)
    return [SetData(partition_state_path(partition), data, leadership.partition_epoch)]
