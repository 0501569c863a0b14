"""The options of `kctl cluster`, and their parsing."""

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
        help="Where the cluster's files are; below XDG_DATA_HOME if not given.",
    ),
]
_StopTimeout = Annotated[
    float, typer.Option("--timeout", min=0.001, metavar="SECONDS", help="Give up after this time.")
]


@app.command("start", epilog="Example: kctl cluster start --port 9092 --set num.partitions=3")
def start(
    data: _Data = None,
    brokers: Annotated[
        int | None, typer.Option("--brokers", min=1, metavar="N", help="How many brokers.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            metavar="PORT",
            help="Where the first broker listens, 9092 if not given; 0 for any that is free.",
        ),
    ] = None,
    zookeeper_port: Annotated[
        int | None,
        typer.Option(
            "--zookeeper-port",
            min=0,
            max=65535,
            metavar="PORT",
            help="Where the metadata store listens as ZooKeeper; 0 for where it did last, or any.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A setting of the brokers; may be repeated."
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Settings as in Kafka's server.properties, behind --set; passwords belong there.",
        ),
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(
            "--unset", metavar="KEY", help="Give up a setting of earlier starts; may be repeated."
        ),
    ] = None,
    from_logs: Annotated[
        list[str] | None,
        typer.Option(
            "--from-logs",
            metavar="DIR",
            help="Serve copied log directories, which never change; may be repeated.",
        ),
    ] = None,
    writable: Annotated[
        bool,
        typer.Option("--writable", help="With --from-logs: write, to copies of what changes."),
    ] = False,
    racks: Annotated[
        str | None,
        typer.Option(
            "--racks", metavar="RACK,…", help="The brokers' racks (broker.rack), given in turn."
        ),
    ] = None,
    processes: Annotated[
        bool | None,
        typer.Option(
            "--processes/--one-process",
            help="A process for each broker, and one for the metadata store; or one for all.",
        ),
    ] = None,
    log_dirs: Annotated[
        int | None,
        typer.Option("--log-dirs", metavar="N", min=1, max=100, help="Directories of each broker."),
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(
            "--advertise",
            metavar="HOST",
            help="Listen for other machines, which reach the brokers at this host.",
        ),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure", help="Listen for other machines where anybody may do as they like."
        ),
    ] = False,
    secure: Annotated[
        bool,
        typer.Option(
            "--secure",
            help="With TLS, SCRAM and access rules; keeps a context of its administrator.",
        ),
    ] = False,
    foreground: Annotated[
        bool,
        typer.Option(
            "--foreground",
            help="Run in this process until Ctrl-C or SIGTERM, however long the start takes.",
        ),
    ] = False,
    timeout: _StopTimeout = TIMEOUT_S,
    output: Output = "table",
) -> int:
    """Start the cluster, made the first time; return when clients can connect.

    A later start needs none of the options: they are kept with the data; status -o wide shows them.
    --from-logs serves log directories of another cluster: read-only, all partitions by one broker,
    the fullest copy of each.
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
    """Stop the cluster cleanly; its data stays."""
    from kctl.commands.cluster.lifecycle import stop_cluster

    return stop_cluster(data, timeout)


@app.command("status", epilog="Example: kctl cluster status -o json")
def status(data: _Data = None, output: Output = "table") -> int:
    """Show the cluster: where it runs, its brokers, its controller, what is amiss.

    The exit code is 0 only if all its brokers run.
    """
    from kctl.commands.cluster.status import show_status

    return show_status(data, output)


@app.command("list", epilog="Example: kctl cluster list -o wide")
def list_(output: Output = "table") -> int:
    """List the clusters that were started here: their directories, states and addresses."""
    from kctl.commands.cluster.lifecycle import list_clusters

    return list_clusters(output)


@app.command("repair", epilog="Example: kctl cluster repair --data /tmp/rehearsal --dry-run")
def repair(
    data: _Data = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what would be written; change nothing. Exit code 5."),
    ] = False,
    yes: Yes = False,
    timeout: _StopTimeout = 60.0,
    output: Output = "table",
) -> int:
    """Write lost or damaged metadata again from the log directories. Shows it and asks first.

    Topics come back with their ids, partitions and records; settings of topics are not known there.
    """
    from kctl.commands.cluster.repair import RepairRequest, repair_cluster

    return repair_cluster(RepairRequest(data, dry_run, yes, timeout, output))


_Broker = Annotated[int, typer.Argument(metavar="BROKER", help="The broker's id.")]


@app.command("restart", epilog="Example: kctl cluster restart 2")
def restart(broker: _Broker, data: _Data = None, timeout: _StopTimeout = 60.0) -> int:
    """Stop a broker cleanly, its leaders first, and start it; one that does not run is started."""
    from kctl.commands.cluster.brokers import request_change

    return request_change("restart", broker, data, timeout)


@app.command("kill", epilog="Example: kctl cluster kill 2")
def kill(broker: _Broker, data: _Data = None) -> int:
    """Kill a broker's process (SIGKILL): a crash. Needs a cluster with --processes.

    The others learn of it when its session with the metadata store times out.
    """
    from kctl.commands.cluster.brokers import signal_broker

    return signal_broker("kill", broker, data)


@app.command("pause", epilog="Example: kctl cluster pause 2")
def pause(broker: _Broker, data: _Data = None) -> int:
    """Have a broker's process stand still (SIGSTOP). Needs a cluster with --processes."""
    from kctl.commands.cluster.brokers import signal_broker

    return signal_broker("pause", broker, data)


