"""DescribeAcls, CreateAcls and DeleteAcls.

| | without an authorizer | with one |
|---|---|---|
| DescribeAcls | SECURITY_DISABLED at the top | the rules that match, by pattern |
| CreateAcls | SECURITY_DISABLED for each creation | a code for each |
| DeleteAcls | SECURITY_DISABLED for each filter | for each the rules that it removed |

A type, pattern, operation or permission of 0 ends the connection: clients decode unknown values
as 0. Other numbers without a meaning match nothing.

| creation | refused with |
|---|---|
| of ANY type, pattern, operation or permission, or a MATCH pattern | UNKNOWN_SERVER_ERROR for the whole request |
| of the cluster by another name than kafka-cluster; without a name | INVALID_REQUEST |
| of a number without a meaning; a name with a slash | INVALID_REQUEST: Failed to create ACL |
| of a principal without a colon; a name that no znode can have | UNKNOWN_SERVER_ERROR for all of its pattern |

| versions | difference |
|---|---|
| 0 | literal patterns alone |

Kafka offers these APIs with and without an authorizer, and tools print the responses.
Source: AclApis, AclAuthorizer of 3.9.1; KIP-140, KIP-290; a real broker's responses.
Differs: patterns come by kind, type and falling name; in Kafka by a hash that is another in each run.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from engine.admin.acl_admin import AclAdmin, DeletedAcl
from engine.admin.config_errors import InvalidRequest
from engine.api.exchange import CloseConnection, Exchange
from engine.api.promised import promised
from engine.errors import ApiError, EngineError
from engine.host.promise import Promise
from engine.kafka_errors import SECURITY_DISABLED, UNKNOWN_SERVER_ERROR
from engine.security.acl_operations import operation_of_broker
from engine.security.acls import (
    CLUSTER_NAME,
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
    from_number,
)
from engine.wire import messages

_NO_AUTHORIZER = "No Authorizer is configured."
#: DescribeAcls' message, which Kafka's tool prints.
_NO_AUTHORIZER_HERE = "No Authorizer is configured on the broker"

#: The number of UNKNOWN: clients decode numbers that they do not know as UNKNOWN.
_UNKNOWN = 0

_Creation: TypeAlias = messages.CreateAclsRequest.AclCreation
_Filter: TypeAlias = messages.DescribeAclsRequest | messages.DeleteAclsRequest.DeleteAclsFilter


class Acls:
    """Answers requests about ACLs; `admin` is None where there is no authorizer."""

    def __init__(self, admin: AclAdmin | None = None) -> None:
        self._admin = admin

    def describe(
        self, request: messages.DescribeAclsRequest, _exchange: Exchange
    ) -> messages.DescribeAclsResponse:
        """Return the ACLs that match the filter of the request, grouped by resource pattern.

        SECURITY_DISABLED without an authorizer. An unknown enum number raises CloseConnection.
        """
        _check_filter(request)
        response = messages.DescribeAclsResponse
        if self._admin is None:
            return response(error_code=SECURITY_DISABLED, error_message=_NO_AUTHORIZER_HERE)
        resources: dict[AclPattern, messages.DescribeAclsResponse.DescribeAclsResource] = {}
        for pattern, entry in self._admin.cache.matching(_filter_of(request)):
            if pattern not in resources:
                resources[pattern] = response.DescribeAclsResource(
                    resource_type=pattern.kind,
                    resource_name=pattern.name,
                    pattern_type=pattern.pattern_type,
                )
            resources[pattern].acls.append(
                response.AclDescription(
                    principal=entry.principal,
                    host=entry.host,
                    operation=entry.operation,
                    permission_type=entry.permission,
                )
            )
        return response(resources=list(resources.values()))

    def create(
        self, request: messages.CreateAclsRequest, _exchange: Exchange
    ) -> messages.CreateAclsResponse | Promise[messages.CreateAclsResponse]:
        """Check the requested ACLs and create the valid ones; promise a result for each of them.

        An unknown enum number raises CloseConnection. Without an authorizer each result is
        SECURITY_DISABLED; one ACL with ANY or MATCH fails all.
        """
        for creation in request.creations:
            _check_numbers(
                creation.resource_type,
                creation.resource_pattern_type,
                creation.operation,
                creation.permission_type,
            )
        bindings = [_binding_of(creation) for creation in request.creations]
        if self._admin is None:
            refusal = ApiError(SECURITY_DISABLED, _NO_AUTHORIZER)
            return _create_acls_response([refusal] * len(bindings))
        if any(_is_no_binding(binding) for binding in bindings):
            return _create_acls_response([ApiError(UNKNOWN_SERVER_ERROR, "")] * len(bindings))
        return promised(_create(self._admin, bindings))

    def delete(
        self, request: messages.DeleteAclsRequest, _exchange: Exchange
    ) -> messages.DeleteAclsResponse | Promise[messages.DeleteAclsResponse]:
        """Delete the ACLs that match the filters; promise those that each filter has deleted.

        An unknown enum number raises CloseConnection. Without an authorizer each result is
        SECURITY_DISABLED.
        """
        for acl_filter in request.filters:
            _check_filter(acl_filter)
        response = messages.DeleteAclsResponse
        if self._admin is None:
            refused = [
                response.DeleteAclsFilterResult(
                    error_code=SECURITY_DISABLED, error_message=_NO_AUTHORIZER
                )
                for _ in request.filters
            ]
            return response(filter_results=refused)
        filters = [_filter_of(acl_filter) for acl_filter in request.filters]
        return promised(self._admin.delete(filters)).then(_delete_acls_response)


async def _create(admin: AclAdmin, bindings: list[AclBinding]) -> messages.CreateAclsResponse:
    """Create the well-formed bindings; return a result for each binding in request order."""
    errors = {binding: _error_of_invalid_acl(binding) for binding in bindings}
    valid = [binding for binding in bindings if errors[binding] is None]
    errors.update(zip(valid, await admin.create(valid), strict=True))
    return _create_acls_response(errors[binding] for binding in bindings)


def _is_no_binding(binding: AclBinding) -> bool:
    """Return True if a part of the binding is valid only in filters (ANY or MATCH)."""
    pattern, entry = binding
    return (
        pattern.kind == AclResource.ANY
        or pattern.pattern_type in (PatternType.ANY, PatternType.MATCH)
        or entry.operation == AclOperation.ANY
        or entry.permission == AclPermission.ANY
    )


def _error_of_invalid_acl(binding: AclBinding) -> EngineError | None:
    """Return the error of an ACL that cannot be created for any cluster; None if it is valid."""
    kind, name, _ = binding.pattern
    if kind is AclResource.CLUSTER and name != CLUSTER_NAME:
        return InvalidRequest(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not name:
        return InvalidRequest("Invalid empty resource name")
    if binding.is_unknown or "/" in name:
        return InvalidRequest("Failed to create ACL")
    return None


def _create_acls_response(errors: Iterable[EngineError | None]) -> messages.CreateAclsResponse:
    """Return one result per binding: error code and message, or success for None."""
    result = messages.CreateAclsResponse.AclCreationResult
    results = []
    for error in errors:
        if error is None:
            results.append(result())
        else:
            code, message = _code_and_message(error)
            results.append(result(error_code=code, error_message=message))
    return messages.CreateAclsResponse(results=results)


def _code_and_message(error: EngineError) -> tuple[int, str | None]:
    """Return an error's code and message; UNKNOWN_SERVER_ERROR has no message, as in Kafka."""
    if isinstance(error, ApiError) and error.code != UNKNOWN_SERVER_ERROR:
        return error.code, error.detail
    return UNKNOWN_SERVER_ERROR, None


