"""The controller module of a broker: controller election, failover, resignation, and the event queue.

```
        start ──> Startup ──> watch /controller, elect
                                 │
        /controller exists ──────┴── does not: one multi { create it, epoch + 1 } ── lost: read again
                 │                                      │ won
          another controller                            v
                 ^                     failover: feature, brokers, topics, deletions,
                 │                     metadata to all, replicas, partitions,
                 │                     reassignments, elections, leader balance
   /controller changed, or a                            │
   write was fenced: resign <────────────────── active: events one at a time
```

Every write of the active controller is fenced by the version of `/controller_epoch`: a controller
that was replaced and does not know it yet cannot write.

Source: CTL-1 ... CTL-3, CTL-11, ZN:election, ZN:failover; Kafka's KafkaController.
"""  # noqa: E501 - a drawing

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeVar

from engine.config.broker_config import BrokerConfig
from engine.config.settings import BrokerSettings
from engine.controller.alter_partition import AlterPartition
from engine.controller.armed_watches import ArmedWatches
from engine.controller.broker_events import BrokerEvents
from engine.controller.broker_requests import AllocateProducerIds, ControlledShutdown
from engine.controller.cluster_reader import read_controller_id
from engine.controller.context import ControllerContext
from engine.controller.election import register_controller
from engine.controller.event_queue import Event, EventQueue
from engine.controller.event_times import EventTimes
from engine.controller.guarded_znodes import ControllerMoved, GuardedZnodes
from engine.controller.leader_balance import LeaderBalance
from engine.controller.legacy_znodes import LegacyZnodes
from engine.controller.machine_parts import MachineParts
from engine.controller.machines import Machines
from engine.controller.partition_machine import PartitionMachine
from engine.controller.ports import ControllerPorts
from engine.controller.reassignment import Reassignment
from engine.controller.reassignment_list import ReassignmentList
from engine.controller.replica_machine import ReplicaMachine
from engine.controller.request_batch import BatchSender, ResponseTakers
from engine.controller.requested_election import PartitionElection, RequestedElection
from engine.controller.requested_reassignment import RequestedReassignment
from engine.controller.topic_deletion import TopicDeletion
from engine.controller.topic_events import TopicEvents
from engine.errors import EngineError
from engine.host.coroutine import PromiseCoroutine
from engine.host.promise import Promise
from engine.host.turns import LoopTurns
from engine.limits import CONTROLLER_RETRY_MS
from engine.model import TopicPartition
from engine.wire import messages
from engine.znode.errors import NodeExists, NoNode
from engine.znode.json_text import InvalidZnodeValue
from engine.znode.model import Delete, EventType
from engine.znode.paths import CONTROLLER, FEATURE, topic_path
from engine.znode.values import encode_features

_NOBODY = -1

R = TypeVar("R")
Result_co = TypeVar("Result_co", covariant=True)


class _RequestHandler(Protocol[Result_co]):
    """A handler with the responses for "not the controller" and for a failed store."""

    def refusal(self) -> Result_co: ...

    def failure(self) -> Result_co: ...


