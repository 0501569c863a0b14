"""Implementation of `kctl reassign explain`: the steps of each partition, as rows or a picture."""

from __future__ import annotations

import sys

from engine.planner.plan import PartitionChange
from engine.reassign.explaining import MoveStep, explain_steps
from kctl import exits
from kctl.commands.reassign.status import read_changes
from kctl.connect import ClusterOptions, connect
from kctl.render import Column, check_format, write_rows

STEP_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("step", "STEP"),
    Column("what", "WHAT"),
    Column("replicas", "REPLICAS", kind="integer[]"),
    Column("isr", "ISR", kind="integer[]"),
    Column("leader", "LEADER", right=True, kind="integer?"),
    Column("clients", "CLIENTS-NOTICE", wide=True),
    Column("failure", "IF-IT-FAILS", wide=True),
)


def explain_plan(options: ClusterOptions, path: str, output: str) -> int:
    """Print through which steps the reassignment of each partition of a plan goes.

    Returns the exit code. On a terminal they are drawn as tables.
    """
    check_format(output)
    with connect(options) as client:
        changes = read_changes(client, path)
    if output == "table" and sys.stdout.isatty():
        for change in changes:
            _draw_steps(change)
        return exits.OK
    write_rows(STEP_COLUMNS, [r for change in changes for r in _step_rows(change)], output)
    return exits.OK


def _step_rows(change: PartitionChange) -> list[dict[str, object]]:
    """Return a row for each step of the partition's reassignment."""
    return [
        {
            "topic": change.topic,
            "partition": change.partition,
            "step": step.letter,
            "what": step.what,
            "replicas": list(step.replicas),
            "isr": list(step.isr),
            "leader": step.leader,
            "clients": step.clients,
            "failure": step.failure,
        }
        for step in explain_steps(change)
    ]


def _draw_steps(change: PartitionChange) -> None:
    """Draw a partition's steps: a column for each broker, a row for each step."""
    from rich.console import Console
    from rich.table import Table

    brokers = sorted({*change.old_replicas, *change.new_replicas})
    table = Table(
        title=f"{change.name}: {_ids(change.old_replicas)} to {_ids(change.new_replicas)}"
    )
    table.add_column("step")
    for broker_id in brokers:
        table.add_column(f"broker {broker_id}", justify="center")
    table.add_column("what")
    table.add_column("clients notice")
    table.add_column("if it fails")
    for step in explain_steps(change):
        marks = [_broker_state_text(step, broker_id) for broker_id in brokers]
        table.add_row(step.letter, *marks, step.what, step.clients, step.failure)
    Console().print(table)


def _broker_state_text(step: MoveStep, broker_id: int) -> str:
    """Return a broker's state in a step: leader, in sync, copies, or "" if it has no replica."""
    if broker_id not in step.replicas:
        return ""
    if broker_id == step.leader:
        return "leader"
    return "in sync" if broker_id in step.isr else "copies"


def _ids(ids: tuple[int, ...]) -> str:
    """Return broker ids as text, such as `1,2,3`."""
    return ",".join(map(str, ids))
