"""What access rules decide."""

from __future__ import annotations

import pytest

from engine.security.acl_cache import AclCache, Requester
from engine.security.acls import (
    AccessEntry,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    EntryFilter,
    PatternFilter,
    PatternType,
)

TOPIC, GROUP = AclResource.TOPIC, AclResource.GROUP
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
ALL = AclOperation.ALL
BOB = Requester("User:bob", "1.2.3.4")
#: `+` allows, `-` denies; a name that ends in `…` is a prefix.
Rule = tuple[str, str, AclOperation]


def entry_of(text: str, operation: AclOperation) -> AccessEntry:
    """Return an entry of `+User:bob@1.2.3.4`, the host * if none is given."""
    principal, _, host = text[1:].partition("@")
    permission = AclPermission.ALLOW if text[0] == "+" else AclPermission.DENY
    return AccessEntry(principal, host or "*", operation, permission)


def pattern_of(name: str) -> AclPattern:
    if name.endswith("…"):
        return AclPattern(TOPIC, name[:-1], PatternType.PREFIXED)
    return AclPattern(TOPIC, name, PatternType.LITERAL)


def cache_of(*rules: Rule) -> AclCache:
    cache = AclCache()
    for who, name, operation in rules:
        pattern = pattern_of(name)
        cache.set(pattern, (*cache.entries(pattern), entry_of(who, operation)))
    return cache


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ([("+User:bob", "t", READ)], True),
        ([("+User:*", "t", READ)], True),
        ([("+User:ann", "t", READ)], False),
        ([("+Group:bob", "t", READ)], False),
        ([("+User:bob@1.2.3.4", "t", READ)], True),
        ([("+User:bob@1.2.3.5", "t", READ)], False),
        ([("+User:bob", "t", ALL)], True),
        ([("+User:bob", "t", WRITE)], False),
        ([("+User:bob", "*", READ)], True),
        ([("+User:bob", "t…", READ)], True),
        ([("+User:bob", "tt…", READ)], False),
        ([("+User:bob", "*…", READ)], False),
        ([("+User:bob", "t", READ), ("-User:bob", "t", READ)], False),
        ([("+User:bob", "t", READ), ("-User:*", "*", READ)], False),
        ([("+User:bob", "t", READ), ("-User:bob", "t…", ALL)], False),
        ([("+User:bob", "t", READ), ("-User:bob@9.9.9.9", "t", READ)], True),
        ([("+User:bob", "t", READ), ("-User:bob", "t", WRITE)], True),
    ],
)
def test_rules_decide(rules: list[Rule], allowed: bool) -> None:
    cache = cache_of(*rules)
    assert allowed == cache.allows(BOB, READ, TOPIC, "t", if_none=False)


@pytest.mark.parametrize("if_none", [True, False])
def test_what_no_rule_is_about_is_a_setting(if_none: bool) -> None:
    cache = cache_of(("+User:ann", "t", READ))
    assert if_none == cache.allows(BOB, READ, TOPIC, "u", if_none=if_none)
    assert if_none == cache.allows(BOB, READ, GROUP, "t", if_none=if_none)
    assert not cache.allows(BOB, READ, TOPIC, "t", if_none=if_none)


@pytest.mark.parametrize(
    ("asked", "implied_by"),
    [
        (DESCRIBE, {READ, WRITE, AclOperation.DELETE, AclOperation.ALTER, ALL, DESCRIBE}),
        (
            AclOperation.DESCRIBE_CONFIGS,
            {AclOperation.ALTER_CONFIGS, ALL, AclOperation.DESCRIBE_CONFIGS},
        ),
        (READ, {READ, ALL}),
    ],
)
def test_some_operations_are_implied_by_others(
    asked: AclOperation, implied_by: set[AclOperation]
) -> None:
    assert implied_by == {
        operation
        for operation in AclOperation
        if cache_of(("+User:bob", "t", operation)).allows(BOB, asked, TOPIC, "t", if_none=False)
    }


def test_a_denial_implies_nothing() -> None:
    cache = cache_of(("+User:bob", "t", DESCRIBE), ("-User:bob", "t", READ))
    assert cache.allows(BOB, DESCRIBE, TOPIC, "t", if_none=False)


