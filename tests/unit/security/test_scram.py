"""Credentials of SCRAM as brokers keep them."""

from __future__ import annotations

import pytest

from engine.security.scram import (
    SaltedPassword,
    ScramMechanism,
    credential_text,
    parse_credential,
    parse_iterations,
)


def test_a_credential_is_what_kafka_keeps() -> None:
    """As a real broker wrote it."""
    salted = SaltedPassword(b"salt" * 5, b"p" * 32, 4096)
    assert (
        "salt=c2FsdHNhbHRzYWx0c2FsdHNhbHQ=,stored_key=5fFUxV0AD26xWkoJJg7bXVrfsC18oO/9teoJx9PJtT0=,"
        "server_key=HEtYAvOwTubW02jJL+5MEEljbbOmsXhQuGr9eFqJSO0=,iterations=4096"
    ) == credential_text(ScramMechanism.SCRAM_SHA_256, salted)


def test_mechanisms_have_their_own_hashes_and_names() -> None:
    salted = SaltedPassword(b"s", b"p", 5000)
    text = credential_text(ScramMechanism.SCRAM_SHA_512, salted)
    assert 88 == len(text.split(",")[1].removeprefix("stored_key="))
    assert "SCRAM-SHA-512" == ScramMechanism.SCRAM_SHA_512.key
    assert 5000 == parse_iterations(text)


@pytest.mark.parametrize(
    "text",
    ["", "x", "salt=a,stored_key=b,server_key=c", "salt=a,stored_key=b,server_key=c,iterations=x"],
)
def test_a_text_that_is_no_credential_has_no_iterations(text: str) -> None:
    assert parse_iterations(text) is None


def test_a_count_beyond_every_number_is_no_credential() -> None:
    """Python reads no number of so many digits: it would raise while settings are read."""
    digits = "9" * 5000
    assert (
        parse_credential(f"salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations={digits}") is None
    )
