"""Implementation of `kctl quotas`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.quota_admin import (
    QuotaEntity,
    QuotaEntityFilter,
    alter_quotas,
    describe_quotas,
)
from engine.errors import EngineError
from kctl import exits
from kctl.command_results import end_with
from kctl.commands.quotas.amounts import CONNECTIONS, amount_text, parse_quota, parse_quotas
from kctl.commands.quotas.entities import (
    DEFAULT,
    EntityNotClear,
    EntityOptions,
    Parts,
    entity_parts,
    required_entity_parts,
)
from kctl.connect import ClusterOptions, connect
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow

_ENTITY_COLUMNS: Final = (
    Column("user", "USER", kind="string?"),
    Column("client_id", "CLIENT-ID", kind="string?"),
    Column("ip", "IP", kind="string?"),
    Column("quota", "QUOTA", is_name=True),
)
LIST_COLUMNS: Final = (
    *_ENTITY_COLUMNS,
    Column("limit", "LIMIT", right=True, kind="string"),
    Column("value", "VALUE", right=True, wide=True, kind="number"),
)
CHANGE_COLUMNS: Final = (
    *_ENTITY_COLUMNS,
    Column("old_limit", "OLD", right=True, kind="string?"),
    Column("limit", "LIMIT", right=True, kind="string?"),
    Column("old_value", "OLD VALUE", right=True, wide=True, kind="number?"),
    Column("value", "VALUE", right=True, wide=True, kind="number?"),
    Column("result", "RESULT"),
)
_FIELDS: Final = {"user": "user", "client-id": "client_id", "ip": "ip"}


class QuotasNotClear(EngineError):
    """`unset` got both quotas and --all, or neither."""

    exit_code = exits.USAGE
    hint = "the quotas are produce, consume, request, mutations, connections"

    def __init__(self, names: Sequence[str]) -> None:
        given = "both names and --all are given" if names else "none is named"
        super().__init__(f"which quotas? {given}")


class QuotaRequest(NamedTuple):
    """The options of `set` and `unset`; a value of None removes the quota."""

    entity: EntityOptions
    changes: Mapping[str, float | None]
    is_all: bool
    dry_run: bool
    output: str


def list_quotas(options: ClusterOptions, entity: EntityOptions, output: str) -> int:
    """Print a row for each quota of the named entities, or of all; returns the exit code."""
    check_format(output)
    parts = entity_parts(entity)
    with connect(options) as client:
        quotas = _quotas(client, parts, is_strict=False)
        if not parts:
            # A filter without parts returns no quotas of addresses.
            any_address = [QuotaEntityFilter("ip", None)]
            quotas |= describe_quotas(client, any_address, is_strict=False)
    rows: list[OutputRow] = []
    for one, values in sorted(quotas.items(), key=lambda item: _order(item[0])):
        rows += [
            {
                **_entity_row({kind: name or "" for kind, name in one}),
                "quota": quota,
                "limit": amount_text(quota, value),
                "value": value,
            }
            for quota, value in sorted(values.items())
        ]
    return end_with(LIST_COLUMNS, rows, output)


def set_request(
    entity: EntityOptions, arguments: Sequence[str], *, dry_run: bool, output: str
) -> QuotaRequest:
    """Return the request to set quotas, from QUOTA=AMOUNT texts; raises UnreadableArgument."""
    return QuotaRequest(
        entity, parse_quotas(arguments), is_all=False, dry_run=dry_run, output=output
    )


def parse_unset_request(
    entity: EntityOptions, arguments: Sequence[str], *, is_all: bool, dry_run: bool, output: str
) -> QuotaRequest:
    """Return the request to remove the named quotas of an entity, or all with `is_all`.

    Errors: UnreadableArgument; QuotasNotClear if both are given, or neither.
    """
    if is_all == bool(arguments):
        raise QuotasNotClear(arguments)
    changes = {parse_quota(argument): None for argument in arguments}
    return QuotaRequest(entity, changes, is_all=is_all, dry_run=dry_run, output=output)


def change_quotas(options: ClusterOptions, request: QuotaRequest) -> int:
    """Set or remove quotas of an entity, and print a row for each; returns the exit code.

    Only quotas that differ are sent to the cluster.
    """
    check_format(request.output)
    parts = required_entity_parts(request.entity)
    _check_quotas(parts, request.changes)
    entity: QuotaEntity = tuple((kind, name or None) for kind, name in parts.items())
    with connect(options) as client:
        old = {quota: value for of_one in _quotas(client, parts, is_strict=True).values()
               for quota, value in of_one.items()}  # fmt: skip
        changes = dict.fromkeys(old) if request.is_all else request.changes
        wanted = {quota: value for quota, value in changes.items() if value != old.get(quota)}
        if wanted:
            alter_quotas(client, entity, wanted, validate_only=request.dry_run)
    rows = [
        _change_row(parts, quota, old.get(quota), value, dry_run=request.dry_run)
        for quota, value in sorted(changes.items())
    ]
    return end_with(CHANGE_COLUMNS, rows, request.output)


def _check_quotas(parts: Parts, changes: Mapping[str, float | None]) -> None:
    """Raise EntityNotClear for a quota that this kind of entity does not have."""
    for quota in changes:
        if (quota == CONNECTIONS) != ("ip" in parts):
            kinds = "an address" if quota == CONNECTIONS else "users and client ids"
            raise EntityNotClear(f"{quota} is a quota of {kinds}")


def _quotas(
    client: KafkaClient, parts: Parts, *, is_strict: bool
) -> dict[QuotaEntity, dict[str, float]]:
    """Request quotas by entity; `is_strict` excludes entities with additional parts."""
    filters = [QuotaEntityFilter(kind, name) for kind, name in parts.items()]
    return describe_quotas(client, filters, is_strict=is_strict)


def _change_row(
    parts: Parts, quota: str, old: float | None, new: float | None, *, dry_run: bool
) -> OutputRow:
    """Return the row of a quota's change; None for a limit that is not set."""
    result = "would be changed" if dry_run else "changed"
    if old == new:
        result = "was not set" if new is None else "unchanged"
    return {
        **_entity_row(parts),
        "quota": quota,
        "old_limit": None if old is None else amount_text(quota, old),
        "limit": None if new is None else amount_text(quota, new),
        "old_value": old,
        "value": new,
        "result": result,
    }


def _entity_row(parts: Parts) -> OutputRow:
    """Return the columns of an entity; an empty name means the default entity."""
    row: OutputRow = dict.fromkeys(_FIELDS.values())
    return row | {_FIELDS.get(kind, kind): name or DEFAULT for kind, name in parts.items()}


def _order(entity: QuotaEntity) -> tuple[tuple[int, str, str], ...]:
    """Return the sort key of an entity: users before client ids and addresses, defaults first."""
    kinds = list(_FIELDS)
    parts = {kind: name or "" for kind, name in entity}
    return tuple((kind not in parts, kind, parts.get(kind, "")) for kind in kinds)