@pytest.mark.parametrize(
    ("rules", "allowed", "if_none"),
    [
        ([], False, False),
        ([], True, True),
        ([("+User:bob", "t", WRITE)], True, False),
        ([("+User:bob", "t", ALL)], True, False),
        ([("+User:bob", "t", READ)], False, False),
        ([("+User:*@1.2.3.4", "t…", WRITE)], True, False),
        ([("-User:bob", "*", WRITE)], False, True),
        ([("+User:bob", "t", WRITE), ("-User:bob", "*", WRITE)], False, False),
        ([("+User:bob", "t", WRITE), ("-User:bob", "t", WRITE)], False, False),
        ([("+User:bob", "*", WRITE), ("-User:bob", "t…", WRITE)], True, False),
        ([("+User:bob", "tt", WRITE), ("-User:bob", "t…", WRITE)], False, False),
        ([("+User:bob", "tt…", WRITE), ("-User:bob", "t…", WRITE)], False, False),
        ([("+User:bob", "t…", WRITE), ("-User:bob", "tt…", WRITE)], True, False),
        ([("+User:bob", "u", WRITE), ("-User:bob", "t", WRITE)], True, False),
    ],
)
def test_rules_say_whether_there_may_be_a_resource(
    rules: list[Rule], allowed: bool, if_none: bool
) -> None:
    cache = cache_of(*rules)
    assert allowed == cache.allows_some(BOB, WRITE, TOPIC, if_none=if_none)


def test_a_wildcard_requester_is_searched_once() -> None:
    cache = cache_of(("+User:*", "t", ALL))
    assert cache.allows_some(Requester("User:*", "*"), ALL, TOPIC, if_none=False)


def test_what_is_removed_decides_nothing_more() -> None:
    cache = cache_of(
        ("+User:bob", "t", WRITE), ("+User:bob", "u…", WRITE), ("+User:bob", "v", READ)
    )
    assert not cache.is_empty
    cache.set(pattern_of("t"), ())
    cache.keep([pattern_of("v")])
    assert [pattern_of("v")] == cache.patterns()
    assert not cache.allows(BOB, WRITE, TOPIC, "uu", if_none=False)
    assert not cache.allows_some(BOB, WRITE, TOPIC, if_none=False)
    cache.set(pattern_of("v"), ())
    cache.set(pattern_of("v"), ())
    assert cache.is_empty


def test_an_entry_of_two_patterns_stays_with_the_other() -> None:
    cache = cache_of(("+User:bob", "t", WRITE), ("+User:bob", "u", WRITE))
    cache.set(pattern_of("t"), ())
    assert cache.allows_some(BOB, WRITE, TOPIC, if_none=False)


def test_rules_are_listed_by_kind_type_and_falling_name() -> None:
    cache = cache_of(("+User:bob", "a", READ), ("+User:bob", "b…", READ), ("+User:bob", "c", READ))
    group = AclPattern(GROUP, "g", PatternType.LITERAL)
    cache.set(group, [entry_of("+User:bob", READ)] * 2)
    every = AclFilter(
        PatternFilter(AclResource.ANY, None, PatternType.ANY),
        EntryFilter(None, None, AclOperation.ANY, AclPermission.ANY),
    )
    entry = entry_of("+User:bob", READ)
    wanted = [pattern_of("c"), pattern_of("a"), pattern_of("b…"), group]
    assert [AclBinding(pattern, entry) for pattern in wanted] == list(cache.matching(every))
    none = every._replace(entries=every.entries._replace(host="elsewhere"))
    assert [] == list(cache.matching(none))


def test_a_prefix_that_comes_and_goes_decides_each_time() -> None:
    cache = cache_of()
    for _ in range(3):
        cache.set(pattern_of("t…"), [])
        cache.set(pattern_of("t…"), [entry_of("+User:bob", READ)])
        assert cache.allows(BOB, READ, TOPIC, "topic", if_none=False)
        cache.set(pattern_of("t…"), [])
        assert not cache.allows(BOB, READ, TOPIC, "topic", if_none=False)
