"""A process that only runs brokers: its loop, its signals, its end.

| signal | effect |
|---|---|
| SIGTERM, SIGINT | controlled shutdown of the brokers; a second signal ends the process at once |
| SIGUSR2 | the same, but no leaderships are moved: the whole cluster stops |
| SIGUSR1 | the process reads and executes a request (`requests.py`) |

After a second signal the next start recovers. It also does after a broken invariant, in a handler,
an effect, a timer or a task: the state of the brokers is wrong then, and a clean stop would store
it.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from engine.broker.broker import Broker
from engine.broker.host import BrokerHost, real_directory_lock
from engine.cluster.halts import LIFE_BEGINS
from engine.errors import EngineError
from engine.host.coroutine import PromiseCoroutine, drive
from engine.host.descriptors import connections_below, raise_descriptor_limit
from engine.host.event_loop import EventLoop
from engine.host.garbage import Garbage
from engine.host.network_links import PlaceLinks
from engine.host.parallel import run_in_threads
from engine.host.ports import Files
from engine.host.processes import POLL_SIGNAL, STOP_WITH_ALL_SIGNAL
from engine.host.real import RealClock, RealEntropy, RealFiles, work_ns
from engine.host.real_http import RealHttp
from engine.host.real_network import RealNetwork, local_host_name
from engine.host.real_workers import ThreadWorkers
from engine.host.side_process import PipedProcess
from engine.native.compiled_walk import CompiledWalkLoader, start_compiler

_EXIT_KILLED = 137
#: Interval of the checks for the process that started this one.
_STARTER_POLL_MS = 250
#: How long after a start it is checked whether the controller is denied: a broker gets metadata
#: within some ms.
_REFUSAL_POLL_MS = 2_000
#: Exit code for an internal error, as for commands.
_EXIT_BROKEN = 70
_log = logging.getLogger("kafka.cluster")
T = TypeVar("T")


class ServedBrokers(Protocol):
    """The brokers that a process runs."""

    @property
    def brokers(self) -> Sequence[Broker]:
        """The brokers in this process; empty if each has its own process."""
        ...

    def stop_with_all(self) -> None:
        """Prepare to stop without moving leaderships, because the whole cluster stops."""
        ...

    async def close(self) -> None:
        """Stop all brokers."""
        ...


S = TypeVar("S", bound=ServedBrokers)
#: Opens the brokers of a process; its argument is called when a broker cannot continue.
Opening: TypeAlias = Callable[[Callable[[str], None]], PromiseCoroutine[S]]


class BrokerGaveUp(EngineError):
    """A broker could not continue, and was stopped as far as possible."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the broker stopped: {reason}")
        self.reason = reason


