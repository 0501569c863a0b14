"""Errors of contexts' guards, with the reason and the remedy."""

from __future__ import annotations

from typing import Final

from engine.errors import EngineError
from kctl import exits
from kctl.command_effects import effect_of

#: Variable that replaces the typed name in scripts.
CONFIRM_VARIABLE: Final = "KCTL_CONFIRM"


class ReadOnlyContext(EngineError):
    """The command would change the cluster of a read-only context."""

    exit_code = exits.USAGE

    def __init__(self, name: str, command: str) -> None:
        """Create the error for a changing command in the read-only context `name`.

        `command` is the command's name without `kctl`.
        """
        super().__init__(
            f"context {name} is read-only, and `kctl {command}` changes something: nothing was sent"
        )
        self.name = name
        self.command = command
        self.hint = f"`kctl context set {name} --no-read-only` allows changes"
        if effect_of(command).unless == ("dry_run",):
            self.hint += "; --dry-run shows them"


class NameNotTyped(EngineError):
    """The command would change a protected context's cluster, and stdin is no terminal."""

    exit_code = exits.USAGE

    def __init__(self, name: str, command: str) -> None:
        """Create the error for a command in the protected context `name`, without a terminal.

        `command` is the command's name without `kctl`.
        """
        super().__init__(
            f"context {name} is protected: `kctl {command}` needs its name typed, and stdin is no "
            "terminal; nothing was sent"
        )
        self.name = name
        self.command = command
        command_line = f"{CONFIRM_VARIABLE}={name} kctl {command}"
        self.hint = f"run it in a terminal, or confirm with an option: {command_line}"


class GuardedCluster(EngineError):
    """Addresses that no context has belong to the cluster of a protected context."""

    exit_code = exits.USAGE

    def __init__(self, name: str, command: str, cluster_id: str) -> None:
        """Create the error for a cluster that is found to be that of a protected context.

        `name` is this context; `command` is the command's name without `kctl`.
        """
        super().__init__(
            f"this is cluster {cluster_id}, that of the protected context {name}: "
            f"`kctl {command}` changed nothing"
        )
        self.name = name
        self.command = command
        self.cluster_id = cluster_id
        self.hint = f"--context {name} asks for its name; {CONFIRM_VARIABLE}={name} says it"


class OtherCluster(EngineError):
    """The cluster at a context's addresses has another id than the context."""

    exit_code = exits.FAILED

    def __init__(self, name: str, addresses: str, expected: str, found: str | None) -> None:
        """Create the error for addresses that lead to another cluster than the context's.

        `name` is the context, `expected` its cluster id, `found` the other one, None without an id.
        """
        answer = "no cluster id" if found is None else f"cluster {found}"
        super().__init__(
            f"context {name} is kept for cluster {expected}, but {addresses} answers as {answer}: "
            "nothing else was sent"
        )
        self.name = name
        self.expected = expected
        self.found = found
        accepted = found or "''"
        self.hint = (
            f"if this is the right cluster now: kctl context set {name} --cluster-id {accepted}; "
            f"else correct its addresses: kctl context set {name} -b HOST:PORT"
        )


class ReadOnlyCommand(EngineError):
    """A command that only reads was about to send a changing request, which is a bug."""

    exit_code = exits.INTERNAL
    hint = "report this command with its words; nothing was changed"

    def __init__(self, command: str, api_name: str) -> None:
        super().__init__(f"`kctl {command}` is not to change anything, and would send {api_name}")
        self.command = command
        self.api_name = api_name


#: Errors that are not responses of a cluster.
GUARD_ERRORS = (ReadOnlyContext, NameNotTyped, GuardedCluster, OtherCluster, ReadOnlyCommand)
