"""The controller's events about brokers: start, stop, changed endpoints, failed disks, responses.

| event | work |
|---|---|
| broker up | UpdateMetadata: live brokers to the other brokers, all partitions to it; its replicas ONLINE; leaders for partitions without one; reassignments and deletions continue |
| broker down | partitions that it led OFFLINE, then elections; its replicas OFFLINE |
| broker bounced (new epoch) | down, then up |
| broker modified | UpdateMetadata to all brokers |
| log directory failed | LeaderAndIsr of all the broker's replicas: the response has the unreadable ones |
| LeaderAndIsr answered | unreadable replicas OFFLINE, as on a broker that is down |
| StopReplica answered | deletions continue, or are postponed |
| ISR change node of a broker before 2.7 | read the states, send them to all brokers; reassignments continue |

Each event first sets its watch again, then reads the complete state from the znodes.

Source: CTL-7, CTL-8; Kafka's KafkaController.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from engine.controller.cluster_reader import (
    read_broker,
    read_brokers,
    read_leaderships,
    read_many,
)
from engine.controller.context import LiveBroker
from engine.controller.machines import Machines
from engine.controller.ports import BrokerChannel
from engine.controller.reassignment import Reassignment
from engine.controller.reassignment_rules import target_replicas
from engine.controller.states import PartitionPhase, Replica, ReplicaPhase
from engine.kafka_errors import KAFKA_STORAGE_ERROR, NONE
from engine.model import TopicPartition
from engine.wire import messages
from engine.znode.errors import NoNode
from engine.znode.json_text import InvalidZnodeValue
from engine.znode.model import EventType
from engine.znode.paths import (
    BROKER_IDS,
    ISR_CHANGE_NOTIFICATION,
    LOG_DIR_EVENT_NOTIFICATION,
    broker_path,
)
from engine.znode.values import decode_log_dir_event, decode_partitions

V = TypeVar("V")


class BrokerEvents:
    """Handles the controller's events about brokers."""

    def __init__(
        self, machines: Machines, reassignment: Reassignment, channel: BrokerChannel
    ) -> None:
        """Create the handlers of brokers' events.

        `channel` sends the controller's requests to brokers.
        """
        self._machines = machines
        self._reassignment = reassignment
        self._context = machines.context
        self._client = machines.parts.znodes.client
        self._channel = channel

    async def load(self) -> None:
        """Read the live brokers at a failover, and delete the last controller's change nodes."""
        await self._watch_notes()
        for folder in (LOG_DIR_EVENT_NOTIFICATION, ISR_CHANGE_NOTIFICATION):
            await self._remove_notes(folder, await self._client.children(folder))
        brokers = await self._watch_brokers()
        self._context.live_brokers.update(brokers)
        await read_many(self._watch_broker, brokers, self._machines.parts.znodes.turns)
        for broker in brokers.values():
            self._channel.open(broker.node)

    def close(self) -> None:
        """Close the request queues to all brokers, because this broker resigns as controller."""
        for broker_id in self._context.live_ids():
            self._channel.close(broker_id)

    async def on_brokers(self) -> None:
        """Process brokers that registered, disappeared or registered again since the last read."""
        brokers = await self._watch_brokers()
        before = self._context.live_brokers
        new = sorted(broker_id for broker_id in brokers if broker_id not in before)
        dead = sorted(broker_id for broker_id in before if broker_id not in brokers)
        bounced = sorted(
            broker_id
            for broker_id, broker in brokers.items()
            if broker_id in before and broker.epoch > before[broker_id].epoch
        )
        for broker_id in (*bounced, *dead):
            self._channel.close(broker_id)
        for broker_id in (*new, *bounced):
            self._channel.open(brokers[broker_id].node)
        if new:
            await self._start_brokers(new, brokers)
        if bounced:
            # Records that it may have lost keep it out of in-sync sets until it catches up (R12).
            await self._fail_brokers(bounced)
            await self._start_brokers(bounced, brokers)
        if dead:
            await self._fail_brokers(dead)

    async def on_broker_modified(self, broker_id: int) -> None:
        """Read the registration of a broker whose node has changed.

        New endpoints are sent to all brokers.
        """
        await self._watch_broker(broker_id)
        broker = await read_broker(self._client, broker_id)
        before = self._context.live_brokers.get(broker_id)
        if broker is None or before is None or broker.node == before.node:
            return
        self._context.live_brokers[broker_id] = before._replace(node=broker.node)
        self._machines.send_metadata(self._context.live_ids())

    async def on_log_dir_failures(self) -> None:
        """Send LeaderAndIsr to the brokers that reported a failed log directory.

        Their responses name the replicas that they lost.
        """
        await self._watch_notes()
        names = await self._client.children(LOG_DIR_EVENT_NOTIFICATION)
        try:
            broker_ids = set(
                await self._read_notes(LOG_DIR_EVENT_NOTIFICATION, names, decode_log_dir_event)
            )
            replicas = self._context.replicas_on(broker_ids)
            await self._machines.replicas.change_phase(replicas, ReplicaPhase.ONLINE)
        finally:
            await self._remove_notes(LOG_DIR_EVENT_NOTIFICATION, names)

    async def on_isr_changes(self) -> None:
        """Read the ISRs that brokers before 2.7 wrote to znodes, and send them to all brokers.

        Source: SCH-3.
        """
        await self._watch_notes()
        names = await self._client.children(ISR_CHANGE_NOTIFICATION)
        try:
            partitions: dict[TopicPartition, None] = {}
            for noted in await self._read_notes(ISR_CHANGE_NOTIFICATION, names, decode_partitions):
                partitions.update(dict.fromkeys(noted))
            if partitions:
                turns = self._machines.parts.znodes.turns
                leaderships = await read_leaderships(self._client, partitions, turns)
                self._context.load_leaderships(leaderships)
                self._machines.send_metadata(self._context.live_ids(), list(partitions))
                await self._reassignment.on_isr_changes(partitions)
        finally:
            await self._remove_notes(ISR_CHANGE_NOTIFICATION, names)

    # -- responses -----------------------------------------------------------------------------

    async def on_leader_and_isr_response(
        self, broker_id: int, response: messages.LeaderAndIsrResponse
    ) -> None:
        """Update a broker's offline replicas from its response, and elect other leaders."""
        if response.error_code != NONE or broker_id not in self._context.live_brokers:
            return
        before = self._context.offline_replicas.get(broker_id, set())
        offline = set(before)
        for partition, code in self._iter_errors(response):
            if code == KAFKA_STORAGE_ERROR:
                offline.add(partition)
            elif code == NONE:
                offline.discard(partition)
        self._context.offline_replicas[broker_id] = offline
        lost = sorted(offline - before)
        if lost:
            await self._take_replicas_offline([Replica(partition, broker_id) for partition in lost])

    async def on_stop_replica_response(
        self,
        broker_id: int,
        deleted: frozenset[TopicPartition],
        response: messages.StopReplicaResponse,
    ) -> None:
        """Apply a broker's response to StopReplica.

        Marks the replicas as deleted or as failed. Only replicas in `deleted`, of topics
        whose deletion has started, count.
        """
        failed: list[Replica] = []
        done: list[Replica] = []
        for row in response.partition_errors:
            partition = TopicPartition(row.topic_name, row.partition_index)
            if partition in deleted and partition.topic in self._context.deletion_started:
                is_done = response.error_code == NONE == row.error_code
                (done if is_done else failed).append(Replica(partition, broker_id))
        await self._machines.deletion.fail_replicas(failed)
        if done:
            await self._machines.deletion.complete_replicas(done)

    def _iter_errors(
        self, response: messages.LeaderAndIsrResponse
    ) -> Iterable[tuple[TopicPartition, int]]:
        """Yield each partition and its error code; skip topic ids that are unknown."""
        for topic in response.topics:
            name = self._context.topic_names.get(topic.topic_id)
            if name is not None:
                for row in topic.partition_errors:
                    yield TopicPartition(name, row.partition_index), row.error_code

    # -- brokers up and down -------------------------------------------------------------------

    async def _start_brokers(self, broker_ids: list[int], brokers: dict[int, LiveBroker]) -> None:
        """Process started brokers: metadata, replicas, leaders, reassignments, deletions.

        `broker_ids` are those of the started brokers; `brokers` has all registered ones.
        """
        context, machines = self._context, self._machines
        others = [other for other in context.live_ids() if other not in broker_ids]
        for broker_id in broker_ids:
            context.live_brokers[broker_id] = brokers[broker_id]
        machines.send_metadata(others)
        machines.send_all_metadata(broker_ids)
        replicas = context.replicas_on(broker_ids)
        await machines.replicas.change_phase(replicas, ReplicaPhase.ONLINE)
        await machines.partitions.bring_online()
        started = frozenset(broker_ids)
        await self._reassignment.resume_reassignments(
            lambda assignment: not started.isdisjoint(target_replicas(assignment))
        )
        await machines.deletion.resume_topics({replica.partition.topic for replica in replicas})
        for broker_id in broker_ids:
            await self._watch_broker(broker_id)

    async def _fail_brokers(self, broker_ids: list[int]) -> None:
        """Remove failed or restarted brokers from the context, and set their replicas OFFLINE."""
        context = self._context
        for broker_id in broker_ids:
            context.live_brokers.pop(broker_id)
            context.offline_replicas.pop(broker_id, None)
            context.shutting_down.discard(broker_id)
            self._machines.watches.disarm(broker_path(broker_id))
        await self._take_replicas_offline(context.replicas_on(broker_ids))

    async def _take_replicas_offline(self, replicas: list[Replica]) -> None:
        """Elect leaders in place of lost ones, then set the replicas OFFLINE (out of the ISRs)."""
        context, machines = self._context, self._machines
        being_deleted = context.topics_being_deleted()
        kept = [r for r in replicas if r.partition.topic not in being_deleted]
        leaderless = context.partitions_with_offline_leader()
        await machines.partitions.change_phase(leaderless, PartitionPhase.OFFLINE)
        results = await machines.partitions.bring_online()
        await machines.replicas.change_phase(kept, ReplicaPhase.OFFLINE)
        await machines.deletion.fail_replicas(replicas)
        if not kept and all(isinstance(result, str) for result in results.values()):
            # No request about a changed state has sent the brokers the new list of live brokers.
            machines.send_metadata(context.live_ids())

    # -- watches and notes ---------------------------------------------------------------------

    async def _watch_brokers(self) -> dict[int, LiveBroker]:
        """Watch the list of broker nodes, and return the registered brokers by id."""
        await self._machines.watches.arm_children(
            BROKER_IDS, partial(self._machines.put, "BrokerChange", self.on_brokers)
        )
        return await read_brokers(self._client)

    async def _watch_broker(self, broker_id: int) -> None:
        """Watch a broker's node; a change of its data queues `on_broker_modified`."""

        def on_event(event: EventType) -> None:
            """Queue the reading of the broker's changed registration."""
            if event is EventType.DATA_CHANGED:
                work = partial(self.on_broker_modified, broker_id)
                self._machines.put(f"BrokerModifications({broker_id})", work)

        await self._machines.watches.arm_node(broker_path(broker_id), on_event)

    async def _watch_notes(self) -> None:
        """Set the one-shot watches for failed log directories and for ISR changes."""
        arm, put = self._machines.watches.arm_children, self._machines.put
        on_failure: Callable[[], None] = partial(
            put, "LogDirEventNotification", self.on_log_dir_failures
        )
        on_isr: Callable[[], None] = partial(put, "IsrChangeNotification", self.on_isr_changes)
        await arm(LOG_DIR_EVENT_NOTIFICATION, on_failure)
        await arm(ISR_CHANGE_NOTIFICATION, on_isr)

    async def _read_notes(
        self, folder: str, names: list[str], decode: Callable[[bytes | None, str], V]
    ) -> list[V]:
        """Read and decode the change nodes `names` in `folder`; report and skip invalid ones."""

        async def read(path: str) -> list[V]:
            """Return the decoded node in a list, an empty list if it is absent or invalid."""
            try:
                data, _ = await self._client.get(path)
                return [decode(data, path)]
            except NoNode:
                return []
            except InvalidZnodeValue as error:
                self._machines.parts.reporter.event_failed(path, error)
                return []

        paths = [f"{folder}/{name}" for name in names]
        notes = await read_many(read, paths, self._machines.parts.znodes.turns)
        return [note for listed in notes.values() for note in listed]

    async def _remove_notes(self, folder: str, names: list[str]) -> None:
        """Delete change nodes that were processed."""
        await self._machines.parts.znodes.delete_all([f"{folder}/{name}" for name in names])
