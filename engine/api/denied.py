"""The answers of APIs that a client may not call at all: Kafka's for each.

| API | answer |
|---|---|
| LeaderAndIsr, StopReplica, ElectLeaders | the error, and once more for each partition |
| CreateAcls, DeleteAcls | the error for each thing that was asked for |
| DescribeLogDirs below version 3 | no directories: there is no place for the error |
| others | the error |

Source: getErrorResponse of the requests; KafkaApis.handleElectLeaders,
handleDescribeLogDirsRequest.
Differs: the message names the API, where Kafka prints the whole request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.wire.structs import message_class

_FIRST_GROUPED_LEADER_AND_ISR = 2
_FIRST_LEADER_AND_ISR_BY_ID = 5
_FIRST_GROUPED_STOP_REPLICA = 1
_FIRST_STOP_REPLICA_BY_PARTITION = 3
_FIRST_ELECT_LEADERS_WITH_ERROR = 1
#: Responses that say in words what is wrong, too.
_WITH_MESSAGE = frozenset(("DescribeAcls", "ListPartitionReassignments"))


def denied(name: str, request: Any, version: int, code: int) -> Any:
    """Return the response of an API, by its name, with an error in all places it has for it."""
    response = message_class(f"{name}Response")
    fill = _FILLED.get(name)
    if fill is not None:
        return fill(response, request, version, code)
    if name in _WITH_MESSAGE:
        return response(error_code=code, error_message=_message(name))
    return response(error_code=code)


def _message(name: str) -> str:
    return f"Request {name} is not authorized."


def _leader_and_isr(response: Any, request: Any, version: int, code: int) -> Any:
    entry = response.LeaderAndIsrPartitionError
    if version < _FIRST_GROUPED_LEADER_AND_ISR:
        named = [(each.topic_name, each) for each in request.ungrouped_partition_states]
    else:
        named = [
            (topic.topic_name, each)
            for topic in request.topic_states
            for each in topic.partition_states
        ]
    if version < _FIRST_LEADER_AND_ISR_BY_ID:
        errors = [
            entry(topic_name=topic, partition_index=state.partition_index, error_code=code)
            for topic, state in named
        ]
        return response(error_code=code, partition_errors=errors)
    topics = [
        response.LeaderAndIsrTopicError(
            topic_id=topic.topic_id,
            partition_errors=[
                entry(partition_index=state.partition_index, error_code=code)
                for state in topic.partition_states
            ],
        )
        for topic in request.topic_states
    ]
    return response(error_code=code, topics=topics)


def _stop_replica(response: Any, request: Any, version: int, code: int) -> Any:
    if version < _FIRST_GROUPED_STOP_REPLICA:
        keys = [(each.topic_name, each.partition_index) for each in request.ungrouped_partitions]
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
    entry = response.StopReplicaPartitionError
    errors = [entry(topic_name=topic, partition_index=i, error_code=code) for topic, i in keys]
    return response(error_code=code, partition_errors=errors)


def _elect_leaders(response: Any, request: Any, version: int, code: int) -> Any:
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


def _create_acls(response: Any, request: Any, _version: int, code: int) -> Any:
    entry, message = response.AclCreationResult, _message("CreateAcls")
    return response(
        results=[entry(error_code=code, error_message=message) for _ in request.creations]
    )


def _delete_acls(response: Any, request: Any, _version: int, code: int) -> Any:
    entry, message = response.DeleteAclsFilterResult, _message("DeleteAcls")
    return response(
        filter_results=[entry(error_code=code, error_message=message) for _ in request.filters]
    )


_FILLED: dict[str, Callable[[Any, Any, int, int], Any]] = {
    "LeaderAndIsr": _leader_and_isr,
    "StopReplica": _stop_replica,
    "ElectLeaders": _elect_leaders,
    "CreateAcls": _create_acls,
    "DeleteAcls": _delete_acls,
}
