"""SCRAM credentials as brokers store them.

```
salt=<base64>,stored_key=<base64>,server_key=<base64>,iterations=4096

client key = HMAC(salted password, "Client Key")     stored key = H(client key)
server key = HMAC(salted password, "Server Key")
```

A broker never receives the password itself: clients salt it.

Source: RFC 5802; ScramFormatter, ScramCredentialUtils; KIP-554.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from enum import IntEnum
from typing import Final, NamedTuple

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384


class ScramMechanism(IntEnum):
    """The SCRAM mechanisms, with Kafka's numbers."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def key(self) -> str:
        """The key of the mechanism in a user's settings, such as `SCRAM-SHA-256`."""
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        """The name of the mechanism's hash function for `hashlib`."""
        return _HASHES[self]


_HASHES: Final = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}


def may_log_in(user: str) -> bool:
    """Return True if brokers accept a user name in a login; credentials can be set for any name.

    Source: ScramMessages.SASLNAME, which has ASCII without NUL.
    """
    return user.isascii() and "\x00" not in user


class SaltedPassword(NamedTuple):
    """A salted password, as a client computes it."""

    salt: bytes
    password: bytes
    iterations: int


class ScramCredential(NamedTuple):
    """A user's stored credential; its keys are not in the repr."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential({self.iterations} iterations)"


def credential_text(mechanism: ScramMechanism, salted: SaltedPassword) -> str:
    """Return the credential of a salted password as the text in a user's settings."""
    credential = salted_credential(mechanism, salted)
    parts = {
        "salt": credential.salt,
        "stored_key": credential.stored_key,
        "server_key": credential.server_key,
    }
    encoded = ",".join(f"{name}={b64encode(raw).decode()}" for name, raw in parts.items())
    return f"{encoded},iterations={credential.iterations}"


def salted_credential(mechanism: ScramMechanism, salted: SaltedPassword) -> ScramCredential:
    """Return the credential of a salted password: the keys that a broker stores."""
    hash_name = _HASHES[mechanism]
    client_key = hmac.digest(salted.password, b"Client Key", hash_name)
    return ScramCredential(
        salted.salt,
        hashlib.new(hash_name, client_key).digest(),
        hmac.digest(salted.password, b"Server Key", hash_name),
        salted.iterations,
    )


def parse_iterations(text: str) -> int | None:
    """Return the number of iterations in a credential's text, None if the text is invalid."""
    parts = [part.partition("=") for part in text.split(",")]
    if [name for name, _, _ in parts] != ["salt", "stored_key", "server_key", "iterations"]:
        return None
    _, _, iterations = parts[-1]
    return int(iterations) if re.fullmatch("[0-9]{1,10}", iterations) else None


def parse_credential(text: str) -> ScramCredential | None:
    """Return the credential in a text of a user's settings, None if the text is invalid."""
    iterations = parse_iterations(text)
    if iterations is None:
        return None
    try:
        salt, stored_key, server_key = (
            b64decode(part.partition("=")[2], validate=True) for part in text.split(",")[:3]
        )
    except Base64Error:
        return None
    return ScramCredential(salt, stored_key, server_key, iterations)
