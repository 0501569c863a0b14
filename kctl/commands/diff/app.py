"""`kctl diff`: the changes that `kctl apply` would make."""

from __future__ import annotations

from kctl.connect import ClusterOptions
from kctl.options.cluster import Output, on_cluster, one_command
from kctl.options.state import Prune, StateFiles

app = one_command()


@app.command(epilog="Examples: kctl diff -f state.yaml · kctl diff -f clusters/prod --prune")
@on_cluster
def diff(
    cluster: ClusterOptions,
    file: StateFiles = None,
    prune: Prune = False,
    output: Output = "table",
) -> int:
    """Show the steps from a cluster's state to the one that files declare.

    Exit code 5 for any step.

    `kctl apply` performs them in this order.
    """
    from kctl.commands.diff.differing import show_difference

    return show_difference(cluster, file or [], prunes=prune, output=output)
