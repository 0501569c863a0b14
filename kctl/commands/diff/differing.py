"""Implementation of `kctl diff`."""

from __future__ import annotations

from collections.abc import Sequence

from kctl import exits
from kctl.connect import ClusterOptions, connect
from kctl.console import notify
from kctl.declared.open_moves import has_earlier_moves
from kctl.declared.pending_steps import STEP_COLUMNS, compare_with_cluster, read_declared, step_row
from kctl.render import check_format, write_rows


def show_difference(
    options: ClusterOptions, paths: Sequence[str], *, prunes: bool, output: str
) -> int:
    """Print the steps from the cluster's state to the declared one; returns the exit code.

    It is CHANGES_PENDING if there is a step, or a move of an earlier `apply` is unfinished.
    """
    check_format(output)
    declared = read_declared(options, paths)
    with connect(options) as client:
        has_moves = has_earlier_moves(client)
        steps = compare_with_cluster(client, declared, prunes=prunes).steps
    write_rows(STEP_COLUMNS, [step_row(n, step) for n, step in enumerate(steps, 1)], output)
    if steps or has_moves:
        return exits.CHANGES_PENDING
    notify("nothing to change: the cluster has the declared state")
    return exits.OK
