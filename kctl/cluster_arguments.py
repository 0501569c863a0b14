"""Clusters as arguments, for a command with two clusters.

| argument | cluster |
|---|---|
| the name of a context | the context's, with its properties file |
| `embedded` | the running embedded cluster, unless a context has that name |
| `HOST:PORT,…` | the cluster at these addresses |
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from engine.errors import EngineError
from engine.host.real import RealFiles
from kctl import exits
from kctl.context import Choice, NoCluster, Profiles, choose, load_profiles, profiles_path
from kctl.embedded import EMBEDDED, running_properties, running_servers


class UnknownClusterArgument(EngineError):
    """An argument is neither the name of a context nor an address."""

    exit_code = exits.USAGE

    def __init__(self, argument: str, names: list[str]) -> None:
        known = ", ".join(names) or "none"
        super().__init__(f"no context {argument!r}, and no HOST:PORT; known contexts: {known}")
        self.hint = (
            "`kctl context set NAME -b HOST:PORT` makes one; `embedded` is the one that runs"
        )
        self.argument = argument


def choice_parameters(argument: str, profiles: Profiles) -> Mapping[str, str | None]:
    """Return the options that select the cluster of an argument.

    It is a context, `embedded`, or HOST:PORT. Raises UnknownClusterArgument, NoCluster.
    """
    if argument in profiles.by_name:
        return {"context": argument}
    if argument == EMBEDDED:
        servers = running_servers(os.environ)
        if servers is None:
            raise NoCluster
        return {"bootstrap": servers, "command_config": running_properties(os.environ)}
    if ":" not in argument:
        raise UnknownClusterArgument(argument, sorted(profiles.by_name))
    return {"bootstrap": argument}


def choose_cluster(argument: str, command_config: str | None) -> Choice:
    """Return the cluster that an argument names; `command_config` overrides the context's file.

    Errors: UnknownClusterArgument, NoCluster, BadContextFile.
    """
    files = RealFiles()
    named = choice_parameters(argument, load_profiles(files, profiles_path(os.environ)))
    return choose(
        os.environ,
        files,
        bootstrap_server=named.get("bootstrap"),
        context=named.get("context"),
        command_config=command_config or named.get("command_config"),
    )
