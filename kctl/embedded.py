"""Directory and address of the embedded cluster, to which commands connect by default."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kctl.arguments import UnreadableArgument

if TYPE_CHECKING:
    from engine.cluster.data_directory import RunningCluster

#: Name of the embedded cluster in arguments, unless a context has it.
EMBEDDED: Final = "embedded"
#: Paths in the data directory of a cluster started with --secure.
ADMIN_PROPERTIES: Final = "security/admin.properties"
BROKER_KEYSTORE: Final = "security/broker.pem"
#: Setting with the path of the brokers' keystore.
KEYSTORE: Final = "ssl.keystore.location"


def data_home(environment: Mapping[str, str]) -> str:
    """Return the directory for persistent data of kctl: kctl in XDG_DATA_HOME.

    Without that variable it is ~/.local/share/kctl.
    """
    home = environment.get("XDG_DATA_HOME") or f"{environment.get('HOME', '')}/.local/share"
    return f"{home}/kctl"


def cluster_path(environment: Mapping[str, str], data: str | None) -> str:
    """Return the absolute path of an embedded cluster's data directory.

    `data` is the value of --data; None means the default directory.

    Errors: UnreadableArgument for "".
    """
    if data == "":
        raise UnreadableArgument("a directory", data, "a path")
    if data is not None:
        return os.path.abspath(data)
    return f"{data_home(environment)}/cluster"


def running_servers(environment: Mapping[str, str]) -> str | None:
    """Return the bootstrap addresses of the default embedded cluster, None unless it runs."""
    running = _running_cluster(environment)
    return None if running is None else running.bootstrap_servers


def running_properties(environment: Mapping[str, str]) -> str | None:
    """Return the path of the administrator's properties of the default embedded cluster.

    None unless the cluster is secured.
    """
    return admin_properties(cluster_path(environment, None))


def admin_properties(path: str) -> str | None:
    """Return the path of the administrator's properties of an embedded cluster.

    `path` is its data directory. None unless the cluster is secured (started with --secure).
    """
    properties = f"{path}/{ADMIN_PROPERTIES}"
    if not os.path.exists(properties):
        return None
    from engine.cluster.data_directory import DataDirectory
    from engine.errors import StorageError
    from engine.host.real import RealFiles

    # The files may be left from a refused start, without the cluster being secured.
    try:
        plan = DataDirectory(RealFiles(), path).plan()
    except StorageError:
        return None
    is_secured = plan is not None and plan.settings.get(KEYSTORE) == f"{path}/{BROKER_KEYSTORE}"
    return properties if is_secured else None


def _running_cluster(environment: Mapping[str, str]) -> RunningCluster | None:
    """Return the embedded cluster in the default data directory, None unless it runs."""
    from engine.cluster.data_directory import ClusterState, DataDirectory
    from engine.host.real import RealFiles

    directory = DataDirectory(RealFiles(), cluster_path(environment, None))
    return directory.running() if directory.state() is ClusterState.RUNNING else None
