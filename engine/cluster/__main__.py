"""The process of a cluster: `python -m engine.cluster DIRECTORY` runs the plan that lies there.

`python -m engine.cluster DIRECTORY ID HOST:PORT LAST` runs one broker of it: its metadata store
listens there, and it listened on port LAST itself, 0 for any.

`kctl cluster start` starts this and not itself again, which would load the command line once more.
"""

from __future__ import annotations

import gc
import sys


def main(path: str, broker_id: str = "", znode_address: str = "", port: str = "0") -> int:
    """Run the cluster of a data directory, or a broker of it, until a signal.

    Returns the exit code.
    """
    # Hundreds of modules are loaded and none is let go: looking for garbage meanwhile costs a tenth
    # of the start. The process looks again once it serves.
    gc.disable()
    from engine.cluster.data_directory import DataDirectory
    from engine.cluster.run import log_to_stderr, run_cluster, run_member
    from engine.errors import EngineError
    from engine.host.real import RealFiles

    log_to_stderr()
    data = DataDirectory(RealFiles(), path)
    try:
        plan = data.plan()
        if plan is None:
            sys.stderr.write(f"error: there is no cluster in {path}\n")
            return 1
        if broker_id:
            run_member(data, int(broker_id), znode_address, int(port))
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
