"""The login of commands to a ZooKeeper.

| first that exists | applies to |
|---|---|
| KAFKA_OPTS | any ZooKeeper; Kafka's tools read it, too |
| the brokers' own login | the store of an embedded cluster that runs on this machine |
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from engine.znode.kazoo_reader import ZnodeReader

    R = TypeVar("R", bound=ZnodeReader)

#: JVM options of Kafka's tools; kctl reads only the ZooKeeper login from them.
JVM_OPTIONS: Final = "KAFKA_OPTS"
_LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")


def set_login(session: R) -> R:
    """Set the login of a session with a ZooKeeper, if one is configured; return the session.

    Called before it connects. Errors: ConfigError.
    """
    options = os.environ.get(JVM_OPTIONS)
    if options:
        from engine.znode.login import system_properties

        if _set_login_from_properties(session, system_properties(options)):
            return session
    _set_login_from_properties(session, _settings_of_store(session.address))
    return session


def _set_login_from_properties(session: ZnodeReader, properties: Mapping[str, str]) -> bool:
    """Set a session's login from Java system properties; return True if they have one."""
    if not properties:
        return False
    # Imported late: nearly all commands run without a login.
    from engine.host.input_file import read_input
    from engine.host.real import RealEntropy
    from engine.znode.login import read_client_login

    login = read_client_login(properties, read_input)
    if login is not None:
        session.log_in_as(login, RealEntropy())
    return login is not None


def _settings_of_store(address: str) -> dict[str, str]:
    """Return the login settings of the embedded cluster whose store has this address.

    They are broker settings with the login to the store; empty if no such cluster runs here.
    """
    from engine.cluster.data_directory import ClusterState, DataDirectory
    from engine.errors import StorageError
    from engine.host.real import RealFiles
    from engine.znode.login import LOGIN_KEYS
    from kctl.known_clusters import known_clusters

    wanted = _same_host(address)
    for path in known_clusters(RealFiles(), os.environ):
        data = DataDirectory(RealFiles(), path)
        try:
            running = data.running() if data.state() is ClusterState.RUNNING else None
            plan = data.plan()
        except StorageError:
            continue
        if running is None or plan is None or running.znode_address is None:
            continue
        if _same_host(running.znode_address) == wanted:
            return {key: plan.settings[key] for key in LOGIN_KEYS if key in plan.settings}
    return {}


def _same_host(address: str) -> tuple[str, str]:
    """Return an address as host and port for comparison, without a path.

    All names of this machine become `localhost`.
    """
    host, _, port = address.partition("/")[0].rpartition(":")
    return ("localhost" if host.lower() in _LOCAL_HOSTS else host.lower()), port
