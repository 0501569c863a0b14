"""An embedded cluster in its own folder that exists for the duration of a `with` block."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from engine.cluster import daemon
from engine.cluster.broker_processes import kill_broker
from engine.cluster.data_directory import DataDirectory
from engine.cluster.plan import ClusterPlan
from engine.cluster.requests import Action, request_action
from engine.host.deferred_signals import block_signals
from engine.host.held_file import RealHeldFiles
from engine.host.ports import Clock

_TIMEOUT_S = 300.0


class TemporaryCluster:
    """A cluster that is started by a `with` block and removed at its end."""

    def __init__(
        self, clock: Clock, pause: Callable[[int], None], folder: str, plan: ClusterPlan
    ) -> None:
        """`folder` becomes the data directory; nothing is started before the `with` block."""
        self._clock = clock
        self._pause = pause
        self._files = RealHeldFiles()
        self._data = DataDirectory(self._files, folder)
        self._plan = plan
        #: Empty until the cluster has started.
        self.bootstrap_servers = ""

    @property
    def broker_ids(self) -> list[int]:
        """Return the ids of all brokers."""
        return self._plan.broker_ids()

    def __enter__(self) -> TemporaryCluster:
        """Start the cluster. Errors: those of `daemon.start`."""
        with self._hold_lock():
            daemon.start(self._data, self._files, self._plan, _TIMEOUT_S)
        try:
            self.bootstrap_servers = daemon.status_of(self._data).bootstrap_servers or ""
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop and remove the cluster; signals are blocked, so that nothing remains."""
        with block_signals():
            daemon.stop(self._data, self._clock, _TIMEOUT_S, self._pause)
            with self._hold_lock():
                daemon.destroy(self._data, self._files)

    def kill(self, broker_id: int) -> None:
        """Kill the process of a broker; the plan must give each broker a process."""
        kill_broker(self._data, self._plan, broker_id, self._pause)

    def restart(self, broker_id: int) -> None:
        """Start a killed broker again."""
        with self._hold_lock():
            request_action(
                self._data, Action.RESTART, broker_id, self._clock, _TIMEOUT_S, self._pause
            )

    def _hold_lock(self) -> AbstractContextManager[None]:
        """Return a context manager that holds the lock of commands that start or remove a cluster.

        It waits for the lock on entry; ClusterBusy is raised at the timeout.
        """
        return daemon.hold_start_lock(self._data, self._files, self._clock, _TIMEOUT_S, self._pause)
