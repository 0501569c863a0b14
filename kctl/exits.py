"""Exit codes that scripts may rely on."""

from __future__ import annotations

OK = 0
#: The command failed, also if only one item of several did.
FAILED = 1
USAGE = 2
#: The cluster could not be reached, or did not answer in time.
UNREACHABLE = 3
#: A check ran to its end and found problems.
PROBLEMS_FOUND = 4
#: Changes are pending (`diff`, `plan --exit-code`).
CHANGES_PENDING = 5
INTERNAL = 70
INTERRUPTED = 130
#: The reader of stdout has closed the pipe (128 + SIGPIPE), as for any tool in a pipe.
BROKEN_PIPE = 141
#: Ended in order on SIGTERM (128 + 15).
TERMINATED = 143


class OwnProcess:
    """A flag: this process runs one command, and ends with it."""

    is_own = False


class Terminated(KeyboardInterrupt):
    """SIGTERM requests the command to end, which it does as on Ctrl-C."""

    #: Whether one has been raised in this process.
    is_raised = False

    def __init__(self) -> None:
        super().__init__()
        Terminated.is_raised = True


def interrupted(error: BaseException | None) -> int:
    """Return the exit code of a command that was ended by a signal."""
    return TERMINATED if isinstance(error, Terminated) else INTERRUPTED
