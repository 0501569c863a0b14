"""The APIs of access rules, on a broker without an authorizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.api.acls import Acls
from engine.api.exchange import CloseConnection
from engine.wire.structs import message_class
from tests.unit.api.asking import ask


class _Handler:
    """One of the handlers as `ask` wants it."""

    def __init__(self, handle: object) -> None:
        self.handle = handle


@pytest.mark.parametrize("version", range(4))
def test_a_description_is_refused(version: int) -> None:
    reply = ask(
        _Handler(Acls().describe), "DescribeAcls", version, resource_type_filter=1,
        operation=1, permission_type=1,
    )  # fmt: skip
    assert (54, "No Authorizer is configured on the broker", []) == (
        reply.error_code,
        reply.error_message,
        reply.resources,
    )


@pytest.mark.parametrize("version", range(4))
def test_each_creation_is_refused(version: int) -> None:
    one = message_class("CreateAclsRequest").AclCreation(
        resource_type=2, resource_name="t", principal="User:a", host="*", operation=3,
        permission_type=3,
    )  # fmt: skip
    reply = ask(_Handler(Acls().create), "CreateAcls", version, creations=[one, one])
    assert [(54, "No Authorizer is configured.")] * 2 == [
        (each.error_code, each.error_message) for each in reply.results
    ]


@pytest.mark.parametrize("version", range(4))
def test_each_filter_is_refused(version: int) -> None:
    one = message_class("DeleteAclsRequest").DeleteAclsFilter(
        resource_type_filter=1, operation=1, permission_type=1
    )
    reply = ask(_Handler(Acls().delete), "DeleteAcls", version, filters=[one, one])
    assert [(54, "No Authorizer is configured.", [])] * 2 == [
        (each.error_code, each.error_message, each.matching_acls) for each in reply.filter_results
    ]


_KINDS = ("resource_type", "pattern_type", "operation", "permission_type")


def requested_of(suffix: str, **kinds: int) -> dict[str, int]:
    """Return the kinds of a request; names of the first two end as those of its message."""
    names = (f"resource_type{suffix}", f"pattern_type{suffix}", "operation", "permission_type")
    if not suffix:
        names = (names[0], f"resource_{names[1]}", *names[2:])
    fast = dict(zip(_KINDS, (2, 3, 3, 3), strict=True)) | kinds
    return dict(zip(names, fast.values(), strict=True))


def ask_all(**kinds: int) -> list[Callable[[], Any]]:
    """Return the three requests of a kind."""
    filter_of = message_class("DeleteAclsRequest").DeleteAclsFilter
    creation_of = message_class("CreateAclsRequest").AclCreation
    described, deleted = (
        requested_of("_filter", **kinds),
        filter_of(**requested_of("_filter", **kinds)),
    )
    created = creation_of(
        resource_name="t", principal="User:a", host="*", **requested_of("", **kinds)
    )
    acls = Acls()
    return [
        lambda: ask(_Handler(acls.describe), "DescribeAcls", 3, **described),
        lambda: ask(_Handler(acls.create), "CreateAcls", 3, creations=[created]),
        lambda: ask(_Handler(acls.delete), "DeleteAcls", 3, filters=[deleted]),
    ]


@pytest.mark.parametrize("kind", _KINDS)
def test_a_kind_that_a_client_did_not_know_ends_the_connection(kind: str) -> None:
    for asking in ask_all(**{kind: 0}):
        with pytest.raises(CloseConnection):
            asking()


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("number", [-1, 1, 5, 8, 15, 99])
def test_numbers_that_mean_nothing_are_refused_like_all_others(kind: str, number: int) -> None:
    """As a real broker answered."""
    described, created, deleted = (asking() for asking in ask_all(**{kind: number}))
    codes = (described.error_code, created.results[0].error_code)
    assert (54, 54, 54) == (*codes, deleted.filter_results[0].error_code)
