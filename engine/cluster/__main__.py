"""The process of a cluster: `python -m engine.cluster DIRECTORY` runs the plan that lies there.

`kctl cluster start` starts this and not itself again, which would load the command line once more.
"""

from __future__ import annotations

import gc
import sys


def main(path: str) -> int:
    """Run the cluster of a data directory until a signal; returns the exit code."""
    # Hundreds of modules are loaded and none is let go: looking for garbage meanwhile costs a tenth
    # of the start. The process looks again once it serves.
    gc.disable()
    from engine.cluster.data_directory import DataDirectory
    from engine.cluster.run import log_to_stderr, run_cluster
    from engine.errors import EngineError
    from engine.host.real import RealFiles

    log_to_stderr()
    data = DataDirectory(RealFiles(), path)
    try:
        plan = data.plan()
        if plan is None:
            sys.stderr.write(f"error: there is no cluster in {path}\n")
            return 1
        run_cluster(data, plan)
    except EngineError as error:
        sys.stderr.write(f"error: {error}\n")
        if error.hint:
            sys.stderr.write(f"hint: {error.hint}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
