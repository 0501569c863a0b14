"""What filters of access rules mean, and how numbers and names are read."""

from __future__ import annotations

import pytest

from engine.security.acls import (
    AccessEntry,
    AclBinding,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    EntryFilter,
    PatternFilter,
    PatternType,
    from_name,
    from_number,
    pascal_name,
)
from engine.security.principals import is_principal, super_users_of

TOPIC = AclResource.TOPIC
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ANY, MATCH = PatternType.ANY, PatternType.MATCH
READ, ALLOW = AclOperation.READ, AclPermission.ALLOW


@pytest.mark.parametrize(
    ("kind", "name", "pattern_type", "matched"),
    [
        (AclResource.ANY, None, ANY, ["t", "tt", "*", "t prefix", "g"]),
        (TOPIC, None, ANY, ["t", "tt", "*", "t prefix"]),
        (AclResource.UNKNOWN, None, ANY, []),
        (TOPIC, "t", ANY, ["t", "t prefix"]),
        (TOPIC, "t", LITERAL, ["t"]),
        (TOPIC, "tt", PREFIXED, []),
        (TOPIC, "tt", MATCH, ["tt", "*", "t prefix"]),
        (TOPIC, None, PREFIXED, ["t prefix"]),
        (TOPIC, "t", PatternType.UNKNOWN, []),
        (TOPIC, "*", LITERAL, ["*"]),
    ],
)
def test_a_filter_matches_patterns(
    kind: AclResource, name: str | None, pattern_type: PatternType, matched: list[str]
) -> None:
    patterns = {
        "t": AclPattern(TOPIC, "t", LITERAL),
        "tt": AclPattern(TOPIC, "tt", LITERAL),
        "*": AclPattern(TOPIC, "*", LITERAL),
        "t prefix": AclPattern(TOPIC, "t", PREFIXED),
        "g": AclPattern(AclResource.GROUP, "g", LITERAL),
    }
    wanted = PatternFilter(kind, name, pattern_type)
    assert matched == [label for label, pattern in patterns.items() if wanted.matches(pattern)]


@pytest.mark.parametrize(
    ("kind", "name", "pattern_type", "types"),
    [
        (TOPIC, "t", LITERAL, [LITERAL]),
        (TOPIC, "t", PREFIXED, [PREFIXED]),
        (TOPIC, "t", ANY, [LITERAL, PREFIXED]),
        (TOPIC, "t", MATCH, []),
        (TOPIC, "t", PatternType.UNKNOWN, []),
        (TOPIC, None, LITERAL, []),
        (AclResource.ANY, "t", LITERAL, []),
    ],
)
def test_an_exact_filter_names_its_patterns(
    kind: AclResource, name: str | None, pattern_type: PatternType, types: list[PatternType]
) -> None:
    exact = PatternFilter(kind, name, pattern_type).exact_patterns()
    assert [AclPattern(TOPIC, "t", each) for each in types] == exact


@pytest.mark.parametrize(
    ("wanted", "is_meant"),
    [
        (EntryFilter(None, None, AclOperation.ANY, AclPermission.ANY), True),
        (EntryFilter("User:a", "*", READ, ALLOW), True),
        (EntryFilter("User:b", None, READ, ALLOW), False),
        (EntryFilter(None, "h", READ, ALLOW), False),
        (EntryFilter(None, None, AclOperation.ALL, ALLOW), False),
        (EntryFilter(None, None, READ, AclPermission.DENY), False),
        (EntryFilter(None, None, AclOperation.UNKNOWN, ALLOW), False),
    ],
)
def test_a_filter_matches_entries(wanted: EntryFilter, is_meant: bool) -> None:
    assert is_meant == wanted.matches(AccessEntry("User:a", "*", READ, ALLOW))


def test_numbers_without_a_meaning_are_unknown() -> None:
    assert (READ, AclOperation.UNKNOWN) == (
        from_number(AclOperation, 3),
        from_number(AclOperation, 99),
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("TransactionalId", AclResource.TRANSACTIONAL_ID),
        ("TRANSACTIONALID", AclResource.TRANSACTIONAL_ID),
        ("TRANSACTIONAL_ID", AclResource.TRANSACTIONAL_ID),
        ("Nonsense", AclResource.UNKNOWN),
    ],
)
def test_names_are_read_as_znodes_and_notes_have_them(name: str, kind: AclResource) -> None:
    assert kind is from_name(AclResource, name)


def test_names_are_written_as_znodes_have_them() -> None:
    assert "DescribeConfigs" == pascal_name(AclOperation.DESCRIBE_CONFIGS)


@pytest.mark.parametrize(
    ("kind", "pattern_type", "operation", "permission"),
    [
        (AclResource.UNKNOWN, LITERAL, READ, ALLOW),
        (TOPIC, PatternType.UNKNOWN, READ, ALLOW),
        (TOPIC, LITERAL, AclOperation.UNKNOWN, ALLOW),
        (TOPIC, LITERAL, READ, AclPermission.UNKNOWN),
    ],
)
def test_a_rule_with_an_unknown_part_is_unknown(
    kind: AclResource, pattern_type: PatternType, operation: AclOperation, permission: AclPermission
) -> None:
    entry = AccessEntry("User:a", "*", operation, permission)
    assert AclBinding(AclPattern(kind, "t", pattern_type), entry).is_unknown
    known = AclBinding(AclPattern(TOPIC, "t", LITERAL), AccessEntry("User:a", "*", READ, ALLOW))
    assert not known.is_unknown


def test_a_principal_has_a_type_and_a_name() -> None:
    assert [True, True, False] == [is_principal(text) for text in ("User:a:b", ":", "alice")]


@pytest.mark.parametrize(
    ("text", "users", "wrong"),
    [
        ("", set(), []),
        ("User:a; User:b ;;", {"User:a", "User:b"}, []),
        ("User:a;b;;User:c", {"User:a", "User:c"}, ["b", ""]),
    ],
)
def test_super_users_have_semicolons_between_them(
    text: str, users: set[str], wrong: list[str]
) -> None:
    assert (users, wrong) == super_users_of(text)
