"""Describe, create and delete ACLs. Source: KIP-140, KIP-290; KafkaAdminClient."""

from __future__ import annotations

from collections.abc import Sequence

from engine.client.blocking import KafkaClient
from engine.errors import EngineError, api_error
from engine.kafka_errors import NONE
from engine.security.acls import (
    AccessEntry,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    PatternType,
    from_number,
)
from engine.wire import messages


def describe_acls(client: KafkaClient, acl_filter: AclFilter) -> list[AclBinding]:
    """Return the ACLs that match a filter, grouped by resource pattern; raises ApiError."""
    patterns, entries = acl_filter
    request = messages.DescribeAclsRequest(
        resource_type_filter=patterns.kind,
        resource_name_filter=patterns.name,
        pattern_type_filter=patterns.pattern_type,
        principal_filter=entries.principal,
        host_filter=entries.host,
        operation=entries.operation,
        permission_type=entries.permission,
    )
    response: messages.DescribeAclsResponse = client.send("DescribeAcls", request, lowest=1).message
    if response.error_code != NONE:
        raise api_error(response.error_code, response.error_message)
    return [
        AclBinding(
            AclPattern(
                from_number(AclResource, row.resource_type),
                row.resource_name,
                from_number(PatternType, row.pattern_type),
            ),
            AccessEntry(
                entry.principal,
                entry.host,
                from_number(AclOperation, entry.operation),
                from_number(AclPermission, entry.permission_type),
            ),
        )
        for row in response.resources
        for entry in row.acls
    ]


def create_acls(client: KafkaClient, bindings: Sequence[AclBinding]) -> None:
    """Create ACLs with one CreateAcls request; an ACL that exists already is no error.

    Raises the first ApiError among the results: the other ACLs may be created nevertheless.
    """
    for error in create_each(client, bindings):
        if error is not None:
            raise error


def create_each(client: KafkaClient, bindings: Sequence[AclBinding]) -> list[EngineError | None]:
    """Create ACLs; return one entry per binding, in its order: None if the ACL exists now.

    Otherwise the entry is the ApiError of that ACL. Raises the error of the whole request.
    """
    request = messages.CreateAclsRequest
    creations = [
        request.AclCreation(
            resource_type=pattern.kind,
            resource_name=pattern.name,
            resource_pattern_type=pattern.pattern_type,
            principal=entry.principal,
            host=entry.host,
            operation=entry.operation,
            permission_type=entry.permission,
        )
        for pattern, entry in bindings
    ]
    response: messages.CreateAclsResponse = client.send(
        "CreateAcls", request(creations=creations), lowest=1
    ).message
    return [
        None if row.error_code == NONE else api_error(row.error_code, row.error_message)
        for row in response.results
    ]


def delete_acls(client: KafkaClient, filters: Sequence[AclFilter]) -> int:
    """Delete the ACLs that match any of the filters; return how many were deleted.

    Raises the first ApiError among the results: other filters may be applied nevertheless.
    """
    count = 0
    for deleted in delete_each(client, filters):
        if isinstance(deleted, EngineError):
            raise deleted
        count += deleted
    return count


def delete_each(client: KafkaClient, filters: Sequence[AclFilter]) -> list[int | EngineError]:
    """Delete the ACLs that match the filters; return one entry per filter, in its order.

    An entry is the number of ACLs deleted by that filter, or its ApiError.
    """
    request = messages.DeleteAclsRequest
    rows = [
        request.DeleteAclsFilter(
            resource_type_filter=patterns.kind,
            resource_name_filter=patterns.name,
            pattern_type_filter=patterns.pattern_type,
            principal_filter=entries.principal,
            host_filter=entries.host,
            operation=entries.operation,
            permission_type=entries.permission,
        )
        for patterns, entries in filters
    ]
    response: messages.DeleteAclsResponse = client.send(
        "DeleteAcls", request(filters=rows), lowest=1
    ).message
    return [
        len(result.matching_acls)
        if result.error_code == NONE
        else api_error(result.error_code, result.error_message)
        for result in response.filter_results
    ]
