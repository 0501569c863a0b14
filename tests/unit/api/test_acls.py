"""The APIs of access rules, on a broker without an authorizer."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    "odd",
    [{"resource_type_filter": 0}, {"resource_type_filter": 8}, {"pattern_type_filter": 0},
     {"pattern_type_filter": 5}, {"operation": 15}, {"permission_type": 4}],
)  # fmt: skip
def test_kinds_that_do_not_exist_end_the_connection(odd: dict[str, int]) -> None:
    usual = {"resource_type_filter": 1, "operation": 1, "permission_type": 1}
    with pytest.raises(CloseConnection):
        ask(_Handler(Acls().describe), "DescribeAcls", 3, **{**usual, **odd})
    one = message_class("DeleteAclsRequest").DeleteAclsFilter(**{**usual, **odd})
    with pytest.raises(CloseConnection):
        ask(_Handler(Acls().delete), "DeleteAcls", 3, filters=[one])


def test_a_creation_of_a_kind_that_does_not_exist_ends_the_connection() -> None:
    one = message_class("CreateAclsRequest").AclCreation(
        resource_type=0, resource_name="t", principal="User:a", host="*", operation=3,
        permission_type=3,
    )  # fmt: skip
    with pytest.raises(CloseConnection):
        ask(_Handler(Acls().create), "CreateAcls", 3, creations=[one])
