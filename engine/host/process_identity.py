"""Identification of a process for an operator: pid, host and user."""

from __future__ import annotations

import getpass
import os
import socket
from typing import NamedTuple


class ProcessIdentity(NamedTuple):
    """A process of a machine."""

    pid: int
    host: str
    user: str

    def __str__(self) -> str:
        """Return the process as text for an operator."""
        return f"process {self.pid} on {self.host} ({self.user})"


def identify_process() -> ProcessIdentity:
    """Return the id, host and user of this process; the user's number if the user has no name."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return ProcessIdentity(os.getpid(), socket.gethostname(), user)
