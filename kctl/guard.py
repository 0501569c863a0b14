"""The guards of contexts: the only place that decides whether a command may change a cluster.

| a context is | a command that changes a cluster (`command_effects`) |
|---|---|
| read-only | is refused before any request, exit code 2 |
| protected | needs the context's name, typed or in KCTL_CONFIRM; `-y` is not enough |

A guard protects the cluster, no matter how a command reaches it: a read-only context has
precedence over other contexts of its cluster, and the name of one protected context is enough for
all of them. The guarded context is found by

- the context that is named or current;
- for a command with two clusters, the argument for its destination: it only reads the source;
- addresses: one of those given (`-b`, a file, the environment) is one of the context's;
- cluster id: those above the node in a metadata store (`kctl znode`), that of a journal, or of a
  cluster reached by other addresses. In the last case the id is known after the first Metadata
  response: the command is refused then, before it sends a request that changes anything.

A context stores the id of its cluster (`cluster_id`) at its first use. On every later use another
id is refused, exit code 1. The client of a command that only reads refuses other requests.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, cast

from engine.errors import StorageError
from kctl.command_effects import LOCAL, effect_of
from kctl.console import NotConfirmed
from kctl.context import Choice, NoCluster, Profile, Profiles, choose, load_profiles, profiles_path
from kctl.guard_errors import (
    CONFIRM_VARIABLE,
    GuardedCluster,
    NameNotTyped,
    OtherCluster,
    ReadOnlyCommand,
    ReadOnlyContext,
)

if TYPE_CHECKING:
    from engine.client.connection import Call
    from engine.client.request_checks import ClientChecks
    from kctl.target_options import TargetOptions


class Guard:
    """The current command, and the contexts whose names were typed for it."""

    command: str | None = None
    may_change = False
    confirmed: frozenset[str] = frozenset()


# -- before a command starts


def check_guards(command_path: str, parameters: Mapping[str, object]) -> None:
    """Check the contexts' guards before a command runs, with these option values.

    It notes in `Guard` the command, whether it may change a cluster, and the names that were typed.
    For a read-only context it refuses a changing command; for a protected one it asks for the
    context's name.

    Errors: ReadOnlyContext, NameNotTyped, NotConfirmed, BadContextFile, and those of selecting the
    cluster.
    """
    Guard.command, Guard.confirmed = command_path, frozenset()
    Guard.may_change = effect_of(command_path).changes_something(parameters)
    if not Guard.may_change:
        return
    profiles = _profiles()
    guarded = {name: p for name, p in profiles.by_name.items() if p.is_guarded}
    target = cast("TargetOptions", parameters)
    names = _affected_contexts(target, profiles, guarded) if guarded else []
    for name in names:
        if guarded[name].is_read_only:
            raise ReadOnlyContext(name, command_path)
    meant = (os.environ.get(CONFIRM_VARIABLE), parameters.get("context"))
    for name in sorted(names, key=lambda name: (name not in meant, name)):
        if not _is_confirmed(name, guarded[name], profiles):
            _prompt_for_name(name, guarded[name], command_path)
            Guard.confirmed |= {name}


def _is_confirmed(name: str, profile: Profile, profiles: Profiles) -> bool:
    """Return True if the name of a protected context was given, typed or by KCTL_CONFIRM.

    The name of another protected context of the same cluster is enough, too.
    """
    given = {*Guard.confirmed, os.environ.get(CONFIRM_VARIABLE)}
    if name in given:
        return True
    return profile.cluster_id is not None and any(
        other in given and kept.is_protected and kept.cluster_id == profile.cluster_id
        for other, kept in profiles.by_name.items()
    )


def _prompt_for_name(name: str, profile: Profile, command: str) -> None:
    """Ask for a protected context's name on the terminal.

    Errors: NameNotTyped if stdin is no terminal, NotConfirmed for another text.
    """
    if not sys.stdin.isatty():
        raise NameNotTyped(name, command)
    cluster = f"cluster {profile.cluster_id} at " if profile.cluster_id else ""
    sys.stderr.write(
        f"context {name} is protected: `kctl {command}` changes something of "
        f"{cluster}{profile.bootstrap_servers}\ntype the name of the context to go on: "
    )
    sys.stderr.flush()
    if sys.stdin.readline().strip() != name:
        raise NotConfirmed(f"`kctl {command}` in the protected context {name}")


def _profiles() -> Profiles:
    """Read the contexts file.

    The import is deferred, since most commands check no guard.
    """
    from engine.host.real import RealFiles

    return load_profiles(RealFiles(), profiles_path(os.environ))


# -- contexts that a command affects


def _affected_contexts(
    parameters: TargetOptions, profiles: Profiles, guarded: Mapping[str, Profile]
) -> list[str]:
    """Return the names of the guarded contexts that a command changes, or may change.

    `guarded` are the contexts with a guard, by name. The cluster is the destination of a copy, the
    one that options select, the one of a metadata store, or the one in a journal.
    """
    if "zookeeper" in parameters:
        from kctl.store_clusters import read_cluster_ids_of_store

        cluster_ids = read_cluster_ids_of_store(parameters)
    elif "destination" in parameters:
        from kctl.cluster_arguments import choice_parameters

        named = choice_parameters(str(parameters["destination"]), profiles)
        return _affected_by_options(cast("TargetOptions", named), guarded)
    elif "bootstrap" in parameters or "bootstrap_server" in parameters:
        return _affected_by_options(parameters, guarded)
    elif "journal" in parameters:
        cluster_ids = _ids_of_journal(parameters["journal"])
    else:
        # A tool of Kafka, whose arguments are parsed later: it calls `check_guards` again then.
        return []
    current = os.environ.get("KCTL_CONTEXT") or profiles.current
    return [
        name
        for name, profile in sorted(guarded.items())
        # The current context counts unless both its id and the other cluster's are known.
        if profile.cluster_id in cluster_ids
        or (name == current and (profile.cluster_id is None or not cluster_ids))
    ]


def _affected_by_options(parameters: TargetOptions, guarded: Mapping[str, Profile]) -> list[str]:
    """Return the names of guarded contexts of the cluster that connection options select.

    These are the context that is selected, and those that share an address with it; empty if no
    cluster is selected.
    """
    from engine.host.real import RealFiles

    try:
        choice = choose(
            os.environ,
            RealFiles(),
            bootstrap_server=parameters.get("bootstrap") or parameters.get("bootstrap_server"),
            context=parameters.get("context"),
            command_config=parameters.get("command_config"),
        )
    except NoCluster:
        # The command reports the error itself if it needs a cluster.
        return []
    return [
        name
        for name, profile in sorted(guarded.items())
        if name == choice.context
        or not _addresses(profile.bootstrap_servers).isdisjoint(
            _addresses(choice.bootstrap_servers)
        )
    ]


def _addresses(servers: str) -> frozenset[str]:
    """Return bootstrap servers as lower-case addresses for comparison."""
    from engine.client.settings import parse_addresses

    return frozenset(str(address).lower() for address in parse_addresses(servers))


def _ids_of_journal(path: str) -> frozenset[str]:
    """Return the cluster id in a reassignment's journal as a set, empty without an id."""
    from engine.host.held_file import RealHeldFiles
    from engine.reassign.journal_state import read_journal

    cluster_id = read_journal(RealHeldFiles(), path).begun.cluster_id
    return frozenset() if cluster_id is None else frozenset((cluster_id,))


