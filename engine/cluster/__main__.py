"""The process of a cluster: `python -m engine.cluster DIRECTORY` runs the plan in that directory.

`python -m engine.cluster DIRECTORY ID STORE PORT PID` runs one broker of it for process PID: the
metadata store listens at STORE, and PORT is the broker's last port, 0 for any.

`kctl cluster start` starts this module and not itself, which would load the command line again.
"""

from __future__ import annotations

import gc
import sys


def main(path: str, *member: str) -> int:
    """Run the cluster of a data directory, or a broker of it, until a signal.

    Returns the exit code.
    """
    # Hundreds of modules are loaded and none is freed: garbage collection would cost a tenth of the
    # start. The process enables it once it serves.
    gc.disable()
    from engine.cluster.data_directory import DataDirectory
    from engine.cluster.run import Member, log_to_stderr, run_cluster, run_member
    from engine.errors import EngineError
    from engine.host.real import RealFiles

    log_to_stderr()
    data = DataDirectory(RealFiles(), path)
    try:
        plan = data.plan()
        if plan is None:
            sys.stderr.write(f"error: there is no cluster in {path}\n")
            return 1
        if member:
            broker_id, znode_address, port, starter_pid = member
            run_member(data, Member(int(broker_id), znode_address, int(port), int(starter_pid)))
        else:
            run_cluster(data, plan)
    except EngineError as error:
        sys.stderr.write(f"error: {error}\n")
        if error.hint:
            sys.stderr.write(f"hint: {error.hint}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
