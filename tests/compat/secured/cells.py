"""Who connects to which listener, with what: the cells that clients are tried in.

Settings are those of Java's clients and librdkafka's, by names of our own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.compat.secured.brokers import REAUTH_MS, password_of
from tests.compat.secured.certificates import (
    AUTHORITY,
    CLIENT,
    EXPIRED_CLIENT,
    FOREIGN_AUTHORITY,
    FOREIGN_CLIENT,
)

SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER: Final = "OAUTHBEARER"
#: How long a token counts that ends before its connection; librdkafka is confused by 3 s.
TOKEN_S: Final = 10


class Cell(NamedTuple):
    """One connection: `label` says what is tried; names of files are those of certificates."""

    label: str
    listener: str
    protocol: str
    mechanism: str | None = None
    user: str = ""
    password: str = ""
    authority: str = AUTHORITY
    certificate: str | None = None
    duration_ms: int = 0
    #: How long an access token counts from now on, where the client takes one as it is.
    token_s: int = 3600


def cells() -> Iterator[Cell]:
    """Yield all of them."""
    right = password_of("alice")
    for listener, protocol in (("SASL", "SASL_PLAINTEXT"), ("SASLSSL", "SASL_SSL")):
        for mechanism in ("PLAIN", *SCRAM):
            for label, user, password in (
                ("right", "alice", right),
                ("wrong password", "alice", "no"),
                ("unknown user", "stranger", right),
            ):
                yield Cell(label, listener, protocol, mechanism, user, password)
        yield Cell("unsecured token", listener, protocol, OAUTHBEARER, "alice")
        yield Cell("expired token", listener, protocol, OAUTHBEARER, "alice", token_s=-60)
    as_alice = ("PLAIN", "alice", right)
    foreign = FOREIGN_AUTHORITY
    yield Cell("foreign broker", "SASLSSL", "SASL_SSL", *as_alice, authority=foreign)
    yield Cell("plain text to TLS", "SASLSSL", "SASL_PLAINTEXT", *as_alice)
    yield Cell("TLS to plain text", "SASL", "SASL_SSL", *as_alice)
    yield Cell("no SASL", "SASL", "PLAINTEXT")
    yield Cell("trusted broker", "SSL", "SSL")
    yield Cell("foreign broker", "SSL", "SSL", authority=foreign)
    yield Cell("expired broker", "EXPIRED", "SSL")
    yield Cell("plain text to TLS", "SSL", "PLAINTEXT")
    for listener in ("WANTED", "CERTIFIED"):
        for label, certificate in (
            ("no certificate", None),
            ("right certificate", CLIENT),
            ("expired certificate", EXPIRED_CLIENT),
            ("foreign certificate", FOREIGN_CLIENT),
        ):
            yield Cell(label, listener, "SSL", certificate=certificate)
    for mechanism in ("PLAIN", *SCRAM, OAUTHBEARER):
        yield Cell(
            "goes on behind its session", "REAUTH", "SASL_PLAINTEXT", mechanism, "alice", right,
            duration_ms=REAUTH_MS + 1500,
        )  # fmt: skip
    # Its session ends with the first token; each authentication gets another one.
    yield Cell(
        "goes on behind its token", "SASL", "SASL_PLAINTEXT", OAUTHBEARER, "alice",
        duration_ms=TOKEN_S * 1000 + 1500, token_s=TOKEN_S,
    )  # fmt: skip
