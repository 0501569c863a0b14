"""Describing and changing the SCRAM credentials of users."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.client.blocking import CONTROLLER, KafkaClient
from engine.errors import EngineError, api_error
from engine.kafka_errors import NONE
from engine.security.scram import ScramMechanism
from engine.wire import messages

_SALT_BYTES: Final = 16
_MECHANISMS: Final = frozenset(ScramMechanism)


class NewCredential(NamedTuple):
    """A credential to set."""

    mechanism: ScramMechanism
    iterations: int
    password: bytes


def describe_credentials(
    client: KafkaClient, users: Sequence[str]
) -> dict[str, dict[ScramMechanism, int] | EngineError]:
    """Return the iterations of SCRAM credentials, by user and mechanism, or the error of a user.

    No `users` means all. Unknown mechanisms are left out. Raises ApiError of the response.
    """
    request = messages.DescribeUserScramCredentialsRequest
    rows = [request.UserName(name=name) for name in users]
    response: messages.DescribeUserScramCredentialsResponse = client.send(
        "DescribeUserScramCredentials", request(users=rows or None)
    ).message
    if response.error_code != NONE:
        raise api_error(response.error_code, response.error_message)
    return {
        row.user: api_error(row.error_code, row.error_message)
        if row.error_code != NONE
        else {
            ScramMechanism(info.mechanism): info.iterations
            for info in row.credential_infos
            if info.mechanism in _MECHANISMS
        }
        for row in response.results
    }


def alter_credentials(
    client: KafkaClient,
    user: str,
    deleted: Sequence[ScramMechanism],
    added: Sequence[NewCredential],
) -> None:
    """Delete and set SCRAM credentials of one user; passwords are salted and hashed here.

    Raises ApiError.
    """
    request = messages.AlterUserScramCredentialsRequest
    upsertions = []
    for credential in added:
        salt = client.entropy.random_bytes(_SALT_BYTES)
        salted = hashlib.pbkdf2_hmac(
            credential.mechanism.hash_name, credential.password, salt, credential.iterations
        )
        upsertions.append(
            request.ScramCredentialUpsertion(
                name=user,
                mechanism=int(credential.mechanism),
                iterations=credential.iterations,
                salt=salt,
                salted_password=salted,
            )
        )
    message = request(
        deletions=[
            request.ScramCredentialDeletion(name=user, mechanism=int(mechanism))
            for mechanism in deleted
        ],
        upsertions=upsertions,
    )
    response: messages.AlterUserScramCredentialsResponse = client.send(
        "AlterUserScramCredentials", message, to=CONTROLLER
    ).message
    for row in response.results:
        if row.error_code != NONE:
            raise api_error(row.error_code, row.error_message)
