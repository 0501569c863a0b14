"""DescribeClientQuotas (48) and AlterClientQuotas (49).

| match type | entities |
|---|---|
| 0 | those with the name |
| 1 | those with the default of the type |
| 2 | all that have a part of the type, the default too |

Any other match type, or 0 without a name, is UNKNOWN_SERVER_ERROR. Alterations are applied one by
one; several for one entity have the last one's result in the response.

| versions | difference |
|---|---|
| 0, 1 | none but the encoding |

Source: KafkaApis.handleDescribeClientQuotasRequest, handleAlterClientQuotasRequest; KIP-546.
Differs: the order of entities, which in Kafka comes from hashes.
"""

from __future__ import annotations

from typing import Final

from engine.admin.config_errors import UnexpectedChange
from engine.admin.quota_admin import EntityQuotas, QuotaAdmin
from engine.admin.quota_entities import Component, Entity, QuotaChange, QuotaFilter
from engine.api.exchange import Exchange
from engine.api.promised import promised
from engine.errors import ApiError, EngineError
from engine.hash_order import spread_hash
from engine.host.promise import Promise
from engine.java_text import java_string_hash
from engine.kafka_errors import UNKNOWN_SERVER_ERROR
from engine.wire import messages

_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2
#: The number of buckets of Java's hash map with an entity's two or three parts.
_CHAINS: Final = 4


class ClientQuotas:
    """Answers DescribeClientQuotas and AlterClientQuotas."""

    def __init__(self, admin: QuotaAdmin) -> None:
        self._admin = admin

    def describe(
        self, request: messages.DescribeClientQuotasRequest, _exchange: Exchange
    ) -> Promise[messages.DescribeClientQuotasResponse]:
        """Promise the entities that match the filter, with their quotas.

        An invalid filter or an error of the store becomes the response's error code.
        """

        async def describe_matching() -> messages.DescribeClientQuotasResponse:
            """Return the matching entities; an EngineError becomes the response's error code."""
            try:
                components = [_component_of(component) for component in request.components]
                found = await self._admin.describe(QuotaFilter(components, request.strict))
            except EngineError as error:
                code, message = _code_and_message(error)
                return messages.DescribeClientQuotasResponse(
                    error_code=code, error_message=message, entries=None
                )
            return messages.DescribeClientQuotasResponse(
                entries=[_description_row(row) for row in found]
            )

        return promised(describe_matching())

    def alter(
        self, request: messages.AlterClientQuotasRequest, _exchange: Exchange
    ) -> Promise[messages.AlterClientQuotasResponse]:
        """Alter the quotas of each entity in order; promise a result for each.

        An error fails its own entity alone.
        """

        async def alter_in_order() -> messages.AlterClientQuotasResponse:
            """Alter the quotas of each entry in order; an error fails its entry alone."""
            results = {}
            for entry in request.entries:
                entity = {part.entity_type: part.entity_name for part in entry.entity}
                changes = [QuotaChange(op.key, None if op.remove else op.value) for op in entry.ops]
                result: tuple[int, str | None] = 0, None
                try:
                    await self._admin.alter(entity, changes, validate_only=request.validate_only)
                except EngineError as error:
                    result = _code_and_message(error)
                results[tuple(sorted(entity.items(), key=str))] = _alteration_row(entity, *result)
            return messages.AlterClientQuotasResponse(entries=list(results.values()))

        return promised(alter_in_order())


def _component_of(part: messages.DescribeClientQuotasRequest.ComponentData) -> Component:
    """Return the filter on one part of an entity (user, client-id …) in a request's row.

    Raises UnexpectedChange for an unknown match type.
    """
    if part.match_type == _EXACT and part.match is not None:
        return Component(part.entity_type, is_any=False, name=part.match)
    if part.match_type in (_DEFAULT, _ANY):
        return Component(part.entity_type, is_any=part.match_type == _ANY)
    raise UnexpectedChange(f"match type {part.match_type} of {part.match!r}")


def _code_and_message(error: EngineError) -> tuple[int, str | None]:
    """Return the code and message of an ApiError; any other error is UNKNOWN_SERVER_ERROR."""
    if isinstance(error, ApiError) and error.code != UNKNOWN_SERVER_ERROR:
        return error.code, error.detail
    return UNKNOWN_SERVER_ERROR, None


def _description_row(row: EntityQuotas) -> messages.DescribeClientQuotasResponse.EntryData:
    """Return the response entry of one entity with all its quotas."""
    response = messages.DescribeClientQuotasResponse
    return response.EntryData(
        entity=[
            response.EntityData(entity_type=kind, entity_name=name)
            for kind, name in row.entity.items()
        ],
        values=[response.ValueData(key=key, value=value) for key, value in row.quotas.items()],
    )


def _alteration_row(
    entity: Entity, code: int, message: str | None
) -> messages.AlterClientQuotasResponse.EntryData:
    """Return the AlterClientQuotas response's row of one entity; code 0 is success."""
    response = messages.AlterClientQuotasResponse
    return response.EntryData(
        error_code=code,
        error_message=message,
        entity=[
            response.EntityData(entity_type=kind, entity_name=entity[kind])
            for kind in sorted(entity, key=_hash_map_position)
        ],
    )


def _hash_map_position(kind: str) -> int:
    """Return the position of an entity's part in Java's HashMap.

    Kafka's response has the parts in that order.
    """
    return spread_hash(java_string_hash(kind)) & (_CHAINS - 1)
