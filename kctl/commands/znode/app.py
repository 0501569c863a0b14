"""`kctl znode`: nodes of the embedded cluster's metadata store, or of a ZooKeeper."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.options.cluster import FORMATS_HELP, Output, Timeout, Yes, noun

app = noun("Nodes of a metadata store: list, read, watch, change.")

_TIMEOUT_S = 10.0
_Path = Annotated[str, typer.Argument(metavar="PATH", help="Path of a node, such as /brokers/ids.")]
_OptionalPath = Annotated[
    str, typer.Argument(metavar="[PATH]", help="Path of a node; default: the root.")
]
_Zookeeper = Annotated[
    str | None,
    typer.Option(
        "-z", "--zookeeper", metavar="HOST:PORT[/CHROOT]", help="ZooKeeper: HOST:PORT,…/CHROOT."
    ),
]
_Data = Annotated[
    str | None,
    typer.Option("--data", metavar="DIR", help="Directory of the embedded cluster."),
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
            "-o", "--output", metavar="FORMAT", help=f"raw (unchanged bytes), {FORMATS_HELP}"
        ),
    ] = "raw",
) -> int:
    """Print the data of a node unchanged; with -o json also its stat."""
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
    """Show versions, transaction ids, times and owner of a node."""
    from kctl.commands.znode.nodes import Store, show_stat

    return show_stat(Store(zookeeper, data, timeout), path, output)


@app.command("tree", epilog="Example: kctl znode tree /brokers --depth 2")
def tree(
    path: _OptionalPath = "/",
    depth: Annotated[
        int | None, typer.Option("--depth", min=0, metavar="N", help="Maximum depth.")
    ] = None,
    zookeeper: _Zookeeper = None,
    data: _Data = None,
    timeout: Timeout = _TIMEOUT_S,
    output: Output = "table",
) -> int:
    """Show a node and all its descendants."""
    from kctl.commands.znode.nodes import Store, show_tree

    return show_tree(Store(zookeeper, data, timeout), path, depth, output)


@app.command("watch", epilog="Example: kctl znode watch /brokers/ids -o ndjson")
def watch(
    path: _Path,
    count: Annotated[
        int | None,
        typer.Option("-n", "--count", min=1, metavar="N", help="Stop after N changes."),
    ] = None,
    zookeeper: _Zookeeper = None,
    data: _Data = None,
    timeout: Timeout = _TIMEOUT_S,
    output: Output = "table",
) -> int:
    """Print each change of a node and its children, until Ctrl-C.

    The node need not exist. Changes in quick succession may be reported as one.
    """
    from kctl.commands.znode.nodes import Store, watch_changes

    return watch_changes(Store(zookeeper, data, timeout), path, count, output)


_Text = Annotated[
    str | None,
    typer.Argument(metavar="[DATA]", help="Data as text; - for stdin."),
]
_File = Annotated[str | None, typer.Option("--file", metavar="FILE", help="File with the data.")]
_Version = Annotated[
    int | None,
    typer.Option("--version", min=0, metavar="N", help="Required version of the node."),
]


@app.command("create", epilog="Example: kctl znode create /admin/note 'by hand' --parents")
def create(
    path: _Path,
    text: _Text = None,
    file: _File = None,
    parents: Annotated[
        bool, typer.Option("-p", "--parents", help="Create missing parents.")
    ] = False,
    sequential: Annotated[
        bool,
        typer.Option("--sequential", help="Append a sequence number of ten digits to the path."),
    ] = False,
    ephemeral: Annotated[
        bool, typer.Option("-e", "--ephemeral", hidden=True, help="Refused: see below.")
    ] = False,
    zookeeper: _Zookeeper = None,
    data: _Data = None,
    timeout: Timeout = _TIMEOUT_S,
    output: Output = "table",
) -> int:
    """Create a persistent node; an existing node is an error.

    Ephemeral nodes are not supported: they would be deleted with this command's session.
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
    """Replace the data of an existing node. Brokers use the new data without checks."""
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
        bool, typer.Option("-r", "--recursive", help="Delete its descendants, too.")
    ] = False,
    version: _Version = None,
    yes: Yes = False,
    zookeeper: _Zookeeper = None,
    data: _Data = None,
    timeout: Timeout = _TIMEOUT_S,
    output: Output = "table",
) -> int:
    """Delete a node, after showing the cluster and asking."""
    from kctl.commands.znode.changes import ChangeRequest, delete_node
    from kctl.commands.znode.nodes import Store

    request = ChangeRequest(path, None, None, version, output)
    return delete_node(Store(zookeeper, data, timeout), request, recursive=recursive, yes=yes)
