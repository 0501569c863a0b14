"""Describe and change the quotas of users, clients and addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.errors import api_error
from engine.kafka_errors import NONE
from engine.wire import messages

_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2


class QuotaEntityFilter(NamedTuple):
    """One part of the entities that are requested: an entity type, and a name.

    The name "" is the default entity of the type; None is any entity of it.
    """

    entity_type: str
    name: str | None


#: The types and names of an entity; the name of a default entity is None.
QuotaEntity = tuple[tuple[str, str | None], ...]


def describe_quotas(
    client: KafkaClient, filters: Sequence[QuotaEntityFilter], *, is_strict: bool = True
) -> dict[QuotaEntity, dict[str, float]]:
    """Return the quotas, values by name, of each entity that has exactly the parts of `filters`.

    A part without a name matches any name. Without `is_strict` entities may have further parts.
    Raises ApiError.
    """
    request = messages.DescribeClientQuotasRequest
    components = [
        request.ComponentData(
            entity_type=part.entity_type,
            match_type=_ANY if part.name is None else (_EXACT if part.name else _DEFAULT),
            match=part.name or None,
        )
        for part in filters
    ]
    response: messages.DescribeClientQuotasResponse = client.send(
        "DescribeClientQuotas", request(components=components, strict=is_strict)
    ).message
    if response.error_code != NONE:
        raise api_error(response.error_code, response.error_message)
    return {
        tuple((part.entity_type, part.entity_name) for part in row.entity): {
            value.key: value.value for value in row.values
        }
        for row in response.entries or []
    }


def alter_quotas(
    client: KafkaClient,
    entity: QuotaEntity,
    changes: Mapping[str, float | None],
    *,
    validate_only: bool = False,
) -> None:
    """Set quotas of an entity by their names; a value of None removes the quota.

    Raises ApiError. With `validate_only` nothing changes.
    """
    request = messages.AlterClientQuotasRequest
    entry = request.EntryData(
        entity=[request.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[
            request.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in changes.items()
        ],
    )
    response: messages.AlterClientQuotasResponse = client.send(
        "AlterClientQuotas", request(entries=[entry], validate_only=validate_only)
    ).message
    for row in response.entries:
        if row.error_code != NONE:
            raise api_error(row.error_code, row.error_message)
