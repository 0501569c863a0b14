"""One run of a plan, from the first broker to the last check.

```
boot     start store and brokers, create topics, wait until every partition is fully in sync
load     run clients and faults; every event is checked (`invariants.py`)
heal     end every fault, restart brokers, let clients finish
rest     brokers up, replicas in sync and equal, all requests have a response: the last checks
```

Source: reliability facts, "safety phase, then liveness phase"; D1, D2.
"""

from __future__ import annotations

import gc
import logging
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import NamedTuple

from engine.client.settings import Address
from engine.model import TopicPartition
from engine.naming import INTERNAL_TOPICS
from engine.sim.client_quotas import QuotaRules, limited_clients
from engine.sim.clients import (
    ACKS_ALL,
    ClusterRequests,
    ProducerKind,
    SimulatedProducer,
    short_lived_producer_kind,
)
from engine.sim.consumers import SimulatedConsumer
from engine.sim.coordinated_clients import CoordinatedClients
from engine.sim.delayed_restarts import DelayedRestarts
from engine.sim.fault_kinds import FaultKind
from engine.sim.faults import STORE, Injector
from engine.sim.invariants import Invariants, Violation
from engine.sim.ledger import Ledger
from engine.sim.loop import VirtualLoop
from engine.sim.losses import Rules
from engine.sim.machine import Machine
from engine.sim.machine_links import MachineLinks
from engine.sim.network import SimulatedNetwork
from engine.sim.node import BROKER_PORT, SimulatedBroker
from engine.sim.operator import Operator
from engine.sim.phases import watch_phases
from engine.sim.plan import Fault, Plan
from engine.sim.process import BrokerProcess
from engine.sim.quiescence import is_held, readable_end, reasons_not_quiescent
from engine.sim.side_files import unreadable_files
from engine.sim.store import StoreServer, WatchedJournal
from engine.sim.trace import Trace, log_into

#: Log directories of a broker; one or all of them are used.
_LOG_DIRS = ("/data", "/more")
_BOOT_MS_MAX = 60_000
_HEAL_MS_MAX = 180_000
_CHECK_INTERVAL_MS = 500
#: Clients whose name ends in one of these digits wait for each throttle time.
_PATIENT_DIGITS = "02468"
#: The first collection runs the `finally` blocks of coroutines, which may keep objects alive that
#: later collections free.
_COLLECTIONS = 3


class RunResult(NamedTuple):
    """The result of a run; `violation` is None if no rule was broken."""

    plan: Plan
    violation: Violation | None
    virtual_ms: int
    callback_count: int
    acknowledged_count: int
    partition_count: int
    #: Number of partitions that lost records where Kafka loses them too, and of lost records that
    #: were accepted with acks=all.
    excused_count: int
    excused_record_count: int
    election_count: int
    lines: list[str]


