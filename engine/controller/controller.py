"""The controller: its election, and the order of its work.

```
        start ──> Startup ──> watch /controller, elect
                                 │
        /controller is there ────┴──── is not: one multi { create it, epoch + 1 } ── lost: read again
                 │                                      │ won
          another leads                                 v
                 ^                     failover: feature, brokers, topics, deletions,
                 │                     metadata to all, replicas, partitions,
                 │                     reassignments, elections, the clock
   /controller changed, or a                            │
   write was fenced: resign <────────────────── active: events one at a time
```

Every write of the active controller is fenced by the version of `/controller_epoch`, so it does
not matter how late it learns that it was deposed.

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
    """Handles one kind of request."""

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
        """Create the parts; nothing runs before `start`.

        `settings` returns the broker's present settings.
        """
        self.broker_id = broker_id
        self.context = ControllerContext()
        self._ports = ports
        self._client = ports.znodes
        #: The active controller as last read from the metadata store.
        self._controller_id = _NOBODY
        #: Whether this controller has resigned after an error, and must pause before the next
        #: election.
        self._gave_up = False
        #: Whether that pause runs: this broker takes part in the election after it.
        self._is_pausing = False
        self.event_times = EventTimes(ports.clock, ports.work_ns)
        self._queue = EventQueue(ports.timers.call_soon, self._on_failed, self.event_times)
        #: The watch of the controller's znode. Kept apart from the other watches because it stays
        #: when this broker resigns.
        self._controller_watch = ArmedWatches(ports.znodes)
        self._turns = LoopTurns(ports.timers, ports.clock, ports.ends_early)
        self._machines = self._put_together(config, settings)
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

    def _put_together(
        self, config: BrokerConfig, settings: Callable[[], BrokerSettings]
    ) -> Machines:
        """Create the state machines and the sender of requests of this controller."""
        sender = BatchSender(
            self.broker_id,
            config.between_brokers.name,
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
        """Return whether this broker is the controller."""
        return self._controller_id == self.broker_id

    @property
    def controller_id(self) -> int:
        """Return the controller's broker id as far as this broker knows, −1 for none."""
        return self._controller_id

    @property
    def epoch(self) -> int:
        """The epoch of the active controller; 0 elsewhere."""
        return self.context.epoch

    @property
    def waiting_event_count(self) -> int:
        """Return how many events wait for the one that runs."""
        return self._queue.waiting_count

    @property
    def is_idle(self) -> bool:
        """Return whether no event runs or waits."""
        return self._queue.is_idle

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the topic with an id of 16 bytes, as the controller knows it."""
        return self.context.topic_names.get(topic_id)

    def is_queued_for_deletion(self, topic: str) -> bool:
        """Return whether a topic's deletion is requested and not complete."""
        return topic in self.context.to_delete

    # -- life ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Take part in the election; this broker is registered, and the persistent znodes exist."""
        self._queue.put(Event("Startup", self._on_startup))

    def stop(self) -> None:
        """Do nothing more and forget everything; the session of the store ends with the broker."""
        self._controller_watch.clear()
        self._queue.close(self._forget_controller)

    def session_expired(self) -> None:
        """Resign: `/controller` and all watches went with the session. Overtakes queued events."""
        self._queue.clear_and_put(Event("Expire", self._on_expire))

    def session_began(self) -> None:
        """Take part in the election again, after this broker has registered again."""
        self._queue.put(Event("Reelect", self._on_reelect))

    # -- requests ------------------------------------------------------------------------------

    def alter_partition(
        self, request: messages.AlterPartitionRequest, version: int
    ) -> Promise[messages.AlterPartitionResponse]:
        """Promise the response to an AlterPartitionRequest of a version."""
        handler = self._alter_partition
        return self._put_request(
            "AlterPartition", handler, partial(handler.handle, request, version)
        )

    def controlled_shutdown(
        self, request: messages.ControlledShutdownRequest
    ) -> Promise[messages.ControlledShutdownResponse]:
        """Promise the response to a ControlledShutdownRequest."""
        handler = self._controlled_shutdown
        return self._put_request("ControlledShutdown", handler, partial(handler.handle, request))

    def allocate_producer_ids(
        self, request: messages.AllocateProducerIdsRequest
    ) -> Promise[messages.AllocateProducerIdsResponse]:
        """Promise the response to an AllocateProducerIdsRequest."""
        handler = self._allocate_producer_ids
        return self._put_request("AllocateProducerIds", handler, partial(handler.handle, request))

    def elect_leaders(
        self, partitions: Iterable[TopicPartition], *, is_unclean: bool
    ) -> Promise[dict[TopicPartition, PartitionElection]]:
        """Elect preferred leaders, or with `is_unclean` any replica; promise each result."""
        handler = RequestedElection(self._machines, partitions, is_unclean=is_unclean)
        return self._put_request("ReplicaLeaderElection", handler, handler.handle)

    def alter_reassignments(
        self, request: messages.AlterPartitionReassignmentsRequest
    ) -> Promise[messages.AlterPartitionReassignmentsResponse]:
        """Promise the response to an AlterPartitionReassignmentsRequest."""
        handler = self._requested_reassignment
        return self._put_request(
            "ApiPartitionReassignment", handler, partial(handler.handle, request)
        )

    def list_reassignments(
        self, request: messages.ListPartitionReassignmentsRequest
    ) -> Promise[messages.ListPartitionReassignmentsResponse]:
        """Promise the response to a ListPartitionReassignmentsRequest."""
        handler = self._reassignment_list
        return self._put_request(
            "ListPartitionReassignments", handler, partial(handler.handle, request)
        )

    def allow_unclean_election(self, topic: str | None = None) -> None:
        """Elect leaders after a change of `unclean.leader.election.enable` of a topic or of all."""

        async def work() -> None:
            await self._machines.partitions.bring_online(topic)

        kind = "UncleanLeaderElectionEnable"
        self._put_active(kind if topic is None else f"Topic{kind}", work)

    def _put_request(
        self,
        name: str,
        handler: _RequestHandler[R],
        handle: Callable[[], PromiseCoroutine[R]],
    ) -> Promise[R]:
        """Queue a request as an event; the promise is always kept, also when the event fails."""
        promise: Promise[R] = Promise()

        async def work() -> None:
            """Handle the request if this broker is still the controller, and keep its promise."""
            if not self.is_active:
                promise.keep(handler.refusal())
                return
            try:
                response = await handle()
            except AssertionError:
                raise
            except Exception:
                # A fault of our code is answered as one of the store: no request waits for ever.
                promise.keep(handler.failure())
                raise
            promise.keep(response)

        self._queue.put(Event(name, work, lambda: promise.keep(handler.refusal())))
        return promise

    # -- events --------------------------------------------------------------------------------

    def _put_active(self, name: str, work: Callable[[], PromiseCoroutine[None]]) -> None:
        """Queue an event that does nothing if this broker has resigned by then."""

        async def if_active() -> None:
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
        """Queue a StopReplica response as an event, if it answers deletions of replicas."""
        if deleted:
            work = partial(self._brokers.on_stop_replica_response, broker_id, deleted, response)
            self._put_active("TopicDeletionStopReplicaResponseReceived", work)

    async def _on_failed(self, name: str, error: EngineError) -> None:
        """Report a failed event; after ControllerMoved (a fenced write), read who is controller."""
        self._ports.reporter.event_failed(name, error)
        if isinstance(error, ControllerMoved):
            try:
                await self._follow_controller()
            except EngineError as second:
                self._ports.reporter.event_failed(name, second)

    async def _on_startup(self) -> None:
        """Watch `/controller`, then stand for election: a later change is an event."""
        await self._watch_controller()
        await self._elect()

    async def _on_reelect(self) -> None:
        """Read `/controller` again, then stand for election."""
        await self._read_controller()
        await self._elect()

    async def _on_expire(self) -> None:
        """Resign: the session with the metadata store has expired."""
        self._forget_controller()

    def _forget_controller(self) -> None:
        """Resign, and forget the controller and its watch, which ended with the session."""
        self._controller_watch.clear()
        self._resign()
        self._controller_id = _NOBODY

    # -- election ------------------------------------------------------------------------------

    async def _watch_controller(self) -> None:
        """Watch `/controller`: its deletion starts an election, another event re-reads it."""

        def on_event(event: EventType) -> None:
            """Start an election, or queue the reading of the new controller."""
            if event is EventType.DELETED:
                self._stand_again()
            else:
                self._queue.put(Event("ControllerChange", self._follow_controller))

        await self._controller_watch.arm_node(CONTROLLER, on_event)

    def _stand_again(self) -> None:
        """Queue an election; after a failed step only when a pause is over."""
        if self._gave_up:
            # A step that failed a moment ago would fail again at once.
            self._gave_up, self._is_pausing = False, True
            retry_ms = self._ports.clock.monotonic_ms() + CONTROLLER_RETRY_MS
            self._ports.timers.call_at(retry_ms, self._stand_after_pause)
        elif not self._is_pausing:
            self._queue.put(Event("Reelect", self._on_reelect))

    def _stand_after_pause(self) -> None:
        """Stand for election again after a step of the controller has failed."""
        self._is_pausing = False
        self.session_began()

    async def _follow_controller(self) -> None:
        """Read `/controller` after a change; start an election if no broker is the controller.

        The watch on the node fires for its creation; by the time the node is read, that controller
        may have resigned. The watch set then fires only for the next creation, so an election is
        started here. A node that exists but cannot be read blocks every election until it is
        deleted, as in Kafka.

        Differs: Kafka starts no election here; if all brokers missed the deletion, no broker would
        become the controller.
        """
        await self._read_controller()
        if self._controller_id == _NOBODY and await self._client.exists(CONTROLLER) is None:
            self._stand_again()

    async def _read_controller(self) -> None:
        """Watch and read the controller's node; resign if it names another broker, or none."""
        # Source: ZN:resign.
        await self._watch_controller()
        controller_id = await self._read_controller_id()
        if self.is_active and controller_id != self.broker_id:
            self._resign()
        self._controller_id = _NOBODY if controller_id is None else controller_id

    async def _read_controller_id(self) -> int | None:
        """Return the controller, None without one; a node that cannot be read counts as absent.

        Source: KafkaZkClient.getControllerId, for which content that is no JSON is no controller.
        """
        try:
            return await read_controller_id(self._client)
        except InvalidZnodeValue as error:
            self._ports.reporter.event_failed("ControllerChange", error)
            return None

    async def _elect(self) -> None:
        """Register as the controller unless there is one; resign if the failover fails."""
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
            self._ports.reporter.controller_changed(epoch)
            await self._fail_over()
        except ControllerMoved:
            await self._follow_controller()
        except EngineError as error:
            # Half a controller is none: let the next election find a whole one.
            self._ports.reporter.event_failed("Failover", error)
            await self._give_up()

    async def _fail_over(self) -> None:
        """Take over: 1 features, 2 brokers, 3 topics, 4 deletions, 5 metadata, 6 the machines,
        7 reassignments, 8 deletions go on, 9 preferred elections, 10 the clock.

        Source: C4, ZN:failover.
        """
        with suppress(NodeExists):
            await self._client.create(FEATURE, encode_features({}))
        await self._brokers.load()
        await self._topics.load()
        await self._topics.load_deletions()
        # Brokers need the live brokers before they get leaders to follow. They get all topics
        # too (Kafka sends those a moment later): until then each is unknown to clients, and
        # librdkafka drops its unsent records for a topic that it knew and that is unknown now.
        self._machines.send_all_metadata(self.context.live_ids())
        await self._machines.replicas.startup()
        await self._machines.partitions.startup()
        await self._legacy_znodes.on_reassignment()
        await self._reassignment.resume(lambda _assignment: True)
        await self._machines.deletion.resume()
        await self._legacy_znodes.on_preferred_election()
        self._balance.start()

    async def _give_up(self) -> None:
        """Resign and remove `/controller`, so that there is another election."""
        await self._read_controller()
        if not self.is_active:
            return
        self._resign()
        self._controller_id = _NOBODY
        self._gave_up = True
        with suppress(ControllerMoved, NoNode):
            await self._machines.parts.znodes.write([Delete(CONTROLLER)])

    def _resign(self) -> None:
        """Forget everything if this broker was the controller."""
        if not self.is_active:
            return
        self._balance.stop()
        self._machines.watches.clear()
        self._brokers.close()
        self.context.reset()
        self._ports.reporter.controller_changed(None)
