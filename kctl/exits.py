"""Exit codes, on which scripts may rely."""

from __future__ import annotations

OK = 0
#: The command failed for at least one item.
FAILED = 1
USAGE = 2
#: The cluster could not be reached, or did not respond in time.
UNREACHABLE = 3
#: A check completed and found problems.
PROBLEMS_FOUND = 4
#: Changes are pending (`diff`, `plan --exit-code`).
CHANGES_PENDING = 5
INTERNAL = 70
INTERRUPTED = 130
#: The reader of stdout has closed the pipe (128 + SIGPIPE), as for any tool in a pipe.
BROKEN_PIPE = 141
#: SIGTERM ended the command (128 + 15).
TERMINATED = 143


class OwnProcess:
    """A flag: whether this process runs one command and ends with it."""

    is_own = False


class Terminated(KeyboardInterrupt):
    """SIGTERM was received: the command ends as after Ctrl-C."""

    #: Whether SIGTERM has been received in this process.
    is_raised = False

    def __init__(self) -> None:
        super().__init__()
        Terminated.is_raised = True


def interrupted(error: BaseException | None) -> int:
    """Return the exit code after a signal: TERMINATED for SIGTERM, else INTERRUPTED."""
    return TERMINATED if isinstance(error, Terminated) else INTERRUPTED