class Simulation:
    """Runs one plan: machines, brokers, store, clients and faults in virtual time."""

    def __init__(self, plan: Plan, *, is_traced: bool = False) -> None:
        """Create all parts of `plan`; nothing runs before `run`.

        With `is_traced` the result has trace lines.
        """
        self.plan = plan
        self.loop = VirtualLoop()
        self.trace = Trace(self.loop, is_kept=is_traced)
        self.nodes: dict[int, SimulatedBroker] = {}
        #: The brokers of the process of each machine, by machine name.
        self._nodes_by_machine: dict[str, list[SimulatedBroker]] = {}
        rules = Rules(
            plan.min_isr,
            plan.is_unclean_allowed,
            plan.is_synced,
            plan.tombstones_stay_ms,
            plan.retention,
        )
        self.invariants = Invariants(rules, self.nodes, on_broken=self.loop.stop)
        self.ledger = Ledger(self.invariants, self.trace)
        self.quotas = QuotaRules(self.invariants)
        self.links = MachineLinks(self.loop, self.random("links"), delay_ms_max=plan.delay_ms_max)
        self.network = SimulatedNetwork(self.links)
        self.server = StoreServer(
            self._create_machine(STORE), self.links, WatchedJournal(self.invariants)
        )
        self.producers: list[SimulatedProducer] = []
        self.consumers: list[SimulatedConsumer] = []
        for broker_ids in plan.processes:
            process = BrokerProcess(encodes_local_messages=plan.encodes_local_messages)
            nodes = [self._add_node(broker_id, process) for broker_id in broker_ids]
            self._nodes_by_machine.update({node.name: nodes for node in nodes})
        self._client_machine = self._create_machine("clients")
        self._client_timers = self._client_machine.start()
        self.coordinated = CoordinatedClients(plan, self, self.invariants, self.ledger)
        self.operator = Operator(
            self.client("admin"),
            self.invariants,
            self.trace,
            brokers={i: Address(node.name, BROKER_PORT) for i, node in self.nodes.items()},
            log_dirs=_LOG_DIRS[: plan.log_dir_count],
            min_isr=plan.min_isr,
        )
        self.injector = Injector(
            self.nodes, self.network, self.server, self.invariants, self.operator, self.trace
        )
        #: Brokers that must stay down because their losses are not recorded yet.
        self._returns = DelayedRestarts(self.invariants.losses)
        #: Producers to topics that are created and deleted during the run, by topic name and id.
        self._passing: dict[tuple[str, str | None], SimulatedProducer] = {}
        #: Whether the faults have ended: producers that are created later finish at once.
        self._is_healing = False
        self.invariants.topics.on_change = self._schedule_topic_change

    def random(self, purpose: str) -> Random:
        """Return a random generator for one purpose, the same in each run of the plan."""
        return Random(f"{self.plan.seed}/{purpose}")

    def _create_machine(self, name: str) -> Machine:
        """Create a machine in the network, where it is reached by its name."""
        machine = self.network.machines[name] = Machine(name, self.loop, self)
        return machine

    def _add_node(self, broker_id: int, process: BrokerProcess) -> SimulatedBroker:
        """Create a broker on a separate machine, with the settings of the plan."""
        machine = self._create_machine(f"b{broker_id}")
        settings = {
            **dict(self.plan.settings),
            "log.dirs": ",".join(_LOG_DIRS[: self.plan.log_dir_count]),
            "min.insync.replicas": str(self.plan.min_isr),
            "unclean.leader.election.enable": str(self.plan.is_unclean_allowed).lower(),
        }
        node = self.nodes[broker_id] = SimulatedBroker(
            broker_id,
            machine,
            self.network,
            self.server,
            settings,
            random=self.random(machine.name),
            events=self,
            process=process,
        )
        return node

    def client(self, name: str) -> ClusterRequests:
        """Create the connections of a client with this name, and return them."""
        addresses = [Address(node.name, BROKER_PORT) for node in self.nodes.values()]
        network = self.network.port_of(self._client_timers)
        return ClusterRequests(
            name,
            self._client_timers,
            network,
            addresses,
            self.random(name),
            self.quotas,
            waits_when_throttled=name[-1] in _PATIENT_DIGITS,
        )

    @property
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions of the plan's topics."""
        return [
            TopicPartition(f"t{number}", index)
            for number, count in enumerate(self.plan.topics)
            for index in range(count)
        ]

    # What happens on machines

    def on_callback_end(self, machine: Machine) -> None:
        """Check the invariants of a process's brokers, after each callback on its machine."""
        self.invariants.now_ms = self.invariants.rots.now_ms = self.loop.now_ms
        nodes = self._nodes_by_machine.get(machine.name, ())
        for node in nodes:
            if node.disk.files.has_stopped or node.disk.loses_power:
                self._on_disk_stop(node, nodes)
                return
        for node in nodes:
            if node.broker is not None:
                self.invariants.check(node)

    def _on_disk_stop(self, stopped: SimulatedBroker, nodes: Sequence[SimulatedBroker]) -> None:
        """Check all brokers of the process when a disk stopped, then end the process or machine."""
        for node in nodes:
            with node.disk.files.suspend_failures():
                node.disk.go_on()
                self.invariants.check_midway(node)
        self.injector.end_after_disk_stop(stopped)

    def broke(self, machine: Machine, error: Exception) -> None:
        """Report an exception that no code of a machine's process caught as a violation."""
        text = "".join(traceback.format_exception(error)[-3:])
        self.invariants.broke("BUG", f"{machine.name}: {error!r}\n{text}")

    def record(self, subject: str, text: str) -> None:
        """Add a line to the trace."""
        self.trace.add(subject, text)

    def opened(self, node: SimulatedBroker) -> None:
        """Watch the controller's phases and the quotas of a broker that has started to serve."""
        if node.broker is not None:
            watch_phases(node.broker.controller.context, self.invariants.broke)
        self.quotas.watch(node, lambda: self.loop.now_ms)

    def record_fatal(self, node: SimulatedBroker, reason: str) -> None:
        """Report a broker that cannot continue as a violation, unless its disk has failed."""
        self.trace.add(node.name, f"gives up: {reason}")
        if "log directory is offline" not in reason or not node.disk.has_failed_once:
            self.invariants.broke("FATAL", f"{node.name}: {reason}")

    def record_end(self, node: SimulatedBroker) -> None:
        """Record the end of a process: a log may be truncated before a damaged batch."""
        self.invariants.losses.on_process_end(node)

    def may_start(self, node: SimulatedBroker) -> bool:
        """Return True if a broker may start now; one that lost writes may have to wait."""
        return not self._returns.must_wait(node.broker_id, self.loop.now_ms)

    def record_lost_writes(self, node: SimulatedBroker) -> None:
        """Record a power cut of a broker, and check its small files (L8).

        Each file must be as before or after its last write, never torn.
        """
        self.invariants.record_lost_writes(node.broker_id)
        if not self.plan.has_unseen_losses:
            self._returns.record_lost_writes(node.broker_id, self.loop.now_ms)
        for log_dir in node.log_dirs:
            if broken := unreadable_files(node.disk.files, log_dir, node.filled):
                self.invariants.broke("L8", f"{node.name} finds {', '.join(broken)}")

    # Topics that grow, come and go

    def _schedule_topic_change(self, name: str) -> None:
        """Schedule `_on_topic_change` on the clients' machine, once there are producers."""
        if self.producers:
            self._client_timers.call_soon(lambda: self._on_topic_change(name))

    def _on_topic_change(self, name: str) -> None:
        """Start or stop clients for a topic that was created, grown, or is to be deleted.

        All clients use partitions of topics `t…`; each other topic has one producer per topic id.
        """
        topics = self.invariants.topics
        topic = topics.by_name.get(name)
        partitions = [key for key in topics.rows if key.topic == name]
        if name in INTERNAL_TOPICS:
            return
        if name.startswith("t"):
            for partition in partitions:
                for producer in self.producers:
                    producer.add(partition)
                for consumer in (*self.consumers, *self.coordinated.readers):
                    consumer.add(partition)
            return
        if topic is None:
            self.ledger.forget(name)
        for (passing, topic_id), producer in self._passing.items():
            is_gone = topic is None or topics.is_doomed(name) or topic_id != topic.topic_id
            if passing == name and is_gone:
                producer.give_up()
        if topic is not None and not topics.is_doomed(name):
            self._produce_to(name, topic.topic_id, partitions)

    def _produce_to(
        self, name: str, topic_id: str | None, partitions: list[TopicPartition]
    ) -> None:
        """Produce to a topic that may be deleted, by a producer for its topic id."""
        producer = self._passing.get((name, topic_id))
        if producer is not None:
            for partition in partitions:
                producer.add(partition)
            return
        number = len(self._passing)
        # A new producer for each topic id: requests of an old one may arrive at a new topic of the
        # name.
        kind = short_lived_producer_kind(number)
        producer = self._passing[name, topic_id] = self._create_producer(
            f"x{number}", kind, partitions
        )
        producer.start()
        if self._is_healing:
            producer.finish()

    def _create_producer(
        self, name: str, kind: ProducerKind, partitions: list[TopicPartition]
    ) -> SimulatedProducer:
        """Create a producer of a kind, with separate random numbers."""
        random = self.random(f"producer {name}")
        kind = kind._replace(is_keyed=self.plan.is_compacted, is_compressed=self.plan.is_compressed)
        return SimulatedProducer(self.client(name), kind, partitions, random, self.ledger)

    # The run

    def run(self) -> RunResult:
        """Run the plan to its end, or to the first violation."""
        with log_into(self.trace):
            if self._boot() and self._run_load() and self._heal():
                self.ledger.check_end(self.nodes, list(self.invariants.topics.rows))
                self.coordinated.check_end()
        violation = self.invariants.violation
        if violation is not None:
            self.trace.add("BROKEN", str(violation))
        histories = self.invariants.histories.values()
        return RunResult(
            self.plan,
            violation,
            self.loop.now_ms,
            self.loop.callback_count,
            self.ledger.acknowledged_count,
            len(histories),
            sum(history.is_excused for history in histories),
            self.ledger.excused_count,
            sum(len(history.leaders) for history in histories),
            self.trace.lines,
        )

    def _is_broken(self) -> bool:
        """Return True if a rule was broken, so that the run ends."""
        return self.invariants.violation is not None

    def _run_until(self, end_ms: int, is_done: Callable[[], bool]) -> bool:
        """Run until `is_done` returns True, checked every half second, or until `end_ms`.

        Returns False after a violation, and if `is_done` is still False at the end.
        """
        while self.loop.now_ms < end_ms and not is_done():
            self.loop.run_until(min(self.loop.now_ms + _CHECK_INTERVAL_MS, end_ms))
            self.invariants.rots.note_deleted()
            self.invariants.check_all()
            self.ledger.check_all()
            self.coordinated.check_all()
            self.quotas.check(self.nodes.values(), self.loop.now_ms)
            if self._is_broken():
                return False
        return is_done()

    def _boot(self) -> bool:
        """Start all brokers and create the topics; return False if they are not ready in time."""
        for node in self.nodes.values():
            node.start()
        topics = {f"t{number}": (count, 3) for number, count in enumerate(self.plan.topics)}
        self._client_timers.call_soon(lambda: self.operator.create(topics))
        if not self._run_until(_BOOT_MS_MAX, lambda: not self._reasons_not_quiescent()):
            self.invariants.broke(
                "LIVE", f"no cluster in time: {'; '.join(self._reasons_not_quiescent())}"
            )
            return False
        self.trace.add("", "the cluster stands")
        return True

    def _reasons_not_quiescent(self, *, is_last_check: bool = False) -> list[str]:
        """Return the reasons why the cluster is not quiescent; empty if it is."""
        wanted = self.partitions
        return reasons_not_quiescent(
            self.nodes, self.invariants, wanted, is_last_check=is_last_check
        )

    def _run_load(self) -> bool:
        """Run clients and faults for the plan's duration; return False after a violation."""
        start_ms = self.loop.now_ms
        for number, kind in enumerate(self.plan.producers):
            name = f"p{number}"
            self.producers.append(self._create_producer(name, kind, self.partitions))
        for number in range(self.plan.consumer_count):
            name = f"c{number}"
            self.consumers.append(
                SimulatedConsumer(
                    self.client(name),
                    self.partitions,
                    self.random(name),
                    self.ledger,
                    pause_ms=200,
                )
            )
        self.coordinated.start()
        for producer in self.producers:
            self._client_timers.call_soon(producer.start)
        for consumer in self.consumers:
            self._client_timers.call_soon(consumer.start)
        if any(fault.kind is FaultKind.STORE_SET_BACK for fault in self.plan.faults):
            self.server.keep_snapshots()
        for fault in self.plan.faults:
            self.loop.at(start_ms + fault.at_ms, _start_fault_call(self.injector, fault))
        return (
            self._run_until(start_ms + self.plan.duration_ms, lambda: False)
            or not self._is_broken()
        )

    def _heal(self) -> bool:
        """End all faults, and run until the cluster is quiescent and clients have finished.

        Violates LIVE if that takes too long. Returns False after a violation.
        """
        self.trace.add("", "every fault is taken back")
        self.injector.heal_all()
        self._is_healing = True
        for producer in (*self.producers, *self._passing.values()):
            producer.finish()
        self.coordinated.finish()
        deadline_ms = self.loop.now_ms + _HEAL_MS_MAX
        if not self._run_until(
            deadline_ms, lambda: not self._reasons_not_quiescent() and not self._waiting_reasons()
        ):
            causes = [*self._reasons_not_quiescent(is_last_check=True), *self._waiting_reasons()]
            if causes and not self._is_broken():
                self.invariants.broke("LIVE", f"no rest in time: {'; '.join(causes)}")
            return not self._is_broken()
        return True

    def _waiting_reasons(self) -> list[str]:
        """Return what clients still wait for, as text: responses, ends of transactions, records."""
        producers = (*self.producers, *self._passing.values())
        waiting = [
            f"{producer.name} has records of {partition} unanswered"
            for producer in producers
            for partition in producer.unanswered()
            if producer.kind.acks != ACKS_ALL or not is_held(partition, self.nodes, self.invariants)
        ]
        waiting += self.coordinated.waiting()
        waiting += limited_clients(self.nodes.values())
        for consumer in self.consumers:
            waiting += self._unread_lines(consumer, consumer.positions)
        for reader in self.coordinated.readers_to_wait_for:
            held_up = filter(self.coordinated.may_hold_up, reader.positions)
            waiting += self._unread_lines(reader, reader.positions.keys() - set(held_up))
        return waiting

    def _unread_lines(
        self, consumer: SimulatedConsumer, partitions: Iterable[TopicPartition]
    ) -> list[str]:
        """Return a line for each partition that a consumer has not read to its committed end.

        A partition counts only if the consumer can be expected to read it (`_must_get_more`).
        """
        unread = []
        for partition in sorted(partitions):
            position = consumer.positions[partition]
            end = self.invariants.history(partition).committed_end
            if self._must_get_more(partition, position):
                unread.append(f"{consumer.name} has read {partition} to {position} of {end}")
        return unread

    def _must_get_more(self, partition: TopicPartition, position: int) -> bool:
        """Return True if a consumer at `position` must still get a record of a partition.

        The run waits for it. None must come from records that compaction may have removed, or that
        cannot be committed.
        """
        history = self.invariants.history(partition)
        readable = readable_end(partition, self.nodes, self.invariants)
        end = history.committed_end if readable is None else min(readable, history.committed_end)
        if position >= end or history.excuse is not None:
            return False
        keys, start = history.keys, max(position, history.required_start)
        return (
            keys is None or keys.missing_last_record((), start, end, self.loop.now_ms) is not None
        )


