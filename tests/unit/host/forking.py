"""Starts a fork server, has it fork what is asked for, and prints what became of it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from engine.host import processes
from engine.host.fork_server import ForkServerGone, start_fork_server

_TIMEOUT_S = 30


def main(arguments: Sequence[str]) -> int:
    """Say the arguments and the parent, first to the log and then as the ready message."""
    print(*arguments, flush=True)
    processes.report_ready(f"{' '.join(arguments)} of {os.getppid()} leads {os.getsid(0)}")
    return 0


if __name__ == "__main__":
    log_path = sys.argv[1]
    server = start_fork_server(main)
    for words in (("a", "b c"), ("d",)):
        started = server.spawn(words, log_path)
        said = started.wait_until_ready(_TIMEOUT_S)
        expected = f"{' '.join(words)} of {server.pid} leads {started.pid}\n"
        print(said == expected.encode(), started.wait_until_ended(_TIMEOUT_S))
    # A fork of this process that outlives the server has a copy of the connection to it.
    fork_pid = os.fork()
    if not fork_pid:
        time.sleep(_TIMEOUT_S)
        os._exit(0)
    server.close()
    print(os.waitpid(fork_pid, os.WNOHANG) == (0, 0))
    processes.kill(fork_pid)
    try:
        server.spawn(("e",), log_path)
    except ForkServerGone as error:
        print(error.pid == server.pid)
