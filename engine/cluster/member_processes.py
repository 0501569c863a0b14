"""Brokers of a cluster in separate processes, started by the process that has the store.

```
open    processes left by an earlier supervisor are kept if they use the right store address;
        all other brokers are started in parallel
start   end the session of the former process ── `python -m engine.cluster DIR ID …`
        ── wait until it has written its address
stop    SIGTERM: leaderships are moved first ── wait until its lock is free
close   SIGUSR2 to all: no leaderships are moved ── wait until all locks are free
```

A process that ends unexpectedly is reported in the log, and not restarted: its session with the
store times out, like that of any broker.

Source: D8.
Differs: a Kafka broker that is restarted within its session time-out fails, because its id is in
use. Here the process is known to have ended.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from functools import partial

from engine.broker.broker import Broker
from engine.cluster.broker_processes import (
    BrokerState,
    process_state,
    running_processes,
)
from engine.cluster.cluster import MetadataStore
from engine.cluster.data_directory import DataDirectory, RunningBroker
from engine.cluster.plan import ClusterPlan
from engine.cluster.process import Process
from engine.cluster.process_log import log_size, read_last_error
from engine.cluster.requests import ClusterRequest
from engine.errors import EngineError
from engine.host import processes
from engine.host.coroutine import wait_until
from engine.host.fork_server import ForkServer, ForkServerGone
from engine.host.link_faults import LinkFaults
from engine.host.lock_file import is_held
from engine.host.processes import Started
from engine.json_text import JsonObject
from engine.znode.paths import broker_path

_log = logging.getLogger("kafka.cluster")
_PROGRAM = "engine.cluster"
_POLL_MS = 10
#: Interval of the checks for processes that ended unexpectedly.
_CHECK_INTERVAL_MS = 500


class BrokerDidNotStart(EngineError):
    """The process of a broker ended before it was ready."""

    def __init__(self, broker_id: int, reason: str, hint: str | None) -> None:
        super().__init__(f"broker {broker_id} did not start: {reason}")
        self.hint = hint
        self.broker_id = broker_id
        self.reason = reason


class MemberProcesses:
    """Starts, stops and watches the processes of brokers; see `request_handler.Members`."""

    def __init__(
        self,
        process: Process,
        data: DataDirectory,
        plan: Callable[[], ClusterPlan],
        store: MetadataStore,
        store_address: Callable[[int], str],
        forks: ForkServer | None = None,
    ) -> None:
        """Create the container of the brokers' processes; none is started.

        `store_address` makes the store listen for a broker, and returns the address. `forks` starts
        the processes; without it each loads its modules. `plan` returns the cluster's present plan.
        """
        self._forks = forks
        self._process = process
        self._data = data
        self._plan = plan
        self._store = store
        self._store_address = store_address
        #: Process id of each broker that is running or stopping.
        self._pids: dict[int, int] = {}
        #: Processes that this one has started and must reap; others were started by an earlier
        #: supervisor.
        self._own_pids: set[int] = set()
        #: The last port of each broker, by id: a restarted broker listens there again.
        self._ports: dict[int, str] = {}
        #: Cancels the timer of the next check for ended processes.
        self._cancel: Callable[[], None] = lambda: None

    @property
    def brokers(self) -> Sequence[Broker]:
        """Empty: the brokers are in other processes."""
        return ()

    def stop_with_all(self) -> None:
        """Do nothing: `close` stops all brokers without moving leaderships anyway."""

    def addresses(self) -> dict[int, str]:
        """Return the addresses of running brokers for clients by id, including paused ones."""
        return {
            broker_id: running.address
            for broker_id, running in running_processes(self._data, self._plan()).items()
            if running.address is not None
        }

    async def open(self) -> MemberProcesses:
        """Start all brokers that do not run; if one does not start, stop all.

        Processes of an earlier supervisor are adopted.
        """
        try:
            for broker_id, running in running_processes(self._data, self._plan()).items():
                await self._adopt(broker_id, running)
            started = {
                broker_id: await self._spawn(broker_id)
                for broker_id in self._plan().broker_ids()
                if broker_id not in self._pids
            }
            for broker_id, (process, log_end) in started.items():
                await self._await_ready(broker_id, process, log_end)
        except BaseException:
            await self.close()
            raise
        self._poll_later()
        return self

    async def _adopt(self, broker_id: int, running: RunningBroker) -> None:
        """Adopt a broker process that outlived the previous supervisor.

        It is stopped instead if it uses another address of the store.
        """
        self._pids[broker_id] = running.pid
        if running.zookeeper == self._store_address(broker_id) and running.address is not None:
            self._ports[broker_id] = running.address.rpartition(":")[2]
            # Network faults ended with the earlier supervisor: the process checks them.
            processes.request_poll(running.pid)
            _log.info("broker %d goes on, process %d", broker_id, running.pid)
            return
        processes.stop_with_all(running.pid)
        await self._await_end(broker_id)

    async def start_again(self, broker_id: int) -> None:
        """Start a broker that does not run; return once it has cluster metadata."""
        await self._await_ready(broker_id, *await self._spawn(broker_id))

    async def _spawn(self, broker_id: int) -> tuple[Started, int]:
        """Start a broker's process; return it with the size of its log before the start."""
        if await self._store.end_owning_session(broker_path(broker_id)):
            _log.info("broker %d: the session of its earlier process is over", broker_id)
        log_path = self._data.broker_log_path(broker_id)
        log_bytes = log_size(self._process.files, log_path)
        started = self._start(broker_id, log_path)
        self._pids[broker_id] = started.pid
        self._own_pids.add(started.pid)
        _log.info("broker %d: process %d", broker_id, started.pid)
        return started, log_bytes

    def _start(self, broker_id: int, log_path: str) -> Started:
        """Return a new process of a broker, forked from one with loaded modules if possible."""
        arguments = (
            self._data.path,
            str(broker_id),
            self._store_address(broker_id),
            self._ports.get(broker_id, "0"),
        )
        if self._forks is not None:
            try:
                return self._forks.spawn((*arguments, str(self._forks.pid)), log_path)
            except ForkServerGone as error:
                _log.warning("%s: brokers start as new processes", error)
                self._forks = None
        command = processes.python_command(_PROGRAM, *arguments, str(os.getpid()))
        return processes.start_detached(command, log_path)

    async def _await_ready(self, broker_id: int, started: Started, log_bytes: int) -> None:
        """Wait until a broker's process reports its port; raises BrokerDidNotStart if it ends."""
        outputs: list[bytes] = []

        def has_output() -> bool:
            """Return True once the process has reported its port, or ended with empty output."""
            text = started.poll_ready()
            if text is not None:
                outputs.append(text)
            return text is not None

        await wait_until(has_output, self._process.loop, self._process.clock, period_ms=_POLL_MS)
        if not outputs[0]:
            await self._await_end(broker_id)
            path = self._data.broker_log_path(broker_id)
            raise BrokerDidNotStart(
                broker_id, *read_last_error(self._process.files, path, log_bytes)
            )
        self._ports[broker_id] = outputs[0].decode().strip().rpartition(":")[2]

    async def stop(self, broker_id: int) -> None:
        """Stop a broker, which moves its leaderships first; return when its process has ended."""
        _, running = process_state(self._data, broker_id)
        if running is not None:
            processes.terminate(running.pid)
            processes.resume(running.pid)
        await self._await_end(broker_id)

    async def carry_out(self, request: ClusterRequest) -> dict[int, list[JsonObject]]:
        """Send a request to all running brokers at once; return the rows of each response.

        A broker that is killed or paused meanwhile has no response.
        """
        requested = []
        for broker_id in self._plan().broker_ids():
            state, running = process_state(self._data, broker_id)
            if running is None or state is not BrokerState.RUNNING:
                _log.info("broker %d is %s and is not asked", broker_id, state.value)
                continue
            path = self._data.member_request_path(broker_id)
            self._data.write_message(path, request.as_message())
            processes.request_poll(running.pid)
            requested.append(broker_id)
        answers: dict[int, list[JsonObject]] = {}
        for broker_id in requested:
            is_done = partial(self._read_response, broker_id, request.number, answers)
            await wait_until(is_done, self._process.loop, self._process.clock, period_ms=_POLL_MS)
        return answers

    def _read_response(
        self, broker_id: int, number: int, answers: dict[int, list[JsonObject]]
    ) -> bool:
        """Store a broker's response in `answers`; return True if it is there, or none will come."""
        response = self._data.read_message(self._data.member_response_path(broker_id))
        if response is not None and response.get("number") == number:
            answers[broker_id] = list(response.get("logs", ()))
            return True
        return process_state(self._data, broker_id)[0] is not BrokerState.RUNNING

    async def close(self) -> None:
        """Stop all brokers together, without moving leaderships."""
        self._cancel()
        # A complete stop must not wait for delayed links.
        self._process.links.set_faults(LinkFaults())
        for pid in self._pids.values():
            processes.stop_with_all(pid)
        for broker_id in tuple(self._pids):
            await self._await_end(broker_id)

    async def _await_end(self, broker_id: int) -> None:
        """Wait until the broker's process has ended, without a time limit."""
        pid = self._pids.pop(broker_id, None)
        await wait_until(
            lambda: self._has_ended(broker_id, pid),
            self._process.loop,
            self._process.clock,
            period_ms=_POLL_MS,
        )

    def _has_ended(self, broker_id: int, pid: int | None) -> bool:
        """Return True if a broker's process has ended; reap it if this process started it."""
        if pid in self._own_pids:
            if processes.is_running(pid):
                return False
            self._own_pids.discard(pid)
        return not is_held(self._data.broker_lock_path(broker_id))

    def _poll_later(self) -> None:
        """Schedule the next check for processes that have ended."""
        due_ms = self._process.clock.monotonic_ms() + _CHECK_INTERVAL_MS
        self._cancel = self._process.loop.call_at(due_ms, self._poll)

    def _poll(self) -> None:
        """Log the processes that have ended unexpectedly, and schedule the next check."""
        try:
            for broker_id, pid in tuple(self._pids.items()):
                if self._has_ended(broker_id, pid):
                    del self._pids[broker_id]
                    state, _ = process_state(self._data, broker_id)
                    if state is BrokerState.CRASHED:
                        _log.error("broker %d: process %d is gone", broker_id, pid)
        finally:
            self._poll_later()
