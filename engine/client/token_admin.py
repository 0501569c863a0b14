"""Delegation tokens of a cluster. Source: KIP-48, KIP-373; KafkaAdminClient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.errors import api_error
from engine.kafka_errors import NONE
from engine.wire import messages

#: A principal's type and name.
Principal = tuple[str, str]


class IssuedToken(NamedTuple):
    """A delegation token with its owner, requester and renewers, and its times in ms."""

    token_id: str
    hmac: bytes
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int


def create_token(
    client: KafkaClient,
    renewers: Sequence[Principal],
    owner: Principal | None,
    max_lifetime_ms: int,
) -> IssuedToken:
    """Create a delegation token and return it, with its HMAC.

    Raises ApiError, NoCommonVersion. `owner` None is the requester. `max_lifetime_ms` -1 is the
    broker's maximum.
    """
    request = messages.CreateDelegationTokenRequest
    rows = [
        request.CreatableRenewers(principal_type=kind, principal_name=name)
        for kind, name in renewers
    ]

    def message(version: int) -> messages.CreateDelegationTokenRequest:
        """Return the request of a version; versions before 3 have no owner but the requester."""
        made = request(renewers=rows, max_lifetime_ms=max_lifetime_ms)
        if version >= 3 and owner is not None:
            made.owner_principal_type, made.owner_principal_name = owner
        return made

    response: messages.CreateDelegationTokenResponse = client.send(
        "CreateDelegationToken", message, lowest=0 if owner is None else 3
    ).message
    if response.error_code != NONE:
        raise api_error(response.error_code)
    made_for = (response.principal_type, response.principal_name)
    requester = (
        response.token_requester_principal_type,
        response.token_requester_principal_name,
    )
    return IssuedToken(
        response.token_id,
        bytes(response.hmac),
        made_for,
        requester if requester[0] else made_for,
        tuple(renewers),
        response.issue_timestamp_ms,
        response.expiry_timestamp_ms,
        response.max_timestamp_ms,
    )


def renew_token(client: KafkaClient, hmac: bytes, period_ms: int) -> int:
    """Renew the delegation token with this HMAC; return its new expiry time (wall clock, ms).

    Raises ApiError, NoCommonVersion.
    """
    request = messages.RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
    response: messages.RenewDelegationTokenResponse
    response = client.send("RenewDelegationToken", request).message
    if response.error_code != NONE:
        raise api_error(response.error_code)
    return response.expiry_timestamp_ms


def expire_token(client: KafkaClient, hmac: bytes, period_ms: int) -> int:
    """Set a delegation token to expire in `period_ms`; return the expiry time (wall clock, ms).

    Raises ApiError, NoCommonVersion.
    """
    request = messages.ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    response: messages.ExpireDelegationTokenResponse
    response = client.send("ExpireDelegationToken", request).message
    if response.error_code != NONE:
        raise api_error(response.error_code)
    return response.expiry_timestamp_ms


def describe_tokens(client: KafkaClient, owners: Sequence[Principal] | None) -> list[IssuedToken]:
    """Return the delegation tokens of owners, None for all; raises ApiError, NoCommonVersion."""
    request = messages.DescribeDelegationTokenRequest
    rows = None
    if owners is not None:
        rows = [
            request.DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
            for kind, name in owners
        ]
    response: messages.DescribeDelegationTokenResponse = client.send(
        "DescribeDelegationToken", request(owners=rows)
    ).message
    if response.error_code != NONE:
        raise api_error(response.error_code)
    return [_parse_token(row) for row in response.tokens]


def _parse_token(
    row: messages.DescribeDelegationTokenResponse.DescribedDelegationToken,
) -> IssuedToken:
    """Convert one token of DescribeDelegationToken; before version 3 the owner is the requester."""
    owner = (row.principal_type, row.principal_name)
    requester = (row.token_requester_principal_type, row.token_requester_principal_name)
    return IssuedToken(
        row.token_id,
        bytes(row.hmac),
        owner,
        requester if requester[0] else owner,
        tuple((renewer.principal_type, renewer.principal_name) for renewer in row.renewers),
        row.issue_timestamp,
        row.expiry_timestamp,
        row.max_timestamp,
    )
