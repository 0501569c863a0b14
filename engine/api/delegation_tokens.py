"""CreateDelegationToken (38), RenewDelegationToken (39), ExpireDelegationToken (40) and
DescribeDelegationToken (41).

| in this order | error |
|---|---|
| a listener in plain text, a client of TLS without a certificate, one that has shown a token | DELEGATION_TOKEN_REQUEST_NOT_ALLOWED |
| create, for another owner: without CREATE_TOKENS of that user | DELEGATION_TOKEN_AUTHORIZATION_FAILED |
| create: a renewer that is no `User` | INVALID_PRINCIPAL_TYPE |
| no `delegation.token.secret.key` | DELEGATION_TOKEN_AUTH_DISABLED |
| others | `token_admin.py` |

An empty list of owners gives no tokens, null those of all owners.

Source: KafkaApis.handleCreateTokenRequest and its siblings of 3.9.1, a real broker's responses;
KIP-48, KIP-373.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from engine.admin.token_admin import TokenAdmin
from engine.api.admission import AclOperation, AclResource, Session
from engine.api.exchange import Exchange
from engine.api.promised import promised
from engine.errors import ApiError, EngineError
from engine.host.coroutine import PromiseCoroutine
from engine.host.promise import Promise
from engine.kafka_errors import (
    DELEGATION_TOKEN_AUTH_DISABLED,
    DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    INVALID_PRINCIPAL_TYPE,
    NONE,
    UNKNOWN_SERVER_ERROR,
)
from engine.security.delegation_tokens import DelegationToken
from engine.security.principals import ANONYMOUS, USER_TYPE, principal_parts, principal_text
from engine.wire import messages

R = TypeVar("R", messages.RenewDelegationTokenResponse, messages.ExpireDelegationTokenResponse)

_NEVER_MS: Final = -1
#: From this version on a response has the principal that requested the token.
_FIRST_WITH_REQUESTER: Final = 3


class DelegationTokens:
    """Answers requests to create, renew, expire and describe delegation tokens."""

    def __init__(
        self, admin: TokenAdmin | None, security_protocol_of: Callable[[str], str]
    ) -> None:
        """Create the handlers; `admin` is None if delegation tokens are disabled.

        `security_protocol_of` returns the security protocol of a listener: tokens cannot be created
        over plain text.
        """
        self._admin = admin
        self._security_protocol_of = security_protocol_of

    def create(
        self, request: messages.CreateDelegationTokenRequest, exchange: Exchange
    ) -> messages.CreateDelegationTokenResponse | Promise[messages.CreateDelegationTokenResponse]:
        """Create a token for the client, or for another owner that the request names; promise it.

        Refused requests, for instance without CREATE_TOKENS on the other owner, get an error code.
        """
        requester, version = exchange.session.principal, exchange.api_version
        owner, kind = requester, request.owner_principal_type
        if request.owner_principal_name:
            if kind is None:
                # Kafka cannot create a principal without a type: the request fails.
                return _create_response_without_token(
                    requester, requester, UNKNOWN_SERVER_ERROR, version
                )
            owner = principal_text(kind, request.owner_principal_name)
        renewers = [
            principal_text(one.principal_type, one.principal_name) for one in request.renewers
        ]
        refusal = self._refusal_to_create(exchange.session, owner, request)
        admin = self._admin
        if refusal or admin is None:
            code = refusal or DELEGATION_TOKEN_AUTH_DISABLED
            return _create_response_without_token(owner, requester, code, version)

        async def create_token() -> messages.CreateDelegationTokenResponse:
            """Create the token; an EngineError becomes the response's error code."""
            try:
                token = await admin.create(owner, requester, renewers, request.max_lifetime_ms)
            except EngineError as error:
                return _create_response_without_token(owner, requester, _code_of(error), version)
            return _create_response(token, admin.cache.hmac_of(token.token_id), version)

        return promised(create_token())

    def renew(
        self, request: messages.RenewDelegationTokenRequest, exchange: Exchange
    ) -> messages.RenewDelegationTokenResponse | Promise[messages.RenewDelegationTokenResponse]:
        """Renew a token, named by its HMAC, for the client.

        Promises a response with the new expiry time.
        """
        session, hmac = exchange.session, bytes(request.hmac)
        return self._change_token(
            messages.RenewDelegationTokenResponse,
            session,
            lambda admin: admin.renew(session.principal, hmac, request.renew_period_ms),
        )

    def expire(
        self, request: messages.ExpireDelegationTokenRequest, exchange: Exchange
    ) -> messages.ExpireDelegationTokenResponse | Promise[messages.ExpireDelegationTokenResponse]:
        """Set a token's expiry time, or remove the token if the period is negative.

        Promises the response.
        """
        session, hmac = exchange.session, bytes(request.hmac)
        return self._change_token(
            messages.ExpireDelegationTokenResponse,
            session,
            lambda admin: admin.expire(session.principal, hmac, request.expiry_time_period_ms),
        )

    def _change_token(
        self,
        response: type[R],
        session: Session,
        change: Callable[[TokenAdmin], PromiseCoroutine[int]],
    ) -> R | Promise[R]:
        """Run `change` (renew or expire) if the client may request tokens; promise the response.

        `change` returns a token's new expiry time. A refusal is returned at once.
        """
        refusal, admin = self._refusal(session), self._admin
        if refusal or admin is None:
            return response(error_code=refusal, expiry_timestamp_ms=_NEVER_MS)

        async def run_change() -> R:
            """Return the token's new expiry in wall-clock ms, or an error code and -1."""
            try:
                at_ms = await change(admin)
            except EngineError as error:
                return response(error_code=_code_of(error), expiry_timestamp_ms=_NEVER_MS)
            return response(expiry_timestamp_ms=at_ms)

        return promised(run_change())

    def describe(
        self, request: messages.DescribeDelegationTokenRequest, exchange: Exchange
    ) -> messages.DescribeDelegationTokenResponse:
        """Return the tokens that the client owns, may renew, or may describe by ACLs."""
        session = exchange.session
        response = messages.DescribeDelegationTokenResponse
        refusal, admin = self._refusal(session), self._admin
        if refusal or admin is None:
            return response(error_code=refusal)
        owners = None
        if request.owners is not None:
            owners = [
                principal_text(owner.principal_type, owner.principal_name)
                for owner in request.owners
            ]

        def may_describe(token: DelegationToken) -> bool:
            """Return True if ACLs allow DESCRIBE on the token or DESCRIBE_TOKENS on its owner."""
            kind = AclResource.DELEGATION_TOKEN
            return session.may(AclOperation.DESCRIBE, kind, token.token_id) or session.may(
                AclOperation.DESCRIBE_TOKENS, AclResource.USER, token.owner
            )

        described = admin.describe_tokens(session.principal, owners, may_describe)
        return response(
            tokens=[
                _token_row(token, admin.cache.hmac_of(token.token_id), exchange.api_version)
                for token in described
            ]
        )

    def _refusal(self, session: Session) -> int:
        """Return the error code that refuses all token requests of a client, else NONE."""
        if not self._allows_token_requests(session):
            return DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return NONE if self._admin is not None else DELEGATION_TOKEN_AUTH_DISABLED

    def _refusal_to_create(
        self, session: Session, owner: str, request: messages.CreateDelegationTokenRequest
    ) -> int:
        """Return the error code of a request to create a token, NONE if it is permitted."""
        if not self._allows_token_requests(session):
            return DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        if owner != session.principal and not session.may(
            AclOperation.CREATE_TOKENS, AclResource.USER, owner
        ):
            return DELEGATION_TOKEN_AUTHORIZATION_FAILED
        if any(renewer.principal_type != USER_TYPE for renewer in request.renewers):
            return INVALID_PRINCIPAL_TYPE
        return NONE

    def _allows_token_requests(self, session: Session) -> bool:
        """True if the client may request tokens: it has authenticated, and not by a token itself.

        On a listener without authentication, and for anonymous TLS clients, it is False.
        """
        protocol = self._security_protocol_of(session.listener)
        is_anonymous = session.principal == ANONYMOUS
        is_unknown = protocol == "PLAINTEXT" or (protocol == "SSL" and is_anonymous)
        return not (session.is_own_broker or session.is_by_token or is_unknown)