# -- while a command runs


def reading_checks(choice: Choice) -> ClientChecks:
    """Return the checks for the client of a source, which must not be changed.

    Used by a command that changes another cluster, such as a copy.

    Errors: BadContextFile.
    """
    from engine.client.request_checks import ClientChecks

    check = _ClusterCheck(choice, {})
    on_call = partial(_check_reading, Guard.command or "")
    return ClientChecks(check if check.is_needed else None, on_call)


def client_checks(choice: Choice) -> ClientChecks:
    """Return the checks of the current command's requests to the chosen cluster.

    A command that may change something is refused in guarded clusters found by their id; one that
    only reads is refused any request that changes something.

    Errors: BadContextFile.
    """
    from engine.client.request_checks import ClientChecks

    on_call = None
    command = Guard.command
    if command is not None and not Guard.may_change and effect_of(command).kind != LOCAL:
        on_call = partial(_check_reading, command)
    check = _ClusterCheck(choice, _guarded_ids() if Guard.may_change else {})
    return ClientChecks(check if check.is_needed else None, on_call)


def _check_reading(command: str, call: Call) -> None:
    """Raise ReadOnlyCommand for a request that changes anything; called before it is sent.

    `command` is the command's name without `kctl`, for the error.
    """
    from engine.client.request_checks import is_reading

    if not is_reading(call):
        raise ReadOnlyCommand(command, call.api_name)


