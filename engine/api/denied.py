"""The responses of APIs that a client may not call at all: Kafka's for each.

| API | response |
|---|---|
| LeaderAndIsr, StopReplica, ElectLeaders, AlterPartitionReassignments | the error, and once more for each partition |
| CreateAcls, DeleteAcls, AlterClientQuotas, AlterUserScramCredentials | the error for each requested change |
| DescribeUserScramCredentials | the error, and once more for each user that was named, without the name |
| ListPartitionReassignments | the error, and the partitions that were named, without replicas |
| WriteTxnMarkers | the error for each partition of each marker |
| DescribeLogDirs below version 3 | no directories: there is no place for the error |
| others | the error |

Source: getErrorResponse of the requests; KafkaApis.handleElectLeaders,
handleDescribeLogDirsRequest.
Differs: the message names the API, where Kafka prints the whole request; a client that may not
describe all credentials gets a response, where Kafka fails and sends none.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Callable

from engine.wire import messages
from engine.wire.structs import Message, Struct, message_class

_FIRST_GROUPED_LEADER_AND_ISR = 2
_FIRST_LEADER_AND_ISR_BY_ID = 5
_FIRST_GROUPED_STOP_REPLICA = 1
_FIRST_STOP_REPLICA_BY_PARTITION = 3
_FIRST_ELECT_LEADERS_WITH_ERROR = 1
#: Responses that also have an error message.
_WITH_MESSAGE = frozenset(("DescribeAcls",))
#: The message of Kafka's exception for the cluster.
_CLUSTER_DENIED = "Cluster authorization failed."


def denied_response(name: str, request: object, version: int, code: int) -> Struct:
    """Return the response to a client that lacks the right to use an API.

    As by Kafka's getErrorResponse, `code` is in every place where that API has one: in the
    response, in each row, or in both.
    """
    fill = _FILLED.get(name)
    if fill is not None:
        return fill(request, version, code)
    made: Struct
    if name in _WITH_MESSAGE:
        made = message_class(f"{name}Response")(
            error_code=code, error_message=_denial_message(name)
        )
    else:
        made = message_class(f"{name}Response")(error_code=code)
    return made


def _denial_message(name: str) -> str:
    """Return Kafka's message for a denied request of an API."""
    return f"Request {name} is not authorized."


def _deny_leader_and_isr(request: messages.LeaderAndIsrRequest, version: int, code: int) -> Struct:
    """Return LeaderAndIsr's response with the code for the request and for each partition."""
    response = messages.LeaderAndIsrResponse
    error = response.LeaderAndIsrPartitionError
    if version < _FIRST_LEADER_AND_ISR_BY_ID:
        if version < _FIRST_GROUPED_LEADER_AND_ISR:
            keys = [(s.topic_name, s.partition_index) for s in request.ungrouped_partition_states]
        else:
            keys = [
                (topic.topic_name, state.partition_index)
                for topic in request.topic_states
                for state in topic.partition_states
            ]
        errors = [error(topic_name=topic, partition_index=i, error_code=code) for topic, i in keys]
        return response(error_code=code, partition_errors=errors)
    topics = [
        response.LeaderAndIsrTopicError(
            topic_id=topic.topic_id,
            partition_errors=[
                error(partition_index=state.partition_index, error_code=code)
                for state in topic.partition_states
            ],
        )
        for topic in request.topic_states
    ]
    return response(error_code=code, topics=topics)


def _deny_stop_replica(request: messages.StopReplicaRequest, version: int, code: int) -> Struct:
    """Return StopReplica's response with the code for the request and for each partition."""
    if version < _FIRST_GROUPED_STOP_REPLICA:
        keys = [(p.topic_name, p.partition_index) for p in request.ungrouped_partitions]
    elif version < _FIRST_STOP_REPLICA_BY_PARTITION:
        keys = [
            (topic.name, index) for topic in request.topics for index in topic.partition_indexes
        ]
    else:
        keys = [
            (topic.topic_name, state.partition_index)
            for topic in request.topic_states
            for state in topic.partition_states
        ]
    response = messages.StopReplicaResponse
    error = response.StopReplicaPartitionError
    errors = [error(topic_name=topic, partition_index=i, error_code=code) for topic, i in keys]
    return response(error_code=code, partition_errors=errors)


def _deny_elect_leaders(request: messages.ElectLeadersRequest, version: int, code: int) -> Struct:
    """Return ElectLeaders' response: the code per partition, and for the request since v1."""
    response = messages.ElectLeadersResponse
    results = [
        response.ReplicaElectionResult(
            topic=topic.topic,
            partition_result=[
                response.PartitionResult(partition_id=index, error_code=code, error_message=None)
                for index in topic.partitions
            ],
        )
        for topic in request.topic_partitions or ()
    ]
    whole = code if version >= _FIRST_ELECT_LEADERS_WITH_ERROR else 0
    return response(error_code=whole, replica_election_results=results)


