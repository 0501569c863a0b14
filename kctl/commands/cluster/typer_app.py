"""Command line of `kctl cluster`: options and their parsing by Typer."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands.cluster.start_arguments import TIMEOUT_S
from kctl.options.cluster import Output, Yes, noun

app = noun("The embedded cluster: start, stop, look after, remove.")

_Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Directory of the cluster; default: below XDG_DATA_HOME.",
    ),
]
_StopTimeout = Annotated[
    float, typer.Option("--timeout", min=0.001, metavar="SECONDS", help="Give up after this time.")
]


@app.command("start", epilog="Example: kctl cluster start --port 9092 --set num.partitions=3")
def start(
    data: _Data = None,
    brokers: Annotated[
        int | None, typer.Option("--brokers", min=1, metavar="N", help="Number of brokers.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            metavar="PORT",
            help="Port of the first broker, default 9092; 0 for any free port.",
        ),
    ] = None,
    zookeeper_port: Annotated[
        int | None,
        typer.Option(
            "--zookeeper-port",
            min=0,
            max=65535,
            metavar="PORT",
            help="ZooKeeper port of the metadata store; 0 for its last port, or any free one.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Broker setting; may be repeated."),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Broker settings as in server.properties; --set overrides them. For passwords.",
        ),
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(
            "--unset", metavar="KEY", help="Remove a setting of an earlier start; may be repeated."
        ),
    ] = None,
    from_logs: Annotated[
        list[str] | None,
        typer.Option(
            "--from-logs",
            metavar="DIR",
            help="Serve copies of log directories without changing them; may be repeated.",
        ),
    ] = None,
    writable: Annotated[
        bool,
        typer.Option(
            "--writable", help="With --from-logs: accept writes; changed files are copied first."
        ),
    ] = False,
    racks: Annotated[
        str | None,
        typer.Option(
            "--racks",
            metavar="RACK,…",
            help="Racks (broker.rack), assigned to the brokers in turn.",
        ),
    ] = None,
    processes: Annotated[
        bool | None,
        typer.Option(
            "--processes/--one-process",
            help="One process per broker and one for the metadata store, or one for all.",
        ),
    ] = None,
    log_dirs: Annotated[
        int | None,
        typer.Option(
            "--log-dirs", metavar="N", min=1, max=100, help="Log directories of each broker."
        ),
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(
            "--advertise",
            metavar="HOST",
            help="Accept connections of other machines, and advertise this host to them.",
        ),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure", help="Accept connections of other machines without authentication."
        ),
    ] = False,
    secure: Annotated[
        bool,
        typer.Option(
            "--secure",
            help="Set up TLS, SCRAM and access rules; store a context of the administrator.",
        ),
    ] = False,
    foreground: Annotated[
        bool,
        typer.Option(
            "--foreground",
            help="Run in this process until Ctrl-C or SIGTERM; the start has no time-out.",
        ),
    ] = False,
    timeout: _StopTimeout = TIMEOUT_S,
    output: Output = "table",
) -> int:
    """Start the cluster, created on the first start; return once clients can connect.

    The options are stored with the data, and later starts need none of them; `kctl cluster status
    -o wide` shows them.

    --from-logs serves log directories of another cluster read-only: one broker leads all
    partitions, with the longest copy of each.
    """
    from kctl.commands.cluster.lifecycle import StartRequest, start_cluster

    if writable and not from_logs:
        raise typer.BadParameter("goes with --from-logs", param_hint="--writable")

    request = StartRequest(
        data,
        brokers,
        port,
        zookeeper_port,
        settings or [],
        unset or [],
        foreground,
        timeout,
        output,
        tuple(from_logs or ()),
        writable,
        racks,
        processes,
        log_dirs,
        config,
        insecure,
        secure,
        advertise,
    )
    return start_cluster(request)


@app.command("stop", epilog="Example: kctl cluster stop")
def stop(data: _Data = None, timeout: _StopTimeout = 60.0) -> int:
    """Stop the cluster cleanly; its data is kept."""
    from kctl.commands.cluster.lifecycle import stop_cluster

    return stop_cluster(data, timeout)


@app.command("status", epilog="Example: kctl cluster status -o json")
def status(data: _Data = None, output: Output = "table") -> int:
    """Show the cluster: addresses, brokers, controller and problems.

    The exit code is 0 only if all its brokers run.
    """
    from kctl.commands.cluster.status import show_status

    return show_status(data, output)


@app.command("list", epilog="Example: kctl cluster list -o wide")
def list_(output: Output = "table") -> int:
    """List the clusters that were started on this machine: directory, state and addresses."""
    from kctl.commands.cluster.lifecycle import list_clusters

    return list_clusters(output)


@app.command("repair", epilog="Example: kctl cluster repair --data /tmp/rehearsal --dry-run")
def repair(
    data: _Data = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what would be written; write nothing. Exit code 5."),
    ] = False,
    yes: Yes = False,
    timeout: _StopTimeout = 60.0,
    output: Output = "table",
) -> int:
    """Restore lost or damaged metadata from the log directories, after showing it and asking.

    Topics are restored with their ids, partitions and records; their settings are lost, since log
    directories do not contain them.
    """
    from kctl.commands.cluster.repair import RepairRequest, repair_cluster

    return repair_cluster(RepairRequest(data, dry_run, yes, timeout, output))


_Broker = Annotated[int, typer.Argument(metavar="BROKER", help="The broker's id.")]


@app.command("restart", epilog="Example: kctl cluster restart 2")
def restart(broker: _Broker, data: _Data = None, timeout: _StopTimeout = 60.0) -> int:
    """Stop a broker cleanly, after moving its leaders, and start it; or start a stopped one."""
    from kctl.commands.cluster.brokers import request_change

    return request_change("restart", broker, data, timeout)


@app.command("kill", epilog="Example: kctl cluster kill 2")
def kill(broker: _Broker, data: _Data = None) -> int:
    """Kill a broker's process (SIGKILL), as in a crash. Needs a cluster with --processes.

    The other brokers notice it when its session with the metadata store times out.
    """
    from kctl.commands.cluster.brokers import signal_broker

    return signal_broker("kill", broker, data)


@app.command("pause", epilog="Example: kctl cluster pause 2")
def pause(broker: _Broker, data: _Data = None) -> int:
    """Suspend a broker's process (SIGSTOP). Needs a cluster with --processes."""
    from kctl.commands.cluster.brokers import signal_broker

    return signal_broker("pause", broker, data)


