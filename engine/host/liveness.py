"""Liveness of a listening process: the kernel accepts connections even if the process hangs."""

from __future__ import annotations

import socket


def closes_after_shutdown(host: str, port: int, timeout_s: float) -> bool:
    """Return True if a listener closes a connection after we have shut down our side.

    Then a live process serves it. Nothing is sent, so the check is valid for any protocol. False if
    no process listens.
    """
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.settimeout(timeout_s)
            connection.shutdown(socket.SHUT_WR)
            return not connection.recv(1)
    except OSError:
        return False
