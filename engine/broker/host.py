"""The machine and process that a broker runs in, as ports."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from engine.host.http import Http
from engine.host.lock_file import LockHeld, lock_file
from engine.host.network_links import PlaceLinks
from engine.host.parallel import RunAll, run_in_order
from engine.host.ports import Clock, Entropy, Files, Network, SideProcess, Timers, Workers
from engine.host.turns import never, no_time
from engine.log.directory.log_directory import DirectoryLock, LogDirectoryLocked


class BrokerHost(NamedTuple):
    """The ports of a broker.

    `name` returns the advertised host if none is configured; it may take a DNS look-up.
    """

    clock: Clock
    files: Files
    network: Network
    timers: Timers
    entropy: Entropy
    lock: DirectoryLock
    name: Callable[[], str]
    #: Creates a pool with this number of worker threads.
    workers: Callable[[int], Workers]
    #: Whether clients may only read: the logs belong to another broker.
    is_read_only: bool = False
    #: Starts a module of this installation as a separate process; None if that is not possible.
    start_process: Callable[[str], SideProcess] | None = None
    #: Runs independent functions, possibly in parallel.
    run_all: RunAll = run_in_order
    #: Returns True if work in several turns of the loop has to yield before its share of time is
    #: over.
    ends_early: Callable[[], bool] = never
    #: The links to other brokers and the metadata store with injected faults; None without faults.
    links: PlaceLinks | None = None
    #: Whether brokers in this process exchange encoded messages in place of objects.
    encodes_local_messages: bool = False
    #: Returns a monotonic time in ns, to measure handlers; by default all work counts as 0.
    work_ns: Callable[[], int] = no_time
    #: HTTP client for the keys of access tokens; None without one.
    http: Http | None = None


def real_directory_lock() -> DirectoryLock:
    """Return a function that locks a log directory against other processes, by a file in it."""

    def lock(path: str) -> Callable[[], None]:
        """Lock a log directory and return the function that releases it.

        Raise LogDirectoryLocked.
        """
        try:
            return lock_file(path)
        except LockHeld as error:
            raise LogDirectoryLocked(path) from error

    return lock