def _deny_alter_reassignments(
    request: messages.AlterPartitionReassignmentsRequest, _version: int, code: int
) -> Struct:
    """Return AlterPartitionReassignments' response: code and message on every level."""
    response = messages.AlterPartitionReassignmentsResponse
    row = response.ReassignablePartitionResponse
    message = _denial_message("AlterPartitionReassignments")
    topics = [
        response.ReassignableTopicResponse(
            name=topic.name,
            partitions=[
                row(
                    partition_index=partition.partition_index,
                    error_code=code,
                    error_message=message,
                )
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return response(error_code=code, error_message=message, responses=topics)


def _deny_create_acls(request: messages.CreateAclsRequest, _version: int, code: int) -> Struct:
    """Return CreateAcls's denial: the error for each requested creation."""
    response, message = messages.CreateAclsResponse, _denial_message("CreateAcls")
    result = response.AclCreationResult
    return response(
        results=[result(error_code=code, error_message=message) for _ in request.creations]
    )


def _deny_delete_acls(request: messages.DeleteAclsRequest, _version: int, code: int) -> Struct:
    """Return DeleteAcls's denial: the error for each requested filter."""
    response, message = messages.DeleteAclsResponse, _denial_message("DeleteAcls")
    result = response.DeleteAclsFilterResult
    return response(
        filter_results=[result(error_code=code, error_message=message) for _ in request.filters]
    )


def _deny_alter_quotas(
    request: messages.AlterClientQuotasRequest, _version: int, code: int
) -> Struct:
    """Return AlterClientQuotas' response with the code and message for each entity."""
    response = messages.AlterClientQuotasResponse
    return response(
        entries=[
            response.EntryData(
                error_code=code,
                error_message=_CLUSTER_DENIED,
                entity=[
                    response.EntityData(entity_type=part.entity_type, entity_name=part.entity_name)
                    for part in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )


def _deny_describe_quotas(
    _request: messages.DescribeClientQuotasRequest, _version: int, code: int
) -> Struct:
    """Return DescribeClientQuotas' denial: null entries, which mean a failed request."""
    return messages.DescribeClientQuotasResponse(error_code=code, error_message=None, entries=None)


def _deny_alter_credentials(
    request: messages.AlterUserScramCredentialsRequest, _version: int, code: int
) -> Struct:
    """Return AlterUserScramCredentials's denial: the error once per distinct user."""
    response = messages.AlterUserScramCredentialsResponse
    result = response.AlterUserScramCredentialsResult
    users = dict.fromkeys(one.name for one in (*request.deletions, *request.upsertions))
    return response(
        results=[result(user=user, error_code=code, error_message=None) for user in users]
    )


def _deny_describe_credentials(
    request: messages.DescribeUserScramCredentialsRequest, _version: int, code: int
) -> Struct:
    """Return DescribeUserScramCredentials' denial: the error for the request and each named user.

    The rows have no user names, as in Kafka.
    """
    response = messages.DescribeUserScramCredentialsResponse
    result = response.DescribeUserScramCredentialsResult
    return response(
        error_code=code,
        error_message=None,
        results=[result(error_code=code, error_message=None) for _ in request.users or ()],
    )


def _deny_list_reassignments(
    request: messages.ListPartitionReassignmentsRequest, _version: int, code: int
) -> Struct:
    """Return ListPartitionReassignments' denial: the error, and each requested partition empty."""
    response = messages.ListPartitionReassignmentsResponse
    partition = response.OngoingPartitionReassignment
    return response(
        error_code=code,
        error_message=_denial_message("ListPartitionReassignments"),
        topics=[
            response.OngoingTopicReassignment(
                name=topic.name,
                partitions=[partition(partition_index=index) for index in topic.partition_indexes],
            )
            for topic in request.topics or ()
        ],
    )


def _deny_update_features(
    _request: messages.UpdateFeaturesRequest, _version: int, code: int
) -> Struct:
    """Return UpdateFeatures' denial: the error of the whole request."""
    return messages.UpdateFeaturesResponse(error_code=code, error_message=_CLUSTER_DENIED)


def _deny_alter_log_dirs(
    request: messages.AlterReplicaLogDirsRequest, _version: int, code: int
) -> Struct:
    """Return AlterReplicaLogDirs' response with the code for each partition."""
    response = messages.AlterReplicaLogDirsResponse
    row = response.AlterReplicaLogDirPartitionResult
    return response(
        results=[
            response.AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[row(partition_index=i, error_code=code) for i in topic.partitions],
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


def _deny_write_txn_markers(
    request: messages.WriteTxnMarkersRequest, _version: int, code: int
) -> Struct:
    """Return WriteTxnMarkers' response with the code for each partition of each marker."""
    response = messages.WriteTxnMarkersResponse
    row = response.WritableTxnMarkerPartitionResult
    return response(
        markers=[
            response.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    response.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            row(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


#: Functions of an API's request, version and error code, for APIs with errors in rows.
_FILLED: dict[str, Callable[[Message, int, int], Struct]] = {
    "LeaderAndIsr": _deny_leader_and_isr,
    "StopReplica": _deny_stop_replica,
    "ElectLeaders": _deny_elect_leaders,
    "AlterReplicaLogDirs": _deny_alter_log_dirs,
    "AlterPartitionReassignments": _deny_alter_reassignments,
    "CreateAcls": _deny_create_acls,
    "DeleteAcls": _deny_delete_acls,
    "WriteTxnMarkers": _deny_write_txn_markers,
    "AlterClientQuotas": _deny_alter_quotas,
    "DescribeClientQuotas": _deny_describe_quotas,
    "AlterUserScramCredentials": _deny_alter_credentials,
    "DescribeUserScramCredentials": _deny_describe_credentials,
    "ListPartitionReassignments": _deny_list_reassignments,
    "UpdateFeatures": _deny_update_features,
}
