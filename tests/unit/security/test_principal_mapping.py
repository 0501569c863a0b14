"""Rules that make users of certificates' names, as Kafka's class applies them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.security.principal_mapping import MappingRefused, NoMappingRule, PrincipalMapping

_MAPPED = json.loads(Path(__file__).with_name("principal_mapping_3_9_1.json").read_text())


@pytest.mark.parametrize(("rules", "name", "user"), _MAPPED)
def test_rules_give_the_user_that_kafkas_class_gives(
    rules: str, name: str, user: str | None
) -> None:
    if user is not None:
        assert user == PrincipalMapping(rules).user_of(name)
        return
    with pytest.raises((MappingRefused, NoMappingRule)):
        PrincipalMapping(rules).user_of(name)
