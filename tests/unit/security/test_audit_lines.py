"""Lines of authorizers are read as brokers write them."""

from __future__ import annotations

import pytest

from engine.security.audit_lines import AuditLine, parse_audit_line, parse_audit_lines

#: As a broker of 3.9.1 with znodes wrote it.
DENIED = (
    "[2026-11-27 20:27:56,034] INFO Principal = User:alice is Denied Operation = CreateTokens from "
    "host = 127.0.0.1 on resource = User:LITERAL:User:bob for request = CreateDelegationToken with "
    "resourceRefCount = 1 (kafka.authorizer.logger)"
)
TIME_MS = 1795811276034


def test_a_line_of_a_broker_with_znodes_is_read() -> None:
    expected = AuditLine(
        TIME_MS,
        "INFO",
        "User:alice",
        False,
        "CreateTokens",
        "127.0.0.1",
        "User",
        "LITERAL",
        "User:bob",
        "CreateDelegationToken",
        1,
    )
    assert expected == parse_audit_line(DENIED)


def test_a_line_of_a_broker_of_kraft_is_read() -> None:
    line = (
        "[2026-11-27 20:27:56,034] DEBUG Principal = User:bob is Allowed operation = READ from "
        "host = 10.0.0.9 on resource = Topic:PREFIXED:a b for request = Fetch with "
        "resourceRefCount = 12 based on rule MatchingAcl(acl=x) (kafka.authorizer.logger)"
    )
    found = parse_audit_line(line)
    assert found is not None
    assert (True, "READ", "a b", 12) == (
        found.is_allowed,
        found.operation,
        found.resource_name,
        found.reference_count,
    )


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[2026-11-27 20:27:56,034] INFO Principal = User:alice is a super user",
        "No acl found for resource ResourcePattern(resourceType=TOPIC, name=t)",
        "Principal = User:a is Denied Operation = Read from host = h on resource = Topic",
    ],
)
def test_other_lines_are_none(line: str) -> None:
    assert parse_audit_line(line) is None


def test_a_line_without_a_time_has_none() -> None:
    (found,) = parse_audit_lines([DENIED.partition("INFO ")[2], "something else"])
    assert (None, None, "User:alice") == (found.time_ms, found.level, found.principal)


def test_names_may_have_the_words_of_a_line() -> None:
    name = "t for request = Fetch with resourceRefCount = 2"
    found = parse_audit_line(DENIED.replace("User:bob", name))
    assert found is not None
    assert name == found.resource_name


def test_no_name_of_a_resource_changes_who_was_denied() -> None:
    name = f"t {DENIED.partition('INFO ')[2].replace('Denied', 'Allowed')}"
    found = parse_audit_line(DENIED.replace("User:bob", name))
    assert found is not None
    assert ("User:alice", False, name) == (found.principal, found.is_allowed, found.resource_name)