class Process:
    """The event loop of a process, with the clock, files and network of its brokers."""

    def __init__(self, files: Files | None = None, *, is_read_only: bool = False) -> None:
        """Create the loop, network and clock of a process that serves brokers.

        `files` are those of the file system by default.
        """
        self.clock = RealClock()
        self.files = files or RealFiles()
        self.loop = EventLoop()
        descriptors_max = raise_descriptor_limit()
        _log.info(
            f"%d {LIFE_BEGINS} %d",
            descriptors_max,
            connections_below(descriptors_max),
        )
        self.network = RealNetwork(self.loop, self.clock, descriptors_max=descriptors_max)
        entropy = RealEntropy()
        #: Network faults between brokers, and between brokers and the metadata store, as commands
        #: set them.
        self.links = PlaceLinks(self.loop, self.clock, entropy)
        self.host = BrokerHost(
            self.clock,
            self.files,
            self.network,
            self.loop,
            entropy,
            real_directory_lock(),
            local_host_name,
            ThreadWorkers,
            is_read_only,
            PipedProcess,
            run_in_threads,
            links=self.links,
            work_ns=work_ns,
            http=RealHttp(),
        )
        #: Why a broker cannot continue: `run` raises it at its end. None while all brokers can.
        self._failure: str | None = None
        #: Whether a stop has begun: later signals do not begin another.
        self._is_stopping = False
        #: The brokers that the process serves; None before they are open.
        self._served: ServedBrokers | None = None
        self.loop.handle_faults(self._on_fault)

    def run(
        self,
        opening: Opening[S],
        on_ready: Callable[[S], None],
        on_poll: Callable[[], None] | None = None,
    ) -> None:
        """Open brokers, serve until a signal, and stop them; raises the errors of the opening.

        `on_ready` runs once, when every broker has metadata; `on_poll` at each signal for a
        request.
        Raises BrokerGaveUp if a broker could not continue.
        """
        try:
            served = self._run_until_kept(opening(self._on_fatal))
            self._served = served
            try:
                # A broker that gave up during the start is not served.
                if self._failure is None:
                    self._serve(served, partial(on_ready, served), on_poll)
            finally:
                self._run_until_kept(served.close())
        finally:
            self.network.close()
            self.loop.close()
        if self._failure is not None:
            raise BrokerGaveUp(self._failure)

    def end_without(
        self,
        starter_pid: int,
        is_wanted: Callable[[], bool],
        before_end: Callable[[], None] | None = None,
    ) -> None:
        """End this process once the process that started it has ended, while `is_wanted()`.

        This is checked periodically. This process ends as if it was killed: the next start
        recovers. `before_end` kills further processes that must end too.
        """
        if not is_wanted():
            return
        if os.getppid() != starter_pid:
            _log.critical("process %d, which started this one, is gone", starter_pid)
            if before_end is not None:
                before_end()
            logging.shutdown()
            os._exit(_EXIT_KILLED)
        due_ms = self.clock.monotonic_ms() + _STARTER_POLL_MS
        self.loop.call_at(due_ms, lambda: self.end_without(starter_pid, is_wanted, before_end))

    def _serve(
        self,
        served: ServedBrokers,
        on_ready: Callable[[], None],
        on_poll: Callable[[], None] | None,
    ) -> None:
        """Run the event loop, with its signal handlers, until the process must end.

        `on_ready` is called once the brokers have metadata, `on_poll` at a signal.
        """
        self.loop.handle_signals(self._on_stop_signal)
        self.loop.handle_signals(self._stop_with_all, (STOP_WITH_ALL_SIGNAL,))
        if on_poll is not None:
            self.loop.handle_signals(on_poll, (POLL_SIGNAL,))
        call_when_informed(served.brokers, on_ready)
        if served.brokers:
            CompiledWalkLoader(self.loop, self.clock, start_compiler).begin()
        # Loaded objects are frozen, so that collections only scan objects of requests. They contain
        # little garbage, which is not worth a collection in every start.
        garbage = Garbage(gc, self.loop, self.clock)
        garbage.start()
        try:
            self.loop.run()
        finally:
            garbage.stop()

    def _run_until_kept(self, work: PromiseCoroutine[T]) -> T:
        """Run the loop until `work` is complete, and return its result.

        It may wait for a remote metadata store.
        """
        promise = drive(work)
        if not promise.is_kept:
            promise.watch(self.loop.stop)
        while not promise.is_kept:
            # `_on_fatal` stops the loop too.
            self.loop.run()
        return promise.result()

    def _on_fatal(self, reason: str) -> None:
        """Log and keep the reason why a broker cannot continue, and stop the loop."""
        _log.critical("%s", reason)
        self._failure = reason
        self.loop.stop()

    def _on_fault(self, error: BaseException) -> None:
        """End the process at once for a broken invariant; log any other exception of a callback.

        Source: D22; Kafka's Exit.halt.
        """
        if not isinstance(error, AssertionError):
            _log.error("a callback failed: %r", error, exc_info=error)
            return
        _log.critical("a rule is broken, the next start recovers: %r", error, exc_info=error)
        for broker in () if self._served is None else self._served.brokers:
            _log.critical("%s", broker.state_text())
        logging.shutdown()
        os._exit(_EXIT_BROKEN)

    def _on_stop_signal(self) -> None:
        """Begin a clean stop at the first signal; end the process at once at the second."""
        if self._is_stopping:
            _log.warning("a second signal: ending at once, the next start recovers")
            os._exit(_EXIT_KILLED)
        self._is_stopping = True
        _log.info("stopping")
        self.loop.stop()

    def _stop_with_all(self) -> None:
        """Begin a stop without moving leaderships at a signal, because the whole cluster stops."""
        if self._served is not None:
            self._served.stop_with_all()
        self._is_stopping = True
        _log.info("stopping with the whole cluster")
        self.loop.stop()


def watch_for_refusal(
    process: Process,
    brokers: Sequence[Broker],
    is_wanted: Callable[[], bool],
    give_up: Callable[[str], None],
) -> None:
    """Check regularly whether the brokers deny the controller's requests, and return at once.

    Then they get no metadata: `give_up` is called with the reason, and the checks end, as they do
    once `is_wanted()` is False. The first check is late: a request that is denied before could be
    that of another client, sent as soon as the broker listens.
    """

    def poll() -> None:
        """Call `give_up` if an authorizer denies the controller; otherwise check again later."""
        if not is_wanted():
            return
        for broker in brokers:
            principal = None if broker.rules is None else broker.rules.authorizer.refused_controller
            if principal is not None:
                give_up(refusal_text(principal))
                return
        poll_later(_STARTER_POLL_MS)

    def poll_later(wait_ms: int) -> None:
        """Schedule the next check."""
        process.loop.call_at(process.clock.monotonic_ms() + wait_ms, poll)

    poll_later(_REFUSAL_POLL_MS)


def refusal_text(principal: str) -> str:
    """Return why a broker cannot join a cluster whose brokers authenticate as this principal."""
    return (
        f"the authorizer denies requests of other brokers, which are {principal}: name it in "
        "super.users, or allow it ClusterAction on the cluster"
    )


def call_when_informed(brokers: Sequence[Broker], action: Callable[[], None]) -> None:
    """Call `action` once every broker's metadata has the controller and the broker itself.

    It is called at once if there are no brokers.
    """
    missing = {broker.broker_id for broker in brokers}

    def check(broker: Broker, _topics: frozenset[str] = frozenset()) -> None:
        """Call the action if this broker is the last one whose metadata gets complete."""
        cache = broker.metadata_cache
        is_informed = cache.controller_id is not None and cache.is_alive(broker.broker_id)
        if is_informed and broker.broker_id in missing:
            missing.discard(broker.broker_id)
            if not missing:
                action()

    if not missing:
        action()
    for broker in brokers:
        broker.metadata_cache.on_update(partial(check, broker))
        check(broker)
