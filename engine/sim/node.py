"""A broker and its supervisor, which restarts the process when it ends.

```
down ── start ──> opening ──> up ── stop ──> stopping ──> down
         ^           │ fails   │ kill, power cut, gives up
         └── later ──┴─────────┘
```

Source: an init system's `Restart=always`.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol

from engine.broker.broker import Broker
from engine.broker.host import BrokerHost
from engine.config.settings import BrokerSettings
from engine.host.coroutine import PromiseCoroutine, drive
from engine.host.memory import SeededEntropy
from engine.host.promise import Promise
from engine.log.directory.clean_shutdown import FILE_NAME as CLEAN_SHUTDOWN
from engine.log.directory.log_refusals import DuplicateLog
from engine.sim.disks import Disk
from engine.sim.machine import Machine, MachineTimers
from engine.sim.network import SimulatedNetwork
from engine.sim.process import BrokerProcess
from engine.sim.side_files import filled_files
from engine.sim.store import StoreServer
from engine.sim.store_client import SimulatedZnodeClient
from engine.znode.retrying_client import RetryingZnodeClient

BROKER_PORT = 9092
#: Delay of a restart after the end of a process.
RESTART_MS = 1_000
#: Time limit of a controlled shutdown, after which the process is killed.
_STOP_MS_MAX = 30_000
_WORK_MS_MAX = 40
#: Probability that work in several turns of the loop yields to other callbacks.
_SHORT_SHARE = 0.3


class NodeEvents(Protocol):
    """Receives starts and ends of brokers."""

    def record(self, subject: str, text: str) -> None:
        """Add a line to the trace."""
        ...

    def opened(self, node: SimulatedBroker) -> None:
        """Record that a broker has started to serve."""
        ...

    def record_fatal(self, node: SimulatedBroker, reason: str) -> None:
        """Record that a broker reports that it cannot continue."""
        ...

    def record_end(self, node: SimulatedBroker) -> None:
        """Record that a broker has ended, after a controlled stop or a crash."""
        ...

    def may_start(self, node: SimulatedBroker) -> bool:
        """Return True if a broker may start now; otherwise it retries later."""
        ...

    def record_lost_writes(self, node: SimulatedBroker) -> None:
        """Record that a broker's disk lost unsynced writes."""
        ...


