"""Steps of `kctl cluster start --from-logs` that precede the start of the cluster."""

from __future__ import annotations

from engine.cluster.data_directory import DataDirectory
from engine.cluster.plan import ClusterPlan
from engine.cluster.served_logs import ServedLogs, check_same, serve_logs
from engine.host.copy_on_write import CopyOnWriteFiles
from engine.host.real import RealClock
from kctl.console import notify


def create_served_cluster(
    data: DataDirectory, sources: tuple[str, ...], plan: ClusterPlan, *, is_writable: bool
) -> None:
    """Create the embedded cluster that serves existing log directories, unless it exists.

    `sources` are the directories. Prints notes on topics. Errors: those of `check_same` and
    `serve_logs`.
    """
    files, requested = CopyOnWriteFiles(), ServedLogs(sources, is_writable)
    if check_same(data, files, requested):
        return
    served = serve_logs(data, files, RealClock(), requested, plan)
    for note in served.notes:
        notify(f"note: {note}")
    notify(f"serving {served.partition_count} partitions, {served.log_bytes} bytes")
