"""Credentials in znodes: which fault of a user's changes is reported."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.admin.config_admin import ConfigAdmin
from engine.admin.user_credentials import CredentialAdmin, CredentialChange, CredentialRefused
from engine.host.coroutine import drive
from engine.host.memory import ManualClock
from engine.kafka_errors import UNACCEPTABLE_CREDENTIAL, UNSUPPORTED_SASL_MECHANISM
from engine.security.scram import ITERATIONS_MAX, ITERATIONS_MIN, SaltedPassword, ScramMechanism
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.memory_journal import MemoryJournal
from engine.znode.store import ZnodeStore

SHA_256 = ScramMechanism.SCRAM_SHA_256
SHA_512 = ScramMechanism.SCRAM_SHA_512


def creation(mechanism: int, iterations: int = ITERATIONS_MIN) -> CredentialChange:
    return CredentialChange("u", mechanism, SaltedPassword(b"salt", b"salted", iterations))


def removal(mechanism: int) -> CredentialChange:
    return CredentialChange("u", mechanism, None)


def refusal(changes: Sequence[CredentialChange]) -> tuple[int, str]:
    """Return the code and message that a user's changes are refused with."""
    znodes = EmbeddedZnodeClient(ZnodeStore(MemoryJournal(), ManualClock()), 18_000)
    admin = CredentialAdmin(znodes, ConfigAdmin(znodes))
    (error,) = drive(admin.alter(changes)).result().values()
    assert isinstance(error, CredentialRefused)
    return error.code, str(error)


FEW = (UNACCEPTABLE_CREDENTIAL, "Too few iterations")
MANY = (UNACCEPTABLE_CREDENTIAL, "Too many iterations")
UNKNOWN = (UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([creation(SHA_256, ITERATIONS_MIN - 1)], FEW),
        ([creation(SHA_256, ITERATIONS_MAX + 1)], MANY),
        ([removal(9)], UNKNOWN),
        # The last creation that is wrong, also before one that is right.
        ([creation(SHA_256, 1), creation(SHA_512, ITERATIONS_MAX + 1)], MANY),
        ([creation(SHA_256, 1), creation(SHA_512)], FEW),
        # Creations before removals, in either order.
        ([creation(SHA_256, 1), removal(9)], FEW),
        ([removal(9), creation(SHA_256, 1)], FEW),
        ([creation(SHA_256), removal(9)], UNKNOWN),
    ],
)
def test_the_last_faulty_creation_counts_else_the_last_faulty_removal(
    changes: list[CredentialChange], expected: tuple[int, str]
) -> None:
    code, message = refusal(changes)
    assert expected[0] == code
    assert expected[1] in message


def test_a_user_has_a_name() -> None:
    code, message = refusal([creation(SHA_256)._replace(user="")])
    assert (UNACCEPTABLE_CREDENTIAL, True) == (code, "must not be empty" in message)
