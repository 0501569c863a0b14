"""Injection of faults into the simulated cluster; each ends after its duration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from engine.errors import EngineError
from engine.host.memory_network import LookupFault
from engine.model import TopicPartition
from engine.sim.fault_kinds import SEPARATE_WORK, WORK, Direction, FaultKind
from engine.sim.invariants import Invariants
from engine.sim.loop import VirtualLoop
from engine.sim.machine_links import MachineLinks, orders_to
from engine.sim.network import SimulatedNetwork
from engine.sim.node import SimulatedBroker
from engine.sim.plan import Fault
from engine.sim.store import StoreServer
from engine.sim.store_rollback import (
    AGE_MS_MAX,
    grown_topics,
    is_log_of,
    lost_partitions,
    read_topics,
)
from engine.sim.trace import Trace
from engine.znode.paths import CONTROLLER

STORE = "store"
_SLOW_MS = 800
#: How long a controller is paused while a broker restarts.
_BOUNCE_MS = 1_500
#: How much later the loop receives the result of a worker thread.
_LATE_MS = 1_200
#: Interval of the checks for offline directories, once all faults have ended.
_CARE_MS = 3_000
#: Durations of a name resolution while name servers do not respond; the last is their default
#: time-out.
_LOOKUP_MS = (0, 200, 1_500, 5_000)
#: Ages of the backup that is restored to the store.
_AGES_MS = (500, 2_000, 5_000, AGE_MS_MAX)
#: Longest time until a clock is corrected.
_CLOCK_WRONG_MS = 10_000
#: Largest number of changes before a disk stops.
_CHANGES_MAX = 60
#: Largest number of successful reads before one fails.
_READS_MAX = 20


class OperatorPort(Protocol):
    """Sends an operator's requests for a plan.

    Its orders, and the removal of quotas and throttles.
    """

    def perform(self, fault: Fault) -> None:
        """Send an operator's requests, of the kind that `fault` names."""
        ...

    def grow_again(self, name: str, count: int) -> None:
        """Request `count` partitions of a topic until it has them or is to be deleted."""
        ...

    def unthrottle(self, *, is_repeated: bool) -> None:
        """Remove the replication throttles; with `is_repeated` retry until that succeeds."""
        ...

    def unlimit_clients(self, *, is_repeated: bool) -> None:
        """Remove all client quotas; with `is_repeated` retry until that succeeds."""
        ...