@app.command("resume", epilog="Example: kctl cluster resume 2")
def resume(broker: _Broker, data: _Data = None) -> int:
    """Have a broker's process that was paused go on (SIGCONT)."""
    from kctl.commands.cluster.brokers import signal_broker

    return signal_broker("resume", broker, data)


@app.command("partition", epilog="Example: kctl cluster partition 1,2,store 3")
def partition(
    groups: Annotated[
        list[str],
        typer.Argument(metavar="GROUP…", help="Brokers' ids, and store, with commas between."),
    ],
    data: _Data = None,
    timeout: _StopTimeout = 60.0,
) -> int:
    """Cut groups of brokers from each other, and from the metadata store (store), until heal.

    Who is in no group reaches all, and so do clients. Nothing is refused: what is sent over the cut
    waits, as packets that TCP sends again. A second partition takes the place of the first.
    """
    from kctl.commands.cluster import network as cluster_network

    return cluster_network.partition(groups, data, timeout)


@app.command("slow", epilog="Example: kctl cluster slow 2 --delay 50ms --loss 1%")
def slow(
    place: Annotated[str, typer.Argument(metavar="BROKER", help="The broker's id, or store.")],
    delay: Annotated[
        str | None,
        typer.Option("--delay", metavar="TIME", help="Later by this, each way: 50ms, 1.5s."),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option("--loss", metavar="PERCENT", help="Lose so many packets, each way: 1%."),
    ] = None,
    data: _Data = None,
    timeout: _StopTimeout = 60.0,
) -> int:
    """Delay and lose packets between a broker and the others and the store, until heal.

    TCP sends a lost packet again after a time-out, 200 ms and the round trip, twice that the next
    time: that is what a loss costs. Clients are not slower. --delay 0ms takes it back.
    """
    from kctl.commands.cluster import network as cluster_network

    return cluster_network.slow(place, delay, loss, data, timeout)


@app.command("heal", epilog="Example: kctl cluster heal")
def heal(data: _Data = None, timeout: _StopTimeout = 60.0) -> int:
    """Take back what partition and slow have set: what waited is sent."""
    from kctl.commands.cluster import network as cluster_network

    return cluster_network.heal(data, timeout)


@app.command("add", epilog="Example: kctl cluster add")
def add(data: _Data = None, timeout: _StopTimeout = 60.0) -> int:
    """Add a broker, which runs at once. Topics that are there stay where they are."""
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
        typer.Option("-n", "--lines", min=0, metavar="N", help="Only so many of the last lines."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on as lines are added, until Ctrl-C.")
    ] = False,
    broker: Annotated[
        int | None,
        typer.Option("--broker", metavar="ID", help="Of a broker with a process of its own."),
    ] = None,
) -> int:
    """Print what the cluster's process had to say."""
    from kctl.commands.cluster.lifecycle import print_logs

    return print_logs(data, lines, follow=follow, broker_id=broker)


@app.command("destroy", epilog="Example: kctl cluster destroy --data /tmp/rehearsal -y")
def destroy(
    data: _Data = None,
    yes: Yes = False,
    timeout: _StopTimeout = 60.0,
) -> int:
    """Stop the cluster and remove all that it made; other files in its directory stay."""
    from kctl.commands.cluster.lifecycle import destroy_cluster

    return destroy_cluster(data, timeout, yes=yes)
