"""`kctl znode`: the nodes of the embedded cluster's metadata store, or of any ZooKeeper."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands.cluster_options import Output, Timeout, noun

app = noun("Nodes of a metadata store: list, read, watch.")

_TIMEOUT_S = 10.0
_Path = Annotated[str, typer.Argument(metavar="PATH", help="As in /brokers/ids.")]
_OptionalPath = Annotated[str, typer.Argument(metavar="[PATH]", help="The root if not given.")]
_Zookeeper = Annotated[
    str | None,
    typer.Option(
        "-z", "--zookeeper", metavar="HOST:PORT[/CHROOT]", help="A ZooKeeper: HOST:PORT,…/CHROOT."
    ),
]
_Data = Annotated[
    str | None,
    typer.Option("--data", metavar="DIR", help="The embedded cluster of this directory."),
]


@app.command("ls", epilog="Example: kctl znode ls /brokers/ids -o name")
def ls(
    path: _OptionalPath = "/",
    zookeeper: _Zookeeper = None,
    data: _Data = None,
    timeout: Timeout = _TIMEOUT_S,
    output: Output = "table",
) -> int:
    """List the children of a node."""
    from kctl.commands.znode_work import Store, list_children

    return list_children(Store(zookeeper, data, timeout), path, output)


@app.command("get", epilog="Example: kctl znode get /controller | jq .brokerid")
def get(
    path: _Path,
    zookeeper: _Zookeeper = None,
    data: _Data = None,
    timeout: Timeout = _TIMEOUT_S,
    output: Annotated[
        str,
        typer.Option(
            "-o", "--output", metavar="FORMAT", help="raw (the bytes as they are), json, yaml, …"
        ),
    ] = "raw",
) -> int:
    """Print the data of a node as it is; with -o json, its stat too."""
    from kctl.commands.znode_work import Store, print_data

    return print_data(Store(zookeeper, data, timeout), path, output)


@app.command("stat", epilog="Example: kctl znode stat /controller_epoch -o yaml")
def stat(
    path: _Path,
    zookeeper: _Zookeeper = None,
    data: _Data = None,
    timeout: Timeout = _TIMEOUT_S,
    output: Output = "table",
) -> int:
    """Show versions, transactions, times and owner of a node."""
    from kctl.commands.znode_work import Store, show_stat

    return show_stat(Store(zookeeper, data, timeout), path, output)


@app.command("tree", epilog="Example: kctl znode tree /brokers --depth 2")
def tree(
    path: _OptionalPath = "/",
    depth: Annotated[
        int | None, typer.Option("--depth", min=0, metavar="N", help="Go so far down.")
    ] = None,
    zookeeper: _Zookeeper = None,
    data: _Data = None,
    timeout: Timeout = _TIMEOUT_S,
    output: Output = "table",
) -> int:
    """Show a node and all that is below it."""
    from kctl.commands.znode_work import Store, show_tree

    return show_tree(Store(zookeeper, data, timeout), path, depth, output)


@app.command("watch", epilog="Example: kctl znode watch /brokers/ids -o ndjson")
def watch(
    path: _Path,
    count: Annotated[
        int | None,
        typer.Option("-n", "--count", min=1, metavar="N", help="End after so many changes."),
    ] = None,
    zookeeper: _Zookeeper = None,
    data: _Data = None,
    timeout: Timeout = _TIMEOUT_S,
    output: Output = "table",
) -> int:
    """Print each change of a node and its children as it comes, until Ctrl-C.

    The node need not be there yet. Changes that come close together may be told as one.
    """
    from kctl.commands.znode_work import Store, watch_changes

    return watch_changes(Store(zookeeper, data, timeout), path, count, output)
