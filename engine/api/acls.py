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

from engine.api.exchange import CloseConnection, Exchange
from engine.kafka_errors import SECURITY_DISABLED
from engine.wire import messages

_NO_AUTHORIZER = "No Authorizer is configured."
#: What DescribeAcls says; Kafka's tool prints it.
_NO_AUTHORIZER_HERE = "No Authorizer is configured on the broker"

#: The type, pattern, operation or permission that a client does not know.
_UNKNOWN = 0


class Acls:
    """Answers all three."""

    def describe(
        self, request: messages.DescribeAclsRequest, _exchange: Exchange
    ) -> messages.DescribeAclsResponse:
        """Return the refusal of a description."""
        _check_filter(request)
        return messages.DescribeAclsResponse(
            error_code=SECURITY_DISABLED, error_message=_NO_AUTHORIZER_HERE
        )

    def create(
        self, request: messages.CreateAclsRequest, _exchange: Exchange
    ) -> messages.CreateAclsResponse:
        """Return the refusal of each creation."""
        for creation in request.creations:
            _check(
                creation.resource_type,
                creation.resource_pattern_type,
                creation.operation,
                creation.permission_type,
            )
        response = messages.CreateAclsResponse
        refused = [
            response.AclCreationResult(error_code=SECURITY_DISABLED, error_message=_NO_AUTHORIZER)
            for _ in request.creations
        ]
        return response(results=refused)

    def delete(
        self, request: messages.DeleteAclsRequest, _exchange: Exchange
    ) -> messages.DeleteAclsResponse:
        """Return the refusal of each filter."""
        for acl_filter in request.filters:
            _check_filter(acl_filter)
        response = messages.DeleteAclsResponse
        refused = [
            response.DeleteAclsFilterResult(
                error_code=SECURITY_DISABLED, error_message=_NO_AUTHORIZER
            )
            for _ in request.filters
        ]
        return response(filter_results=refused)


def _check_filter(
    acl_filter: messages.DescribeAclsRequest | messages.DeleteAclsRequest.DeleteAclsFilter,
) -> None:
    _check(
        acl_filter.resource_type_filter,
        acl_filter.pattern_type_filter,
        acl_filter.operation,
        acl_filter.permission_type,
    )


def _check(resource_type: int, pattern_type: int, operation: int, permission: int) -> None:
    if _UNKNOWN in (resource_type, pattern_type, operation, permission):
        raise CloseConnection("a request about access rules of an unknown kind")
