"""A process that has loaded the modules of a cluster, and is forked to start clusters fast.

The first cluster waits until the modules are loaded, later ones start in a fraction of that time.
The process ends with the process that started it, and its forked clusters end with it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from engine.host.fork_server import ForkServer, ForkServerGone, launch_fork_server
from engine.host.processes import Started, python_command

# Callers warm up first, and load their own modules meanwhile.
if TYPE_CHECKING:
    from engine.cluster.data_directory import DataDirectory

#: Argument instead of a directory: fork clusters.
FORKS: Final = "--forks"
#: Warm processes by the pid of their owner: a fork of the owner needs another one.
_servers: dict[int, ForkServer] = {}


def warm_up() -> None:
    """Start the process from which clusters are forked, unless it runs; raises StorageError."""
    if os.getpid() not in _servers:
        _servers[os.getpid()] = launch_fork_server(python_command("engine.cluster", FORKS))


def cool_down() -> None:
    """End the process from which clusters are forked, if there is one, and its clusters."""
    server = _servers.pop(os.getpid(), None)
    if server is not None:
        server.close()


def start_warm(data: DataDirectory) -> Started:
    """Start the process of a cluster that ends with this process; raises StorageError."""
    from engine.cluster.daemon import start_program

    warm_up()
    server = _servers[os.getpid()]
    try:
        return server.spawn((data.path, str(server.pid)), data.log_path)
    except ForkServerGone:
        # The log has the reason of its end, and the errors of clusters that do not start.
        cool_down()
        return start_program(data, str(os.getpid()))
