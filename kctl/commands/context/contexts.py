"""Implementation of `kctl context`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from engine.client.settings import client_settings, parse_addresses
from engine.errors import EngineError
from engine.host.real import RealFiles
from kctl import exits
from kctl.arguments import UnreadableArgument, is_utf8
from kctl.console import notify
from kctl.context import (
    Profile,
    Profiles,
    change_profiles,
    choose,
    load_profiles,
    profiles_path,
    servers_in,
)
from kctl.properties_file import read_properties
from kctl.render import Column, write_object, write_rows

_GUARD_COLUMNS = (
    Column("is_protected", "PROTECTED", kind="boolean"),
    Column("is_read_only", "READ-ONLY", kind="boolean"),
    Column("cluster_id", "CLUSTER", kind="string?"),
)
CONTEXT_COLUMNS = (
    Column("name", "CONTEXT"),
    Column("is_current", "CURRENT", kind="boolean"),
    Column("bootstrap_servers", "SERVERS"),
    Column("command_config", "PROPERTIES", kind="string?"),
    *_GUARD_COLUMNS,
)
CHOICE_COLUMNS = (
    Column("source", "DECIDED BY"),
    Column("bootstrap_servers", "SERVERS"),
    Column("command_config", "PROPERTIES", kind="string?"),
    *_GUARD_COLUMNS,
)
#: Time-out of `set` for the request of the cluster's id.
_CLUSTER_ID_TIMEOUT_MS = 2_000


def _load() -> Profiles:
    """Return the contexts of the user's contexts file."""
    return load_profiles(RealFiles(), profiles_path(os.environ))


def _change_stored(change: Callable[[Profiles], Profiles]) -> Profiles:
    """Replace the contexts in the user's file by `change` of them, and return the new ones."""
    return change_profiles(RealFiles(), profiles_path(os.environ), change)


def list_contexts(output: str) -> int:
    """Print a row for each context; returns the exit code."""
    profiles = _load()
    rows = [_context_row(name, profiles) for name in sorted(profiles.by_name)]
    write_rows(CONTEXT_COLUMNS, rows, output)
    return exits.OK


def _context_row(name: str, profiles: Profiles) -> dict[str, object]:
    """Return the output row of one context."""
    return {
        "name": name,
        "is_current": name == profiles.current,
        **profiles.by_name[name]._asdict(),
    }


class ContextChange(NamedTuple):
    """The options of `kctl context set`: None changes nothing, an empty text removes a value."""

    bootstrap: str | None
    command_config: str | None
    is_protected: bool | None
    is_read_only: bool | None
    cluster_id: str | None


def set_context(name: str, change: ContextChange, *, use: bool) -> int:
    """Create or change a context (`kctl context set`); parts that are not given keep their values.

    The first context, and any with `use`, becomes current. Returns the exit code. Errors:
    UnreadableArgument, those of files.
    """
    if not is_utf8(name):
        raise UnreadableArgument("the name of a context", name, "text in UTF-8")
    if change.bootstrap is not None and not is_utf8(change.bootstrap):
        raise UnreadableArgument("an address", change.bootstrap, "HOST:PORT in UTF-8")
    kept = _load().by_name.get(name)
    # This requests the id from the cluster, outside the lock of the contexts file.
    profile, note = _with_cluster_id(_apply_change(name, kept, change), kept, change)

    def with_context(profiles: Profiles) -> Profiles:
        """Return all contexts, the new or changed one included; called under the file's lock."""
        current = name if use or profiles.current is None else profiles.current
        now = profiles.by_name.get(name)
        # Another command may have changed the context during the request.
        whole = profile if now in (kept, None) else _apply_to_concurrent(now, profile, change, name)
        return profiles.with_profile(name, whole)._replace(current=current)

    profiles = _change_stored(with_context)
    profile = profiles.by_name[name]
    is_current = profiles.current == name
    notify(
        f"context {name} is kept" + (" and current" if is_current else "") + _guards_text(profile)
    )
    if note:
        notify(note)
    return exits.OK


def _apply_to_concurrent(
    now: Profile | None, profile: Profile, change: ContextChange, name: str
) -> Profile:
    """Apply `change` to the stored context `now`, and take the cluster id from `profile`.

    Another command may have changed the context during the request for the cluster's id.
    """
    merged = _apply_change(name, now, change)
    if change.cluster_id is None and profile.cluster_id is None:
        return merged
    return merged._replace(cluster_id=profile.cluster_id)


