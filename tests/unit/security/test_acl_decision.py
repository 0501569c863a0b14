"""Which rule decides, and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.security.acl_cache import AclCache, Requester
from engine.security.acl_decision import (
    AclReason,
    AclResult,
    AuthorizerSettings,
    decide,
    hosts_named,
)
from engine.security.acls import (
    AccessEntry,
    AclBinding,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    PatternType,
)

TOPIC, GROUP = AclResource.TOPIC, AclResource.GROUP
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
BOB = Requester("User:bob", "1.2.3.4")
CLOSED = AuthorizerSettings()


def topic(name: str, pattern_type: PatternType = LITERAL) -> AclPattern:
    return AclPattern(TOPIC, name, pattern_type)


def rule(
    pattern: AclPattern,
    operation: AclOperation,
    permission: AclPermission = AclPermission.ALLOW,
    principal: str = "User:bob",
    host: str = "*",
) -> AclBinding:
    return AclBinding(pattern, AccessEntry(principal, host, operation, permission))


def test_a_super_user_needs_no_rule_and_minds_no_denial() -> None:
    settings = AuthorizerSettings(frozenset({"User:bob"}))
    denial = rule(topic("t"), READ, AclPermission.DENY)
    decision = decide([denial], BOB, READ, topic("t"), settings)
    assert (AclResult.ALLOWED, AclReason.SUPER_USER, None) == decision


@pytest.mark.parametrize(
    ("setting", "result"),
    [
        (False, AclResult.DENIED),
        (True, AclResult.ALLOWED),
        (None, AclResult.UNKNOWN),
    ],
)
def test_the_setting_decides_where_no_rule_is_about_a_resource(
    setting: bool | None, result: AclResult
) -> None:
    settings = AuthorizerSettings(frozenset(), setting)
    others = [rule(topic("u"), READ), rule(AclPattern(GROUP, "t", LITERAL), READ)]
    assert (result, AclReason.NO_RULE, None) == decide(others, BOB, READ, topic("t"), settings)


def test_a_denial_beats_a_permission() -> None:
    allowing = rule(topic("t"), READ)
    denying = rule(topic("", PREFIXED)._replace(name="t"), READ, AclPermission.DENY)
    decision = decide([allowing, denying], BOB, READ, topic("t"), CLOSED)
    assert (AclResult.DENIED, AclReason.DENYING_RULE, denying) == decision


def test_what_implies_an_operation_allows_it_and_denies_nothing() -> None:
    writing = rule(topic("t"), WRITE)
    assert writing == decide([writing], BOB, DESCRIBE, topic("t"), CLOSED).rule
    denying = rule(topic("t"), WRITE, AclPermission.DENY)
    decision = decide([denying, rule(topic("t"), READ)], BOB, DESCRIBE, topic("t"), CLOSED)
    assert AclResult.ALLOWED is decision.result


def test_the_operation_itself_is_named_before_what_implies_it() -> None:
    plain = rule(topic("*"), DESCRIBE)
    assert plain == decide([rule(topic("t"), READ), plain], BOB, DESCRIBE, topic("t"), CLOSED).rule


def test_rules_of_others_and_of_other_hosts_allow_nothing() -> None:
    rules = [rule(topic("t"), READ, principal="User:ann"), rule(topic("t"), READ, host="9.9.9.9")]
    decision = decide(rules, BOB, READ, topic("t"), CLOSED)
    assert (AclResult.DENIED, AclReason.NO_RULE_ALLOWS, None) == decision


def test_all_names_of_a_prefix_are_allowed_by_a_rule_that_covers_them() -> None:
    wanted = topic("pay-", PREFIXED)
    for pattern in (topic("pay-", PREFIXED), topic("pa", PREFIXED), topic("*")):
        assert decide([rule(pattern, READ)], BOB, READ, wanted, CLOSED).is_allowed
    for pattern in (topic("pay-x", PREFIXED), topic("pay-"), topic("pay-x")):
        assert not decide([rule(pattern, READ)], BOB, READ, wanted, CLOSED).is_allowed


def test_a_denial_of_some_names_of_a_prefix_denies_the_prefix() -> None:
    denying = rule(topic("pay-x"), READ, AclPermission.DENY)
    rules = [rule(topic("pay-", PREFIXED), READ), denying]
    assert denying == decide(rules, BOB, READ, topic("pay-", PREFIXED), CLOSED).rule


def test_a_name_is_no_prefix_of_longer_names() -> None:
    rules = [
        rule(topic("orders"), READ, AclPermission.DENY),
        rule(topic("orders"), READ, host="9.9.9.9"),
        rule(topic("order"), READ),
    ]
    assert AclResult.ALLOWED is decide(rules, BOB, READ, topic("order"), CLOSED).result
    assert [] == hosts_named(rules, ["User:bob"], topic("order"))


def test_every_name_is_the_prefix_of_nothing() -> None:
    every = topic("", PREFIXED)
    assert decide([rule(topic("*"), READ)], BOB, READ, every, CLOSED).is_allowed
    assert not decide([rule(topic("t", PREFIXED), READ)], BOB, READ, every, CLOSED).is_allowed


def test_hosts_are_those_of_rules_about_the_resource_and_the_principals() -> None:
    rules = [
        rule(topic("t"), READ, host="2"),
        rule(topic("t"), READ, host="1", principal="User:*"),
        rule(topic("t"), READ, host="3", principal="User:ann"),
        rule(topic("u"), READ, host="4"),
        rule(topic("t"), READ),
    ]
    assert ["1", "2"] == hosts_named(rules, ("User:bob", "User:*"), topic("t"))


_NAMES = ("a", "ab", "b", "*")
_RULES = st.lists(
    st.builds(
        rule,
        st.builds(topic, st.sampled_from(_NAMES), st.sampled_from((LITERAL, PREFIXED))),
        st.sampled_from((READ, WRITE, DESCRIBE, AclOperation.ALL)),
        st.sampled_from((AclPermission.ALLOW, AclPermission.DENY)),
        st.sampled_from(("User:bob", "User:ann", "User:*")),
        st.sampled_from(("*", "1.2.3.4", "9.9.9.9")),
    ),
    max_size=6,
)


def cache_of(rules: list[AclBinding]) -> AclCache:
    cache = AclCache()
    for pattern, entry in rules:
        cache.set(pattern, (*cache.entries(pattern), entry))
    return cache


@given(
    _RULES,
    st.sampled_from(("a", "ab", "abc", "c")),
    st.sampled_from((READ, DESCRIBE)),
    st.booleans(),
)
def test_a_broker_decides_the_same(
    rules: list[AclBinding], name: str, operation: AclOperation, open_: bool
) -> None:
    decision = decide(rules, BOB, operation, topic(name), AuthorizerSettings(frozenset(), open_))
    allowed = cache_of(rules).allows(BOB, operation, TOPIC, name, if_none=open_)
    assert allowed == decision.is_allowed


@given(_RULES, st.sampled_from(("", "a", "ab")))
def test_what_is_allowed_for_a_prefix_is_allowed_for_each_of_its_names(
    rules: list[AclBinding], prefix: str
) -> None:
    decision = decide(rules, BOB, READ, topic(prefix, PREFIXED), CLOSED)
    each = [
        decide(rules, BOB, READ, topic(prefix + rest), CLOSED).is_allowed
        for rest in ("", "b", "bb", "z")
        if prefix + rest
    ]
    assert not decision.is_allowed or all(each)
