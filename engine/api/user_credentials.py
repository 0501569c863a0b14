"""DescribeUserScramCredentials (50) and AlterUserScramCredentials (51).

Listeners with SCRAM use the credentials (`ScramCredentials`). Only the controller alters them;
another broker answers NOT_CONTROLLER for each user, before it checks access to the cluster.

Source: KafkaApis.handleDescribeUserScramCredentialsRequest, handleAlterUserScramCredentialsRequest;
KIP-554.
"""

from __future__ import annotations

from engine.admin.user_credentials import (
    AllRefused,
    CredentialAdmin,
    CredentialChange,
    UserCredentials,
)
from engine.api.admission import AclOperation
from engine.api.denied import denied_response
from engine.api.exchange import Exchange
from engine.api.promised import promised
from engine.controller.controller import Controller
from engine.errors import ApiError, EngineError
from engine.host.promise import Promise
from engine.kafka_errors import CLUSTER_AUTHORIZATION_FAILED, NOT_CONTROLLER, UNKNOWN_SERVER_ERROR
from engine.security.scram import SaltedPassword
from engine.wire import messages
from engine.wire.structs import Struct

_UNEXPECTED = "The server experienced an unexpected error when processing the request."
_NOT_CONTROLLER = "This is not the correct controller for this cluster."


class UserScramCredentials:
    """Answers DescribeUserScramCredentials and AlterUserScramCredentials."""

    def __init__(self, admin: CredentialAdmin, controller: Controller) -> None:
        self._admin = admin
        self._controller = controller

    def describe(
        self, request: messages.DescribeUserScramCredentialsRequest, _exchange: Exchange
    ) -> Promise[messages.DescribeUserScramCredentialsResponse]:
        """Promise the SCRAM mechanisms and iterations of users; of all users if none is named."""
        response = messages.DescribeUserScramCredentialsResponse

        async def describe_users() -> messages.DescribeUserScramCredentialsResponse:
            """Describe the named users, all for none named; fail as UNKNOWN_SERVER_ERROR."""
            try:
                found = await self._admin.describe([user.name for user in request.users or ()])
            except EngineError:
                return response(error_code=UNKNOWN_SERVER_ERROR, error_message=_UNEXPECTED)
            return response(results=[_credentials_row(one) for one in found])

        return promised(describe_users())

    def alter(
        self, request: messages.AlterUserScramCredentialsRequest, exchange: Exchange
    ) -> Struct | Promise[messages.AlterUserScramCredentialsResponse]:
        """Delete and set SCRAM credentials at the active controller.

        Promises the result of each user.
        """
        if not self._controller.is_active:
            refused = ApiError(NOT_CONTROLLER, _NOT_CONTROLLER)
            users = [one.name for one in (*request.upsertions, *request.deletions)]
            return _alter_response(dict.fromkeys(users, refused))
        if not exchange.session.may_on_cluster(AclOperation.ALTER):
            code = CLUSTER_AUTHORIZATION_FAILED
            return denied_response("AlterUserScramCredentials", request, exchange.api_version, code)
        changes = [
            CredentialChange(
                one.name,
                one.mechanism,
                SaltedPassword(bytes(one.salt), bytes(one.salted_password), one.iterations),
            )
            for one in request.upsertions
        ]
        changes += [CredentialChange(one.name, one.mechanism, None) for one in request.deletions]

        async def alter_users() -> messages.AlterUserScramCredentialsResponse:
            """Apply the changes, and return the response."""
            return _alter_response(await self._admin.alter(changes))

        return promised(alter_users())


def _code_and_message(error: EngineError) -> tuple[int, str | None]:
    """Return the code and message of an error in a response."""
    if isinstance(error, AllRefused):
        return error.code, None
    if isinstance(error, ApiError) and error.code != UNKNOWN_SERVER_ERROR:
        return error.code, error.detail
    return UNKNOWN_SERVER_ERROR, _UNEXPECTED


def _credentials_row(
    found: UserCredentials,
) -> messages.DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult:
    """Return the response's row of one user: mechanisms and iterations, or the error."""
    response = messages.DescribeUserScramCredentialsResponse
    no_error: tuple[int, str | None] = (0, "")
    code, message = no_error if found.error is None else _code_and_message(found.error)
    return response.DescribeUserScramCredentialsResult(
        user=found.user,
        error_code=code,
        error_message=message,
        credential_infos=[
            response.CredentialInfo(mechanism=mechanism, iterations=count)
            for mechanism, count in found.iterations.items()
        ],
    )


def _alter_response(
    results: dict[str, EngineError | None] | dict[str, ApiError],
) -> messages.AlterUserScramCredentialsResponse:
    """Return the response with the error of each user.

    A success has code 0 and an empty message.
    """
    response = messages.AlterUserScramCredentialsResponse
    rows = []
    no_error: tuple[int, str | None] = (0, "")
    for user, error in results.items():
        code, message = no_error if error is None else _code_and_message(error)
        rows.append(
            response.AlterUserScramCredentialsResult(
                user=user, error_code=code, error_message=message
            )
        )
    return response(results=rows)