def _delete_acls_response(results: list[list[DeletedAcl]]) -> messages.DeleteAclsResponse:
    """Return one successful result per filter, with the ACLs that the filter deleted."""
    response = messages.DeleteAclsResponse
    return response(
        filter_results=[
            response.DeleteAclsFilterResult(
                error_message=None, matching_acls=[_deleted_acl_row(deleted) for deleted in result]
            )
            for result in results
        ]
    )


def _deleted_acl_row(deleted: DeletedAcl) -> messages.DeleteAclsResponse.DeleteAclsMatchingAcl:
    """Return the response's row for a deleted binding, with the error if it was not deleted."""
    pattern, entry = deleted.binding
    code, message = (0, None) if deleted.error is None else _code_and_message(deleted.error)
    return messages.DeleteAclsResponse.DeleteAclsMatchingAcl(
        error_code=code,
        error_message=message,
        resource_type=pattern.kind,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )


def _binding_of(creation: _Creation) -> AclBinding:
    """Return the ACL that one row of CreateAcls describes."""
    return AclBinding(
        AclPattern(
            from_number(AclResource, creation.resource_type),
            creation.resource_name,
            from_number(PatternType, creation.resource_pattern_type),
        ),
        AccessEntry(
            creation.principal,
            creation.host,
            operation_of_broker(creation.operation),
            from_number(AclPermission, creation.permission_type),
        ),
    )


def _filter_of(acl_filter: _Filter) -> AclFilter:
    """Return the ACL filter that one row of DescribeAcls or DeleteAcls describes."""
    return AclFilter(
        PatternFilter(
            from_number(AclResource, acl_filter.resource_type_filter),
            acl_filter.resource_name_filter,
            from_number(PatternType, acl_filter.pattern_type_filter),
        ),
        EntryFilter(
            acl_filter.principal_filter,
            acl_filter.host_filter,
            operation_of_broker(acl_filter.operation),
            from_number(AclPermission, acl_filter.permission_type),
        ),
    )


def _check_filter(acl_filter: _Filter) -> None:
    """Raise CloseConnection if an enum number of the filter is 0 (UNKNOWN)."""
    _check_numbers(
        acl_filter.resource_type_filter,
        acl_filter.pattern_type_filter,
        acl_filter.operation,
        acl_filter.permission_type,
    )


def _check_numbers(resource_type: int, pattern_type: int, operation: int, permission: int) -> None:
    """Raise CloseConnection if one of the numbers is 0 (UNKNOWN)."""
    if _UNKNOWN in (resource_type, pattern_type, operation, permission):
        raise CloseConnection("a request about access rules of an unknown kind")