def _guards_text(profile: Profile) -> str:
    """Return a context's guards as the end of a message: protected, read-only; "" without any."""
    parts = [
        part
        for part, is_set in (
            ("protected", profile.is_protected),
            ("read-only", profile.is_read_only),
        )
        if is_set
    ]
    if profile.cluster_id is not None:
        parts.append(f"for cluster {profile.cluster_id}")
    return f": {', '.join(parts)}" if parts else ""


def _apply_change(name: str, kept: Profile | None, change: ContextChange) -> Profile:
    """Return a context after a change of all but its cluster id; raises UnreadableArgument.

    `kept` is the stored context, None for a new one. Without --bootstrap-server, a new context
    takes the addresses of the properties file.
    """
    servers = change.bootstrap or (kept.bootstrap_servers if kept else None)
    if servers is None and change.command_config:
        servers = servers_in(RealFiles(), change.command_config)
    if servers is None:
        expected = "-b HOST:PORT, or bootstrap.servers in --command-config"
        raise UnreadableArgument("a whole context", name, expected)
    parse_addresses(servers)
    before = kept or Profile(servers)
    properties = before.command_config
    if change.command_config is not None:
        properties = os.path.abspath(change.command_config) if change.command_config else None
    if properties is not None:
        client_settings(read_properties(RealFiles(), properties))
    return Profile(
        servers,
        properties,
        before.is_protected if change.is_protected is None else change.is_protected,
        before.is_read_only if change.is_read_only is None else change.is_read_only,
        before.cluster_id,
    )


def _with_cluster_id(
    profile: Profile, kept: Profile | None, change: ContextChange
) -> tuple[Profile, str | None]:
    """Return the context with its cluster's id, by which later commands recognize the cluster.

    The id is requested unless it is given, or is stored for the same addresses. The second result
    is a note to print, None if there is none.
    """
    if change.cluster_id is not None:
        return profile._replace(cluster_id=change.cluster_id or None), None
    is_moved = kept is None or kept.bootstrap_servers != profile.bootstrap_servers
    if profile.cluster_id is not None and not is_moved:
        return profile, None
    try:
        found = _fetch_cluster_id(profile)
    except EngineError as error:
        then = "learnt" if profile.cluster_id is None else f"compared with {profile.cluster_id}"
        return profile, f"note: the cluster's id is {then} at the first use: {error}"
    if found is not None and profile.cluster_id not in (None, found):
        return profile._replace(cluster_id=found), f"note: it was for cluster {profile.cluster_id}"
    return profile._replace(cluster_id=found or profile.cluster_id), None


def _fetch_cluster_id(profile: Profile) -> str | None:
    """Request the id of the cluster at a context's addresses; None if it has no id.

    Errors: those of requests, after _CLUSTER_ID_TIMEOUT_MS.
    """
    from engine.client.blocking import KafkaClient
    from kctl.connect import read_client_settings, real_host

    host = real_host()
    with KafkaClient(
        parse_addresses(profile.bootstrap_servers),
        streams=host.streams,
        clock=host.clock,
        entropy=host.entropy,
        settings=read_client_settings(profile.command_config, {}),
        timeout_ms=_CLUSTER_ID_TIMEOUT_MS,
    ) as client:
        return client.view([]).cluster_id


def use_context(name: str) -> int:
    """Make a context the current one; returns the exit code."""

    def use(profiles: Profiles) -> Profiles:
        """Return the contexts with this one current; raises if there is none of the name."""
        profiles.get(name)
        return profiles._replace(current=name)

    _change_stored(use)
    notify(f"context {name} is current")
    return exits.OK


def show_context(name: str | None, output: str) -> int:
    """Print a context; for None the cluster that commands would use, and why.

    Returns the exit code. Raises if there is no context of this name.
    """
    if name is None:
        choice = choose(os.environ, RealFiles())
        guards = _load().get(choice.context) if choice.context else Profile("")
        write_object(CHOICE_COLUMNS, {**guards._asdict(), **choice._asdict()}, output)
        return exits.OK
    profiles = _load()
    profiles.get(name)
    write_object(CONTEXT_COLUMNS, _context_row(name, profiles), output)
    return exits.OK


def delete_context(name: str) -> int:
    """Delete a context, after which none is current if it was; returns the exit code."""

    def forget(profiles: Profiles) -> Profiles:
        """Return the contexts without this one; raises if there is none of the name."""
        profiles.get(name)
        others = {other: kept for other, kept in profiles.by_name.items() if other != name}
        return Profiles(None if profiles.current == name else profiles.current, others)

    current = _change_stored(forget).current
    notify(f"context {name} is forgotten" + ("" if current else "; none is current now"))
    return exits.OK
