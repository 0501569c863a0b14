"""`kctl znode`: the nodes of the embedded cluster's metadata store, or of any ZooKeeper."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.options.cluster import FORMATS_HELP, Output, Timeout, Yes, noun

app = noun("Nodes of a metadata store: list, read, watch, change.")

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
    from kctl.commands.znode.nodes import Store, list_children

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
            "-o", "--output", metavar="FORMAT", help=f"raw (the bytes as they are), {FORMATS_HELP}"
        ),
    ] = "raw",
) -> int:
    """Print the data of a node as it is; with -o json, its stat too."""
    from kctl.commands.znode.nodes import Store, print_data

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
    from kctl.commands.znode.nodes import Store, show_stat

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
    from kctl.commands.znode.nodes import Store, show_tree

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
    from kctl.commands.znode.nodes import Store, watch_changes

    return watch_changes(Store(zookeeper, data, timeout), path, count, output)


_Text = Annotated[
    str | None,
    typer.Argument(metavar="[DATA]", help="The data as text; - reads it from stdin."),
]
_File = Annotated[
    str | None, typer.Option("--file", metavar="FILE", help="Take the data from a file.")
]
_Version = Annotated[
    int | None,
    typer.Option("--version", min=0, metavar="N", help="Only if the node has this version."),
]


@app.command("create", epilog="Example: kctl znode create /admin/note 'by hand' --parents")
def create(
    path: _Path,
    text: _Text = None,
    file: _File = None,
    parents: Annotated[
        bool, typer.Option("-p", "--parents", help="Make the parents too that are missing.")
    ] = False,
    sequential: Annotated[
        bool, typer.Option("--sequential", help="Have ten digits put behind the path.")
    ] = False,
    ephemeral: Annotated[
        bool, typer.Option("-e", "--ephemeral", hidden=True, help="Refused: see below.")
    ] = False,
    zookeeper: _Zookeeper = None,
    data: _Data = None,
    timeout: Timeout = _TIMEOUT_S,
    output: Output = "table",
) -> int:
    """Create a node, for good. One that is there already is an error.

    There are no ephemeral nodes: such a one would go with the session of this command.
    """
    from kctl.commands.znode.changes import ChangeRequest, create_node
    from kctl.commands.znode.nodes import Store

    request = ChangeRequest(path, text, file, None, output)
    return create_node(
        Store(zookeeper, data, timeout),
        request,
        parents=parents,
        sequential=sequential,
        ephemeral=ephemeral,
    )


@app.command("set", epilog="Example: kctl znode set /admin/note 'changed' --version 0")
def set_(
    path: _Path,
    text: _Text = None,
    file: _File = None,
    version: _Version = None,
    zookeeper: _Zookeeper = None,
    data: _Data = None,
    timeout: Timeout = _TIMEOUT_S,
    output: Output = "table",
) -> int:
    """Replace the data of a node that is there. Brokers take what they find."""
    from kctl.commands.znode.changes import ChangeRequest, set_node
    from kctl.commands.znode.nodes import Store

    request = ChangeRequest(path, text, file, version, output)
    return set_node(Store(zookeeper, data, timeout), request)


@app.command(
    "delete", epilog="Examples: kctl znode delete /admin/note · kctl znode delete /old -r -y"
)
def delete(
    path: _Path,
    recursive: Annotated[
        bool, typer.Option("-r", "--recursive", help="With all nodes below it.")
    ] = False,
    version: _Version = None,
    yes: Yes = False,
    zookeeper: _Zookeeper = None,
    data: _Data = None,
    timeout: Timeout = _TIMEOUT_S,
    output: Output = "table",
) -> int:
    """Remove a node. Shows the cluster, and asks first."""
    from kctl.commands.znode.changes import ChangeRequest, delete_node
    from kctl.commands.znode.nodes import Store

    request = ChangeRequest(path, None, None, version, output)
    return delete_node(Store(zookeeper, data, timeout), request, recursive=recursive, yes=yes)