def _guarded_ids() -> dict[str, tuple[str, Profile]]:
    """Return each guarded cluster's context, as name and profile, by cluster id.

    A read-only context has precedence over a protected one. Protected contexts whose name was given
    are left out.
    """
    profiles = _profiles()
    guarded = [(name, p) for name, p in sorted(profiles.by_name.items()) if p.is_guarded]
    found: dict[str, tuple[str, Profile]] = {}
    for name, profile in sorted(guarded, key=lambda one: one[1].is_read_only):
        is_open = not profile.is_read_only and _is_confirmed(name, profile, profiles)
        if profile.cluster_id is not None and not is_open:
            found[profile.cluster_id] = (name, profile)
    return found


class _ClusterCheck:
    """Compares the cluster id of each Metadata response with the ids of contexts."""

    def __init__(self, choice: Choice, guarded: Mapping[str, tuple[str, Profile]]) -> None:
        self._choice = choice
        self._expected_id = choice.cluster_id
        self._guarded = guarded

    @property
    def is_needed(self) -> bool:
        """Return True if a context was selected, or if there are guarded clusters."""
        return self._choice.context is not None or bool(self._guarded)

    def __call__(self, cluster_id: str | None) -> None:
        """Check the id in a cluster's first metadata response; None if it has no id.

        The id is stored in the context if that has none yet, unless -b gave the addresses.

        Errors: OtherCluster, ReadOnlyContext, GuardedCluster.
        """
        choice = self._choice
        if self._expected_id is not None and cluster_id != self._expected_id:
            addresses = choice.bootstrap_servers
            raise OtherCluster(choice.context or "", addresses, self._expected_id, cluster_id)
        if cluster_id is None:
            return
        if cluster_id in self._guarded:
            _refuse(cluster_id, *self._guarded[cluster_id])
        if choice.context is not None and self._expected_id is None and choice.source != "-b":
            self._expected_id = cluster_id
            store_cluster_id(choice.context, cluster_id)


def _refuse(cluster_id: str, name: str, profile: Profile) -> None:
    """Raise the error for a command in a guarded cluster: ReadOnlyContext, else GuardedCluster.

    `name` and `profile` are the cluster's guarded context.
    """
    command = Guard.command or ""
    if profile.is_read_only:
        raise ReadOnlyContext(name, command)
    raise GuardedCluster(name, command, cluster_id)


def store_cluster_id(name: str, cluster_id: str) -> None:
    """Store a cluster's id in the context `name`, at the first use of that context.

    Nothing is stored if the context has an id or the file cannot be written.
    """
    from engine.host.real import RealFiles
    from kctl.context import change_profiles

    def add_id(profiles: Profiles) -> Profiles | None:
        """Return the contexts with the id added, None if there is nothing to change."""
        profile = profiles.by_name.get(name)
        if profile is None or profile.cluster_id is not None:
            return None
        return profiles.with_profile(name, profile._replace(cluster_id=cluster_id))

    try:
        change_profiles(RealFiles(), profiles_path(os.environ), add_id)
    except StorageError:
        return
