"""The machine that a broker runs on, as ports."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from engine.host.http import Http
from engine.host.lock_file import LockHeld, acquire
from engine.host.network_links import PlaceLinks
from engine.host.parallel import RunAll, run_in_order
from engine.host.ports import Clock, Entropy, Files, Network, SideProcess, Timers, Workers
from engine.host.turns import never, no_time
from engine.log.directory.log_directory import DirectoryLock, LogDirectoryLocked


class BrokerHost(NamedTuple):
    """Everything outside of the process.

    `name` is the advertised host where none is configured; it may take a look-up.
    """

    clock: Clock
    files: Files
    network: Network
    timers: Timers
    entropy: Entropy
    lock: DirectoryLock
    name: Callable[[], str]
    #: Makes so many threads on a worker thread.
    workers: Callable[[int], Workers]
    #: Whether clients may only read: another broker owns the logs.
    is_read_only: bool = False
    #: Starts a module of this installation as a separate process; None: there are none.
    start_process: Callable[[str], SideProcess] | None = None
    #: Runs works that have nothing to do with each other.
    run_all: RunAll = run_in_order
    #: Whether work in several turns of the loop is to let others go before its time is over.
    ends_early: Callable[[], bool] = never
    #: The links to other brokers and to the metadata store, with their faults; None: without any.
    links: PlaceLinks | None = None
    #: Whether brokers of this process exchange bytes, encoded and decoded, in place of messages.
    encodes_local_messages: bool = False
    #: A clock of nanoseconds, to measure the work of handlers by; without one all are free.
    work_ns: Callable[[], int] = no_time
    #: Web servers, for the keys of access tokens; None: there are none.
    http: Http | None = None


def real_directory_lock() -> DirectoryLock:
    """Return the lock of log directories among the processes of this machine."""

    def lock(path: str) -> Callable[[], None]:
        """Lock a log directory and return its release; raise LogDirectoryLocked."""
        try:
            return acquire(path)
        except LockHeld as error:
            raise LogDirectoryLocked(path) from error

    return lock
