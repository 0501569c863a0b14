"""DescribeAcls, CreateAcls and DeleteAcls of a broker without an authorizer: SECURITY_DISABLED.

```
DescribeAcls   at the top
CreateAcls     for each creation that was asked for
DeleteAcls     for each filter
```

A type, pattern, operation or permission that does not exist ends the connection.

Kafka offers these APIs whether it has an authorizer or not, and tools show what they are told.
Source: AclApis of 3.9.1, its branches without an authorizer.
"""

from __future__ import annotations

from typing import Any

from engine.api.exchange import CloseConnection, Exchange
from engine.wire.structs import message_class

_SECURITY_DISABLED = 54
_NO_AUTHORIZER = "No Authorizer is configured."
#: What DescribeAcls says; Kafka's tool prints it.
_NO_AUTHORIZER_HERE = "No Authorizer is configured on the broker"

# Known numbers of each kind: 0 is what clients make of one that they do not know.
_RESOURCE_TYPES = range(1, 8)
_PATTERN_TYPES = range(1, 5)
_OPERATIONS = range(1, 15)
_PERMISSIONS = range(1, 4)


class Acls:
    """Answers all three."""

    def describe(self, request: Any, _exchange: Exchange) -> Any:
        """Return the refusal of a description."""
        _check_filter(request)
        return message_class("DescribeAclsResponse")(
            error_code=_SECURITY_DISABLED, error_message=_NO_AUTHORIZER_HERE
        )

    def create(self, request: Any, _exchange: Exchange) -> Any:
        """Return the refusal of each creation."""
        for asked in request.creations:
            _check(
                asked.resource_type,
                asked.resource_pattern_type,
                asked.operation,
                asked.permission_type,
            )
        response = message_class("CreateAclsResponse")
        return response(results=_refusals(response.AclCreationResult, request.creations))

    def delete(self, request: Any, _exchange: Exchange) -> Any:
        """Return the refusal of each filter."""
        for asked in request.filters:
            _check_filter(asked)
        response = message_class("DeleteAclsResponse")
        return response(filter_results=_refusals(response.DeleteAclsFilterResult, request.filters))


def _refusals(result: Any, asked: list[Any]) -> list[Any]:
    """Return one refusal for each thing that was asked for."""
    return [result(error_code=_SECURITY_DISABLED, error_message=_NO_AUTHORIZER) for _ in asked]


def _check_filter(asked: Any) -> None:
    _check(
        asked.resource_type_filter,
        asked.pattern_type_filter,
        asked.operation,
        asked.permission_type,
    )


def _check(resource_type: int, pattern_type: int, operation: int, permission: int) -> None:
    if (
        resource_type not in _RESOURCE_TYPES
        or pattern_type not in _PATTERN_TYPES
        or operation not in _OPERATIONS
        or permission not in _PERMISSIONS
    ):
        raise CloseConnection("a request about access rules of a kind that does not exist")