class Injector:
    """Performs the faults of a plan on the parts of a simulation."""

    def __init__(
        self,
        nodes: Mapping[int, SimulatedBroker],
        network: SimulatedNetwork,
        server: StoreServer,
        invariants: Invariants,
        operator: OperatorPort,
        trace: Trace,
    ) -> None:
        """Create the injector; it does nothing until `perform`.

        `operator` sends the requests of faults that are an operator's work.
        """
        self._nodes = nodes
        self._network = network
        self._links: MachineLinks = network.links
        self._loop: VirtualLoop = network.links.loop
        self._server = server
        self._invariants = invariants
        self._operator = operator
        self._trace = trace
        #: A callback that ends each fault in progress, by its number.
        self._running: dict[int, Callable[[], None]] = {}
        self._number = 0

    def heal_all(self) -> None:
        """End every fault in progress, so that the cluster can recover before the last checks."""
        for number in list(self._running):
            self._end_fault(number)
        self._watch_directories()
        self._loop.at(self._loop.now_ms + _CARE_MS, self._remove_limits)

    def _remove_limits(self) -> None:
        """Remove throttles and quotas, and repeat periodically while the store has any.

        A request from before the removal may be applied after it: once a link is healed, or once
        the broker that received it has a session with the store again.
        """
        for remove in (self._operator.unthrottle, self._operator.unlimit_clients):
            remove(is_repeated=True)
        self._loop.at(self._loop.now_ms + _CARE_MS, self._remove_remaining_limits)

    def _remove_remaining_limits(self) -> None:
        """Remove throttles and quotas again if the store has any; otherwise check again later."""
        if self._server.has_limits:
            self._remove_limits()
        else:
            self._loop.at(self._loop.now_ms + _CARE_MS, self._remove_remaining_limits)

    def _watch_directories(self) -> None:
        """Restart brokers with offline directories, and repeat periodically: some fail later."""
        for node in self._nodes.values():
            node.restart_if_directory_is_offline()
        self._loop.at(self._loop.now_ms + _CARE_MS, self._watch_directories)

    def _end_fault(self, number: int) -> None:
        """Undo a fault in progress, unless `heal_all` has done so already."""
        undo = self._running.pop(number, None)
        if undo is not None:
            undo()

    def _schedule_end(self, fault: Fault, undo: Callable[[], None]) -> None:
        """Schedule `undo` for the end of a fault's duration; `heal_all` calls it earlier."""
        self._number += 1
        number = self._number

        def end() -> None:
            """Add the end to the trace, and undo the fault."""
            self._trace.add("heal", f"{fault.kind.value} of {fault.at_ms} ms is over")
            undo()

        self._running[number] = end
        self._loop.at(self._loop.now_ms + fault.duration_ms, lambda: self._end_fault(number))

    def perform(self, fault: Fault) -> None:
        """Start one fault, or send an operator's request."""
        if fault.kind in WORK + SEPARATE_WORK:
            self._trace.add("ORDER", f"{fault.at_ms} ms: {fault.kind.value}")
            self._operator.perform(fault)
            if fault.kind is FaultKind.THROTTLE:
                self._schedule_end(fault, lambda: self._operator.unthrottle(is_repeated=False))
            elif fault.kind is FaultKind.LIMIT_CLIENTS:
                self._schedule_end(fault, lambda: self._operator.unlimit_clients(is_repeated=False))
            return
        node = self._target(fault)
        self._trace.add("FAULT", f"{fault} on {node.name}")
        kind = fault.kind
        match kind:
            case FaultKind.KILL | FaultKind.POWER_CUT | FaultKind.STOP | FaultKind.BOUNCE:
                self._end_process(fault, node)
            case FaultKind.PAUSE:
                self._pause(fault, node)
            case FaultKind.ISOLATE | FaultKind.CUT | FaultKind.CUT_STORE:
                self._block_links(fault, node)
            case FaultKind.RESET | FaultKind.SLOW | FaultKind.LOOKUP_FAILS | FaultKind.LOOKUP_SLOW:
                self._disturb_connections(fault, node)
            case (
                FaultKind.RESET_STORE
                | FaultKind.LOSE_WATCH
                | FaultKind.EXPIRE
                | FaultKind.STORE_RESTART
                | FaultKind.STORE_SET_BACK
                | FaultKind.DEPOSE
            ):
                self._disturb_store(fault, node)
            case (
                FaultKind.DISK_FULL
                | FaultKind.SYNC_ERROR
                | FaultKind.CUT_AMID
                | FaultKind.DIRECTORY_FAILED
                | FaultKind.LATE_WORK
                | FaultKind.READ_ERROR
                | FaultKind.BIT_ROT
            ):
                self._disturb_disk(fault, node)
            case FaultKind.CLOCK_JUMP:
                self._make_clock_jump(fault, node)
            case FaultKind.DEAF:
                self._deafen(fault, node)
            case _:
                raise AssertionError(f"{kind} is nobody's")

    # Choice of brokers

    def _target(self, fault: Fault) -> SimulatedBroker:
        """Return the broker that a fault names by id, as controller, or by its role."""
        ids = sorted(self._nodes)
        if fault.whom.isdigit():
            return self._nodes[int(fault.whom)]
        found = None
        if fault.whom == "controller":
            found = next((i for i in ids if _is_controller(self._nodes[i])), None)
        else:
            found = self._by_role(fault)
        return self._nodes[ids[fault.other % len(ids)] if found is None else found]

    def _by_role(self, fault: Fault) -> int | None:
        """Return the id of the leader, or of an in-sync follower, of a partition.

        The fault's number selects the partition. None if no partition has a leader, or only the
        leader is in sync.
        """
        states = [
            history.state
            for _, history in sorted(self._invariants.histories.items())
            if history.state is not None and history.state.leader >= 0
        ]
        if not states:
            return None
        state = states[fault.other % len(states)]
        if fault.whom == "leader":
            return state.leader
        followers = [broker_id for broker_id in state.isr if broker_id != state.leader]
        return followers[fault.other % len(followers)] if followers else None

    def _peer(self, fault: Fault, node: SimulatedBroker) -> SimulatedBroker:
        """Return another broker than `node`, for a fault between two.

        The fault's number selects it.
        """
        others = [other for other in self._nodes.values() if other is not node]
        return others[fault.other % len(others)]

    # Processes

    def _end_process(self, fault: Fault, node: SimulatedBroker) -> None:
        """Stop, kill or restart a broker's process, or cut its power, until the fault is over.

        Nothing is done if acknowledged records could be lost: by the power cut, or because the
        other ISR members have lost writes and would become leaders.
        """
        process = node.process
        if fault.kind is FaultKind.POWER_CUT and not self._may_lose_power(node):
            self._trace.add("", "spared: nobody else in sync has kept all, or its disk is broken")
            return
        if not self._invariants.losses.may_end(process.broker_ids):
            self._trace.add("", "spared: nobody else in sync has kept all")
            return
        if fault.kind is FaultKind.STOP:
            node.hold()
            node.stop()
            self._schedule_end(fault, node.allow)
            return
        process.hold()
        if fault.kind is FaultKind.POWER_CUT:
            process.cut_power(keeps_nothing=bool(fault.other % 2))
        elif fault.kind is FaultKind.BOUNCE:
            self._bounce(fault, node)
        else:
            process.kill()
        self._schedule_end(fault, process.allow)

    def _bounce(self, fault: Fault, node: SimulatedBroker) -> None:
        """Kill a process, or cut its power, and expire its session at once.

        It restarts before a slow controller notices that it was down.
        """
        clients = [member.client for member in node.process.nodes]
        controller = next((n for n in self._nodes.values() if _is_controller(n)), None)
        pauses = fault.other % 4 > 1
        # A paused controller would not notice a loss, and a new one would not know of it.
        is_seen = controller is not None and controller.process is not node.process
        if fault.other % 2 and is_seen and not pauses and self._may_lose_power(node):
            node.process.cut_power(keeps_nothing=True)
        else:
            node.process.kill()
        for client in clients:
            if client is not None:
                self._server.expire(client.session_id)
        controller = next((n for n in self._nodes.values() if _is_controller(n)), None)
        if pauses and controller is not None:
            self._pause(fault._replace(duration_ms=_BOUNCE_MS), controller)

    def end_after_disk_stop(self, node: SimulatedBroker) -> None:
        """Cut the power of a machine whose disk stopped, or only kill its process."""
        may_lose_power = self._may_lose_power(node)
        self._trace.add(
            "FAULT", f"{node.name} ends during a change of its disk, or as a sync fails"
        )
        if may_lose_power:
            node.process.cut_power(keeps_nothing=False)
        else:
            node.process.kill()

    def _may_lose_power(self, node: SimulatedBroker) -> bool:
        """Return True if Kafka guarantees acknowledged records through this power cut.

        After a failed sync the page cache has records that are on no disk. A process started then
        reads them, and loses them at the power cut below its recovery point. A paused controller
        does not notice a loss: its successor assumes that the broker kept all records.
        """
        process = node.process
        is_hollow = any(member.disk.is_hollow for member in process.nodes)
        is_paused = any(_is_controller(n) and n.machine.is_paused for n in self._nodes.values())
        may_lose_writes = self._invariants.losses.may_lose_writes(process.broker_ids)
        return may_lose_writes and not is_hollow and not is_paused

    def _pause(self, fault: Fault, node: SimulatedBroker) -> None:
        """Pause the machines of a process until the fault is over, unless it restarts before."""
        paused = node.process.pause()
        if not paused:
            return

        def resume() -> None:
            """Resume the paused machines that have not restarted since."""
            for member, life in paused:
                if member.machine.is_alive(life):
                    member.machine.resume()

        self._schedule_end(fault, resume)

    def _make_clock_jump(self, fault: Fault, node: SimulatedBroker) -> None:
        """Make a broker's wall clock jump; most jumps are corrected a little later, as by NTP."""
        jump_ms = fault.duration_ms if fault.other % 2 else -fault.duration_ms
        self._set_clock(node, jump_ms)
        if fault.other % 4 < 3:
            lasting = fault._replace(duration_ms=1 + fault.other % _CLOCK_WRONG_MS)
            self._schedule_end(lasting, lambda: self._set_clock(node, -jump_ms))

    def _set_clock(self, node: SimulatedBroker, jump_ms: int) -> None:
        """Move the wall clock of all brokers in a process by `jump_ms`."""
        clocks, now_ms = self._invariants.clocks, self._loop.now_ms
        for machine in [member.machine for member in node.process.nodes]:
            machine.wall_offset_ms += jump_ms
            clocks.record_jump(machine.name, now_ms, machine.wall_offset_ms)

    # MachineLinks

    def _block_links(self, fault: Fault, node: SimulatedBroker) -> None:
        """Block links between a broker and others or the store, in one direction or both."""
        others = [other.name for other in self._nodes.values() if other is not node]
        if fault.kind is FaultKind.CUT:
            others = [self._peer(fault, node).name]
        elif fault.kind is FaultKind.CUT_STORE:
            others = [STORE]
        elif fault.other % 2:
            others.append(STORE)
        pairs = []
        for other in others:
            if fault.direction is not Direction.OUT:
                pairs.append((other, node.name))
            if fault.direction is not Direction.IN:
                pairs.append((node.name, other))
        self._block(fault, pairs)

    def _deafen(self, fault: Fault, node: SimulatedBroker) -> None:
        """Block requests of controllers to a broker; everything else reaches it."""
        others = [other.name for other in self._nodes.values() if other is not node]
        self._block(fault, [(other, orders_to(node.name)) for other in others])

    def _block(self, fault: Fault, pairs: list[tuple[str, str]]) -> None:
        """Block links, each in one direction, until the fault is over."""
        for source, target in pairs:
            self._links.block(source, target)

        def heal() -> None:
            """Make the links pass packets again."""
            for source, target in pairs:
                self._links.heal(source, target)

        self._schedule_end(fault, heal)

    def _disturb_connections(self, fault: Fault, node: SimulatedBroker) -> None:
        """Start a fault of connections or host name resolution on a broker."""
        if fault.kind is FaultKind.RESET:
            self._network.reset(node.name, self._peer(fault, node).name)
        elif fault.kind is FaultKind.SLOW:
            self._slow_down(fault, node)
        else:
            self._disturb_lookups(fault, node)

    def _slow_down(self, fault: Fault, node: SimulatedBroker) -> None:
        """Add latency between a broker and another one, in both directions."""
        peer = self._peer(fault, node).name
        pairs = ((node.name, peer), (peer, node.name))
        for source, target in pairs:
            self._links.slow_down(source, target, _SLOW_MS)

        def heal() -> None:
            """Remove the added latency."""
            for source, target in pairs:
                self._links.slow_down(source, target, 0)

        self._schedule_end(fault, heal)

    def _disturb_lookups(self, fault: Fault, node: SimulatedBroker) -> None:
        """Reset a broker's connections; name resolution fails or is slow until the end."""
        fails = fault.kind is FaultKind.LOOKUP_FAILS
        delay_ms = _LOOKUP_MS[fault.other % len(_LOOKUP_MS)]
        lookup_faults = self._network.lookup_faults
        lookup_faults[node.name] = found = LookupFault(delay_ms if fails else delay_ms + 1, fails)
        for other in self._nodes.values():
            if other is not node:
                self._network.reset(node.name, other.name)

        def heal() -> None:
            """Remove the fault of name resolution, unless a later one has replaced it."""
            # Keep a later fault of the same machine.
            if lookup_faults.get(node.name) is found:
                del lookup_faults[node.name]

        self._schedule_end(fault, heal)

    # The store

    def _disturb_store(self, fault: Fault, node: SimulatedBroker) -> None:
        """Start a fault of the store or of a session: restart, rollback, expiry, lost watch."""
        client, machine = node.client, node.machine
        if fault.kind is FaultKind.STORE_RESTART:
            if self._server.machine.is_running:
                self._server.stop()
                self._schedule_end(fault, self._server.start)
        elif fault.kind is FaultKind.STORE_SET_BACK:
            self._set_store_back(fault)
        elif fault.kind is FaultKind.DEPOSE:
            self._depose(fault)
        elif client is None:
            return
        elif fault.kind is FaultKind.EXPIRE:
            self._server.expire(client.session_id)
        elif fault.kind is FaultKind.LOSE_WATCH:
            client.loses_watch_of = CONTROLLER
            if self._server.machine.is_running:
                self._server.delete_controller()
        else:
            machine.enter(machine.life, client.reset)

    def _set_store_back(self, fault: Fault) -> None:
        """Restore an older backup of the store while all brokers are down, as an operator would."""
        found = self._server.preview_rollback(_AGES_MS[fault.other % len(_AGES_MS)])
        if found is None or not self._server.machine.is_running:
            self._trace.add("", "spared: the store is away")
            return
        if not self._invariants.losses.may_end(frozenset(self._nodes)):
            self._trace.add("", "spared: a member of an in-sync set lost writes, or is damaged")
            return
        stored, now = found
        topics, topics_now = read_topics(dict(stored.nodes)), read_topics(dict(now.nodes))
        for key in sorted({*topics.partitions(), *topics_now.partitions()}):
            if not topics.is_equal(key, topics_now):
                self._trace.add("", f"{key} is set back to {topics.states.get(key)}")
        self._invariants.roll_back(stored, now)
        self._server.roll_back(stored)
        processes = list({id(node.process): node.process for node in self._nodes.values()}.values())
        for process in processes:
            process.hold()
            process.kill()
        self._remove_logs(lost_partitions(topics, topics_now))

        def go_on() -> None:
            """Start the store and brokers, and create partitions again that the store lost."""
            self._server.start()
            for process in processes:
                process.allow()
            for name, count in grown_topics(topics, topics_now).items():
                self._operator.grow_again(name, count)

        self._schedule_end(fault, go_on)

    def _remove_logs(self, partitions: list[TopicPartition]) -> None:
        """Remove the logs of partitions from all disks, including future logs."""
        for node in self._nodes.values():
            files = node.disk.files
            with files.suspend_failures():
                for path in node.log_dirs:
                    for name in files.list_dir(path) if files.exists(path) else ():
                        if any(is_log_of(name, key) for key in partitions):
                            node.disk.remove_folder(f"{path}/{name}")

    def _depose(self, fault: Fault) -> None:
        """Delete `/controller` in the store, as an operator would to change the controller.

        The old controller may notice it late.
        """
        controller = next((n for n in self._nodes.values() if _is_controller(n)), None)
        if controller is None or not self._server.machine.is_running:
            return
        if not self._invariants.losses.may_change_controller():
            self._trace.add("", "spared: a member of an in-sync set lost writes")
            return
        if fault.other % 2:
            self._pause(fault._replace(duration_ms=_BOUNCE_MS), controller)
        self._server.delete_controller()

    # Disks

    def _disturb_disk(self, fault: Fault, node: SimulatedBroker) -> None:
        """Start a fault of a disk.

        Failing sync or read, stop between changes, bit rot, full disk.
        """
        if fault.kind is FaultKind.SYNC_ERROR:
            node.disk.fail_sync(cuts_power=bool(fault.other % 2))
        elif fault.kind is FaultKind.READ_ERROR:
            directory = node.log_dirs[fault.other % len(node.log_dirs)]
            node.disk.fail_read(directory, fault.other % _READS_MAX)
            self._schedule_end(fault, node.disk.read_again)
        elif fault.kind is FaultKind.CUT_AMID:
            node.disk.stop_after(fault.other % _CHANGES_MAX)
            self._schedule_end(fault, node.disk.go_on)
        elif fault.kind is FaultKind.DIRECTORY_FAILED:
            self._lose_directory(fault, node)
        elif fault.kind is FaultKind.LATE_WORK:
            self._delay_threads(fault, node)
        elif fault.kind is FaultKind.BIT_ROT:
            self._damage_batch(fault, node)
        elif not node.disk.is_full:
            node.disk.fill()
            self._schedule_end(fault, node.disk.make_room)

    def _delay_threads(self, fault: Fault, node: SimulatedBroker) -> None:
        """Delay the results of a broker's worker threads until the fault is over."""
        machines = [member.machine for member in node.process.nodes]
        for machine in machines:
            machine.thread_delay_ms += _LATE_MS

        def catch_up() -> None:
            """Remove the delay."""
            for machine in machines:
                machine.thread_delay_ms -= _LATE_MS

        self._schedule_end(fault, catch_up)

    def _damage_batch(self, fault: Fault, node: SimulatedBroker) -> None:
        """Damage a batch of a broker of which another ISR member has an intact copy."""
        rots = self._invariants.rots
        rot = rots.begin(node, fault.other)
        if rot is None:
            self._trace.add("", "spared: no batch of it is whole in another member of the set")
            return
        self._trace.add("", f"{rot.partition} at {rot.base_offset} is damaged on {node.name}")
        self._schedule_end(fault, lambda: rots.end(rot))

    def _lose_directory(self, fault: Fault, node: SimulatedBroker) -> None:
        """Make a log directory fail.

        When it is healed, restart the broker so that it uses it again.
        """
        directory = node.log_dirs[fault.other % len(node.log_dirs)]
        if node.disk.has_failed(directory):
            return
        node.disk.fail_directory(directory)

        def heal() -> None:
            """Make the directory usable again, and restart the broker."""
            node.disk.heal_directory(directory)
            node.restart_if_directory_is_offline()

        self._schedule_end(fault, heal)


def _is_controller(node: SimulatedBroker) -> bool:
    """Return True for the active controller; False also while the broker cannot report it."""
    try:
        return node.broker is not None and node.broker.controller.is_active
    except EngineError:
        return False