def _code_of(error: EngineError) -> int:
    """Return the code of an error; an error without a code is UNKNOWN_SERVER_ERROR."""
    return error.code if isinstance(error, ApiError) else UNKNOWN_SERVER_ERROR


def _create_response_without_token(
    owner: str, requester: str, code: int, version: int
) -> messages.CreateDelegationTokenResponse:
    """Return a CreateDelegationToken response with an error code and no token."""
    kind, name = principal_parts(owner)
    response = messages.CreateDelegationTokenResponse(
        error_code=code,
        principal_type=kind,
        principal_name=name,
        issue_timestamp_ms=_NEVER_MS,
        expiry_timestamp_ms=_NEVER_MS,
        max_timestamp_ms=_NEVER_MS,
    )
    if version >= _FIRST_WITH_REQUESTER:
        kind, name = principal_parts(requester)
        response.token_requester_principal_type = kind
        response.token_requester_principal_name = name
    return response


def _create_response(
    token: DelegationToken, hmac: bytes, version: int
) -> messages.CreateDelegationTokenResponse:
    """Return the successful CreateDelegationToken response, with the token's times and HMAC."""
    response = _create_response_without_token(token.owner, token.requester, NONE, version)
    response.issue_timestamp_ms = token.issued_ms
    response.expiry_timestamp_ms = token.expires_ms
    response.max_timestamp_ms = token.max_ms
    response.token_id = token.token_id
    response.hmac = hmac
    return response


def _token_row(
    token: DelegationToken, hmac: bytes, version: int
) -> messages.DescribeDelegationTokenResponse.DescribedDelegationToken:
    """Return the response's row of one token; versions since 3 also name the requester."""
    response = messages.DescribeDelegationTokenResponse
    kind, name = principal_parts(token.owner)
    row = response.DescribedDelegationToken(
        principal_type=kind,
        principal_name=name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=hmac,
        renewers=[
            response.DescribedDelegationTokenRenewer(
                principal_type=renewer_kind, principal_name=renewer
            )
            for renewer_kind, renewer in map(principal_parts, token.renewers)
        ],
    )
    if version >= _FIRST_WITH_REQUESTER:
        kind, name = principal_parts(token.requester)
        row.token_requester_principal_type = kind
        row.token_requester_principal_name = name
    return row
