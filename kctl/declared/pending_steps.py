"""Compares files with a cluster, and makes rows and lines of the steps between them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from engine.client.blocking import KafkaClient
from engine.declared.comparison import StateComparison, compare
from engine.declared.pruning import undeclared_steps
from engine.declared.resources import CurrentState, DeclaredState, ResourceKind
from engine.declared.state_reading import (
    read_broker_ids,
    read_brokers,
    read_quotas,
    read_rules,
    read_topics,
    read_users,
)
from engine.declared.steps import (
    CreateRule,
    DeleteRule,
    PropertyChange,
    SetCredential,
    StateStep,
    StepAction,
)
from engine.errors import EngineError
from engine.host.real import RealFiles
from kctl import exits
from kctl.arguments import counted
from kctl.commands.acls.rule_texts import rule_text
from kctl.commands.users.credentials import note_users_without_login
from kctl.connect import ClusterOptions
from kctl.console import notify, report_error
from kctl.context import choose
from kctl.declared.state_files import ReadState, read_state_files
from kctl.render import Column
from kctl.render.rows import OutputRow
from kctl.render.visible import visible_cell

_PROPERTY_COLUMNS: Final = (
    Column("property", "PROPERTY"),
    Column("before", "BEFORE", kind="string?"),
    Column("after", "AFTER", kind="string?"),
)
STEP_COLUMNS: Final = (
    Column("step", "STEP", right=True),
    Column("action", "ACTION"),
    Column("kind", "KIND"),
    Column("name", "NAME", is_name=True),
    Column("change", "CHANGE"),
    Column("changes", "PROPERTIES", wide=True, kind="object[]", fields=_PROPERTY_COLUMNS),
)
_NOTED_MAX: Final = 5


class NoFiles(EngineError):
    """No file is named."""

    exit_code = exits.USAGE
    hint = "give -f FILE or -f DIR; `kctl export` writes the state of a cluster as a file"

    def __init__(self) -> None:
        super().__init__("which state? No file is named")


class ImpossibleProperty(EngineError):
    """A declared property is impossible; nothing was changed."""

    def __init__(self, faults: Sequence[EngineError]) -> None:
        self.faults = tuple(faults)
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        super().__init__(f"{faults[0]}{more}; nothing was changed")
        self.hint = faults[0].hint


def read_declared(options: ClusterOptions, paths: Sequence[str]) -> DeclaredState:
    """Return the state that files declare for the chosen cluster.

    Prints a note on documents for other clusters. Errors: NoFiles, BadStateFile, those of choosing
    a cluster.
    """
    if not paths:
        raise NoFiles
    choice = choose(
        os.environ,
        RealFiles(),
        bootstrap_server=options.bootstrap_server,
        context=options.context,
        command_config=options.command_config,
    )
    read: ReadState = read_state_files(paths, choice.context, os.environ)
    for line in read.passed_over:
        notify(f"note: passed over: {line}")
    return read.state


def read_cluster_state(client: KafkaClient, declared: DeclaredState) -> CurrentState:
    """Request the state of the declared kinds of resources; raises the errors of requests."""
    kinds = declared.kinds
    state = CurrentState(read_broker_ids(client))
    if ResourceKind.TOPICS in kinds:
        # Settings of undeclared topics are not compared: those topics are deleted or kept.
        state = state._replace(topics=read_topics(client, described=declared.topics))
    if ResourceKind.USERS in kinds:
        state = state._replace(users=read_users(client))
    if ResourceKind.ACLS in kinds:
        state = state._replace(acls=read_rules(client))
    if ResourceKind.QUOTAS in kinds:
        state = state._replace(quotas=read_quotas(client))
    if ResourceKind.BROKERS in kinds:
        state = state._replace(brokers=read_brokers(client))
    return state


def compare_with_cluster(
    client: KafkaClient, declared: DeclaredState, *, prunes: bool
) -> StateComparison:
    """Return the steps from a cluster to the declared state, and print notes.

    The notes name undeclared resources, and users who could not log in. `prunes` adds steps that
    delete undeclared resources. Errors: ImpossibleProperty, those of requests.
    """
    state = read_cluster_state(client, declared)
    comparison = compare(declared, state, prunes=prunes)
    if comparison.faults:
        for fault in comparison.faults[1:]:
            report_error(fault)
        raise ImpossibleProperty(comparison.faults)
    operations = [step.operation for step in comparison.steps]
    given = (each.user for each in operations if isinstance(each, SetCredential))
    note_users_without_login(dict.fromkeys(given))
    if not prunes:
        _note_undeclared(undeclared_steps(declared, state))
    return comparison


def _note_undeclared(steps: Sequence[StateStep]) -> None:
    """Print a note for each kind on undeclared resources, which are kept without --prune."""
    by_kind: dict[ResourceKind, list[str]] = {}
    for step in steps:
        by_kind.setdefault(step.kind, []).append(name_of(step))
    for kind, named in by_kind.items():
        # Deleting a user takes a step for each mechanism.
        names = list(map(visible_cell, dict.fromkeys(named)))
        few = ", ".join(names[:_NOTED_MAX]) + (", …" if len(names) > _NOTED_MAX else "")
        notify(f"note: not declared and left, {kind.value}: {few}; --prune would delete them")


def name_of(step: StateStep) -> str:
    """Return the name of the resource that a step changes; an ACL's name is its full text."""
    if isinstance(step.operation, CreateRule | DeleteRule):
        return rule_text(step.operation.rule)
    return step.name


def step_row(number: int, step: StateStep) -> OutputRow:
    """Return a step to the declared state as an output row; `number` counts from 1."""
    return {
        "step": number,
        "action": step.action.value,
        "kind": step.kind.value,
        "name": name_of(step),
        "change": change_text(step),
        "changes": [change._asdict() for change in step.changes],
    }


def change_text(step: StateStep) -> str:
    """Return the changes of properties in a step as text: `KEY=NEW (was OLD), …`."""
    return ", ".join(_property_text(change, step.action) for change in step.changes)


def _property_text(change: PropertyChange, action: StepAction) -> str:
    """Return a change of one property as text.

    It is `KEY=NEW (was OLD)`, or without a value on one side `KEY=NEW`, `unset KEY (OLD)`.
    """
    name, before, after = change
    if before is None:
        return f"{name}={'' if after is None else after}"
    if after is None:
        return f"{name}={before}" if action is StepAction.DELETE else f"unset {name} ({before})"
    return f"{name}={after} (was {before})"


def step_line(number: int, step: StateStep) -> str:
    """Return a step as a line of text without control characters."""
    change = change_text(step)
    kind = "acl" if step.kind is ResourceKind.ACLS else step.kind.value.removesuffix("s")
    line = f"{number:>3}. {step.action.value} {kind} {name_of(step)}{change and f': {change}'}"
    # Values may be from any client: they must not control the terminal or fake another step.
    return visible_cell(line)


def steps_counted(steps: Sequence[StateStep]) -> str:
    """Return the number of steps as text: `1 step`, `2 steps`."""
    return counted(len(steps), "step")
