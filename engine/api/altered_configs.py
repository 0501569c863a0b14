"""Alter the settings of a request's resources, and make the rows of its response.

Shared by AlterConfigs and IncrementalAlterConfigs.
Source: ConfigAdminManager of 3.9.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from engine.admin.config_alteration import ConfigAlteration, Edit
from engine.admin.config_errors import InvalidRequest
from engine.api.admission import NotAuthorized
from engine.api.config_resources import (
    RESOURCE_TYPES,
    AlteredResource,
    ResourceResult,
    ResourceType,
    require_own_id,
    result_of_error,
)
from engine.api.promised import promised
from engine.errors import EngineError
from engine.host.promise import Promise

R = TypeVar("R", bound=AlteredResource)
T = TypeVar("T")


async def alter_resource(
    alteration: ConfigAlteration, resource: AlteredResource, edit: Edit, *, validate_only: bool
) -> None:
    """Change the settings of one topic or broker by `edit`, for both AlterConfigs APIs.

    With `validate_only` nothing changes. Raises ApiError, ConfigError, and the errors of the store.
    """
    kind, name = resource.resource_type, resource.resource_name
    if kind == ResourceType.TOPIC:
        if not name:
            raise InvalidRequest("Default topic resources are not allowed.")
        await alteration.alter_topic(name, edit, validate_only=validate_only)
    elif kind == ResourceType.BROKER:
        if name:
            require_own_id(name, alteration.broker_id)
        await alteration.alter_broker(edit, per_broker=bool(name), validate_only=validate_only)
    elif kind in RESOURCE_TYPES:
        label = ResourceType(kind).name
        raise InvalidRequest(
            f"AlterConfigs is only supported for topics and brokers, but resource type is {label}"
        )
    else:
        raise InvalidRequest(f"Unknown resource type {kind}")


def alter_configs_rows(
    make_row: Callable[..., T], results: Iterable[tuple[R, ResourceResult]]
) -> list[T]:
    """Return a response row for each resource, made by `make_row` from its result."""
    return [
        make_row(
            error_code=result.code,
            error_message=result.message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource, result in results
    ]


def alter_each(
    resources: Sequence[R], alter: Callable[[R], Awaitable[None]]
) -> Promise[list[tuple[R, ResourceResult]]]:
    """Change the resources one by one by `alter`; promise the result of each, in their order.

    A resource that is named twice gets two errors, and none of its settings change.
    """
    counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)

    async def alter_one(resource: R) -> ResourceResult:
        """Change one resource; return its error, INVALID_REQUEST if it is named twice."""
        kind, name = resource.resource_type, resource.resource_name
        try:
            if counts[kind, name] > 1:
                raise InvalidRequest("Each resource must appear at most once.")
            await alter(resource)
        except NotAuthorized as error:
            return ResourceResult(error.code)
        except EngineError as error:
            return result_of_error(error, kind, name)
        return ResourceResult()

    async def alter_in_order() -> list[tuple[R, ResourceResult]]:
        """Change all resources; return each with its result."""
        return [(resource, await alter_one(resource)) for resource in resources]

    return promised(alter_in_order())
