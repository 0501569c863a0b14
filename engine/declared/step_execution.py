"""Executes steps; an error of one step does not stop the others.

Consecutive steps of the same kind share requests. Moves of replicas are not executed here, since
they need a plan and a journal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, TypeVar

from engine.client.acl_admin import create_each, delete_each
from engine.client.blocking import KafkaClient
from engine.client.config_admin import (
    ConfigChange,
    ConfigOp,
    ConfigResourceType,
    Resource,
    alter_configs,
)
from engine.client.quota_admin import alter_quotas
from engine.client.scram_admin import NewCredential, alter_credentials
from engine.client.topic_admin import (
    BROKER_DEFAULT,
    CreatedTopic,
    NewPartitions,
    NewTopic,
    create_partitions,
    create_topics,
    delete_topics,
)
from engine.declared.resources import DeclaredPassword, ResourceKind
from engine.declared.steps import (
    AddPartitions,
    ChangeQuotas,
    ChangeSettings,
    CreateRule,
    CreateTopic,
    DeleteCredential,
    DeleteRule,
    DeleteTopic,
    MoveReplicas,
    Operation,
    SetCredential,
    StateStep,
)
from engine.errors import EngineError
from engine.security.acls import AclBinding, AclFilter, EntryFilter, PatternFilter
from engine.security.scram import ITERATIONS_MIN

#: Maximum number of steps in a request, so that a controller has time for them.
_STEPS_PER_REQUEST: Final = 50

T = TypeVar("T")
Errors = Sequence[EngineError | None]


class PasswordNotSet(EngineError):
    """The variable with a declared user's password is missing or empty."""

    def __init__(self, user: str, password: DeclaredPassword | None) -> None:
        """Create the error; `password` is None if the file declares none for the user."""
        variable = None if password is None else password.variable
        self.user = user
        self.variable = variable
        where = "no password is declared"
        if password is not None:
            lack = "not set" if password.value is None else "empty"
            where = f"${{{variable}}} is {lack}"
        super().__init__(f"users: {user} needs a password, and {where}")
        self.hint = (
            "declare it: `password: ${NAME}`"
            if variable is None
            else f"export {variable}, or create the user by `kctl users create {user} --generate`"
        )


def check_passwords(steps: Sequence[StateStep]) -> list[PasswordNotSet]:
    """Return an error for each user whose password is needed and missing, once per user."""
    lacking: dict[str, PasswordNotSet] = {}
    for step in steps:
        operation = step.operation
        if isinstance(operation, SetCredential):
            password = operation.password
            if password is None or not password.value:
                lacking.setdefault(operation.user, PasswordNotSet(operation.user, password))
    return list(lacking.values())


def step_groups(steps: Sequence[StateStep]) -> Iterator[list[StateStep]]:
    """Yield the steps in order, in groups that one call of `perform` can execute."""
    alike = groupby(steps, key=lambda step: (type(step.operation), step.kind, step.deletes))
    for (kind, _, _), group in alike:
        together = list(group)
        size = len(together) if kind is MoveReplicas else _STEPS_PER_REQUEST
        for first in range(0, len(together), size):
            yield together[first : first + size]


def perform(client: KafkaClient, group: Sequence[StateStep]) -> Errors:
    """Execute steps of the same operation; return the error of each, None for success.

    Raises the error of a request whose effect is unknown.
    """
    operations = [step.operation for step in group]
    return _PERFORMERS[type(operations[0])](client, operations)


def validate_steps(client: KafkaClient, steps: Sequence[StateStep]) -> list[EngineError | None]:
    """Let the cluster check steps on topics, settings and quotas; return the error of each.

    Nothing is changed. Other steps are not checked, since there is no request for that.
    """
    errors: list[EngineError | None] = []
    for group in step_groups(steps):
        operations = [step.operation for step in group]
        check = _VALIDATORS.get(type(operations[0]))
        errors += [None] * len(group) if check is None else check(client, operations, True)
    return errors


# -- one function for each operation


def _create_topics(
    client: KafkaClient, operations: Sequence[CreateTopic], validate_only: bool = False
) -> Errors:
    """Create topics with one request; return the error of each. Counts of None are the defaults."""
    topics = [
        NewTopic(
            one.topic,
            one.partitions or BROKER_DEFAULT,
            one.replication_factor or BROKER_DEFAULT,
            one.placement,
            one.settings,
        )
        for one in operations
    ]
    results = create_topics(client, topics, validate_only=validate_only)
    found = [results[one.topic] for one in operations]
    return [None if isinstance(result, CreatedTopic) else result for result in found]


def _add_partitions(
    client: KafkaClient, operations: Sequence[AddPartitions], validate_only: bool = False
) -> Errors:
    """Add partitions to topics with one request; return the error of each."""
    wanted = {one.topic: NewPartitions(one.total, one.placement or None) for one in operations}
    results = create_partitions(client, wanted, validate_only=validate_only)
    return [results[one.topic] for one in operations]