@app.command("resume", epilog="Example: kctl cluster resume 2")
def resume(broker: _Broker, data: _Data = None) -> int:
    """Resume a broker's suspended process (SIGCONT)."""
    from kctl.commands.cluster.brokers import signal_broker

    return signal_broker("resume", broker, data)


@app.command("partition", epilog="Example: kctl cluster partition 1,2,store 3")
def partition(
    groups: Annotated[
        list[str],
        typer.Argument(metavar="GROUP…", help="Ids of brokers, or store, separated by commas."),
    ],
    data: _Data = None,
    timeout: _StopTimeout = 60.0,
) -> int:
    """Partition groups of brokers, and the metadata store (store), from each other until heal.

    Brokers that are in no group reach all others, and so do clients. No connection is refused: what
    is sent across the partition waits, like packets that TCP retransmits. A second partition
    replaces the first.
    """
    from kctl.commands.cluster import network as cluster_network

    return cluster_network.partition_brokers(groups, data, timeout)


@app.command("slow", epilog="Example: kctl cluster slow 2 --delay 50ms --loss 1%")
def slow(
    place: Annotated[str, typer.Argument(metavar="BROKER", help="Broker id, or store.")],
    delay: Annotated[
        str | None,
        typer.Option("--delay", metavar="TIME", help="Delay in each direction: 50ms, 1.5s."),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            "--loss", metavar="PERCENT", help="Share of packets to lose in each direction: 1%."
        ),
    ] = None,
    data: _Data = None,
    timeout: _StopTimeout = 60.0,
) -> int:
    """Delay and drop packets between a broker and the other brokers and the store, until heal.

    A lost packet costs the time until TCP retransmits it: 200 ms and the round trip, doubled with
    each further loss. Clients are not affected. --delay 0ms removes the delay.
    """
    from kctl.commands.cluster import network as cluster_network

    return cluster_network.slow_links(place, delay, loss, data, timeout)


@app.command("heal", epilog="Example: kctl cluster heal")
def heal(data: _Data = None, timeout: _StopTimeout = 60.0) -> int:
    """Remove the faults set by partition and slow; waiting frames are sent."""
    from kctl.commands.cluster import network as cluster_network

    return cluster_network.heal_network(data, timeout)


@app.command("add", epilog="Example: kctl cluster add")
def add(data: _Data = None, timeout: _StopTimeout = 60.0) -> int:
    """Add a broker and start it. Existing partitions are not moved to it."""
    from kctl.commands.cluster.brokers import request_change

    return request_change("add", None, data, timeout)


@app.command("remove", epilog="Example: kctl cluster remove 3 -y")
def remove(
    broker: _Broker, data: _Data = None, yes: Yes = False, timeout: _StopTimeout = 60.0
) -> int:
    """Stop a broker and remove its files; refused while it holds replicas."""
    from kctl.commands.cluster.brokers import remove_broker

    return remove_broker(broker, data, timeout, yes=yes)


@app.command("logs", epilog="Example: kctl cluster logs -n 20 --follow")
def logs(
    data: _Data = None,
    lines: Annotated[
        int | None,
        typer.Option("-n", "--lines", min=0, metavar="N", help="Print only the last N lines."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Print lines as they are added, until Ctrl-C.")
    ] = False,
    broker: Annotated[
        int | None,
        typer.Option(
            "--broker", metavar="ID", help="Log of a broker that runs as a separate process."
        ),
    ] = None,
) -> int:
    """Print the log of the cluster's process."""
    from kctl.commands.cluster.lifecycle import print_logs

    return print_logs(data, lines, follow=follow, broker_id=broker)


@app.command("destroy", epilog="Example: kctl cluster destroy --data /tmp/rehearsal -y")
def destroy(
    data: _Data = None,
    yes: Yes = False,
    timeout: _StopTimeout = 60.0,
) -> int:
    """Stop the cluster and delete all its files; other files in its directory are kept."""
    from kctl.commands.cluster.lifecycle import destroy_cluster

    return destroy_cluster(data, timeout, yes=yes)
