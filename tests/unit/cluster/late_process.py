"""A cluster's process that is never ready, and that stores a plan when it is asked to stop."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

PLAN = '{"brokers": 7, "host": "127.0.0.1", "port": 7, "settings": {}}'


def main(folder: str) -> None:
    """Wait for a SIGTERM, then write the plan as a process does that is slow to begin."""
    asked = {signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, asked)
    signal.sigwait(asked)
    Path(folder, "cluster.json").write_text(PLAN)
    Path(folder, "has-ended").touch()


if __name__ == "__main__":
    main(sys.argv[1])