def _change_settings(
    client: KafkaClient, operations: Sequence[ChangeSettings], validate_only: bool = False
) -> Errors:
    """Change settings: all topics with one request, each broker with one of its own.

    Returns the error of each.
    """
    errors: dict[Resource, EngineError | None] = {}
    changes = {_resource_of(one): _config_changes(one.settings) for one in operations}
    topics = {r: c for r, c in changes.items() if r.kind is ConfigResourceType.TOPIC}
    if topics:
        errors |= alter_configs(client, topics, validate_only=validate_only)
    for resource, wanted in changes.items():
        if resource not in topics:
            # A request for each broker: one that does not respond is no error for the others.
            try:
                errors |= alter_configs(client, {resource: wanted}, validate_only=validate_only)
            except EngineError as error:
                errors[resource] = error
    return [errors[_resource_of(one)] for one in operations]


def _resource_of(one: ChangeSettings) -> Resource:
    """Return the topic or broker of a change; an empty broker name means all brokers."""
    is_topic = one.kind is ResourceKind.TOPICS
    kind = ConfigResourceType.TOPIC if is_topic else ConfigResourceType.BROKER
    return Resource(kind, one.resource)


def _config_changes(settings: Mapping[str, str | None]) -> list[ConfigChange]:
    """Return the changes for a request: DELETE for a value of None, else SET."""
    return [
        ConfigChange(ConfigOp.DELETE, name)
        if value is None
        else ConfigChange(ConfigOp.SET, name, value)
        for name, value in settings.items()
    ]


def _set_credentials(client: KafkaClient, operations: Sequence[SetCredential]) -> Errors:
    """Set credentials, each with its own request; return the error of each."""
    return [_error_or_none(_set_credential, client, one) for one in operations]


def _set_credential(client: KafkaClient, one: SetCredential) -> None:
    """Set a credential; raises PasswordNotSet. KRaft refuses two for a user in one request."""
    password = one.password
    if password is None or not password.value:
        raise PasswordNotSet(one.user, password)
    iterations = one.iterations or ITERATIONS_MIN
    credential = NewCredential(one.mechanism, iterations, password.value.encode())
    alter_credentials(client, one.user, (), [credential])


def _delete_credentials(client: KafkaClient, operations: Sequence[DeleteCredential]) -> Errors:
    """Delete credentials, each with its own request; return the error of each."""

    def delete(client: KafkaClient, one: DeleteCredential) -> None:
        """Delete the credential of one user and mechanism."""
        alter_credentials(client, one.user, [one.mechanism], ())

    return [_error_or_none(delete, client, one) for one in operations]


def _change_quotas(
    client: KafkaClient, operations: Sequence[ChangeQuotas], validate_only: bool = False
) -> Errors:
    """Change quotas, with a request for each entity; return the error of each."""

    def change(client: KafkaClient, one: ChangeQuotas) -> None:
        """Set or remove the quotas of one entity."""
        alter_quotas(client, one.entity, one.quotas, validate_only=validate_only)

    return [_error_or_none(change, client, one) for one in operations]


def _create_rules(client: KafkaClient, operations: Sequence[CreateRule]) -> Errors:
    """Create ACLs; return the error of each."""
    return create_each(client, [one.rule for one in operations])


def _delete_rules(client: KafkaClient, operations: Sequence[DeleteRule]) -> Errors:
    """Delete exactly these ACLs; return the error of each.

    One that does not exist any more is not an error.
    """
    results = delete_each(client, [exactly(one.rule) for one in operations])
    return [result if isinstance(result, EngineError) else None for result in results]


def exactly(rule: AclBinding) -> AclFilter:
    """Return the filter that matches only this ACL."""
    pattern, entry = rule
    return AclFilter(PatternFilter(*pattern), EntryFilter(*entry))


def _delete_topics(client: KafkaClient, operations: Sequence[DeleteTopic]) -> Errors:
    """Delete topics with one request; return the error of each."""
    results = delete_topics(client, [one.topic for one in operations])
    return [results[one.topic] for one in operations]


def _error_or_none(
    do: Callable[[KafkaClient, T], None], client: KafkaClient, one: T
) -> EngineError | None:
    """Call `do`; return its error instead of raising it, None for success."""
    try:
        do(client, one)
    except EngineError as error:
        return error
    return None


_PERFORMERS: Final[Mapping[type[Operation], Callable[[KafkaClient, Sequence[Any]], Errors]]] = {
    CreateTopic: _create_topics,
    AddPartitions: _add_partitions,
    ChangeSettings: _change_settings,
    SetCredential: _set_credentials,
    ChangeQuotas: _change_quotas,
    CreateRule: _create_rules,
    DeleteRule: _delete_rules,
    DeleteCredential: _delete_credentials,
    DeleteTopic: _delete_topics,
}
_VALIDATORS: Final[
    Mapping[type[Operation], Callable[[KafkaClient, Sequence[Any], bool], Errors]]
] = {
    CreateTopic: _create_topics,
    AddPartitions: _add_partitions,
    ChangeSettings: _change_settings,
    ChangeQuotas: _change_quotas,
}