def _start_fault_call(injector: Injector, fault: Fault) -> Callable[[], None]:
    """Return the call that starts a fault; a lambda in the loop would use the last fault."""
    return lambda: injector.perform(fault)


def run_plan(plan: Plan, *, is_traced: bool = False) -> RunResult:
    """Run a plan in a new simulation; return the result."""
    with postpone_collection():
        return Simulation(plan, is_traced=is_traced).run()


@contextmanager
def postpone_collection() -> Iterator[None]:
    """Postpone garbage collection to the end of a run.

    Coroutines of killed processes would otherwise run their `finally` blocks during other events,
    or report on stderr. Objects from before the run are not scanned again. Objects that the caller
    has frozen stay frozen, and so do all others that are alive then: Python unfreezes only all.
    """
    gc_was_on, hook = gc.isenabled(), sys.unraisablehook
    disabled_level = logging.root.manager.disable
    has_frozen = gc.get_freeze_count() > 0
    gc.disable()
    if has_frozen:
        gc.collect()
    gc.freeze()
    sys.unraisablehook = lambda _: None
    try:
        yield
    finally:
        logging.disable(logging.CRITICAL)
        for _ in range(_COLLECTIONS):
            gc.collect()
        if not has_frozen:
            gc.unfreeze()
        logging.disable(disabled_level)
        sys.unraisablehook = hook
        if gc_was_on:
            gc.enable()
