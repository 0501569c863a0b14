"""UpdateFeatures and the protocol of KIP-848, as a broker of 3.9.1 with znodes answers them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.api.consumer_protocol import ConsumerProtocol
from engine.api.update_features import UpdateFeatures
from engine.controller.controller import Controller
from engine.wire.structs import message_class
from tests.unit.api.asking import ask

_UNSUPPORTED = (
    "Could not apply finalized feature update because the provided feature is not supported."
)
_NO_DOWNGRADE = (
    "Can not provide versionLevel: 0 less than 1 without setting the SAFE downgradeType in the "
    "request."
)


class _Handler:
    """One of the handlers as `ask` wants it."""

    def __init__(self, handle: object) -> None:
        self.handle = handle


def features(*, is_active: bool = True) -> UpdateFeatures:
    return UpdateFeatures(cast(Controller, SimpleNamespace(is_active=is_active)))


def refused(version: int, *updates: Any) -> list[tuple[str, int, str]]:
    reply = ask(features(), "UpdateFeatures", version, feature_updates=list(updates))
    assert (0, None) == (reply.error_code, reply.error_message)
    return [(row.feature, row.error_code, row.error_message) for row in reply.results]


_UPDATE = message_class("UpdateFeaturesRequest").FeatureUpdateKey


@pytest.mark.parametrize(
    ("name", "level", "upgrade_type", "message"),
    [
        ("a", 1, 1, _UNSUPPORTED),
        ("a", 5, 2, _UNSUPPORTED),
        ("a", 0, 1, _NO_DOWNGRADE),
        ("a", 0, 2, "Can not delete non-existing finalized feature."),
        ("a", -1, 3, "Can not delete non-existing finalized feature."),
        ("a", -1, 9, "Received unknown upgrade type."),
        ("a", 5, 0, "Received unknown upgrade type."),
        ("", 1, 9, "Feature name can not be empty."),
    ],
)
def test_each_update_is_refused_with_its_reason(
    name: str, level: int, upgrade_type: int, message: str
) -> None:
    update = _UPDATE(feature=name, max_version_level=level, upgrade_type=upgrade_type)
    assert [(name, 42, message)] == refused(1, update)


@pytest.mark.parametrize(
    ("allow_downgrade", "message"),
    [(False, _NO_DOWNGRADE), (True, "Can not delete non-existing finalized feature.")],
)
def test_the_first_version_has_downgrades_that_are_allowed_or_not(
    message: str, *, allow_downgrade: bool
) -> None:
    update = _UPDATE(feature="a", max_version_level=0, allow_downgrade=allow_downgrade)
    assert [("a", 42, message)] == refused(0, update)


def test_a_feature_that_comes_twice_has_one_result() -> None:
    updates = [_UPDATE(feature=name, max_version_level=1, upgrade_type=1) for name in "aba"]
    assert [("a", 42, _UNSUPPORTED), ("b", 42, _UNSUPPORTED)] == refused(1, *updates)
    assert [] == refused(1)


def test_only_the_controller_answers() -> None:
    update = _UPDATE(feature="a", max_version_level=1, upgrade_type=1)
    reply = ask(features(is_active=False), "UpdateFeatures", 1, feature_updates=[update])
    assert (41, "This is not the correct controller for this cluster.", []) == (
        reply.error_code,
        reply.error_message,
        reply.results,
    )


def test_the_consumer_protocol_is_refused() -> None:
    protocol = ConsumerProtocol()
    beat = ask(_Handler(protocol.heartbeat), "ConsumerGroupHeartbeat", 0, group_id="g")
    assert (35, None, 0) == (beat.error_code, beat.member_id, beat.member_epoch)
    found = ask(_Handler(protocol.describe), "ConsumerGroupDescribe", 0, group_ids=["g", ""])
    assert [("g", 35), ("", 35)] == [(row.group_id, row.error_code) for row in found.groups]
