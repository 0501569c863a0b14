"""Whether a process that listens takes part: the system accepts connections for one that hangs."""

from __future__ import annotations

import socket


def answers_end(host: str, port: int, timeout_s: float) -> bool:
    """Return whether who listens at an address ends a connection that we end.

    Nothing is sent, so that it says the same of any protocol. False if nobody listens.
    """
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.settimeout(timeout_s)
            connection.shutdown(socket.SHUT_WR)
            return not connection.recv(1)
    except OSError:
        return False