class SimulatedBroker:
    """One broker on its machine, with its disk."""

    def __init__(
        self,
        broker_id: int,
        machine: Machine,
        network: SimulatedNetwork,
        server: StoreServer,
        settings: dict[str, str],
        *,
        random: Random,
        events: NodeEvents,
        process: BrokerProcess,
    ) -> None:
        """Create the machine's disk; the broker is opened by `start`."""
        self.process = process
        process.nodes.append(self)
        self.log_dirs = tuple(settings["log.dirs"].split(","))
        self.broker_id = broker_id
        self.machine = machine
        self.disk = Disk(machine.clock)
        #: The open broker; None before, and after its end.
        self.broker: Broker | None = None
        self.client: SimulatedZnodeClient | None = None
        #: How many faults keep the broker down, until `allow`.
        self._holds = 0
        self._network = network
        self._server = server
        self._settings = settings
        self._random = random
        self._events = events
        #: Whether a stop of this life has begun; below, whether the broker has reported that it
        #: cannot continue.
        self._is_ending = False
        self._has_given_up = False
        #: The running `Broker.open`.
        self._opening: PromiseCoroutine[Broker] | None = None
        #: Objects of killed lives, referenced for ever: a released coroutine would run its
        #: `finally` blocks, which a killed process does not.
        self._buried: list[object] = []
        #: Small files that were not empty when the power was cut.
        self.filled: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """Return the name of the broker's machine."""
        return self.machine.name

    @property
    def is_up(self) -> bool:
        """Return True if the broker serves requests."""
        return self.broker is not None and self.machine.is_running

    def has_files(self, name: str) -> bool:
        """Return True if any log directory has a folder of this name."""
        return any(self.disk.files.exists(f"{path}/{name}") for path in self.log_dirs)

    def needs_recovery(self, name: str) -> bool:
        """Return True if the next start must recover the log with a folder of this name.

        A process may end before it has opened its logs, and leave them as they were.
        """
        files = self.disk.files
        return any(
            files.exists(f"{path}/{name}") and not files.exists(f"{path}/{CLEAN_SHUTDOWN}")
            for path in self.log_dirs
        )

    def restart_if_directory_is_offline(self) -> None:
        """Restart a broker with an offline log directory, as an operator would."""
        broker = self.broker
        if broker is None or self.machine.is_paused:
            return
        if any(directory.offline for directory in broker.storage.logs.directories):
            self.stop()

    # Lives

    def start(self) -> None:
        """Start a process, unless one is running or a fault keeps the broker down."""
        if self.machine.is_running or self._holds:
            return
        if not self._events.may_start(self):
            self.start_later()
            return
        timers = self.machine.start()
        self.disk.begin_life()
        self._is_ending = self._has_given_up = False
        timeout_ms = int(self._settings["zookeeper.session.timeout.ms"])
        client = self.client = SimulatedZnodeClient(timers, self._server, timeout_ms)
        settings = BrokerSettings(
            {
                "broker.id": str(self.broker_id),
                "listeners": f"PLAINTEXT://{self.name}:{BROKER_PORT}",
                "zookeeper.connect": "store:2181",
                **self._settings,
            }
        )

        def run() -> None:
            """Open the broker in the new process, and watch whether it starts to serve."""
            self._opening = Broker.open(
                settings,
                self._create_host(timers),
                RetryingZnodeClient(client),
                self.process.peers,
                on_fatal=self._on_fatal,
            )
            opening = drive(self._opening)
            opening.watch(lambda: self._on_opened(opening))

        self._events.record(self.name, "starts")
        timers.call_soon(run)

    def _create_host(self, timers: MachineTimers) -> BrokerHost:
        """Create the broker's ports: simulated clock, files, network, timers and randomness."""
        files = self.disk.files
        machine = self.machine

        def lock(path: str) -> Callable[[], None]:
            """Create the lock file; one process per machine needs no real lock."""
            files.open(path, write=True, create=True)
            return lambda: None

        return BrokerHost(
            machine.clock,
            files,
            self._network.port_of(timers),
            timers,
            SeededEntropy(self._random.randrange(1 << 60)),
            lock,
            lambda: machine.name,
            lambda _count: SlowWorkers(timers, self._random),
            ends_early=lambda: self._random.random() < _SHORT_SHARE,
            encodes_local_messages=self.process.encodes_local_messages,
        )

    def _on_opened(self, opening: Promise[Broker]) -> None:
        """Record that the broker is up; if opening failed, end the process and restart it.

        A log that was found in two log directories is removed from one, as an operator would.
        """
        if opening.error is not None:
            self._events.record(self.name, f"does not start: {opening.error}")
            if isinstance(opening.error, DuplicateLog):
                self._remove_copy(opening.error)
            self._end_after_callback()
            return
        self.broker = opening.result()
        self._events.opened(self)
        self._events.record(self.name, f"is up, epoch {self.broker.epoch}")
        if self._has_given_up:
            self.machine.loop.soon(self.stop)

    def _remove_copy(self, duplicate: DuplicateLog) -> None:
        """Remove one of two copies of a log, as the broker's message advises.

        A partition has two copies if it was moved away and back while its log directory was
        offline, or if its move ended by a crash before the old copy was renamed.
        """
        failed = self.disk.failed_last
        if failed and self.disk.has_failed(failed):
            return
        copy = f"{failed}/{duplicate.topic_partition}"
        if not failed:
            copy = min(duplicate.directory, duplicate.other, key=self.disk.folder_bytes)
        self._events.record(self.name, f"the copy {copy} is removed")
        self.disk.remove_folder(copy)

    def _on_fatal(self, reason: str) -> None:
        """Record the reason why the broker cannot continue, and stop its process."""
        self._events.record_fatal(self, reason)
        # Like a real process: the brokers are stopped as far as possible, at the earliest after the
        # start.
        self._has_given_up = True
        self.machine.loop.soon(self.process.stop)

    def _end_after_callback(self) -> None:
        """End the process after the running callback, unless it has ended by then.

        The callback belongs to the broker that ends, and still needs its state.
        """
        life = self.machine.life

        def end() -> None:
            """End the broker, if the life that requested it has not ended."""
            if self.machine.is_alive(life):
                self._leave()

        self.machine.loop.soon(end)

    def _leave(self) -> None:
        """End this broker only, and schedule its restart; other brokers of its process continue."""
        self.end(has_power=True)
        self.start_later()

    def lose_writes(self, *, keeps_nothing: bool) -> None:
        """Lose some or all unsynced changes of the disk, as in a power cut."""
        self.filled = filled_files(self.disk.files, self.log_dirs)
        lost = self.disk.cut_power(self._random, keeps_nothing=keeps_nothing)
        self._events.record(self.name, f"lost {lost} changes of its disk")
        self._events.record_lost_writes(self)

    def end(self, *, has_power: bool) -> None:
        """End this broker now; `BrokerProcess` ends all brokers of a process together."""
        directories = [] if self.broker is None else self.broker.storage.logs.directories
        for directory in directories:
            if directory.offline:
                self.disk.failed_last = directory.path
        if self.client is not None:
            self.client.die()
        # Keep references: a collected coroutine would run its `finally` blocks, which a killed
        # process does not.
        self._buried.append((self.broker, self.client, self._opening))
        self.broker = self.client = None
        self.machine.kill(has_power=has_power)
        self._events.record_end(self)
        listeners = self._network.listeners
        for key in [key for key in listeners if key[0] == self.name]:
            del listeners[key]

    def start_later(self) -> None:
        """Schedule a start after RESTART_MS."""
        loop = self.machine.loop
        loop.at(loop.now_ms + RESTART_MS, self.start)

    def stop(self) -> None:
        """Start a controlled shutdown; the broker restarts later."""
        broker = self.broker
        if broker is None or self._is_ending:
            return
        self._is_ending = True
        life, loop = self.machine.life, self.machine.loop

        def end() -> None:
            """End the process after the controlled shutdown."""
            if self.machine.is_alive(life):
                self._events.record(self.name, "has stopped")
                self._leave()

        def end_late() -> None:
            """Kill the process if the controlled shutdown takes too long."""
            if self.machine.is_alive(life):
                self._events.record(self.name, "does not stop in time")
                self.process.kill()

        def run() -> None:
            """Start the controlled shutdown in the broker's process."""
            drive(broker.stop()).watch(lambda: loop.soon(end))

        self._events.record(self.name, "stops")
        loop.soon(lambda: self.machine.enter(life, run))
        loop.at(loop.now_ms + _STOP_MS_MAX, end_late)

    # Faults that last

    def hold(self) -> None:
        """Prevent restarts of the broker until `allow`."""
        self._holds += 1

    def allow(self) -> None:
        """Undo one `hold`; after the last one, start the broker."""
        self._holds -= 1
        if not self._holds:
            self.start()


class SlowWorkers:
    """Worker threads whose work takes a while; see `engine.host.ports.Workers`."""

    def __init__(self, timers: MachineTimers, random: Random) -> None:
        """Create workers; each work takes a random time."""
        self._timers = timers
        self._random = random
        self._waiting: dict[int, Callable[[], None]] = {}
        self._number = 0

    def submit(self, name: str, work: Callable[[], None]) -> None:
        """Run `work` after a random time, so that works may overtake each other."""
        self._number += 1
        number = self._number
        self._waiting[number] = work
        due_ms = self._timers.clock.monotonic_ms() + self._random.randrange(_WORK_MS_MAX)
        self._timers.call_at(due_ms, lambda: self._run(number))

    def _run(self, number: int) -> None:
        """Run one piece of work, unless `stop` has run it already."""
        work = self._waiting.pop(number, None)
        if work is not None:
            work()

    def stop(self) -> None:
        """Run all waiting work at once."""
        for number in list(self._waiting):
            self._run(number)
