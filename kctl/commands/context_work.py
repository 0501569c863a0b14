"""What `kctl context` does."""

from __future__ import annotations

import os
from typing import Any

from engine.client.settings import client_settings, parse_addresses
from engine.config.java_properties import parse_properties
from engine.host.real import RealFiles
from kctl import exits
from kctl.asking import say
from kctl.context import (
    Profile,
    Profiles,
    choose,
    load_profiles,
    profiles_path,
    save_profiles,
    servers_in,
)
from kctl.render import Column, write_object, write_rows
from kctl.words import UnreadableWord, is_utf8

CONTEXT_COLUMNS = (
    Column("name", "CONTEXT"),
    Column("is_current", "CURRENT", kind="boolean"),
    Column("bootstrap_servers", "SERVERS"),
    Column("command_config", "PROPERTIES", kind="string?"),
)
CHOICE_COLUMNS = (
    Column("source", "DECIDED BY"),
    Column("bootstrap_servers", "SERVERS"),
    Column("command_config", "PROPERTIES", kind="string?"),
)


def _load() -> Profiles:
    return load_profiles(RealFiles(), profiles_path(os.environ))


def _save(profiles: Profiles) -> None:
    save_profiles(RealFiles(), profiles_path(os.environ), profiles)


def list_contexts(output: str) -> int:
    """Print a row for each context."""
    profiles = _load()
    rows = [_row(name, profiles) for name in sorted(profiles.by_name)]
    write_rows(CONTEXT_COLUMNS, rows, output)
    return exits.OK


def _row(name: str, profiles: Profiles) -> dict[str, Any]:
    return {
        "name": name,
        "is_current": name == profiles.current,
        **profiles.by_name[name]._asdict(),
    }


def set_context(name: str, bootstrap: str | None, command_config: str | None, *, use: bool) -> int:
    """Keep a context; what is not given stays as it was. Both parts are checked first."""
    if not is_utf8(name):
        raise UnreadableWord("the name of a context", name, "text in UTF-8")
    if bootstrap is not None and not is_utf8(bootstrap):
        raise UnreadableWord("an address", bootstrap, "HOST:PORT in UTF-8")
    profiles = _load()
    before = profiles.by_name.get(name)
    servers = bootstrap or (before.bootstrap_servers if before else None)
    if servers is None and command_config:
        servers = servers_in(RealFiles(), command_config)
    if servers is None:
        expected = "-b HOST:PORT, or bootstrap.servers in --command-config"
        raise UnreadableWord("a whole context", name, expected)
    parse_addresses(servers)
    properties = before.command_config if before else None
    if command_config is not None:
        properties = os.path.abspath(command_config) if command_config else None
    if properties is not None:
        client_settings(parse_properties(RealFiles().read_bytes(properties), properties))
    profiles.by_name[name] = Profile(servers, properties)
    current = name if use or profiles.current is None else profiles.current
    _save(profiles._replace(current=current))
    say(f"context {name} is kept" + (" and current" if current == name else ""))
    return exits.OK


def use_context(name: str) -> int:
    """Make a context the current one."""
    profiles = _load()
    profiles.get(name)
    _save(profiles._replace(current=name))
    say(f"context {name} is current")
    return exits.OK


def show_context(name: str | None, output: str) -> int:
    """Print a context, or the choice that commands would make now."""
    if name is None:
        choice = choose(os.environ, RealFiles())
        write_object(CHOICE_COLUMNS, choice._asdict(), output)
        return exits.OK
    profiles = _load()
    profiles.get(name)
    write_object(CONTEXT_COLUMNS, _row(name, profiles), output)
    return exits.OK


def delete_context(name: str) -> int:
    """Forget a context."""
    profiles = _load()
    profiles.get(name)
    del profiles.by_name[name]
    current = None if profiles.current == name else profiles.current
    _save(profiles._replace(current=current))
    say(f"context {name} is forgotten" + ("" if current else "; none is current now"))
    return exits.OK
