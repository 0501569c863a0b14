"""The state machines of one controller, as its event handlers get them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from engine.controller.armed_watches import ArmedWatches
from engine.controller.context import ControllerContext
from engine.controller.machine_parts import MachineParts
from engine.controller.partition_machine import PartitionMachine
from engine.controller.replica_machine import ReplicaMachine
from engine.controller.request_batch import RequestBatch
from engine.controller.topic_deletion import TopicDeletion
from engine.host.coroutine import PromiseCoroutine
from engine.model import TopicPartition

#: Queues an event of the active controller, by name.
PutActive = Callable[[str, Callable[[], PromiseCoroutine[None]]], None]


class Machines(NamedTuple):
    """The state machines, watches and event queue of one controller."""

    parts: MachineParts
    partitions: PartitionMachine
    replicas: ReplicaMachine
    deletion: TopicDeletion
    watches: ArmedWatches
    #: Queues an event; it runs only if this broker is still the controller.
    put: PutActive

    @property
    def context(self) -> ControllerContext:
        """Return the controller's state of the cluster."""
        return self.parts.context

    def send_metadata(
        self, broker_ids: list[int], partitions: list[TopicPartition] | None = None
    ) -> None:
        """Send brokers UpdateMetadata with the live brokers and the state of `partitions`."""
        batch = RequestBatch(self.parts.sender)
        batch.add_update_metadata(broker_ids, partitions or ())
        batch.send()

    def send_all_metadata(self, broker_ids: list[int]) -> None:
        """Send a full UpdateMetadata; the receivers drop all partitions that it lacks."""
        batch = RequestBatch(self.parts.sender)
        batch.add_all_metadata(broker_ids)
        batch.send()
