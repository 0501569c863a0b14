"""ListGroups (16), DescribeGroups (15), DeleteGroups (42): the administration of groups.

| API | versions | difference |
|---|---|---|
| ListGroups | 4 | states, and a filter of them |
| | 5 | types, and a filter of them; all groups are classic |
| DescribeGroups | 3 | operations that the client may do |
| | 4 | instance ids |

Source: KafkaApis.handleListGroupsRequest, handleDescribeGroupsRequest, handleDeleteGroupsRequest;
KIP-518, KIP-848.
"""

from __future__ import annotations

from engine.api.admission import (
    NAMED,
    UNLOGGED_DENIAL,
    AclOperation,
    AclResource,
    Audit,
    Session,
)
from engine.api.exchange import Exchange
from engine.groups.group_admin import DescribedGroup, GroupAdmin, ListedGroup
from engine.hash_order import in_hash_order
from engine.kafka_errors import GROUP_AUTHORIZATION_FAILED
from engine.wire import messages

_WITH_STATES, _WITH_TYPES = 4, 5
_CLASSIC = "classic"
_NOT_REQUESTED = -(1 << 31)
_GROUP_OPERATIONS = 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE | 1 << AclOperation.DELETE


class Groups:
    """Answers requests about groups as a whole."""

    def __init__(self, admin: GroupAdmin) -> None:
        self._admin = admin

    def list_groups(
        self, request: messages.ListGroupsRequest, exchange: Exchange
    ) -> messages.ListGroupsResponse:
        """Return the groups that this broker coordinates and that the client may describe.

        The request's filters of states and types are compared case-insensitively.
        """
        code, listed = self._admin.list_groups()
        version, session = exchange.api_version, exchange.session
        states = {state.lower() for state in request.states_filter}
        types = {kind.lower() for kind in request.types_filter}
        sees_all = session.may_on_cluster(AclOperation.DESCRIBE, UNLOGGED_DENIAL)
        groups = [
            _listed_group_row(group, version)
            for group in listed
            if (not states or group.state.lower() in states)
            and (not types or _CLASSIC in types)
            and (sees_all or _may_describe(session, group.group_id, UNLOGGED_DENIAL))
        ]
        return messages.ListGroupsResponse(error_code=code, groups=groups)

    def describe(
        self, request: messages.DescribeGroupsRequest, exchange: Exchange
    ) -> messages.DescribeGroupsResponse:
        """Return groups with their members; groups denied to the client come first."""
        session = exchange.session
        allowed, groups = [], []
        for group_id in request.groups:
            if _may_describe(session, group_id):
                allowed.append(group_id)
            else:
                groups.append(
                    _described_group_row(group_id, DescribedGroup(GROUP_AUTHORIZATION_FAILED))
                )
        for group_id in allowed:
            described = self._admin.describe_group(group_id)
            group = _described_group_row(group_id, described)
            if request.include_authorized_operations and not described.error_code:
                group.authorized_operations = session.operations_on(
                    AclResource.GROUP, group_id, _GROUP_OPERATIONS
                )
            groups.append(group)
        return messages.DescribeGroupsResponse(groups=groups)

    def delete(
        self, request: messages.DeleteGroupsRequest, exchange: Exchange
    ) -> messages.DeleteGroupsResponse:
        """Delete groups without members; return an error code for each, denied groups last.

        The other groups are in the order of Scala's hash map.
        """
        session = exchange.session
        names = list(dict.fromkeys(request.groups_names))
        may = {name: session.may(AclOperation.DELETE, AclResource.GROUP, name) for name in names}
        codes = self._admin.delete(name for name in names if may[name])
        denied = [name for name in names if not may[name]]
        row = messages.DeleteGroupsResponse.DeletableGroupResult
        return messages.DeleteGroupsResponse(
            results=[
                row(group_id=name, error_code=codes.get(name, GROUP_AUTHORIZATION_FAILED))
                for name in (*in_hash_order(codes), *denied)
            ]
        )


def _may_describe(session: Session, group_id: str, audit: Audit = NAMED) -> bool:
    """Return True if ACLs allow the client to DESCRIBE a group."""
    return session.may(AclOperation.DESCRIBE, AclResource.GROUP, group_id, audit)


def _listed_group_row(group: ListedGroup, version: int) -> messages.ListGroupsResponse.ListedGroup:
    """Return a ListGroups row with the fields that the request's version has."""
    row = messages.ListGroupsResponse.ListedGroup(
        group_id=group.group_id, protocol_type=group.protocol_type
    )
    if version >= _WITH_STATES:
        row.group_state = group.state
    if version >= _WITH_TYPES:
        row.group_type = _CLASSIC
    return row


def _described_group_row(
    group_id: str, group: DescribedGroup
) -> messages.DescribeGroupsResponse.DescribedGroup:
    """Return the DescribeGroups row of one group, with its members."""
    response = messages.DescribeGroupsResponse
    return response.DescribedGroup(
        error_code=group.error_code,
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_name,
        authorized_operations=_NOT_REQUESTED,
        members=[
            response.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in group.members
        ],
    )
