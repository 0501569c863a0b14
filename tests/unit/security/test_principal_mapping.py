"""Rules that make users of certificates' names, as Kafka's class applies them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.security.principal_mapping import (
    BadReplacement,
    MappingRefused,
    NoMappingRule,
    PrincipalMapping,
)

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


@pytest.mark.parametrize("replacement", ["${user}", "${1}", "$user", "a$"])
def test_a_replacement_without_its_group_is_nobody(replacement: str) -> None:
    """Java's Matcher.appendReplacement raises, and Kafka closes the connection."""
    with pytest.raises(BadReplacement):
        PrincipalMapping(f"RULE:^CN=(.*)$/{replacement}/").user_of("CN=alice")


def test_digits_are_those_of_ascii_as_in_java() -> None:
    with pytest.raises(NoMappingRule):
        PrincipalMapping(r"RULE:^CN=(\d+)$/$1/").user_of("CN=\u0664")
