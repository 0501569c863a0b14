"""What is said to be tried next."""

from __future__ import annotations

import errno

import pytest

from engine.errors import EngineError, api_error
from engine.host.os_errors import storage_error
from engine.host.ports import FileMissing
from engine.kafka_errors import (
    COORDINATOR_NOT_AVAILABLE,
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
)
from kctl.hints import did_you_mean, hint_for
from kctl.setting_arguments import hint_on_settings

KEYS = ("retention.ms", "segment.bytes", "cleanup.policy")


def test_an_errors_own_hint_goes_before_that_of_its_kind() -> None:
    error = api_error(3)
    assert "kctl topics list" in (hint_for(error) or "")
    error.hint = "look there"
    assert "look there" == hint_for(error)


def test_a_client_that_may_have_no_tokens_gets_a_hint_how_to_connect() -> None:
    refused = api_error(DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    assert "login by SASL or a certificate" in str(refused)
    assert "security.protocol=SASL_SSL" in (hint_for(refused) or "")


def test_a_coordinator_that_does_not_come_may_have_lost_its_partition() -> None:
    hint = hint_for(api_error(COORDINATOR_NOT_AVAILABLE)) or ""
    assert "kctl topics describe __consumer_offsets __transaction_state --unavailable" in hint


def test_a_file_that_cannot_be_used_asks_for_another_path() -> None:
    assert "another path" in (hint_for(FileMissing("/none")) or "")


def test_a_full_disk_asks_for_room() -> None:
    for code in (errno.ENOSPC, errno.EDQUOT):
        error = storage_error(code, "/full", "write")
        assert "make room, or choose another path" == hint_for(error)
    assert "writable" in (hint_for(storage_error(errno.EIO, "/torn", "write")) or "")


def test_an_error_of_no_kind_has_no_hint() -> None:
    assert hint_for(EngineError("so it is")) is None
    assert hint_for(api_error(-1)) is None


def test_a_mistyped_word_is_answered_with_the_nearest() -> None:
    assert "did you mean retention.ms?" == did_you_mean("retnetion.ms", KEYS)
    assert did_you_mean("something.else", KEYS) is None


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"retention.ms": "7d"}, "retention.ms is in milliseconds: 7d is 604800000"),
        ({"retention.ms": "12 h"}, "retention.ms is in milliseconds: 12 h is 43200000"),
        ({"segment.bytes": "1GiB"}, "segment.bytes is in bytes: 1GiB is 1073741824"),
        ({"segment.bytes": "16mb"}, "segment.bytes is in bytes: 16mb is 16777216"),
        ({"retnetion.ms": "7d"}, "did you mean retention.ms?"),
        ({"retention.ms": "soon"}, None),
        ({"retention.ms": "7 parsecs"}, None),
        ({"retention.ms": None}, None),
        ({"cleanup.policy": "7d"}, None),
    ],
)
def test_a_refused_setting_is_answered_with_what_may_be_meant(
    settings: dict[str, str | None], hint: str | None
) -> None:
    assert hint == hint_on_settings(settings, KEYS)
