"""Implementation of `kctl apply`: show the steps, confirm, perform them in order."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.config_admin import ConfigChange, ConfigOp, ConfigResourceType, Resource
from engine.declared.resources import ResourceKind
from engine.declared.step_execution import Errors, check_passwords, perform, validate_steps
from engine.declared.steps import (
    AddPartitions,
    ChangeSettings,
    CreateTopic,
    DeleteCredential,
    DeleteTopic,
    MoveReplicas,
    StateStep,
)
from engine.errors import EngineError
from engine.reassign.cluster_reader import ReassignmentInProgress
from kctl import exits
from kctl.command_results import end_with
from kctl.commands.apply.moving import check_moves, execute_moves, finish_earlier_moves
from kctl.commands.apply.step_run import StepResult, StepRun
from kctl.commands.reassign.execute import execution_settings
from kctl.commands.topics.metadata_wait import await_created, await_deleted, await_partitions
from kctl.connect import ClusterOptions, cluster_named, connect
from kctl.console import confirm, notify, report_error
from kctl.declared.open_moves import has_earlier_moves
from kctl.declared.pending_steps import (
    STEP_COLUMNS,
    ImpossibleProperty,
    compare_with_cluster,
    name_of,
    read_declared,
    step_line,
    step_row,
    steps_counted,
)
from kctl.declared.state_schema import state_schema
from kctl.options.moves import MoveOptions
from kctl.render import Column, check_format
from kctl.schemas import schema_text
from kctl.setting_checks import notes_on_unknown, with_hint

RESULT_COLUMNS: Final = (
    *STEP_COLUMNS,
    Column("result", "RESULT"),
    Column("error", "ERROR", wide=True, kind="string?"),
)
_PENDING: Final = "pending"


class DeletionNotAllowed(EngineError):
    """The plan deletes resources, but --allow-delete is not given."""

    exit_code = exits.USAGE
    hint = "add --allow-delete, or leave --prune out"

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(f"{count} of the steps delete something; nothing was changed")


class TooManyDeletions(EngineError):
    """The plan deletes more resources than --max-deletions allows."""

    exit_code = exits.USAGE

    def __init__(self, count: int, most: int) -> None:
        self.count = count
        self.most = most
        self.hint = f"is the state whole? If it is meant, add --max-deletions {count}"
        super().__init__(
            f"{count} of the steps delete something, more than {most}; nothing was changed"
        )


class ApplyStateRequest(NamedTuple):
    """The options of `kctl apply`."""

    files: Sequence[str]
    prunes: bool
    allows_deletion: bool
    deletions_max: int
    moves: MoveOptions


def print_state_schema() -> int:
    """Print the JSON Schema of files of declared state; returns the exit code."""
    sys.stdout.write(schema_text(state_schema()))
    return exits.OK


def apply_state(options: ClusterOptions, request: ApplyStateRequest) -> int:
    """Change the cluster to the declared state, print a row for each step, return the exit code.

    Moves of replicas that an interrupted `apply` began are finished first.
    """
    moves = request.moves
    check_format(moves.output)
    # Check the options of moves even if no replica moves.
    execution_settings(moves)
    declared = read_declared(options, request.files)
    with connect(options) as client:
        has_moves = has_earlier_moves(client)
        if has_moves and not moves.dry_run:
            has_moves = finish_earlier_moves(client, moves) != exits.OK
        steps = compare_with_cluster(client, declared, prunes=request.prunes).steps
        for number, step in enumerate(steps, 1):
            notify(step_line(number, step))
        if steps:
            _validate_steps(client, steps, request)
        if moves.dry_run:
            rows = [{**step_row(n, s), "result": _PENDING} for n, s in enumerate(steps, 1)]
            end_with(RESULT_COLUMNS, rows, moves.output)
            return exits.CHANGES_PENDING if steps or has_moves else exits.OK
        if not steps:
            notify("nothing to change: the cluster has the declared state")
            return end_with(RESULT_COLUMNS, [], moves.output, failures=has_moves)
        confirm(f"carry out {steps_counted(steps)}, of {cluster_named(client)}", yes=moves.yes)
        return _carry_out(client, steps, moves)


def _validate_steps(
    client: KafkaClient, steps: Sequence[StateStep], request: ApplyStateRequest
) -> None:
    """Check all steps, by the brokers' validation too, before the first one changes anything.

    Raises if any is not allowed or impossible: DeletionNotAllowed, TooManyDeletions,
    ImpossibleProperty, those of impossible moves. Prints all faults but the first, which is raised.
    """
    deletions = sum(step.deletes for step in steps)
    if deletions and not request.allows_deletion and not request.moves.dry_run:
        raise DeletionNotAllowed(deletions)
    if deletions > request.deletions_max:
        raise TooManyDeletions(deletions, request.deletions_max)
    faults: list[EngineError] = [*_own_login_deletions(client, steps), *check_passwords(steps)]
    for step, error in zip(steps, validate_steps(client, steps), strict=True):
        if error is not None:
            faults.append(_Refused(step, _with_hint(step, error)))
    if faults:
        for fault in faults[1:]:
            report_error(fault)
        raise ImpossibleProperty(faults)
    # A topic that does not exist yet has no replicas whose move could be planned.
    created = {s.name for s in steps if isinstance(s.operation, CreateTopic)}
    operations = [s.operation for s in steps if isinstance(s.operation, MoveReplicas)]
    operations = [one for one in operations if one.topic not in created]
    if not operations:
        return
    try:
        check_moves(client, operations, request.moves)
    except ReassignmentInProgress as error:
        # Other steps continue; the cause may have ended when a later step runs.
        notify(f"warning: replicas cannot be moved now: {error}")


class OwnLogin(EngineError):
    """The user that the command logs in as would be deleted."""

    hint = "declare the user, or log in as another"

    def __init__(self, user: str) -> None:
        self.user = user
        super().__init__(f"users: {user} would be deleted, and this command logs in as that user")


def _own_login_deletions(client: KafkaClient, steps: Sequence[StateStep]) -> list[OwnLogin]:
    """Return one fault if a step deletes the SCRAM credential that this command logs in with."""
    login = client.settings.sasl
    users = {step.operation.user for step in steps if isinstance(step.operation, DeleteCredential)}
    return [] if login is None or login.username not in users else [OwnLogin(login.username)]


class _Refused(EngineError):
    """The cluster refuses a step in validation."""

    def __init__(self, step: StateStep, error: EngineError) -> None:
        super().__init__(f"{step.kind.value}: {name_of(step)}: {error}")
        self.hint = error.hint


def _with_hint(step: StateStep, error: EngineError) -> EngineError:
    """Add similarly named settings as a hint, if the failed step sets settings.

    Other errors are returned unchanged. A new topic is checked as `TOPIC`, for it may not exist
    yet.
    """
    operation = step.operation
    if isinstance(operation, CreateTopic):
        resource = Resource(ConfigResourceType.TOPIC, "TOPIC")
        return with_hint(error, resource, _changes(dict(operation.settings)))
    if isinstance(operation, ChangeSettings):
        return with_hint(error, _resource(operation), _changes(dict(operation.settings)))
    return error


def _resource(operation: ChangeSettings) -> Resource:
    """Return the topic or broker whose settings the operation changes, as requests name it."""
    is_topic = operation.kind is ResourceKind.TOPICS
    kind = ConfigResourceType.TOPIC if is_topic else ConfigResourceType.BROKER
    return Resource(kind, operation.resource)


def _changes(settings: dict[str, str | None]) -> list[ConfigChange]:
    """Return the settings that have a value as changes, whose names `with_hint` compares."""
    return [ConfigChange(ConfigOp.SET, name, value) for name, value in settings.items() if value]


# -- carrying out


def _carry_out(client: KafkaClient, steps: Sequence[StateStep], moves: MoveOptions) -> int:
    """Perform the steps and print a row for each, even if interrupted.

    Returns the exit code: UNREACHABLE if a step failed because the cluster does not respond.
    """
    run = StepRun(steps, lambda group: _perform_group(client, group, moves))
    try:
        run.run()
    except KeyboardInterrupt:
        notify("interrupted: the same command again does what is left")
        raise
    finally:
        code = _print_results(steps, run.results, moves.output)
    return exits.UNREACHABLE if run.is_out_of_reach else code


def _perform_group(client: KafkaClient, group: Sequence[StateStep], moves: MoveOptions) -> Errors:
    """Perform steps of one kind; print and return the error of each, None for success."""
    operations = [s.operation for s in group if isinstance(s.operation, MoveReplicas)]
    errors: Errors
    try:
        errors = execute_moves(client, operations, moves) if operations else perform(client, group)
    except EngineError as of_all:
        errors = [of_all] * len(group)
    for step, error in zip(group, errors, strict=True):
        if error is not None:
            report_error(_with_hint(step, error), name_of(step))
    _await_changes(client, [s for s, error in zip(group, errors, strict=True) if error is None])
    return errors


def _await_changes(client: KafkaClient, steps: Sequence[StateStep]) -> None:
    """Wait until brokers report the topics of successful steps as created, extended or deleted.

    Prints a note for each setting that no broker knows.
    """
    operations = [step.operation for step in steps]
    await_created(client, [one.topic for one in operations if isinstance(one, CreateTopic)])
    await_partitions(
        client, {one.topic: one.total for one in operations if isinstance(one, AddPartitions)}
    )
    await_deleted(client, [one.topic for one in operations if isinstance(one, DeleteTopic)])
    for one in operations:
        if isinstance(one, ChangeSettings):
            names = [name for name, value in one.settings.items() if value is not None]
            for line in notes_on_unknown(_resource(one), names):
                notify(line)


def _print_results(steps: Sequence[StateStep], results: Sequence[StepResult], output: str) -> int:
    """Print the result of each step; return the exit code, PROBLEM if a step is not done."""
    rows = [
        {
            **step_row(number, step),
            "result": ended.result,
            "error": None if ended.error is None else str(ended.error),
        }
        for number, (step, ended) in enumerate(zip(steps, results, strict=True), 1)
    ]
    failures = sum(not ended.is_done for ended in results)
    code = end_with(RESULT_COLUMNS, rows, output, failures=failures)
    if failures:
        notify(
            f"{failures} of {steps_counted(steps)} not done: run the same command again for these"
        )
    return code
