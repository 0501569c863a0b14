"""Kafka's error codes: their names, if a retry may help, and their meaning in our words.

All messages take the name of a code from here. Columns of the table: name, rule, meaning. Rule: `-`
not retriable; `R` retriable; `M` retriable after a refresh of the metadata.

Source: Errors of Kafka 4.3.0, whose codes include those of 3.9.1.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

UNKNOWN_SERVER_ERROR: Final = -1
NONE: Final = 0
OFFSET_OUT_OF_RANGE: Final = 1
CORRUPT_MESSAGE: Final = 2
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
INVALID_FETCH_SIZE: Final = 4
LEADER_NOT_AVAILABLE: Final = 5
NOT_LEADER_OR_FOLLOWER: Final = 6
REQUEST_TIMED_OUT: Final = 7
BROKER_NOT_AVAILABLE: Final = 8
REPLICA_NOT_AVAILABLE: Final = 9
MESSAGE_TOO_LARGE: Final = 10
STALE_CONTROLLER_EPOCH: Final = 11
OFFSET_METADATA_TOO_LARGE: Final = 12
NETWORK_EXCEPTION: Final = 13
COORDINATOR_LOAD_IN_PROGRESS: Final = 14
COORDINATOR_NOT_AVAILABLE: Final = 15
NOT_COORDINATOR: Final = 16
INVALID_TOPIC_EXCEPTION: Final = 17
RECORD_LIST_TOO_LARGE: Final = 18
NOT_ENOUGH_REPLICAS: Final = 19
NOT_ENOUGH_REPLICAS_AFTER_APPEND: Final = 20
INVALID_REQUIRED_ACKS: Final = 21
ILLEGAL_GENERATION: Final = 22
INCONSISTENT_GROUP_PROTOCOL: Final = 23
INVALID_GROUP_ID: Final = 24
UNKNOWN_MEMBER_ID: Final = 25
INVALID_SESSION_TIMEOUT: Final = 26
REBALANCE_IN_PROGRESS: Final = 27
INVALID_COMMIT_OFFSET_SIZE: Final = 28
TOPIC_AUTHORIZATION_FAILED: Final = 29
GROUP_AUTHORIZATION_FAILED: Final = 30
CLUSTER_AUTHORIZATION_FAILED: Final = 31
INVALID_TIMESTAMP: Final = 32
UNSUPPORTED_SASL_MECHANISM: Final = 33
ILLEGAL_SASL_STATE: Final = 34
UNSUPPORTED_VERSION: Final = 35
TOPIC_ALREADY_EXISTS: Final = 36
INVALID_PARTITIONS: Final = 37
INVALID_REPLICATION_FACTOR: Final = 38
INVALID_REPLICA_ASSIGNMENT: Final = 39
INVALID_CONFIG: Final = 40
NOT_CONTROLLER: Final = 41
INVALID_REQUEST: Final = 42
UNSUPPORTED_FOR_MESSAGE_FORMAT: Final = 43
POLICY_VIOLATION: Final = 44
OUT_OF_ORDER_SEQUENCE_NUMBER: Final = 45
DUPLICATE_SEQUENCE_NUMBER: Final = 46
INVALID_PRODUCER_EPOCH: Final = 47
INVALID_TXN_STATE: Final = 48
INVALID_PRODUCER_ID_MAPPING: Final = 49
INVALID_TRANSACTION_TIMEOUT: Final = 50
CONCURRENT_TRANSACTIONS: Final = 51
TRANSACTION_COORDINATOR_FENCED: Final = 52
TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = 53
SECURITY_DISABLED: Final = 54
OPERATION_NOT_ATTEMPTED: Final = 55
KAFKA_STORAGE_ERROR: Final = 56
LOG_DIR_NOT_FOUND: Final = 57
SASL_AUTHENTICATION_FAILED: Final = 58
UNKNOWN_PRODUCER_ID: Final = 59
REASSIGNMENT_IN_PROGRESS: Final = 60
DELEGATION_TOKEN_AUTH_DISABLED: Final = 61
DELEGATION_TOKEN_NOT_FOUND: Final = 62
DELEGATION_TOKEN_OWNER_MISMATCH: Final = 63
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: Final = 64
DELEGATION_TOKEN_AUTHORIZATION_FAILED: Final = 65
DELEGATION_TOKEN_EXPIRED: Final = 66
INVALID_PRINCIPAL_TYPE: Final = 67
NON_EMPTY_GROUP: Final = 68
GROUP_ID_NOT_FOUND: Final = 69
FETCH_SESSION_ID_NOT_FOUND: Final = 70
INVALID_FETCH_SESSION_EPOCH: Final = 71
LISTENER_NOT_FOUND: Final = 72
TOPIC_DELETION_DISABLED: Final = 73
FENCED_LEADER_EPOCH: Final = 74
UNKNOWN_LEADER_EPOCH: Final = 75
UNSUPPORTED_COMPRESSION_TYPE: Final = 76
STALE_BROKER_EPOCH: Final = 77
OFFSET_NOT_AVAILABLE: Final = 78
MEMBER_ID_REQUIRED: Final = 79
PREFERRED_LEADER_NOT_AVAILABLE: Final = 80
GROUP_MAX_SIZE_REACHED: Final = 81
FENCED_INSTANCE_ID: Final = 82
ELIGIBLE_LEADERS_NOT_AVAILABLE: Final = 83
ELECTION_NOT_NEEDED: Final = 84
NO_REASSIGNMENT_IN_PROGRESS: Final = 85
GROUP_SUBSCRIBED_TO_TOPIC: Final = 86
INVALID_RECORD: Final = 87
UNSTABLE_OFFSET_COMMIT: Final = 88
THROTTLING_QUOTA_EXCEEDED: Final = 89
PRODUCER_FENCED: Final = 90
RESOURCE_NOT_FOUND: Final = 91
DUPLICATE_RESOURCE: Final = 92
UNACCEPTABLE_CREDENTIAL: Final = 93
INCONSISTENT_VOTER_SET: Final = 94
INVALID_UPDATE_VERSION: Final = 95
FEATURE_UPDATE_FAILED: Final = 96
PRINCIPAL_DESERIALIZATION_FAILURE: Final = 97
SNAPSHOT_NOT_FOUND: Final = 98
POSITION_OUT_OF_RANGE: Final = 99
UNKNOWN_TOPIC_ID: Final = 100
DUPLICATE_BROKER_REGISTRATION: Final = 101
BROKER_ID_NOT_REGISTERED: Final = 102
INCONSISTENT_TOPIC_ID: Final = 103
INCONSISTENT_CLUSTER_ID: Final = 104
TRANSACTIONAL_ID_NOT_FOUND: Final = 105
FETCH_SESSION_TOPIC_ID_ERROR: Final = 106
INELIGIBLE_REPLICA: Final = 107
NEW_LEADER_ELECTED: Final = 108
OFFSET_MOVED_TO_TIERED_STORAGE: Final = 109
FENCED_MEMBER_EPOCH: Final = 110
UNRELEASED_INSTANCE_ID: Final = 111
UNSUPPORTED_ASSIGNOR: Final = 112
STALE_MEMBER_EPOCH: Final = 113
MISMATCHED_ENDPOINT_TYPE: Final = 114
UNSUPPORTED_ENDPOINT_TYPE: Final = 115
UNKNOWN_CONTROLLER_ID: Final = 116
UNKNOWN_SUBSCRIPTION_ID: Final = 117
TELEMETRY_TOO_LARGE: Final = 118
INVALID_REGISTRATION: Final = 119
TRANSACTION_ABORTABLE: Final = 120
INVALID_RECORD_STATE: Final = 121
SHARE_SESSION_NOT_FOUND: Final = 122
INVALID_SHARE_SESSION_EPOCH: Final = 123
FENCED_STATE_EPOCH: Final = 124
INVALID_VOTER_KEY: Final = 125
DUPLICATE_VOTER: Final = 126
VOTER_NOT_FOUND: Final = 127
INVALID_REGULAR_EXPRESSION: Final = 128
REBOOTSTRAP_REQUIRED: Final = 129
STREAMS_INVALID_TOPOLOGY: Final = 130
STREAMS_INVALID_TOPOLOGY_EPOCH: Final = 131
STREAMS_TOPOLOGY_FENCED: Final = 132
SHARE_SESSION_LIMIT_REACHED: Final = 133

#: The message of Kafka's brokers for INVALID_REQUEST without a specific reason.
INVALID_REQUEST_DETAIL: Final = (
    "This most likely occurs because of a request being malformed by the client library or "
    "the message was sent to an incompatible broker. See the broker logs for more details."
)

_TABLE: Final = """\
UNKNOWN_SERVER_ERROR - the broker failed in a way it does not name; its log says more
NONE - no error
OFFSET_OUT_OF_RANGE - the offset lies outside the partition's log
CORRUPT_MESSAGE R a batch arrived damaged, or its records break a rule of the topic
UNKNOWN_TOPIC_OR_PARTITION M no such topic or partition, or no right to see it
INVALID_FETCH_SIZE - the fetch size is not allowed
LEADER_NOT_AVAILABLE M the partition has no leader now
NOT_LEADER_OR_FOLLOWER M this broker does not lead the partition
REQUEST_TIMED_OUT R the broker did not finish in the time given
BROKER_NOT_AVAILABLE - the broker is not there
REPLICA_NOT_AVAILABLE M the replica is not there
MESSAGE_TOO_LARGE - the batch is larger than the topic or broker takes
STALE_CONTROLLER_EPOCH - a newer controller is at work
OFFSET_METADATA_TOO_LARGE - the text beside a committed offset is too long
NETWORK_EXCEPTION M the broker lost a connection it needed
COORDINATOR_LOAD_IN_PROGRESS R the coordinator is still loading its log
COORDINATOR_NOT_AVAILABLE R the coordinator is not there yet
NOT_COORDINATOR R this broker does not coordinate the group or transaction
INVALID_TOPIC_EXCEPTION - the topic's name is not allowed, or the topic is an internal one
RECORD_LIST_TOO_LARGE - the request holds more records than a segment can
NOT_ENOUGH_REPLICAS R fewer replicas are in sync than min.insync.replicas asks
NOT_ENOUGH_REPLICAS_AFTER_APPEND R written, but fewer replicas are in sync than asked
INVALID_REQUIRED_ACKS - acks must be 0, 1 or all
ILLEGAL_GENERATION - the member belongs to an older generation of its group
INCONSISTENT_GROUP_PROTOCOL - the member's protocols do not fit those of its group
INVALID_GROUP_ID - the group's name is not allowed
UNKNOWN_MEMBER_ID - the group has no such member
INVALID_SESSION_TIMEOUT - the session timeout is outside the broker's bounds
REBALANCE_IN_PROGRESS - the group is rebalancing
INVALID_COMMIT_OFFSET_SIZE - the committed offsets do not fit in one record
TOPIC_AUTHORIZATION_FAILED - not authorized for the topic
GROUP_AUTHORIZATION_FAILED - not authorized for the group
CLUSTER_AUTHORIZATION_FAILED - not authorized for the cluster
INVALID_TIMESTAMP - the record's time is outside the topic's bounds
UNSUPPORTED_SASL_MECHANISM - the broker does not offer this SASL mechanism
ILLEGAL_SASL_STATE - a SASL message came at the wrong moment
UNSUPPORTED_VERSION - the broker does not know this request or version
TOPIC_ALREADY_EXISTS - a topic of this name exists
INVALID_PARTITIONS - the number of partitions is not allowed
INVALID_REPLICATION_FACTOR - not allowed with the brokers that are alive
INVALID_REPLICA_ASSIGNMENT - the replica assignment is not allowed
INVALID_CONFIG - a setting or its value is not allowed
NOT_CONTROLLER R this broker is not the controller
INVALID_REQUEST - the request contradicts a rule of the broker
UNSUPPORTED_FOR_MESSAGE_FORMAT - the record format of the log is too old for this
POLICY_VIOLATION - a policy of the cluster forbids it
OUT_OF_ORDER_SEQUENCE_NUMBER - a producer's sequence number has a gap
DUPLICATE_SEQUENCE_NUMBER - a producer's sequence number was seen before
INVALID_PRODUCER_EPOCH - a newer instance of the producer has taken over
INVALID_TXN_STATE - the transaction is not in a state for this
INVALID_PRODUCER_ID_MAPPING - the producer id does not belong to this transactional id
INVALID_TRANSACTION_TIMEOUT - the transaction timeout is above the broker's bound
CONCURRENT_TRANSACTIONS R another change of the transaction is still going on
TRANSACTION_COORDINATOR_FENCED - a newer transaction coordinator has taken over
TRANSACTIONAL_ID_AUTHORIZATION_FAILED - not authorized for the transactional id
SECURITY_DISABLED - the broker has no authorizer
OPERATION_NOT_ATTEMPTED - not tried, because another item failed
KAFKA_STORAGE_ERROR M the broker's disk failed
LOG_DIR_NOT_FOUND - the broker has no such log directory
SASL_AUTHENTICATION_FAILED - the user or password is wrong
UNKNOWN_PRODUCER_ID - the broker no longer knows the producer id
REASSIGNMENT_IN_PROGRESS - a reassignment of the partition is running
DELEGATION_TOKEN_AUTH_DISABLED - delegation tokens are not switched on
DELEGATION_TOKEN_NOT_FOUND - no such delegation token
DELEGATION_TOKEN_OWNER_MISMATCH - the delegation token belongs to another user
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED - tokens need a login by SASL or a certificate, not by a token
DELEGATION_TOKEN_AUTHORIZATION_FAILED - not authorized for the delegation token
DELEGATION_TOKEN_EXPIRED - the delegation token has expired
INVALID_PRINCIPAL_TYPE - principals of this type are not allowed here
NON_EMPTY_GROUP - the group still has members
GROUP_ID_NOT_FOUND - no such group
FETCH_SESSION_ID_NOT_FOUND R the broker forgot the fetch session
INVALID_FETCH_SESSION_EPOCH R the fetch session is at another step
LISTENER_NOT_FOUND M the broker has no such listener
TOPIC_DELETION_DISABLED - topic deletion is switched off
FENCED_LEADER_EPOCH M the leader epoch given is older than the broker's
UNKNOWN_LEADER_EPOCH R the leader epoch given is newer than the broker's
UNSUPPORTED_COMPRESSION_TYPE - the codec is not supported by this request version
STALE_BROKER_EPOCH - the broker's registration is older than the controller's
OFFSET_NOT_AVAILABLE R the leader does not know its high watermark yet
MEMBER_ID_REQUIRED - the group wants the member to join with an id
PREFERRED_LEADER_NOT_AVAILABLE M the preferred leader is not there
GROUP_MAX_SIZE_REACHED - the group is full
FENCED_INSTANCE_ID - another member uses the same instance id
ELIGIBLE_LEADERS_NOT_AVAILABLE M no replica may become leader
ELECTION_NOT_NEEDED M the leader is already the one asked for
NO_REASSIGNMENT_IN_PROGRESS - no reassignment of the partition is running
GROUP_SUBSCRIBED_TO_TOPIC - the group is subscribed to the topic
INVALID_RECORD - a record breaks a rule of the topic
UNSTABLE_OFFSET_COMMIT R offsets of a running transaction are not decided yet
THROTTLING_QUOTA_EXCEEDED R the quota is used up
PRODUCER_FENCED - a newer producer with the same transactional id has taken over
RESOURCE_NOT_FOUND - no such resource
DUPLICATE_RESOURCE - the resource is there already
UNACCEPTABLE_CREDENTIAL - the credential does not meet the broker's rules
INCONSISTENT_VOTER_SET - the voters are not the same
INVALID_UPDATE_VERSION - the update's version is not allowed
FEATURE_UPDATE_FAILED - the feature could not be updated
PRINCIPAL_DESERIALIZATION_FAILURE - the forwarded principal could not be read
SNAPSHOT_NOT_FOUND - no such snapshot
POSITION_OUT_OF_RANGE - the position lies outside the snapshot
UNKNOWN_TOPIC_ID M no topic has this id
DUPLICATE_BROKER_REGISTRATION - a broker with this id is registered
BROKER_ID_NOT_REGISTERED - no broker with this id is registered
INCONSISTENT_TOPIC_ID M the topic's id is another one: it was deleted and created again
INCONSISTENT_CLUSTER_ID - the broker belongs to another cluster
TRANSACTIONAL_ID_NOT_FOUND - no such transactional id
FETCH_SESSION_TOPIC_ID_ERROR R the fetch session mixes topic ids and names
INELIGIBLE_REPLICA - the replica may not join the in-sync set
NEW_LEADER_ELECTED - a new leader was elected meanwhile
OFFSET_MOVED_TO_TIERED_STORAGE - the offset is in remote storage only
FENCED_MEMBER_EPOCH - the member belongs to an older epoch of its group
UNRELEASED_INSTANCE_ID - the instance id is still in use
UNSUPPORTED_ASSIGNOR - the broker does not offer this assignor
STALE_MEMBER_EPOCH - the member has an older epoch
MISMATCHED_ENDPOINT_TYPE - the address is that of another kind of node
UNSUPPORTED_ENDPOINT_TYPE - this kind of node is not supported
UNKNOWN_CONTROLLER_ID - no controller has this id
UNKNOWN_SUBSCRIPTION_ID - the broker does not know the client's telemetry subscription
TELEMETRY_TOO_LARGE - the telemetry is larger than the broker takes
INVALID_REGISTRATION - the broker's registration is not allowed
TRANSACTION_ABORTABLE - the transaction must be aborted
INVALID_RECORD_STATE - the record of the share group is in another state
SHARE_SESSION_NOT_FOUND R no such share session
INVALID_SHARE_SESSION_EPOCH R the share session is at another step
FENCED_STATE_EPOCH - a newer state of the share group is stored
INVALID_VOTER_KEY - the voter's key is not allowed
DUPLICATE_VOTER - the voter is there already
VOTER_NOT_FOUND - no such voter
INVALID_REGULAR_EXPRESSION - the regular expression is not allowed
REBOOTSTRAP_REQUIRED - the client must start again from its bootstrap servers
STREAMS_INVALID_TOPOLOGY - the streams topology is not allowed
STREAMS_INVALID_TOPOLOGY_EPOCH - the streams topology's epoch is not allowed
STREAMS_TOPOLOGY_FENCED - a newer streams topology has taken over
SHARE_SESSION_LIMIT_REACHED R the broker holds as many share sessions as it may
"""


class KafkaError(NamedTuple):
    """One error code: its name in Kafka, whether it is retriable, and its meaning."""

    code: int
    name: str
    meaning: str
    is_retriable: bool = False
    #: Retriable after a metadata refresh: often a leader, coordinator or controller has changed.
    needs_metadata: bool = False


@cache
def kafka_errors() -> dict[int, KafkaError]:
    """Return the entry of each error code of Kafka's protocol; 0 is `NONE`."""
    rows = (line.split(" ", 2) for line in _TABLE.splitlines())
    codes = globals()
    return {
        codes[name]: KafkaError(codes[name], name, meaning, rule != "-", rule == "M")
        for name, rule, meaning in rows
    }


def kafka_error(code: int) -> KafkaError:
    """Return the entry of an error code.

    A code that is not in the table is named by its number and not retriable.
    """
    row = kafka_errors().get(code)
    return row or KafkaError(code, f"ERROR_{code}", "a code that this release does not know")


def is_retriable(code: int) -> bool:
    """Return True if Kafka's clients may repeat a request after this error code."""
    return code != NONE and kafka_error(code).is_retriable