class Controller:
    """The controller module of one broker, active or not."""

    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        settings: Callable[[], BrokerSettings],
        ports: ControllerPorts,
    ) -> None:
        """Create a broker's controller, which is not active; nothing runs before `start`.

        `settings` returns the broker's present settings.
        """
        self.broker_id = broker_id
        self.context = ControllerContext()
        self._ports = ports
        self._client = ports.znodes
        #: The active controller as last read from the metadata store.
        self._controller_id = _NOBODY
        #: Whether this controller resigned after an error: the next election waits
        #: CONTROLLER_RETRY_MS.
        self._gave_up = False
        #: Whether this wait is running; an election follows.
        self._is_pausing = False
        self.event_times = EventTimes(ports.clock, ports.work_ns)
        self._queue = EventQueue(ports.timers.call_soon, self._on_event_failed, self.event_times)
        #: The watch of the controller's znode. Kept apart from the other watches because it stays
        #: when this broker resigns.
        self._controller_watch = ArmedWatches(ports.znodes)
        self._turns = LoopTurns(ports.timers, ports.clock, ports.ends_early)
        self._machines = self._create_machines(config, settings)
        self._reassignment = Reassignment(self._machines)
        self._brokers = BrokerEvents(self._machines, self._reassignment, ports.channel)
        self._topics = TopicEvents(self._machines, ports.entropy)
        self._legacy_znodes = LegacyZnodes(self._machines, self._reassignment)
        self._balance = LeaderBalance(self._machines, config, ports.clock, ports.timers)
        self._alter_partition = AlterPartition(self._machines, self._reassignment)
        self._controlled_shutdown = ControlledShutdown(self._machines)
        self._allocate_producer_ids = AllocateProducerIds(self._machines)
        self._requested_reassignment = RequestedReassignment(
            self._machines, self._reassignment, self._turns
        )
        self._reassignment_list = ReassignmentList(self._machines)

    def _create_machines(
        self, config: BrokerConfig, settings: Callable[[], BrokerSettings]
    ) -> Machines:
        """Create the state machines and the request sender of this controller."""
        sender = BatchSender(
            self.broker_id,
            config.inter_broker_endpoint.name,
            self.context,
            self._ports.channel,
            ResponseTakers(self._on_leader_and_isr_response, self._on_stop_replica_response),
        )
        znodes = GuardedZnodes(self._client, self._turns)
        parts = MachineParts(self.context, znodes, sender, self._ports.reporter, settings)
        partitions, replicas = PartitionMachine(parts), ReplicaMachine(parts)
        watches = ArmedWatches(self._client)
        deletion = TopicDeletion(
            parts,
            partitions,
            replicas,
            is_enabled=config.delete_topic_enable,
            on_gone=lambda topic: watches.disarm(topic_path(topic)),
        )
        return Machines(parts, partitions, replicas, deletion, watches, self._put_active)

    # -- requests of others --------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """True if this broker is the controller, as last read from the metadata store."""
        return self._controller_id == self.broker_id

    @property
    def controller_id(self) -> int:
        """Return the broker id of the controller as last read, −1 for none."""
        return self._controller_id

    @property
    def epoch(self) -> int:
        """Return the controller epoch, 0 if this broker is not the controller."""
        return self.context.epoch

    @property
    def waiting_event_count(self) -> int:
        """Return how many controller events are queued."""
        return self._queue.waiting_count

    @property
    def is_idle(self) -> bool:
        """True if no controller event runs and none is queued."""
        return self._queue.is_idle

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of the topic with this id (16 bytes), None for an unknown id."""
        return self.context.topic_names.get(topic_id)

    def is_queued_for_deletion(self, topic: str) -> bool:
        """True if the deletion of a topic is requested and not complete."""
        return topic in self.context.to_delete

    # -- life ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Queue the first election.

        Called when the broker is registered and the persistent znodes exist.
        """
        self._queue.put(Event("Startup", self._on_startup))

    def stop(self) -> None:
        """Resign if this broker is the controller, and drop all queued events.

        `/controller` is removed with the broker's session.
        """
        self._controller_watch.clear()
        self._queue.close(self._forget_controller)

    def session_expired(self) -> None:
        """Queue a resignation in place of all queued events: the session expired.

        `/controller` and all watches are removed with the session.
        """
        self._queue.clear_and_put(Event("Expire", self._on_expire))

    def session_began(self) -> None:
        """Queue an election, after the broker has registered with a new session."""
        self._queue.put(Event("Reelect", self._on_reelect))

    # -- requests ------------------------------------------------------------------------------

    def alter_partition(
        self, request: messages.AlterPartitionRequest, version: int
    ) -> Promise[messages.AlterPartitionResponse]:
        """Queue an AlterPartition request as an event; promise the response."""
        handler = self._alter_partition
        return self._put_request(
            "AlterPartition", handler, partial(handler.handle, request, version)
        )

    def controlled_shutdown(
        self, request: messages.ControlledShutdownRequest
    ) -> Promise[messages.ControlledShutdownResponse]:
        """Queue a ControlledShutdown request as an event; promise the response."""
        handler = self._controlled_shutdown
        return self._put_request("ControlledShutdown", handler, partial(handler.handle, request))

    def allocate_producer_ids(
        self, request: messages.AllocateProducerIdsRequest
    ) -> Promise[messages.AllocateProducerIdsResponse]:
        """Queue an AllocateProducerIds request as an event; promise the response."""
        handler = self._allocate_producer_ids
        return self._put_request("AllocateProducerIds", handler, partial(handler.handle, request))

    def elect_leaders(
        self, partitions: Iterable[TopicPartition], *, is_unclean: bool
    ) -> Promise[dict[TopicPartition, PartitionElection]]:
        """Queue an election of the preferred leaders; promise the result of each partition.

        With `is_unclean` it is an election of any live replica for partitions without a leader.
        """
        handler = RequestedElection(self._machines, partitions, is_unclean=is_unclean)
        return self._put_request("ReplicaLeaderElection", handler, handler.handle)

    def alter_reassignments(
        self, request: messages.AlterPartitionReassignmentsRequest
    ) -> Promise[messages.AlterPartitionReassignmentsResponse]:
        """Queue an AlterPartitionReassignments request as an event; promise the response."""
        handler = self._requested_reassignment
        return self._put_request(
            "ApiPartitionReassignment", handler, partial(handler.handle, request)
        )

    def list_reassignments(
        self, request: messages.ListPartitionReassignmentsRequest
    ) -> Promise[messages.ListPartitionReassignmentsResponse]:
        """Queue a ListPartitionReassignments request as an event; promise the response."""
        handler = self._reassignment_list
        return self._put_request(
            "ListPartitionReassignments", handler, partial(handler.handle, request)
        )

    def elect_after_setting_change(self, topic: str | None = None) -> None:
        """Queue an election of offline partitions of `topic`, or of all topics for None.

        Called after `unclean.leader.election.enable` was changed.
        """

        async def work() -> None:
            """Elect leaders of offline partitions."""
            await self._machines.partitions.bring_online(topic)

        kind = "UncleanLeaderElectionEnable"
        self._put_active(kind if topic is None else f"Topic{kind}", work)

    def _put_request(
        self,
        name: str,
        handler: _RequestHandler[R],
        handle: Callable[[], PromiseCoroutine[R]],
    ) -> Promise[R]:
        """Queue a request as an event.

        Promises its response, also if the event fails or is dropped.
        """
        promise: Promise[R] = Promise()

        async def work() -> None:
            """Handle the request if this broker is the controller, and keep the promise."""
            if not self.is_active:
                promise.keep(handler.refusal())
                return
            try:
                response = await handle()
            except AssertionError:
                raise
            except Exception:
                # A bug in a handler is answered like a failed store: no request waits for ever.
                promise.keep(handler.failure())
                raise
            promise.keep(response)

        self._queue.put(Event(name, work, lambda: promise.keep(handler.refusal())))
        return promise

    # -- events --------------------------------------------------------------------------------

    def _put_active(self, name: str, work: Callable[[], PromiseCoroutine[None]]) -> None:
        """Queue `work` as an event that does nothing unless this broker is the controller then."""

        async def if_active() -> None:
            """Run the work, unless this broker has resigned meanwhile."""
            if self.is_active:
                await work()

        self._queue.put(Event(name, if_active))

    def _on_leader_and_isr_response(
        self, broker_id: int, response: messages.LeaderAndIsrResponse
    ) -> None:
        """Queue a broker's LeaderAndIsr response as an event."""
        work = partial(self._brokers.on_leader_and_isr_response, broker_id, response)
        self._put_active("LeaderAndIsrResponseReceived", work)

    def _on_stop_replica_response(
        self,
        broker_id: int,
        deleted: frozenset[TopicPartition],
        response: messages.StopReplicaResponse,
    ) -> None:
        """Queue a StopReplica response as an event if it is about deleted replicas."""
        if deleted:
            work = partial(self._brokers.on_stop_replica_response, broker_id, deleted, response)
            self._put_active("TopicDeletionStopReplicaResponseReceived", work)

    async def _on_event_failed(self, name: str, error: EngineError) -> None:
        """Log the error of an event that failed.

        After ControllerMoved (a fenced write) `/controller` is read again.
        """
        self._ports.reporter.event_failed(name, error)
        if isinstance(error, ControllerMoved):
            try:
                await self._follow_controller()
            except EngineError as second:
                self._ports.reporter.event_failed(name, second)

    async def _on_startup(self) -> None:
        """Watch `/controller`, then become the controller if there is none."""
        await self._watch_controller()
        await self._try_to_become_controller()

    async def _on_reelect(self) -> None:
        """Read `/controller` again, then become the controller if there is none."""
        await self._read_controller()
        await self._try_to_become_controller()

    async def _on_expire(self) -> None:
        """Resign after the session with the metadata store expired."""
        self._forget_controller()

    def _forget_controller(self) -> None:
        """Resign, and forget the controller that is known and the watch of `/controller`.

        Called at the end of a session and at the stop of the broker: no controller is known then.
        """
        self._controller_watch.clear()
        self._resign()
        self._controller_id = _NOBODY

    # -- election ------------------------------------------------------------------------------

    async def _watch_controller(self) -> None:
        """Watch `/controller`: its deletion starts an election, any other event reads it again."""

        def on_event(event: EventType) -> None:
            """Start an election, or queue the reading of the new controller."""
            if event is EventType.DELETED:
                self._queue_election()
            else:
                self._queue.put(Event("ControllerChange", self._follow_controller))

        await self._controller_watch.arm_node(CONTROLLER, on_event)

    def _queue_election(self) -> None:
        """Queue an election; after a failed failover wait CONTROLLER_RETRY_MS first."""
        if self._gave_up:
            # A failover that failed a moment ago would fail again at once.
            self._gave_up, self._is_pausing = False, True
            retry_ms = self._ports.clock.monotonic_ms() + CONTROLLER_RETRY_MS
            self._ports.timers.call_at(retry_ms, self._elect_after_pause)
        elif not self._is_pausing:
            self._queue.put(Event("Reelect", self._on_reelect))

    def _elect_after_pause(self) -> None:
        """Queue an election after the wait of a failed failover."""
        self._is_pausing = False
        self.session_began()

    async def _follow_controller(self) -> None:
        """Read `/controller` after a change; start an election if the node does not exist.

        The watch fires for the creation of the node; before the node is read, that controller may
        have resigned. The new watch then fires only for the next creation, so an election is
        started here. A node that exists but cannot be parsed blocks every election until it is
        deleted, as in Kafka.

        Differs: Kafka starts no election here; if all brokers missed the deletion, no broker would
        become the controller.
        """
        await self._read_controller()
        if self._controller_id == _NOBODY and await self._client.exists(CONTROLLER) is None:
            self._queue_election()

    async def _read_controller(self) -> None:
        """Watch and read `/controller`; resign if it names another broker or does not exist."""
        # Source: ZN:resign.
        await self._watch_controller()
        controller_id = await self._read_controller_id()
        if self.is_active and controller_id != self.broker_id:
            self._resign()
        self._controller_id = _NOBODY if controller_id is None else controller_id

    async def _read_controller_id(self) -> int | None:
        """Return the controller's broker id; None if the node is absent or cannot be parsed.

        Source: KafkaZkClient.getControllerId, which treats content that is not JSON as no
        controller.
        """
        try:
            return await read_controller_id(self._client)
        except InvalidZnodeValue as error:
            self._ports.reporter.event_failed("ControllerChange", error)
            return None

    async def _try_to_become_controller(self) -> None:
        """Become the controller if there is none, and fail over; resign if the failover fails."""
        controller_id = await self._read_controller_id()
        if controller_id is not None:
            self._controller_id = controller_id
            return
        now_ms = self._ports.clock.wall_ms()
        try:
            epoch, version = await register_controller(self._client, self.broker_id, now_ms)
            self.context.epoch = epoch
            self._machines.parts.znodes.epoch_version = version
            self._controller_id = self.broker_id
            self._ports.reporter.on_controller_change(epoch)
            await self._fail_over()
        except ControllerMoved:
            await self._follow_controller()
        except EngineError as error:
            # A controller after half a failover must not act: the next election starts a complete
            # one.
            self._ports.reporter.event_failed("Failover", error)
            await self._abort_failover()

    async def _fail_over(self) -> None:
        """Load the cluster's state and act on it, after this broker has become the controller.

        Order: 1 features, 2 brokers, 3 topics, 4 deletions, 5 metadata, 6 the machines, 7
        reassignments, 8 continued deletions, 9 preferred elections, 10 the leader balance.

        Source: C4, ZN:failover.
        """
        with suppress(NodeExists):
            await self._client.create(FEATURE, encode_features({}))
        await self._brokers.load()
        await self._topics.load_topics()
        await self._topics.load_deletions()
        # Brokers need the live brokers before LeaderAndIsr. They get all topics too (Kafka sends
        # those a moment later): until then each topic is unknown to clients, and librdkafka drops
        # its unsent records for a topic that was known and is unknown now.
        self._machines.send_all_metadata(self.context.live_ids())
        await self._machines.replicas.set_initial_phases()
        await self._machines.partitions.set_initial_phases()
        await self._legacy_znodes.on_reassignment()
        await self._reassignment.resume_reassignments(lambda _assignment: True)
        await self._machines.deletion.continue_deletions()
        await self._legacy_znodes.on_preferred_election()
        self._balance.start()

    async def _abort_failover(self) -> None:
        """Resign and delete `/controller`, which starts another election.

        Called after a failover that failed.
        """
        await self._read_controller()
        if not self.is_active:
            return
        self._resign()
        self._controller_id = _NOBODY
        self._gave_up = True
        with suppress(ControllerMoved, NoNode):
            await self._machines.parts.znodes.write([Delete(CONTROLLER)])

    def _resign(self) -> None:
        """Stop the controller's work and clear its state.

        Does nothing if this broker is not the controller.
        """
        if not self.is_active:
            return
        self._balance.stop()
        self._machines.watches.clear()
        self._brokers.close()
        self.context.reset()
        self._ports.reporter.on_controller_change(None)
