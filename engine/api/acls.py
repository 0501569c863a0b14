"""DescribeAcls, CreateAcls and DeleteAcls of a broker without an authorizer: SECURITY_DISABLED.

```
DescribeAcls   at the top
CreateAcls     for each creation that was asked for
DeleteAcls     for each filter
```

A type, pattern, operation or permission of 0 ends the connection: it is what clients make of one
that they do not know. Other numbers are not looked at.

Kafka offers these APIs whether it has an authorizer or not, and tools show what they are told.
Source: AclApis of 3.9.1, its branches without an authorizer.
"""

from __future__ import annotations

from typing import Any

from engine.api.exchange import CloseConnection, Exchange
from engine.kafka_errors import SECURITY_DISABLED
from engine.wire.structs import message_class

_NO_AUTHORIZER = "No Authorizer is configured."
#: What DescribeAcls says; Kafka's tool prints it.
_NO_AUTHORIZER_HERE = "No Authorizer is configured on the broker"

#: The type, pattern, operation or permission that a client does not know.
_UNKNOWN = 0


class Acls:
    """Answers all three."""

    def describe(self, request: Any, _exchange: Exchange) -> Any:
        """Return the refusal of a description."""
        _check_filter(request)
        return message_class("DescribeAclsResponse")(
            error_code=SECURITY_DISABLED, error_message=_NO_AUTHORIZER_HERE
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
    return [result(error_code=SECURITY_DISABLED, error_message=_NO_AUTHORIZER) for _ in asked]


def _check_filter(asked: Any) -> None:
    _check(
        asked.resource_type_filter,
        asked.pattern_type_filter,
        asked.operation,
        asked.permission_type,
    )


def _check(resource_type: int, pattern_type: int, operation: int, permission: int) -> None:
    if _UNKNOWN in (resource_type, pattern_type, operation, permission):
        raise CloseConnection("a request about access rules of an unknown kind")
