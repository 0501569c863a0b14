"""A process that is brokers and nothing else: its loop, its signals, its end.

| signal | |
|---|---|
| SIGTERM, SIGINT | brokers stopped in order; a second one ends the process at once |
| SIGUSR2 | the same as part of a whole cluster's stop: no leaders are moved |
| SIGUSR1 | a cluster's process looks for a request (`requests.py`), a broker's does as it says |

After a second signal the next start recovers. So it does after a broken rule of the engine's own,
wherever it is met: in a handler, an effect, a timer or a task. The state of the brokers is wrong
then, and a clean end would store it.
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
#: How often it is looked for the process that started this one.
_STARTER_POLL_MS = 250
#: After a start of so long it is looked whether the controller is refused: a broker is informed
#: within some ms.
_REFUSAL_POLL_MS = 2_000
#: Internal error, as the commands have it.
_EXIT_BROKEN = 70
_log = logging.getLogger("kafka.cluster")
T = TypeVar("T")


class ServedBrokers(Protocol):
    """The brokers that a process runs."""

    @property
    def brokers(self) -> Sequence[Broker]:
        """Return the brokers of this process; of a cluster in processes there are none."""
        ...

    def stop_with_all(self) -> None:
        """Wait for no leaders to move: the whole cluster stops."""
        ...

    async def close(self) -> None:
        """Stop everything."""
        ...


S = TypeVar("S", bound=ServedBrokers)
#: Opens what a process runs; what it is given is told when one of its brokers cannot go on.
Opening: TypeAlias = Callable[[Callable[[str], None]], PromiseCoroutine[S]]


class BrokerGaveUp(EngineError):
    """A broker could not go on, and was stopped as far as that was possible."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the broker stopped: {reason}")
        self.reason = reason


class Process:
    """The event loop of a process, with the clock, files and network of its brokers."""

    def __init__(self, files: Files | None = None, *, is_read_only: bool = False) -> None:
        """Create loop, network and clock; `files` are those of the file system by default."""
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
        self.loop.on_faults(self._fault)

    def run(
        self,
        opening: Opening[S],
        on_ready: Callable[[S], None],
        on_poll: Callable[[], None] | None = None,
    ) -> None:
        """Open brokers, serve until a signal, and stop them; raises the errors of the opening.

        `on_ready` runs once, when every broker knows the cluster; `on_poll` at each signal for a
        request. Raises BrokerGaveUp when a broker could not continue.
        """
        try:
            served = self._finish(opening(self._give_up))
            self._served = served
            try:
                # Who gave up while it started serves nobody.
                if self._failure is None:
                    self._serve(served, partial(on_ready, served), on_poll)
            finally:
                self._finish(served.close())
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
        """End this process when the process that started it is gone, while `is_wanted`.

        Checked periodically. The end is that of a kill: the next start recovers. `before_end` kills
        further processes that must end too.
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
        """Run the event loop, with its signal handlers, until the process has to end.

        `on_ready` is called once the controller's metadata has arrived, `on_poll` at a signal.
        """
        self.loop.on_signals(self._signalled)
        self.loop.on_signals(self._stop_with_all, (STOP_WITH_ALL_SIGNAL,))
        if on_poll is not None:
            self.loop.on_signals(on_poll, (POLL_SIGNAL,))
        when_informed(served.brokers, on_ready)
        if served.brokers:
            CompiledWalkLoader(self.loop, self.clock, start_compiler).begin()
        # What was loaded stays: without it a collection has only requests to look at. What little
        # of it is garbage is not worth the time of a look, which is part of every start.
        garbage = Garbage(gc, self.loop, self.clock)
        garbage.begin()
        try:
            self.loop.run()
        finally:
            garbage.end()

    def _finish(self, work: PromiseCoroutine[T]) -> T:
        """Turn the loop until work is done that may wait for a metadata store elsewhere."""
        promise = drive(work)
        if not promise.is_kept:
            promise.watch(self.loop.stop)
        while not promise.is_kept:
            # A caller that gives up stops the loop too.
            self.loop.run()
        return promise.result()

    def _give_up(self, reason: str) -> None:
        """Log why a broker cannot go on, keep the reason, and stop the loop."""
        _log.critical("%s", reason)
        self._failure = reason
        self.loop.stop()

    def _fault(self, error: BaseException) -> None:
        """End the process at once for a broken rule; any other fault is logged only.

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

    def _signalled(self) -> None:
        """Begin a clean stop; a second signal ends the process at once."""
        if self._is_stopping:
            _log.warning("a second signal: ending at once, the next start recovers")
            os._exit(_EXIT_KILLED)
        self._is_stopping = True
        _log.info("stopping")
        self.loop.stop()

    def _stop_with_all(self) -> None:
        """Stop without moving leaders: all brokers of the cluster stop."""
        if self._served is not None:
            self._served.stop_with_all()
        self._is_stopping = True
        _log.info("stopping with the whole cluster")
        self.loop.stop()


def give_up_if_refused(
    process: Process,
    brokers: Sequence[Broker],
    is_wanted: Callable[[], bool],
    give_up: Callable[[str], None],
) -> None:
    """Give up a start whose brokers deny the controller's requests, and so get no metadata.

    Checked after a while, and not at a request that a stranger sends as the broker begins to
    listen.
    """

    def poll() -> None:
        """Give up if an authorizer denies the controller; otherwise check again later."""
        if not is_wanted():
            return
        for broker in brokers:
            principal = None if broker.rules is None else broker.rules.authorizer.refused_controller
            if principal is not None:
                give_up(refusal_text(principal))
                return
        poll_later(_STARTER_POLL_MS)

    def poll_later(wait_ms: int) -> None:
        process.loop.call_at(process.clock.monotonic_ms() + wait_ms, poll)

    poll_later(_REFUSAL_POLL_MS)


def refusal_text(principal: str) -> str:
    """Return why a broker cannot join a cluster whose brokers have this principal."""
    return (
        f"the authorizer denies requests of other brokers, which are {principal}: name it in "
        "super.users, or allow it ClusterAction on the cluster"
    )


def when_informed(brokers: Sequence[Broker], action: Callable[[], None]) -> None:
    """Run once when every broker knows itself and the controller, at once without any broker."""
    missing = {broker.broker_id for broker in brokers}

    def check(broker: Broker, _topics: frozenset[str] = frozenset()) -> None:
        """Run the action once the last broker knows the controller and its own registration."""
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
