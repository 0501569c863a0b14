"""The process of a cluster: `python -m engine.cluster DIRECTORY` runs the plan in that directory.

`python -m engine.cluster DIRECTORY PID` ends when process PID, which started it, has ended.
`python -m engine.cluster DIRECTORY ID STORE PORT PID` runs one broker of it for process PID: the
metadata store listens at STORE, and PORT is the broker's last port, 0 for any.
`python -m engine.cluster --forks` forks clusters for the process that started it (`warm_process`).

`kctl cluster start` runs this module instead of `kctl`, which would load the command line again.
Brokers in separate processes are forks of this process, made before it runs anything else.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence

from engine.cluster.warm_process import FORKS


def main(path: str, *arguments: str) -> int:
    """Run the cluster of a data directory, or one broker of it, until a signal.

    Returns the process's exit code. With the path `FORKS`, starts clusters on request instead.
    """
    # Hundreds of modules are loaded and none is freed: garbage collection would cost a tenth of the
    # start. The process enables it once it serves.
    gc.disable()
    from engine.cluster.run import log_to_stderr

    log_to_stderr()
    if path == FORKS:
        from engine.host.fork_server import serve_forks

        _load_for_members()
        serve_forks(lambda arguments: _run_reporting(lambda: _run_cluster(*arguments)))
    if len(arguments) > 1:
        return _run_member((path, *arguments))
    return _run_reporting(lambda: _run_cluster(path, *arguments))


def _run_cluster(path: str, owner_pid: str | None = None) -> int:
    """Run the cluster of a data directory until it is stopped; return the exit code.

    With `owner_pid` it ends when that process has ended.
    """
    from engine.cluster.data_directory import DataDirectory
    from engine.cluster.run import ClusterLife, run_cluster
    from engine.host.fork_server import start_fork_server
    from engine.host.real import RealFiles

    data = DataDirectory(RealFiles(), path)
    plan = data.plan()
    if plan is None:
        sys.stderr.write(f"error: there is no cluster in {path}\n")
        return 1
    forks = None
    if plan.is_in_processes:
        _load_for_members()
        forks = start_fork_server(_run_member)
    run_cluster(data, plan, None, ClusterLife(None if owner_pid is None else int(owner_pid), forks))
    return 0


def _load_for_members() -> None:
    """Load the modules that only brokers in separate processes need, before they are forked."""
    from engine.znode import kazoo_client  # noqa: F401


def _run_member(arguments: Sequence[str]) -> int:
    """Run one broker of a cluster; `arguments` are those of the process, the path first."""
    from engine.cluster.data_directory import DataDirectory
    from engine.cluster.run import Member, run_member
    from engine.host.real import RealFiles

    path, broker_id, znode_address, port, starter_pid = arguments
    member = Member(int(broker_id), znode_address, int(port), int(starter_pid))

    def run() -> int:
        """Run the broker until it is stopped; return the exit code 0."""
        run_member(DataDirectory(RealFiles(), path), member)
        return 0

    return _run_reporting(run)


def _run_reporting(run: Callable[[], int]) -> int:
    """Run a function and return its exit code; after an EngineError, print it and return 1."""
    from engine.errors import EngineError

    try:
        return run()
    except EngineError as error:
        sys.stderr.write(f"error: {error}\n")
        if error.hint:
            sys.stderr.write(f"hint: {error.hint}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
