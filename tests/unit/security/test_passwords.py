"""Passwords that are made."""

from __future__ import annotations

from engine.host.real import RealEntropy
from engine.security.passwords import random_password


def test_two_passwords_differ_and_need_no_quotes() -> None:
    first, second = random_password(RealEntropy()), random_password(RealEntropy())
    assert first != second
    assert (32, True, True) == (len(first), first.isascii(), first.isalnum())
