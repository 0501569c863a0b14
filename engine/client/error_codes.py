"""Kafka's error codes: names, whether asking again may help, and what they mean, in our words.

Each line of the table: code, name, rule, meaning. Rule: `-` final; `R` asking again may help;
`M` the same once the metadata is fresh.

Source: Errors of Kafka 4.3.0, whose codes include those of 3.9.1.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from engine.errors import ApiError

NONE: Final = 0
OFFSET_OUT_OF_RANGE: Final = 1
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
NOT_LEADER_OR_FOLLOWER: Final = 6
UNSUPPORTED_VERSION: Final = 35
TOPIC_ALREADY_EXISTS: Final = 36
INVALID_PARTITIONS: Final = 37
INVALID_CONFIG: Final = 40
NOT_CONTROLLER: Final = 41
INVALID_REQUEST: Final = 42
UNKNOWN_TOPIC_ID: Final = 100

_TABLE: Final = """\
-1 UNKNOWN_SERVER_ERROR - the broker failed in a way it does not name; its log says more
0 NONE - no error
1 OFFSET_OUT_OF_RANGE - the offset lies outside the partition's log
2 CORRUPT_MESSAGE R a batch arrived damaged, or its records break a rule of the topic
3 UNKNOWN_TOPIC_OR_PARTITION M no such topic or partition, or no right to see it
4 INVALID_FETCH_SIZE - the fetch size is not allowed
5 LEADER_NOT_AVAILABLE M the partition has no leader now
6 NOT_LEADER_OR_FOLLOWER M this broker does not lead the partition
7 REQUEST_TIMED_OUT R the broker did not finish in the time given
8 BROKER_NOT_AVAILABLE - the broker is not there
9 REPLICA_NOT_AVAILABLE M the replica is not there
10 MESSAGE_TOO_LARGE - the batch is larger than the topic or broker takes
11 STALE_CONTROLLER_EPOCH - a newer controller is at work
12 OFFSET_METADATA_TOO_LARGE - the text beside a committed offset is too long
13 NETWORK_EXCEPTION M the broker lost a connection it needed
14 COORDINATOR_LOAD_IN_PROGRESS R the coordinator is still loading its log
15 COORDINATOR_NOT_AVAILABLE R the coordinator is not there yet
16 NOT_COORDINATOR R this broker does not coordinate the group or transaction
17 INVALID_TOPIC_EXCEPTION - the topic's name is not allowed, or the topic is an internal one
18 RECORD_LIST_TOO_LARGE - the request holds more records than a segment can
19 NOT_ENOUGH_REPLICAS R fewer replicas are in sync than min.insync.replicas asks
20 NOT_ENOUGH_REPLICAS_AFTER_APPEND R written, but fewer replicas are in sync than asked
21 INVALID_REQUIRED_ACKS - acks must be 0, 1 or all
22 ILLEGAL_GENERATION - the member belongs to an older generation of its group
23 INCONSISTENT_GROUP_PROTOCOL - the member's protocols do not fit those of its group
24 INVALID_GROUP_ID - the group's name is not allowed
25 UNKNOWN_MEMBER_ID - the group has no such member
26 INVALID_SESSION_TIMEOUT - the session timeout is outside the broker's bounds
27 REBALANCE_IN_PROGRESS - the group is rebalancing
28 INVALID_COMMIT_OFFSET_SIZE - the committed offsets do not fit in one record
29 TOPIC_AUTHORIZATION_FAILED - not authorized for the topic
30 GROUP_AUTHORIZATION_FAILED - not authorized for the group
31 CLUSTER_AUTHORIZATION_FAILED - not authorized for the cluster
32 INVALID_TIMESTAMP - the record's time is outside the topic's bounds
33 UNSUPPORTED_SASL_MECHANISM - the broker does not offer this SASL mechanism
34 ILLEGAL_SASL_STATE - a SASL message came at the wrong moment
35 UNSUPPORTED_VERSION - the broker does not know this request or version
36 TOPIC_ALREADY_EXISTS - a topic of this name exists
37 INVALID_PARTITIONS - the number of partitions is not allowed
38 INVALID_REPLICATION_FACTOR - not allowed with the brokers that are alive
39 INVALID_REPLICA_ASSIGNMENT - the replica assignment is not allowed
40 INVALID_CONFIG - a setting or its value is not allowed
41 NOT_CONTROLLER R this broker is not the controller
42 INVALID_REQUEST - the request contradicts a rule of the broker
43 UNSUPPORTED_FOR_MESSAGE_FORMAT - the record format of the log is too old for this
44 POLICY_VIOLATION - a policy of the cluster forbids it
45 OUT_OF_ORDER_SEQUENCE_NUMBER - a producer's sequence number has a gap
46 DUPLICATE_SEQUENCE_NUMBER - a producer's sequence number was seen before
47 INVALID_PRODUCER_EPOCH - a newer instance of the producer has taken over
48 INVALID_TXN_STATE - the transaction is not in a state for this
49 INVALID_PRODUCER_ID_MAPPING - the producer id does not belong to this transactional id
50 INVALID_TRANSACTION_TIMEOUT - the transaction timeout is above the broker's bound
51 CONCURRENT_TRANSACTIONS R another change of the transaction is still going on
52 TRANSACTION_COORDINATOR_FENCED - a newer transaction coordinator has taken over
53 TRANSACTIONAL_ID_AUTHORIZATION_FAILED - not authorized for the transactional id
54 SECURITY_DISABLED - the broker has no authorizer
55 OPERATION_NOT_ATTEMPTED - not tried, because another item failed
56 KAFKA_STORAGE_ERROR M the broker's disk failed
57 LOG_DIR_NOT_FOUND - the broker has no such log directory
58 SASL_AUTHENTICATION_FAILED - the user or password is wrong
59 UNKNOWN_PRODUCER_ID - the broker no longer knows the producer id
60 REASSIGNMENT_IN_PROGRESS - a reassignment of the partition is running
61 DELEGATION_TOKEN_AUTH_DISABLED - delegation tokens are not switched on
62 DELEGATION_TOKEN_NOT_FOUND - no such delegation token
63 DELEGATION_TOKEN_OWNER_MISMATCH - the delegation token belongs to another user
64 DELEGATION_TOKEN_REQUEST_NOT_ALLOWED - they need a connection secured otherwise
65 DELEGATION_TOKEN_AUTHORIZATION_FAILED - not authorized for the delegation token
66 DELEGATION_TOKEN_EXPIRED - the delegation token has expired
67 INVALID_PRINCIPAL_TYPE - principals of this type are not allowed here
68 NON_EMPTY_GROUP - the group still has members
69 GROUP_ID_NOT_FOUND - no such group
70 FETCH_SESSION_ID_NOT_FOUND R the broker forgot the fetch session
71 INVALID_FETCH_SESSION_EPOCH R the fetch session is at another step
72 LISTENER_NOT_FOUND M the broker has no such listener
73 TOPIC_DELETION_DISABLED - topic deletion is switched off
74 FENCED_LEADER_EPOCH M the leader epoch given is older than the broker's
75 UNKNOWN_LEADER_EPOCH R the leader epoch given is newer than the broker's
76 UNSUPPORTED_COMPRESSION_TYPE - the codec is not supported by this request version
77 STALE_BROKER_EPOCH - the broker's registration is older than the controller's
78 OFFSET_NOT_AVAILABLE R the leader does not know its high watermark yet
79 MEMBER_ID_REQUIRED - the group wants the member to join with an id
80 PREFERRED_LEADER_NOT_AVAILABLE M the preferred leader is not there
81 GROUP_MAX_SIZE_REACHED - the group is full
82 FENCED_INSTANCE_ID - another member uses the same instance id
83 ELIGIBLE_LEADERS_NOT_AVAILABLE M no replica may become leader
84 ELECTION_NOT_NEEDED M the leader is already the one asked for
85 NO_REASSIGNMENT_IN_PROGRESS - no reassignment of the partition is running
86 GROUP_SUBSCRIBED_TO_TOPIC - the group is subscribed to the topic
87 INVALID_RECORD - a record breaks a rule of the topic
88 UNSTABLE_OFFSET_COMMIT R offsets of a running transaction are not decided yet
89 THROTTLING_QUOTA_EXCEEDED R the quota is used up
90 PRODUCER_FENCED - a newer producer with the same transactional id has taken over
91 RESOURCE_NOT_FOUND - no such resource
92 DUPLICATE_RESOURCE - the resource is there already
93 UNACCEPTABLE_CREDENTIAL - the credential does not meet the broker's rules
94 INCONSISTENT_VOTER_SET - the voters are not the same
95 INVALID_UPDATE_VERSION - the update's version is not allowed
96 FEATURE_UPDATE_FAILED - the feature could not be updated
97 PRINCIPAL_DESERIALIZATION_FAILURE - the forwarded principal could not be read
98 SNAPSHOT_NOT_FOUND - no such snapshot
99 POSITION_OUT_OF_RANGE - the position lies outside the snapshot
100 UNKNOWN_TOPIC_ID M no topic has this id
101 DUPLICATE_BROKER_REGISTRATION - a broker with this id is registered
102 BROKER_ID_NOT_REGISTERED - no broker with this id is registered
103 INCONSISTENT_TOPIC_ID M the topic's id is another one: it was deleted and created again
104 INCONSISTENT_CLUSTER_ID - the broker belongs to another cluster
105 TRANSACTIONAL_ID_NOT_FOUND - no such transactional id
106 FETCH_SESSION_TOPIC_ID_ERROR R the fetch session mixes topic ids and names
107 INELIGIBLE_REPLICA - the replica may not join the in-sync set
108 NEW_LEADER_ELECTED - a new leader was elected meanwhile
109 OFFSET_MOVED_TO_TIERED_STORAGE - the offset is in remote storage only
110 FENCED_MEMBER_EPOCH - the member belongs to an older epoch of its group
111 UNRELEASED_INSTANCE_ID - the instance id is still in use
112 UNSUPPORTED_ASSIGNOR - the broker does not offer this assignor
113 STALE_MEMBER_EPOCH - the member has an older epoch
114 MISMATCHED_ENDPOINT_TYPE - the address is that of another kind of node
115 UNSUPPORTED_ENDPOINT_TYPE - this kind of node is not supported
116 UNKNOWN_CONTROLLER_ID - no controller has this id
117 UNKNOWN_SUBSCRIPTION_ID - the broker does not know the client's telemetry subscription
118 TELEMETRY_TOO_LARGE - the telemetry is larger than the broker takes
119 INVALID_REGISTRATION - the broker's registration is not allowed
120 TRANSACTION_ABORTABLE - the transaction must be aborted
121 INVALID_RECORD_STATE - the record of the share group is in another state
122 SHARE_SESSION_NOT_FOUND R no such share session
123 INVALID_SHARE_SESSION_EPOCH R the share session is at another step
124 FENCED_STATE_EPOCH - a newer state of the share group is stored
125 INVALID_VOTER_KEY - the voter's key is not allowed
126 DUPLICATE_VOTER - the voter is there already
127 VOTER_NOT_FOUND - no such voter
128 INVALID_REGULAR_EXPRESSION - the regular expression is not allowed
129 REBOOTSTRAP_REQUIRED - the client must start again from its bootstrap servers
130 STREAMS_INVALID_TOPOLOGY - the streams topology is not allowed
131 STREAMS_INVALID_TOPOLOGY_EPOCH - the streams topology's epoch is not allowed
132 STREAMS_TOPOLOGY_FENCED - a newer streams topology has taken over
133 SHARE_SESSION_LIMIT_REACHED R the broker holds as many share sessions as it may
"""


class ErrorCode(NamedTuple):
    """One of Kafka's error codes."""

    code: int
    name: str
    meaning: str
    is_retriable: bool = False
    #: Retriable, and the cause is often that brokers have taken other roles.
    needs_metadata: bool = False


@cache
def error_codes() -> dict[int, ErrorCode]:
    """Return all codes; 0 is `NONE`."""
    found = {}
    for line in _TABLE.splitlines():
        code, name, rule, meaning = line.split(" ", 3)
        found[int(code)] = ErrorCode(int(code), name, meaning, rule != "-", rule == "M")
    return found


def error_code(code: int) -> ErrorCode:
    """Return what a code means; one that no release knows is final and named by its number."""
    known = error_codes().get(code)
    return known or ErrorCode(code, f"ERROR_{code}", "a code that this release does not know")


def api_error(code: int, detail: str | None = None) -> ApiError:
    """Return the error of an answer; `detail` is the broker's own message, if it sent one."""
    known = error_code(code)
    return ApiError(code, known.name, detail or known.meaning)


def is_retriable(code: int) -> bool:
    """Tell whether the same request may succeed later."""
    return code != NONE and error_code(code).is_retriable
