"""The data directories of embedded clusters started on this machine, for `kctl cluster list`.

```
$XDG_DATA_HOME/kctl/clusters/<hash of the path>      the path of one data directory
```

There is a file for each, so that simultaneous starts need no lock. A lost file only removes a
cluster from the list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.errors import StorageError
from engine.host.ports import Files
from kctl.embedded import cluster_path, data_home

if TYPE_CHECKING:
    from engine.cluster.data_directory import DataDirectory

_FOLDER = "clusters"


def _note_path(environment: Mapping[str, str], path: str) -> str:
    """Return the path of the file that notes a data directory, named by its path's hash."""
    from hashlib import sha256

    return f"{data_home(environment)}/{_FOLDER}/{sha256(path.encode()).hexdigest()[:32]}"


def note_cluster(files: Files, environment: Mapping[str, str], path: str) -> None:
    """Add an embedded cluster's data directory to the known ones, once it is started.

    The default directory is known without that. Errors of files are ignored.
    """
    if path == cluster_path(environment, None):
        return
    note = _note_path(environment, path)
    try:
        if not files.exists(note):
            files.make_dir(f"{data_home(environment)}/{_FOLDER}")
            files.replace_file(note, path.encode())
    except StorageError:
        return


def forget_cluster(files: Files, environment: Mapping[str, str], path: str) -> None:
    """Remove an embedded cluster's data directory from the known ones.

    Errors of files are ignored.
    """
    try:
        files.remove(_note_path(environment, path))
    except StorageError:
        return


def known_clusters(files: Files, environment: Mapping[str, str]) -> list[str]:
    """Return the data directories of the known embedded clusters, the default one first."""
    folder = f"{data_home(environment)}/{_FOLDER}"
    paths = []
    try:
        for name in files.list_dir(folder):
            paths.append(files.read_bytes(f"{folder}/{name}").decode(errors="replace"))
    except StorageError:
        paths = [*paths]
    return [cluster_path(environment, None), *sorted(paths)]


def cluster_at(
    files: Files, environment: Mapping[str, str], addresses: Mapping[int, str]
) -> DataDirectory | None:
    """Return the directory of the known embedded cluster with brokers of these addresses.

    `addresses` are those of the metadata, by broker id.

    At least one address must be that of a running broker: metadata still lists a broker that has
    just died. None if other brokers are in it, which is then not an embedded cluster of this
    machine.
    """
    from engine.cluster.data_directory import ClusterState, DataDirectory

    for path in known_clusters(files, environment):
        data = DataDirectory(files, path)
        try:
            running = data.running() if data.state() is ClusterState.RUNNING else None
            plan = data.plan()
        except StorageError:
            continue
        if running is None or plan is None or not set(addresses) <= set(plan.broker_ids()):
            continue
        if set(addresses.values()) & set(running.brokers.values()):
            return data
    return None
