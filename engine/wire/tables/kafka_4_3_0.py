"""Message schemas of Apache Kafka 4.3.0 (but for what equals 3.9.1; see schema.py for the form).

Written by tools/pack_wire_tables.py: do not edit.
"""

from __future__ import annotations

#: Messages of the base release that this one no longer has.
GONE: frozenset[str] = frozenset(
    {
        "ControlledShutdownRequest",
        "ControlledShutdownResponse",
        "LeaderAndIsrRequest",
        "LeaderAndIsrResponse",
        "ListClientMetricsResourcesRequest",
        "ListClientMetricsResourcesResponse",
        "ShareGroupPartitionMetadataKey",
        "ShareGroupPartitionMetadataValue",
        "StopReplicaRequest",
        "StopReplicaResponse",
        "UpdateMetadataRequest",
        "UpdateMetadataResponse",
    }
)

#: Names of the APIs of this release by their keys.
API_NAMES: dict[int, str] = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    15: "DescribeGroups",
    16: "ListGroups",
    17: "SaslHandshake",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    21: "DeleteRecords",
    22: "InitProducerId",
    23: "OffsetForLeaderEpoch",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    27: "WriteTxnMarkers",
    28: "TxnOffsetCommit",
    29: "DescribeAcls",
    30: "CreateAcls",
    31: "DeleteAcls",
    32: "DescribeConfigs",
    33: "AlterConfigs",
    34: "AlterReplicaLogDirs",
    35: "DescribeLogDirs",
    36: "SaslAuthenticate",
    37: "CreatePartitions",
    38: "CreateDelegationToken",
    39: "RenewDelegationToken",
    40: "ExpireDelegationToken",
    41: "DescribeDelegationToken",
    42: "DeleteGroups",
    43: "ElectLeaders",
    44: "IncrementalAlterConfigs",
    45: "AlterPartitionReassignments",
    46: "ListPartitionReassignments",
    47: "OffsetDelete",
    48: "DescribeClientQuotas",
    49: "AlterClientQuotas",
    50: "DescribeUserScramCredentials",
    51: "AlterUserScramCredentials",
    52: "Vote",
    53: "BeginQuorumEpoch",
    54: "EndQuorumEpoch",
    55: "DescribeQuorum",
    56: "AlterPartition",
    57: "UpdateFeatures",
    58: "Envelope",
    59: "FetchSnapshot",
    60: "DescribeCluster",
    61: "DescribeProducers",
    62: "BrokerRegistration",
    63: "BrokerHeartbeat",
    64: "UnregisterBroker",
    65: "DescribeTransactions",
    66: "ListTransactions",
    67: "AllocateProducerIds",
    68: "ConsumerGroupHeartbeat",
    69: "ConsumerGroupDescribe",
    70: "ControllerRegistration",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    73: "AssignReplicasToDirs",
    74: "ListConfigResources",
    75: "DescribeTopicPartitions",
    76: "ShareGroupHeartbeat",
    77: "ShareGroupDescribe",
    78: "ShareFetch",
    79: "ShareAcknowledge",
    80: "AddRaftVoter",
    81: "RemoveRaftVoter",
    82: "UpdateRaftVoter",
    83: "InitializeShareGroupState",
    84: "ReadShareGroupState",
    85: "WriteShareGroupState",
    86: "DeleteShareGroupState",
    87: "ReadShareGroupStateSummary",
    88: "StreamsGroupHeartbeat",
    89: "StreamsGroupDescribe",
    90: "DescribeShareGroupOffsets",
    91: "AlterShareGroupOffsets",
    92: "DeleteShareGroupOffsets",
}

MESSAGES: dict[str, str] = {
    "AddRaftVoterRequest": """\
request 80 0-1 0+
ClusterId string 0+ null=0+
TimeoutMs int32 0+
VoterId int32 0+
VoterDirectoryId uuid 0+
Listeners []Listener 0+
 Name string 0+ mapKey
 Host string 0+
 Port uint16 0+
AckWhenCommitted bool 1+ default=true
""",
    "AddRaftVoterResponse": """\
response 80 0-1 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+ ignorable
""",
    "AlterPartitionReassignmentsRequest": """\
request 45 0-1 0+
TimeoutMs int32 0+ default=60000
AllowReplicationFactorChange bool 1+ default=true
Topics []ReassignableTopic 0+
 Name string 0+
 Partitions []ReassignablePartition 0+
  PartitionIndex int32 0+
  Replicas []int32 0+ null=0+ default=null
""",
    "AlterPartitionReassignmentsResponse": """\
response 45 0-1 0+
ThrottleTimeMs int32 0+
AllowReplicationFactorChange bool 1+ default=true ignorable
ErrorCode int16 0+
ErrorMessage string 0+ null=0+
Responses []ReassignableTopicResponse 0+
 Name string 0+
 Partitions []ReassignablePartitionResponse 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ null=0+
""",
    "AlterPartitionRequest": """\
request 56 2-3 0+
BrokerId int32 0+
BrokerEpoch int64 0+ default=-1
Topics []TopicData 0+
 TopicId uuid 2+ ignorable
 Partitions []PartitionData 0+
  PartitionIndex int32 0+
  LeaderEpoch int32 0+
  NewIsr []int32 0-2
  NewIsrWithEpochs []BrokerState 3+
   BrokerId int32 3+
   BrokerEpoch int64 3+ default=-1
  LeaderRecoveryState int8 1+ default=0
  PartitionEpoch int32 0+
""",
    "AlterPartitionResponse": """\
response 56 2-3 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
Topics []TopicData 0+
 TopicId uuid 2+ ignorable
 Partitions []PartitionData 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
  LeaderId int32 0+
  LeaderEpoch int32 0+
  Isr []int32 0+
  LeaderRecoveryState int8 1+ default=0 ignorable
  PartitionEpoch int32 0+
""",
    "AlterReplicaLogDirsRequest": """\
request 34 1-2 2+
Dirs []AlterReplicaLogDir 0+
 Path string 0+ mapKey
 Topics []AlterReplicaLogDirTopic 0+
  Name string 0+ mapKey
  Partitions []int32 0+
""",
    "AlterReplicaLogDirsResponse": """\
response 34 1-2 2+
ThrottleTimeMs int32 0+
Results []AlterReplicaLogDirTopicResult 0+
 TopicName string 0+
 Partitions []AlterReplicaLogDirPartitionResult 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
""",
    "AlterShareGroupOffsetsRequest": """\
request 91 0 0+
GroupId string 0+
Topics []AlterShareGroupOffsetsRequestTopic 0+
 TopicName string 0+ mapKey
 Partitions []AlterShareGroupOffsetsRequestPartition 0+
  PartitionIndex int32 0+
  StartOffset int64 0+
""",
    "AlterShareGroupOffsetsResponse": """\
response 91 0 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+ default=null
Responses []AlterShareGroupOffsetsResponseTopic 0+
 TopicName string 0+ mapKey
 TopicId uuid 0+
 Partitions []AlterShareGroupOffsetsResponsePartition 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ null=0+ default=null
""",
    "BrokerHeartbeatRequest": """\
request 63 0-2 0+
BrokerId int32 0+
BrokerEpoch int64 0+ default=-1
CurrentMetadataOffset int64 0+
WantFence bool 0+
WantShutDown bool 0+
OfflineLogDirs []uuid 1+ tag=0:1+
CordonedLogDirs []uuid 2+ null=2+ tag=1:2+ default=null
""",
    "BrokerHeartbeatResponse": """\
response 63 0-2 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
IsCaughtUp bool 0+ default=false
IsFenced bool 0+ default=true
ShouldShutDown bool 0+
""",
    "BrokerRegistrationChangeRecord": """\
metadata 17 0-3 0+
BrokerId int32 0+
BrokerEpoch int64 0+
Fenced int8 0+ tag=0:0+
InControlledShutdown int8 1+ tag=1:1+
LogDirs []uuid 2+ tag=2:2+
CordonedLogDirs []uuid 3+ null=3+ tag=3:3+ default=null
""",
    "ClearElrRecord": """\
metadata 28 0 0+
TopicName string 0+
""",
    "ConsumerGroupCurrentMemberAssignmentKey": """\
key 8 0 none
GroupId string 0
MemberId string 0
""",
    "ConsumerGroupCurrentMemberAssignmentValue": """\
value 8 0 0+
MemberEpoch int32 0+
PreviousMemberEpoch int32 0+
State int8 0+
AssignedPartitions []TopicPartitions 0+
PartitionsPendingRevocation []TopicPartitions 0+
= TopicPartitions 0+
TopicId uuid 0+
Partitions []int32 0+
AssignmentEpochs []int32 0+ null=0+ tag=0:0+
""",
    "ConsumerGroupDescribeRequest": """\
request 69 0-1 0+
GroupIds []string 0+
IncludeAuthorizedOperations bool 0+
""",
    "ConsumerGroupDescribeResponse": """\
response 69 0-1 0+
ThrottleTimeMs int32 0+
Groups []DescribedGroup 0+
 ErrorCode int16 0+
 ErrorMessage string 0+ null=0+ default=null
 GroupId string 0+
 GroupState string 0+
 GroupEpoch int32 0+
 AssignmentEpoch int32 0+
 AssignorName string 0+
 Members []Member 0+
  MemberId string 0+
  InstanceId string 0+ null=0+ default=null
  RackId string 0+ null=0+ default=null
  MemberEpoch int32 0+
  ClientId string 0+
  ClientHost string 0+
  SubscribedTopicNames []string 0+
  SubscribedTopicRegex string 0+ null=0+ default=null
  Assignment Assignment 0+
  TargetAssignment Assignment 0+
  MemberType int8 1+ default=-1 ignorable
 AuthorizedOperations int32 0+ default=-2147483648
= TopicPartitions 0+
TopicId uuid 0+
TopicName string 0+
Partitions []int32 0+
= Assignment 0+
TopicPartitions []TopicPartitions 0+
""",
    "ConsumerGroupHeartbeatRequest": """\
request 68 0-1 0+
GroupId string 0+
MemberId string 0+
MemberEpoch int32 0+
InstanceId string 0+ null=0+ default=null
RackId string 0+ null=0+ default=null
RebalanceTimeoutMs int32 0+ default=-1
SubscribedTopicNames []string 0+ null=0+ default=null
SubscribedTopicRegex string 1+ null=1+ default=null
ServerAssignor string 0+ null=0+ default=null
TopicPartitions []TopicPartitions 0+ null=0+ default=null
 TopicId uuid 0+
 Partitions []int32 0+
""",
    "ConsumerGroupHeartbeatResponse": """\
response 68 0-1 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+ default=null
MemberId string 0+ null=0+ default=null
MemberEpoch int32 0+
HeartbeatIntervalMs int32 0+
Assignment Assignment 0+ null=0+ default=null
 TopicPartitions []TopicPartitions 0+
= TopicPartitions 0+
TopicId uuid 0+
Partitions []int32 0+
""",
    "ConsumerGroupMemberMetadataKey": """\
key 5 0 none
GroupId string 0
MemberId string 0
""",
    "ConsumerGroupMemberMetadataValue": """\
value 5 0 0+
InstanceId string 0+ null=0+
RackId string 0+ null=0+
ClientId string 0+
ClientHost string 0+
SubscribedTopicNames []string 0+
SubscribedTopicRegex string 0+ null=0+
RebalanceTimeoutMs int32 0+ default=-1
ServerAssignor string 0+ null=0+
ClassicMemberMetadata ClassicMemberMetadata 0+ null=0+ tag=0:0+
 SessionTimeoutMs int32 0+
 SupportedProtocols []ClassicProtocol 0+
  Name string 0+
  Metadata bytes 0+
""",
    "ConsumerGroupMetadataKey": """\
key 3 0 none
GroupId string 0
""",
    "ConsumerGroupMetadataValue": """\
value 3 0 0+
Epoch int32 0+
MetadataHash int64 0+ tag=0:0+ default=0
""",
    "ConsumerGroupPartitionMetadataKey": """\
key 4 0 none
GroupId string 0
""",
    "ConsumerGroupPartitionMetadataValue": """\
value 4 0 0+
Topics []TopicMetadata 0+
 TopicId uuid 0+
 TopicName string 0+
 NumPartitions int32 0+
 PartitionMetadata []PartitionMetadata 0+
  Partition int32 0+
  Racks []string 0+
""",
    "ConsumerGroupRegularExpressionKey": """\
key 16 0 none
GroupId string 0
RegularExpression string 0
""",
    "ConsumerGroupRegularExpressionValue": """\
value 16 0 0+
Topics []string 0+
Version int64 0+
Timestamp int64 0+
""",
    "ConsumerGroupTargetAssignmentMemberKey": """\
key 7 0 none
GroupId string 0
MemberId string 0
""",
    "ConsumerGroupTargetAssignmentMemberValue": """\
value 7 0 0+
TopicPartitions []TopicPartition 0+
 TopicId uuid 0+
 Partitions []int32 0+
""",
    "ConsumerGroupTargetAssignmentMetadataKey": """\
key 6 0 none
GroupId string 0
""",
    "ConsumerGroupTargetAssignmentMetadataValue": """\
value 6 0 0+
AssignmentEpoch int32 0+
AssignmentTimestamp int64 0+ tag=0:0+ default=0 ignorable
""",
    "ControlRecordTypeSchema": """\
data - 0 none
Type int16 0+
""",
    "CreateAclsRequest": """\
request 30 1-3 2+
Creations []AclCreation 0+
 ResourceType int8 0+
 ResourceName string 0+
 ResourcePatternType int8 1+ default=3
 Principal string 0+
 Host string 0+
 Operation int8 0+
 PermissionType int8 0+
""",
    "CreateAclsResponse": """\
response 30 1-3 2+
ThrottleTimeMs int32 0+
Results []AclCreationResult 0+
 ErrorCode int16 0+
 ErrorMessage string 0+ null=0+
""",
    "CreateDelegationTokenRequest": """\
request 38 1-3 2+
OwnerPrincipalType string 3+ null=3+
OwnerPrincipalName string 3+ null=3+
Renewers []CreatableRenewers 0+
 PrincipalType string 0+
 PrincipalName string 0+
MaxLifetimeMs int64 0+
""",
    "CreateDelegationTokenResponse": """\
response 38 1-3 2+
ErrorCode int16 0+
PrincipalType string 0+
PrincipalName string 0+
TokenRequesterPrincipalType string 3+
TokenRequesterPrincipalName string 3+
IssueTimestampMs int64 0+
ExpiryTimestampMs int64 0+
MaxTimestampMs int64 0+
TokenId string 0+
Hmac bytes 0+
ThrottleTimeMs int32 0+
""",
    "CreateTopicsRequest": """\
request 19 2-7 5+
Topics []CreatableTopic 0+
 Name string 0+ mapKey
 NumPartitions int32 0+
 ReplicationFactor int16 0+
 Assignments []CreatableReplicaAssignment 0+
  PartitionIndex int32 0+ mapKey
  BrokerIds []int32 0+
 Configs []CreatableTopicConfig 0+
  Name string 0+ mapKey
  Value string 0+ null=0+
timeoutMs int32 0+ default=60000
validateOnly bool 1+ default=false
""",
    "CreateTopicsResponse": """\
response 19 2-7 5+
ThrottleTimeMs int32 2+ ignorable
Topics []CreatableTopicResult 0+
 Name string 0+ mapKey
 TopicId uuid 7+ ignorable
 ErrorCode int16 0+
 ErrorMessage string 1+ null=0+ ignorable
 TopicConfigErrorCode int16 5+ tag=0:5+ ignorable
 NumPartitions int32 5+ default=-1 ignorable
 ReplicationFactor int16 5+ default=-1 ignorable
 Configs []CreatableTopicConfigs 5+ null=5+ ignorable
  Name string 5+
  Value string 5+ null=5+
  ReadOnly bool 5+
  ConfigSource int8 5+ default=-1 ignorable
  IsSensitive bool 5+
""",
    "DeleteAclsRequest": """\
request 31 1-3 2+
Filters []DeleteAclsFilter 0+
 ResourceTypeFilter int8 0+
 ResourceNameFilter string 0+ null=0+
 PatternTypeFilter int8 1+ default=3
 PrincipalFilter string 0+ null=0+
 HostFilter string 0+ null=0+
 Operation int8 0+
 PermissionType int8 0+
""",
    "DeleteAclsResponse": """\
response 31 1-3 2+
ThrottleTimeMs int32 0+
FilterResults []DeleteAclsFilterResult 0+
 ErrorCode int16 0+
 ErrorMessage string 0+ null=0+
 MatchingAcls []DeleteAclsMatchingAcl 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ null=0+
  ResourceType int8 0+
  ResourceName string 0+
  PatternType int8 1+ default=3
  Principal string 0+
  Host string 0+
  Operation int8 0+
  PermissionType int8 0+
""",
    "DeleteShareGroupOffsetsRequest": """\
request 92 0 0+
GroupId string 0+
Topics []DeleteShareGroupOffsetsRequestTopic 0+
 TopicName string 0+
""",
    "DeleteShareGroupOffsetsResponse": """\
response 92 0 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+ default=null
Responses []DeleteShareGroupOffsetsResponseTopic 0+
 TopicName string 0+
 TopicId uuid 0+
 ErrorCode int16 0+
 ErrorMessage string 0+ null=0+ default=null
""",
    "DeleteShareGroupStateRequest": """\
request 86 0 0+
GroupId string 0+
Topics []DeleteStateData 0+
 TopicId uuid 0+
 Partitions []PartitionData 0+
  Partition int32 0+
""",
    "DeleteTopicsRequest": """\
request 20 1-6 4+
Topics []DeleteTopicState 6+
 Name string 6+ null=6+ default=null
 TopicId uuid 6+
TopicNames []string 0-5 ignorable
TimeoutMs int32 0+
""",
    "DeleteTopicsResponse": """\
response 20 1-6 4+
ThrottleTimeMs int32 1+ ignorable
Responses []DeletableTopicResult 0+
 Name string 0+ null=6+ mapKey
 TopicId uuid 6+ ignorable
 ErrorCode int16 0+
 ErrorMessage string 5+ null=5+ default=null ignorable
""",
    "DescribeAclsRequest": """\
request 29 1-3 2+
ResourceTypeFilter int8 0+
ResourceNameFilter string 0+ null=0+
PatternTypeFilter int8 1+ default=3
PrincipalFilter string 0+ null=0+
HostFilter string 0+ null=0+
Operation int8 0+
PermissionType int8 0+
""",
    "DescribeAclsResponse": """\
response 29 1-3 2+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+
Resources []DescribeAclsResource 0+
 ResourceType int8 0+
 ResourceName string 0+
 PatternType int8 1+ default=3
 Acls []AclDescription 0+
  Principal string 0+
  Host string 0+
  Operation int8 0+
  PermissionType int8 0+
""",
    "DescribeClusterRequest": """\
request 60 0-2 0+
IncludeClusterAuthorizedOperations bool 0+
EndpointType int8 1+ default=1
IncludeFencedBrokers bool 2+
""",
    "DescribeClusterResponse": """\
response 60 0-2 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+ default=null
EndpointType int8 1+ default=1
ClusterId string 0+
ControllerId int32 0+ default=-1
Brokers []DescribeClusterBroker 0+
 BrokerId int32 0+ mapKey
 Host string 0+
 Port int32 0+
 Rack string 0+ null=0+ default=null
 IsFenced bool 2+
ClusterAuthorizedOperations int32 0+ default=-2147483648
""",
    "DescribeConfigsRequest": """\
request 32 1-4 4+
Resources []DescribeConfigsResource 0+
 ResourceType int8 0+
 ResourceName string 0+
 ConfigurationKeys []string 0+ null=0+
IncludeSynonyms bool 1+ default=false
IncludeDocumentation bool 3+ default=false
""",
    "DescribeConfigsResponse": """\
response 32 1-4 4+
ThrottleTimeMs int32 0+
Results []DescribeConfigsResult 0+
 ErrorCode int16 0+
 ErrorMessage string 0+ null=0+
 ResourceType int8 0+
 ResourceName string 0+
 Configs []DescribeConfigsResourceResult 0+
  Name string 0+
  Value string 0+ null=0+
  ReadOnly bool 0+
  ConfigSource int8 1+ default=-1 ignorable
  IsSensitive bool 0+
  Synonyms []DescribeConfigsSynonym 1+ ignorable
   Name string 1+
   Value string 1+ null=0+
   Source int8 1+
  ConfigType int8 3+ default=0 ignorable
  Documentation string 3+ null=0+ ignorable
""",
    "DescribeDelegationTokenRequest": """\
request 41 1-3 2+
Owners []DescribeDelegationTokenOwner 0+ null=0+
 PrincipalType string 0+
 PrincipalName string 0+
""",
    "DescribeDelegationTokenResponse": """\
response 41 1-3 2+
ErrorCode int16 0+
Tokens []DescribedDelegationToken 0+
 PrincipalType string 0+
 PrincipalName string 0+
 TokenRequesterPrincipalType string 3+
 TokenRequesterPrincipalName string 3+
 IssueTimestamp int64 0+
 ExpiryTimestamp int64 0+
 MaxTimestamp int64 0+
 TokenId string 0+
 Hmac bytes 0+
 Renewers []DescribedDelegationTokenRenewer 0+
  PrincipalType string 0+
  PrincipalName string 0+
ThrottleTimeMs int32 0+
""",
    "DescribeGroupsRequest": """\
request 15 0-6 5+
Groups []string 0+
IncludeAuthorizedOperations bool 3+
""",
    "DescribeGroupsResponse": """\
response 15 0-6 5+
ThrottleTimeMs int32 1+ ignorable
Groups []DescribedGroup 0+
 ErrorCode int16 0+
 ErrorMessage string 6+ null=6+ default=null
 GroupId string 0+
 GroupState string 0+
 ProtocolType string 0+
 ProtocolData string 0+
 Members []DescribedGroupMember 0+
  MemberId string 0+
  GroupInstanceId string 4+ null=4+ default=null ignorable
  ClientId string 0+
  ClientHost string 0+
  MemberMetadata bytes 0+
  MemberAssignment bytes 0+
 AuthorizedOperations int32 3+ default=-2147483648
""",
    "DescribeLogDirsRequest": """\
request 35 1-5 2+
Topics []DescribableLogDirTopic 0+ null=0+
 Topic string 0+ mapKey
 Partitions []int32 0+
""",
    "DescribeLogDirsResponse": """\
response 35 1-5 2+
ThrottleTimeMs int32 0+
ErrorCode int16 3+ ignorable
Results []DescribeLogDirsResult 0+
 ErrorCode int16 0+
 LogDir string 0+
 Topics []DescribeLogDirsTopic 0+
  Name string 0+
  Partitions []DescribeLogDirsPartition 0+
   PartitionIndex int32 0+
   PartitionSize int64 0+
   OffsetLag int64 0+
   IsFutureKey bool 0+
 TotalBytes int64 4+ default=-1 ignorable
 UsableBytes int64 4+ default=-1 ignorable
 IsCordoned bool 5+ default=false ignorable
""",
    "DescribeShareGroupOffsetsRequest": """\
request 90 0-1 0+
Groups []DescribeShareGroupOffsetsRequestGroup 0+
 GroupId string 0+
 Topics []DescribeShareGroupOffsetsRequestTopic 0+ null=0+
  TopicName string 0+
  Partitions []int32 0+
""",
    "DescribeShareGroupOffsetsResponse": """\
response 90 0-1 0+
ThrottleTimeMs int32 0+
Groups []DescribeShareGroupOffsetsResponseGroup 0+
 GroupId string 0+
 Topics []DescribeShareGroupOffsetsResponseTopic 0+
  TopicName string 0+
  TopicId uuid 0+
  Partitions []DescribeShareGroupOffsetsResponsePartition 0+
   PartitionIndex int32 0+
   StartOffset int64 0+
   LeaderEpoch int32 0+
   Lag int64 1+ default=-1 ignorable
   ErrorCode int16 0+
   ErrorMessage string 0+ null=0+ default=null
 ErrorCode int16 0+
 ErrorMessage string 0+ null=0+ default=null
""",
    "EndTxnMarker": """\
data - 0 none
CoordinatorEpoch int32 0+
""",
    "EndTxnRequest": """\
request 26 0-5 3+
TransactionalId string 0+
ProducerId int64 0+
ProducerEpoch int16 0+
Committed bool 0+
""",
    "EndTxnResponse": """\
response 26 0-5 3+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ProducerId int64 5+ default=-1 ignorable
ProducerEpoch int16 5+ default=-1 ignorable
""",
    "ExpireDelegationTokenRequest": """\
request 40 1-2 2+
Hmac bytes 0+
ExpiryTimePeriodMs int64 0+
""",
    "ExpireDelegationTokenResponse": """\
response 40 1-2 2+
ErrorCode int16 0+
ExpiryTimestampMs int64 0+
ThrottleTimeMs int32 0+
""",
    "FetchRequest": """\
request 1 4-18 12+
ClusterId string 12+ null=12+ tag=0:12+ default=null ignorable
ReplicaId int32 0-14 default=-1
ReplicaState ReplicaState 15+ tag=1:15+
 ReplicaId int32 15+ default=-1
 ReplicaEpoch int64 15+ default=-1
MaxWaitMs int32 0+
MinBytes int32 0+
MaxBytes int32 3+ default=0x7fffffff ignorable
IsolationLevel int8 4+ default=0 ignorable
SessionId int32 7+ default=0 ignorable
SessionEpoch int32 7+ default=-1 ignorable
Topics []FetchTopic 0+
 Topic string 0-12 ignorable
 TopicId uuid 13+ ignorable
 Partitions []FetchPartition 0+
  Partition int32 0+
  CurrentLeaderEpoch int32 9+ default=-1 ignorable
  FetchOffset int64 0+
  LastFetchedEpoch int32 12+ default=-1
  LogStartOffset int64 5+ default=-1 ignorable
  PartitionMaxBytes int32 0+
  ReplicaDirectoryId uuid 17+ tag=0:17+ ignorable
  HighWatermark int64 18+ tag=1:18+ default=9223372036854775807 ignorable
ForgottenTopicsData []ForgottenTopic 7+
 Topic string 7-12 ignorable
 TopicId uuid 13+ ignorable
 Partitions []int32 7+
RackId string 11+ ignorable
""",
    "FetchResponse": """\
response 1 4-18 12+
ThrottleTimeMs int32 1+ ignorable
ErrorCode int16 7+ ignorable
SessionId int32 7+ default=0
Responses []FetchableTopicResponse 0+
 Topic string 0-12 ignorable
 TopicId uuid 13+ ignorable
 Partitions []PartitionData 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
  HighWatermark int64 0+
  LastStableOffset int64 4+ default=-1 ignorable
  LogStartOffset int64 5+ default=-1 ignorable
  DivergingEpoch EpochEndOffset 12+ tag=0:12+
   Epoch int32 12+ default=-1
   EndOffset int64 12+ default=-1
  CurrentLeader LeaderIdAndEpoch 12+ tag=1:12+
   LeaderId int32 12+ default=-1
   LeaderEpoch int32 12+ default=-1
  SnapshotId SnapshotId 12+ tag=2:12+
   EndOffset int64 0+ default=-1
   Epoch int32 0+ default=-1
  AbortedTransactions []AbortedTransaction 4+ null=4+ ignorable
   ProducerId int64 4+
   FirstOffset int64 4+
  PreferredReadReplica int32 11+ default=-1
  Records records 0+ null=0+
NodeEndpoints []NodeEndpoint 16+ tag=0:16+
 NodeId int32 16+ mapKey
 Host string 16+
 Port int32 16+
 Rack string 16+ null=16+ default=null
""",
    "GroupMetadataKey": """\
key 2 0 none
group string 0
""",
    "GroupMetadataValue": """\
value 2 0-4 4+
protocolType string 0+
generation int32 0+
protocol string 0+ null=0+
leader string 0+ null=0+
currentStateTimestamp int64 2+ default=-1 ignorable
members []MemberMetadata 0+
= MemberMetadata 0+
memberId string 0+
groupInstanceId string 3+ null=3+ default=null ignorable
clientId string 0+
clientHost string 0+
rebalanceTimeout int32 1+ default=-1 ignorable
sessionTimeout int32 0+
subscription bytes 0+
assignment bytes 0+
""",
    "InitProducerIdRequest": """\
request 22 0-6 2+ unstable
TransactionalId string 0+ null=0+
TransactionTimeoutMs int32 0+
ProducerId int64 3+ default=-1
ProducerEpoch int16 3+ default=-1
Enable2Pc bool 6+ default=false
KeepPreparedTxn bool 6+ default=false
""",
    "InitProducerIdResponse": """\
response 22 0-6 2+
ThrottleTimeMs int32 0+ ignorable
ErrorCode int16 0+
ProducerId int64 0+ default=-1
ProducerEpoch int16 0+
OngoingTxnProducerId int64 6+ default=-1
OngoingTxnProducerEpoch int16 6+ default=-1
""",
    "InitializeShareGroupStateRequest": """\
request 83 0 0+
GroupId string 0+
Topics []InitializeStateData 0+
 TopicId uuid 0+
 Partitions []PartitionData 0+
  Partition int32 0+
  StateEpoch int32 0+
  StartOffset int64 0+
""",
    "LegacyOffsetCommitKey": """\
key 0 0 none
group string 0
topic string 0
partition int32 0
""",
    "LegacyOffsetCommitValue": """\
value 0 0 none
offset int64 0
metadata string 0
commitTimestamp int64 0
""",
    "ListConfigResourcesRequest": """\
request 74 0-1 0+
ResourceTypes []int8 1+
""",
    "ListConfigResourcesResponse": """\
response 74 0-1 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ConfigResources []ConfigResource 0+
 ResourceName string 0+
 ResourceType int8 1+ default=16 ignorable
""",
    "ListOffsetsRequest": """\
request 2 1-11 6+
ReplicaId int32 0+
IsolationLevel int8 2+
Topics []ListOffsetsTopic 0+
 Name string 0+
 Partitions []ListOffsetsPartition 0+
  PartitionIndex int32 0+
  CurrentLeaderEpoch int32 4+ default=-1 ignorable
  Timestamp int64 0+
TimeoutMs int32 10+ ignorable
""",
    "ListOffsetsResponse": """\
response 2 1-11 6+
ThrottleTimeMs int32 2+ ignorable
Topics []ListOffsetsTopicResponse 0+
 Name string 0+
 Partitions []ListOffsetsPartitionResponse 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
  Timestamp int64 1+ default=-1
  Offset int64 1+ default=-1
  LeaderEpoch int32 4+ default=-1
""",
    "ListTransactionsRequest": """\
request 66 0-2 0+
StateFilters []string 0+
ProducerIdFilters []int64 0+
DurationFilter int64 1+ default=-1
TransactionalIdPattern string 2+ null=2+ default=null
""",
    "ListTransactionsResponse": """\
response 66 0-2 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
UnknownStateFilters []string 0+
TransactionStates []TransactionState 0+
 TransactionalId string 0+
 ProducerId int64 0+
 TransactionState string 0+
""",
    "MetadataRequest": """\
request 3 0-13 9+
Topics []MetadataRequestTopic 0+ null=1+
 TopicId uuid 10+ ignorable
 Name string 0+ null=10+
AllowAutoTopicCreation bool 4+ default=true
IncludeClusterAuthorizedOperations bool 8-10
IncludeTopicAuthorizedOperations bool 8+
""",
    "MetadataResponse": """\
response 3 0-13 9+
ThrottleTimeMs int32 3+ ignorable
Brokers []MetadataResponseBroker 0+
 NodeId int32 0+ mapKey
 Host string 0+
 Port int32 0+
 Rack string 1+ null=1+ default=null ignorable
ClusterId string 2+ null=2+ default=null ignorable
ControllerId int32 1+ default=-1 ignorable
Topics []MetadataResponseTopic 0+
 ErrorCode int16 0+
 Name string 0+ null=12+ mapKey
 TopicId uuid 10+ ignorable
 IsInternal bool 1+ default=false ignorable
 Partitions []MetadataResponsePartition 0+
  ErrorCode int16 0+
  PartitionIndex int32 0+
  LeaderId int32 0+
  LeaderEpoch int32 7+ default=-1 ignorable
  ReplicaNodes []int32 0+
  IsrNodes []int32 0+
  OfflineReplicas []int32 5+ ignorable
 TopicAuthorizedOperations int32 8+ default=-2147483648
ClusterAuthorizedOperations int32 8-10 default=-2147483648
ErrorCode int16 13+ ignorable
""",
    "OffsetCommitKey": """\
key 1 0 none
group string 0
topic string 0
partition int32 0
""",
    "OffsetCommitRequest": """\
request 8 2-10 8+
GroupId string 0+
GenerationIdOrMemberEpoch int32 1+ default=-1 ignorable
MemberId string 1+ ignorable
GroupInstanceId string 7+ null=7+ default=null
RetentionTimeMs int64 2-4 default=-1 ignorable
Topics []OffsetCommitRequestTopic 0+
 Name string 0-9 ignorable
 TopicId uuid 10+ ignorable
 Partitions []OffsetCommitRequestPartition 0+
  PartitionIndex int32 0+
  CommittedOffset int64 0+
  CommittedLeaderEpoch int32 6+ default=-1 ignorable
  CommittedMetadata string 0+ null=0+
""",
    "OffsetCommitResponse": """\
response 8 2-10 8+
ThrottleTimeMs int32 3+ ignorable
Topics []OffsetCommitResponseTopic 0+
 Name string 0-9 ignorable
 TopicId uuid 10+ ignorable
 Partitions []OffsetCommitResponsePartition 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
""",
    "OffsetCommitValue": """\
value 1 0-4 4+
offset int64 0+
leaderEpoch int32 3+ default=-1 ignorable
metadata string 0+
commitTimestamp int64 0+
expireTimestamp int64 1 default=-1 ignorable
topicId uuid 4+ tag=0:4+ ignorable
""",
    "OffsetFetchRequest": """\
request 9 1-10 6+
GroupId string 0-7
Topics []OffsetFetchRequestTopic 0-7 null=2-7
 Name string 0-7
 PartitionIndexes []int32 0-7
Groups []OffsetFetchRequestGroup 8+
 GroupId string 8+
 MemberId string 9+ null=9+ default=null ignorable
 MemberEpoch int32 9+ default=-1 ignorable
 Topics []OffsetFetchRequestTopics 8+ null=8+
  Name string 8-9 ignorable
  TopicId uuid 10+ ignorable
  PartitionIndexes []int32 8+
RequireStable bool 7+ default=false
""",
    "OffsetFetchResponse": """\
response 9 1-10 6+
ThrottleTimeMs int32 3+ ignorable
Topics []OffsetFetchResponseTopic 0-7
 Name string 0-7
 Partitions []OffsetFetchResponsePartition 0-7
  PartitionIndex int32 0-7
  CommittedOffset int64 0-7
  CommittedLeaderEpoch int32 5-7 default=-1 ignorable
  Metadata string 0-7 null=0-7
  ErrorCode int16 0-7
ErrorCode int16 2-7 default=0 ignorable
Groups []OffsetFetchResponseGroup 8+
 GroupId string 8+
 Topics []OffsetFetchResponseTopics 8+
  Name string 8-9 ignorable
  TopicId uuid 10+ ignorable
  Partitions []OffsetFetchResponsePartitions 8+
   PartitionIndex int32 8+
   CommittedOffset int64 8+
   CommittedLeaderEpoch int32 8+ default=-1 ignorable
   Metadata string 8+ null=8+
   ErrorCode int16 8+
 ErrorCode int16 8+ default=0
""",
    "OffsetForLeaderEpochRequest": """\
request 23 2-4 4+
ReplicaId int32 3+ default=-2 ignorable
Topics []OffsetForLeaderTopic 0+
 Topic string 0+ mapKey
 Partitions []OffsetForLeaderPartition 0+
  Partition int32 0+
  CurrentLeaderEpoch int32 2+ default=-1 ignorable
  LeaderEpoch int32 0+
""",
    "OffsetForLeaderEpochResponse": """\
response 23 2-4 4+
ThrottleTimeMs int32 2+ ignorable
Topics []OffsetForLeaderTopicResult 0+
 Topic string 0+ mapKey
 Partitions []EpochEndOffset 0+
  ErrorCode int16 0+
  Partition int32 0+
  LeaderEpoch int32 1+ default=-1 ignorable
  EndOffset int64 0+ default=-1
""",
    "ProduceRequest": """\
request 0 3-13 9+
TransactionalId string 3+ null=3+ default=null
Acks int16 0+
TimeoutMs int32 0+
TopicData []TopicProduceData 0+
 Name string 0-12 ignorable mapKey
 TopicId uuid 13+ ignorable mapKey
 PartitionData []PartitionProduceData 0+
  Index int32 0+
  Records records 0+ null=0+
""",
    "ProduceResponse": """\
response 0 3-13 9+
Responses []TopicProduceResponse 0+
 Name string 0-12 ignorable mapKey
 TopicId uuid 13+ ignorable mapKey
 PartitionResponses []PartitionProduceResponse 0+
  Index int32 0+
  ErrorCode int16 0+
  BaseOffset int64 0+
  LogAppendTimeMs int64 2+ default=-1 ignorable
  LogStartOffset int64 5+ default=-1 ignorable
  RecordErrors []BatchIndexAndErrorMessage 8+ ignorable
   BatchIndex int32 8+
   BatchIndexErrorMessage string 8+ null=8+ default=null
  ErrorMessage string 8+ null=8+ default=null ignorable
  CurrentLeader LeaderIdAndEpoch 10+ tag=0:10+
   LeaderId int32 10+ default=-1
   LeaderEpoch int32 10+ default=-1
ThrottleTimeMs int32 1+ default=0 ignorable
NodeEndpoints []NodeEndpoint 10+ tag=0:10+
 NodeId int32 10+ mapKey
 Host string 10+
 Port int32 10+
 Rack string 10+ null=10+ default=null
""",
    "ProducerSnapshot": """\
data - 1 none
Crc uint32 1
ProducerEntries []ProducerEntry 1
 ProducerId int64 1
 Epoch int16 1
 LastSequence int32 1
 LastOffset int64 1
 OffsetDelta int32 1
 Timestamp int64 1
 CoordinatorEpoch int32 1
 CurrentTxnFirstOffset int64 1
""",
    "ReadShareGroupStateRequest": """\
request 84 0 0+
GroupId string 0+
Topics []ReadStateData 0+
 TopicId uuid 0+
 Partitions []PartitionData 0+
  Partition int32 0+
  LeaderEpoch int32 0+
""",
    "ReadShareGroupStateSummaryRequest": """\
request 87 0-1 0+
GroupId string 0+
Topics []ReadStateSummaryData 0+
 TopicId uuid 0+
 Partitions []PartitionData 0+
  Partition int32 0+
  LeaderEpoch int32 0+
""",
    "ReadShareGroupStateSummaryResponse": """\
response 87 0-1 0+
Results []ReadStateSummaryResult 0+
 TopicId uuid 0+
 Partitions []PartitionResult 0+
  Partition int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ null=0+ default=null
  StateEpoch int32 0+
  LeaderEpoch int32 0+
  StartOffset int64 0+
  DeliveryCompleteCount int32 1+ default=-1 ignorable
""",
    "RegisterBrokerRecord": """\
metadata 0 0-4 0+
BrokerId int32 0+
IsMigratingZkBroker bool 2+ default=false
IncarnationId uuid 0+
BrokerEpoch int64 0+
EndPoints []BrokerEndpoint 0+
 Name string 0+ mapKey
 Host string 0+
 Port uint16 0+
 SecurityProtocol int16 0+
Features []BrokerFeature 0+
 Name string 0+ mapKey
 MinSupportedVersion int16 0+
 MaxSupportedVersion int16 0+
Rack string 0+ null=0+
Fenced bool 0+ default=true
InControlledShutdown bool 1+ default=false
LogDirs []uuid 3+ tag=0:3+
CordonedLogDirs []uuid 4+ null=4+ tag=1:4+ default=null
""",
    "RemoteLogSegmentMetadataRecord": """\
metadata 0 0 0+
RemoteLogSegmentId RemoteLogSegmentIdEntry 0+
 TopicIdPartition TopicIdPartitionEntry 0+
  Name string 0+
  Id uuid 0+
  Partition int32 0+
 Id uuid 0+
StartOffset int64 0+
EndOffset int64 0+
BrokerId int32 0+
MaxTimestampMs int64 0+
EventTimestampMs int64 0+
SegmentLeaderEpochs []SegmentLeaderEpochEntry 0+
 LeaderEpoch int32 0+
 Offset int64 0+
SegmentSizeInBytes int32 0+
CustomMetadata bytes 0+ null=0+ default=null
RemoteLogSegmentState int8 0+
TxnIndexEmpty bool 0+ tag=0:0+
""",
    "RemoteLogSegmentMetadataSnapshotRecord": """\
metadata 3 0 0+
SegmentId uuid 0+
StartOffset int64 0+
EndOffset int64 0+
BrokerId int32 0+
MaxTimestampMs int64 0+
EventTimestampMs int64 0+
SegmentLeaderEpochs []SegmentLeaderEpochEntry 0+
 LeaderEpoch int32 0+
 Offset int64 0+
SegmentSizeInBytes int32 0+
CustomMetadata bytes 0+ null=0+ default=null
RemoteLogSegmentState int8 0+
TxnIndexEmpty bool 0+ tag=0:0+
""",
    "RenewDelegationTokenRequest": """\
request 39 1-2 2+
Hmac bytes 0+
RenewPeriodMs int64 0+
""",
    "RenewDelegationTokenResponse": """\
response 39 1-2 2+
ErrorCode int16 0+
ExpiryTimestampMs int64 0+
ThrottleTimeMs int32 0+
""",
    "RequestHeader": """\
header - 1-2 2+
RequestApiKey int16 0+
RequestApiVersion int16 0+
CorrelationId int32 0+
ClientId string 1+ null=1+ plain
""",
    "ShareAcknowledgeRequest": """\
request 79 1-2 0+
GroupId string 0+ null=0+ default=null
MemberId string 0+ null=0+
ShareSessionEpoch int32 0+
IsRenewAck bool 2+ default=false
Topics []AcknowledgeTopic 0+
 TopicId uuid 0+ mapKey
 Partitions []AcknowledgePartition 0+
  PartitionIndex int32 0+ mapKey
  AcknowledgementBatches []AcknowledgementBatch 0+
   FirstOffset int64 0+
   LastOffset int64 0+
   AcknowledgeTypes []int8 0+
""",
    "ShareAcknowledgeResponse": """\
response 79 1-2 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+ default=null
AcquisitionLockTimeoutMs int32 2+ ignorable
Responses []ShareAcknowledgeTopicResponse 0+
 TopicId uuid 0+ mapKey
 Partitions []PartitionData 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ null=0+ default=null
  CurrentLeader LeaderIdAndEpoch 0+
   LeaderId int32 0+
   LeaderEpoch int32 0+
NodeEndpoints []NodeEndpoint 0+
 NodeId int32 0+ mapKey
 Host string 0+
 Port int32 0+
 Rack string 0+ null=0+ default=null
""",
    "ShareFetchRequest": """\
request 78 1-2 0+
GroupId string 0+ null=0+ default=null
MemberId string 0+ null=0+
ShareSessionEpoch int32 0+
MaxWaitMs int32 0+
MinBytes int32 0+
MaxBytes int32 0+ default=0x7fffffff
MaxRecords int32 1+
BatchSize int32 1+
ShareAcquireMode int8 2+ default=0 ignorable
IsRenewAck bool 2+ default=false
Topics []FetchTopic 0+
 TopicId uuid 0+ mapKey
 Partitions []FetchPartition 0+
  PartitionIndex int32 0+ mapKey
  PartitionMaxBytes int32 0
  AcknowledgementBatches []AcknowledgementBatch 0+
   FirstOffset int64 0+
   LastOffset int64 0+
   AcknowledgeTypes []int8 0+
ForgottenTopicsData []ForgottenTopic 0+
 TopicId uuid 0+
 Partitions []int32 0+
""",
    "ShareFetchResponse": """\
response 78 1-2 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+ default=null
AcquisitionLockTimeoutMs int32 1+
Responses []ShareFetchableTopicResponse 0+
 TopicId uuid 0+ mapKey
 Partitions []PartitionData 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ null=0+ default=null
  AcknowledgeErrorCode int16 0+
  AcknowledgeErrorMessage string 0+ null=0+ default=null
  CurrentLeader LeaderIdAndEpoch 0+
   LeaderId int32 0+
   LeaderEpoch int32 0+
  Records records 0+ null=0
  AcquiredRecords []AcquiredRecords 0+
   FirstOffset int64 0+
   LastOffset int64 0+
   DeliveryCount int16 0+
NodeEndpoints []NodeEndpoint 0+
 NodeId int32 0+ mapKey
 Host string 0+
 Port int32 0+
 Rack string 0+ null=0+ default=null
""",
    "ShareGroupCurrentMemberAssignmentKey": """\
key 14 0 none
GroupId string 0
MemberId string 0
""",
    "ShareGroupCurrentMemberAssignmentValue": """\
value 14 0 0+
MemberEpoch int32 0+
PreviousMemberEpoch int32 0+
State int8 0+
AssignedPartitions []TopicPartitions 0+
= TopicPartitions 0+
TopicId uuid 0+
Partitions []int32 0+
""",
    "ShareGroupDescribeRequest": """\
request 77 1 0+
GroupIds []string 0+
IncludeAuthorizedOperations bool 0+
""",
    "ShareGroupDescribeResponse": """\
response 77 1 0+
ThrottleTimeMs int32 0+
Groups []DescribedGroup 0+
 ErrorCode int16 0+
 ErrorMessage string 0+ null=0+ default=null
 GroupId string 0+
 GroupState string 0+
 GroupEpoch int32 0+
 AssignmentEpoch int32 0+
 AssignorName string 0+
 Members []Member 0+
  MemberId string 0+
  RackId string 0+ null=0+ default=null
  MemberEpoch int32 0+
  ClientId string 0+
  ClientHost string 0+
  SubscribedTopicNames []string 0+
  Assignment Assignment 0+
 AuthorizedOperations int32 0+ default=-2147483648
= TopicPartitions 0+
TopicId uuid 0+
TopicName string 0+
Partitions []int32 0+
= Assignment 0+
TopicPartitions []TopicPartitions 0+
""",
    "ShareGroupHeartbeatRequest": """\
request 76 1 0+
GroupId string 0+
MemberId string 0+
MemberEpoch int32 0+
RackId string 0+ null=0+ default=null
SubscribedTopicNames []string 0+ null=0+ default=null
""",
    "ShareGroupHeartbeatResponse": """\
response 76 1 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+ default=null
MemberId string 0+ null=0+ default=null
MemberEpoch int32 0+
HeartbeatIntervalMs int32 0+
Assignment Assignment 0+ null=0+ default=null
 TopicPartitions []TopicPartitions 0+
= TopicPartitions 0+
TopicId uuid 0+
Partitions []int32 0+
""",
    "ShareGroupMemberMetadataKey": """\
key 10 0 none
GroupId string 0
MemberId string 0
""",
    "ShareGroupMemberMetadataValue": """\
value 10 0 0+
RackId string 0+ null=0+
ClientId string 0+
ClientHost string 0+
SubscribedTopicNames []string 0+
""",
    "ShareGroupMetadataKey": """\
key 11 0 none
GroupId string 0
""",
    "ShareGroupMetadataValue": """\
value 11 0 0+
Epoch int32 0+
MetadataHash int64 0+
""",
    "ShareGroupStatePartitionMetadataKey": """\
key 15 0 none
GroupId string 0
""",
    "ShareGroupStatePartitionMetadataValue": """\
value 15 0 0+
InitializingTopics []TopicPartitionsInfo 0+
InitializedTopics []TopicPartitionsInfo 0+
DeletingTopics []TopicInfo 0+
= TopicPartitionsInfo 0+
TopicId uuid 0+
TopicName string 0+
Partitions []int32 0+
= TopicInfo 0+
TopicId uuid 0+
TopicName string 0+
""",
    "ShareGroupTargetAssignmentMemberKey": """\
key 13 0 none
GroupId string 0
MemberId string 0
""",
    "ShareGroupTargetAssignmentMemberValue": """\
value 13 0 0+
TopicPartitions []TopicPartition 0+
 TopicId uuid 0+
 Partitions []int32 0+
""",
    "ShareGroupTargetAssignmentMetadataKey": """\
key 12 0 none
GroupId string 0
""",
    "ShareGroupTargetAssignmentMetadataValue": """\
value 12 0 0+
AssignmentEpoch int32 0+
AssignmentTimestamp int64 0+ tag=0:0+ default=0 ignorable
""",
    "ShareSnapshotKey": """\
key 0 0 none
GroupId string 0
TopicId uuid 0
Partition int32 0
""",
    "ShareSnapshotValue": """\
value 0 0 0+
SnapshotEpoch int32 0+
StateEpoch int32 0+
LeaderEpoch int32 0+
StartOffset int64 0+
DeliveryCompleteCount int32 0+ tag=0:0+ default=-1
CreateTimestamp int64 0+
WriteTimestamp int64 0+
StateBatches []StateBatch 0+
 FirstOffset int64 0+
 LastOffset int64 0+
 DeliveryState int8 0+
 DeliveryCount int16 0+
""",
    "ShareUpdateKey": """\
key 1 0 none
GroupId string 0
TopicId uuid 0
Partition int32 0
""",
    "ShareUpdateValue": """\
value 1 0 0+
SnapshotEpoch int32 0+
LeaderEpoch int32 0+
StartOffset int64 0+
DeliveryCompleteCount int32 0+ tag=0:0+ default=-1
StateBatches []StateBatch 0+
 FirstOffset int64 0+
 LastOffset int64 0+
 DeliveryState int8 0+
 DeliveryCount int16 0+
""",
    "StreamsGroupCurrentMemberAssignmentKey": """\
key 22 0 none
GroupId string 0
MemberId string 0
""",
    "StreamsGroupCurrentMemberAssignmentValue": """\
value 22 0 0+
MemberEpoch int32 0+
PreviousMemberEpoch int32 0+
State int8 0+
ActiveTasks []TaskIds 0+
StandbyTasks []TaskIds 0+
WarmupTasks []TaskIds 0+
ActiveTasksPendingRevocation []TaskIds 0+
StandbyTasksPendingRevocation []TaskIds 0+
WarmupTasksPendingRevocation []TaskIds 0+
= TaskIds 0+
SubtopologyId string 0+
Partitions []int32 0+
AssignmentEpochs []int32 0+ null=0+ tag=0:0+
""",
    "StreamsGroupDescribeRequest": """\
request 89 0 0+
GroupIds []string 0+
IncludeAuthorizedOperations bool 0+
""",
    "StreamsGroupDescribeResponse": """\
response 89 0 0+
ThrottleTimeMs int32 0+
Groups []DescribedGroup 0+
 ErrorCode int16 0+
 ErrorMessage string 0+ null=0+ default=null
 GroupId string 0+
 GroupState string 0+
 GroupEpoch int32 0+
 AssignmentEpoch int32 0+
 Topology Topology 0+ null=0+ default=null
  Epoch int32 0+
  Subtopologies []Subtopology 0+ null=0+ default=null
   SubtopologyId string 0+
   SourceTopics []string 0+
   RepartitionSinkTopics []string 0+
   StateChangelogTopics []TopicInfo 0+
   RepartitionSourceTopics []TopicInfo 0+
 Members []Member 0+
  MemberId string 0+
  MemberEpoch int32 0+
  InstanceId string 0+ null=0+ default=null
  RackId string 0+ null=0+ default=null
  ClientId string 0+
  ClientHost string 0+
  TopologyEpoch int32 0+
  ProcessId string 0+
  UserEndpoint Endpoint 0+ null=0+ default=null
  ClientTags []KeyValue 0+
  TaskOffsets []TaskOffset 0+
  TaskEndOffsets []TaskOffset 0+
  Assignment Assignment 0+
  TargetAssignment Assignment 0+
  IsClassic bool 0+
 AuthorizedOperations int32 0+ default=-2147483648
= Endpoint 0+
Host string 0+
Port uint16 0+
= TaskOffset 0+
SubtopologyId string 0+
Partition int32 0+
Offset int64 0+
= Assignment 0+
ActiveTasks []TaskIds 0+
StandbyTasks []TaskIds 0+
WarmupTasks []TaskIds 0+
= TaskIds 0+
SubtopologyId string 0+
Partitions []int32 0+
= KeyValue 0+
Key string 0+
Value string 0+
= TopicInfo 0+
Name string 0+
Partitions int32 0+
ReplicationFactor int16 0+
TopicConfigs []KeyValue 0+
""",
    "StreamsGroupHeartbeatRequest": """\
request 88 0 0+
GroupId string 0+
MemberId string 0+
MemberEpoch int32 0+
EndpointInformationEpoch int32 0+
InstanceId string 0+ null=0+ default=null
RackId string 0+ null=0+ default=null
RebalanceTimeoutMs int32 0+ default=-1
Topology Topology 0+ null=0+ default=null
 Epoch int32 0+
 Subtopologies []Subtopology 0+
  SubtopologyId string 0+
  SourceTopics []string 0+
  SourceTopicRegex []string 0+
  StateChangelogTopics []TopicInfo 0+
  RepartitionSinkTopics []string 0+
  RepartitionSourceTopics []TopicInfo 0+
  CopartitionGroups []CopartitionGroup 0+
   SourceTopics []int16 0+
   SourceTopicRegex []int16 0+
   RepartitionSourceTopics []int16 0+
ActiveTasks []TaskIds 0+ null=0+ default=null
StandbyTasks []TaskIds 0+ null=0+ default=null
WarmupTasks []TaskIds 0+ null=0+ default=null
ProcessId string 0+ null=0+ default=null
UserEndpoint Endpoint 0+ null=0+ default=null
ClientTags []KeyValue 0+ null=0+ default=null
TaskOffsets []TaskOffset 0+ null=0+ default=null
TaskEndOffsets []TaskOffset 0+ null=0+ default=null
ShutdownApplication bool 0+ default=false
= KeyValue 0+
Key string 0+
Value string 0+
= TopicInfo 0+
Name string 0+
Partitions int32 0+
ReplicationFactor int16 0+
TopicConfigs []KeyValue 0+
= Endpoint 0+
Host string 0+
Port uint16 0+
= TaskOffset 0+
SubtopologyId string 0+
Partition int32 0+
Offset int64 0+
= TaskIds 0+
SubtopologyId string 0+
Partitions []int32 0+
""",
    "StreamsGroupHeartbeatResponse": """\
response 88 0 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+ default=null
MemberId string 0+
MemberEpoch int32 0+
HeartbeatIntervalMs int32 0+
AcceptableRecoveryLag int32 0+
TaskOffsetIntervalMs int32 0+
Status []Status 0+ null=0+
ActiveTasks []TaskIds 0+ null=0+ default=null
StandbyTasks []TaskIds 0+ null=0+ default=null
WarmupTasks []TaskIds 0+ null=0+ default=null
EndpointInformationEpoch int32 0+
PartitionsByUserEndpoint []EndpointToPartitions 0+ null=0+ default=null
 UserEndpoint Endpoint 0+
 ActivePartitions []TopicPartition 0+
 StandbyPartitions []TopicPartition 0+
= Status 0+
StatusCode int8 0+
StatusDetail string 0+
= TopicPartition 0+
Topic string 0+
Partitions []int32 0+
= TaskIds 0+
SubtopologyId string 0+
Partitions []int32 0+
= Endpoint 0+
Host string 0+
Port uint16 0+
""",
    "StreamsGroupMemberMetadataKey": """\
key 19 0 none
GroupId string 0
MemberId string 0
""",
    "StreamsGroupMemberMetadataValue": """\
value 19 0 0+
InstanceId string 0+ null=0+
RackId string 0+ null=0+
ClientId string 0+
ClientHost string 0+
RebalanceTimeoutMs int32 0+ default=-1
TopologyEpoch int32 0+
ProcessId string 0+
UserEndpoint Endpoint 0+ null=0+ default=null
ClientTags []KeyValue 0+
= Endpoint 0+
Host string 0+
Port uint16 0+
= KeyValue 0+
Key string 0+
Value string 0+
""",
    "StreamsGroupMetadataKey": """\
key 17 0 none
GroupId string 0
""",
    "StreamsGroupMetadataValue": """\
value 17 0 0+
Epoch int32 0+
MetadataHash int64 0+
ValidatedTopologyEpoch int32 0+ tag=0:0+ default=-1
LastAssignmentConfigs []LastAssignmentConfig 0+ null=0+ tag=1:0+
= LastAssignmentConfig 0+
Key string 0+
Value string 0+
""",
    "StreamsGroupTargetAssignmentMemberKey": """\
key 21 0 none
GroupId string 0
MemberId string 0
""",
    "StreamsGroupTargetAssignmentMemberValue": """\
value 21 0 0+
ActiveTasks []TaskIds 0+
StandbyTasks []TaskIds 0+
WarmupTasks []TaskIds 0+
= TaskIds 0+
SubtopologyId string 0+
Partitions []int32 0+
""",
    "StreamsGroupTargetAssignmentMetadataKey": """\
key 20 0 none
GroupId string 0
""",
    "StreamsGroupTargetAssignmentMetadataValue": """\
value 20 0 0+
AssignmentEpoch int32 0+
AssignmentTimestamp int64 0+ tag=0:0+ default=0 ignorable
""",
    "StreamsGroupTopologyKey": """\
key 23 0 none
GroupId string 0
""",
    "StreamsGroupTopologyValue": """\
value 23 0 0+
Epoch int32 0+
Subtopologies []Subtopology 0+
 SubtopologyId string 0+
 SourceTopics []string 0+
 SourceTopicRegex []string 0+
 StateChangelogTopics []TopicInfo 0+
 RepartitionSinkTopics []string 0+
 RepartitionSourceTopics []TopicInfo 0+
 CopartitionGroups []CopartitionGroup 0+
  SourceTopics []int16 0+
  SourceTopicRegex []int16 0+
  RepartitionSourceTopics []int16 0+
= TopicConfig 0+
key string 0+
value string 0+
= TopicInfo 0+
Name string 0+
Partitions int32 0+
ReplicationFactor int16 0+
TopicConfigs []TopicConfig 0+
""",
    "TransactionLogKey": """\
key 0 0 none
TransactionalId string 0
""",
    "TransactionLogValue": """\
value 0 0-1 1+
ProducerId int64 0+
PreviousProducerId int64 1+ tag=0:1+ default=-1
NextProducerId int64 1+ tag=1:1+ default=-1
ProducerEpoch int16 0+
NextProducerEpoch int16 1+ tag=3:1+ default=-1
TransactionTimeoutMs int32 0+
TransactionStatus int8 0+
TransactionPartitions []PartitionsSchema 0+ null=0+
 Topic string 0+
 PartitionIds []int32 0+
TransactionLastUpdateTimestampMs int64 0+
TransactionStartTimestampMs int64 0+
ClientTransactionVersion int16 1+ tag=2:1+ default=0
""",
    "TxnOffsetCommitRequest": """\
request 28 0-5 3+
TransactionalId string 0+
GroupId string 0+
ProducerId int64 0+
ProducerEpoch int16 0+
GenerationId int32 3+ default=-1
MemberId string 3+
GroupInstanceId string 3+ null=3+ default=null
Topics []TxnOffsetCommitRequestTopic 0+
 Name string 0+
 Partitions []TxnOffsetCommitRequestPartition 0+
  PartitionIndex int32 0+
  CommittedOffset int64 0+
  CommittedLeaderEpoch int32 2+ default=-1 ignorable
  CommittedMetadata string 0+ null=0+
""",
    "TxnOffsetCommitResponse": """\
response 28 0-5 3+
ThrottleTimeMs int32 0+
Topics []TxnOffsetCommitResponseTopic 0+
 Name string 0+
 Partitions []TxnOffsetCommitResponsePartition 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
""",
    "UpdateFeaturesRequest": """\
request 57 0-2 0+
timeoutMs int32 0+ default=60000
FeatureUpdates []FeatureUpdateKey 0+
 Feature string 0+ mapKey
 MaxVersionLevel int16 0+
 AllowDowngrade bool 0
 UpgradeType int8 1+ default=1
ValidateOnly bool 1+ default=false
""",
    "UpdateFeaturesResponse": """\
response 57 0-2 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+
Results []UpdatableFeatureResult 0-1 ignorable
 Feature string 0+ mapKey
 ErrorCode int16 0+
 ErrorMessage string 0+ null=0+
""",
    "VoteRequest": """\
request 52 0-2 0+
ClusterId string 0+ null=0+ default=null
VoterId int32 1+ default=-1 ignorable
Topics []TopicData 0+
 TopicName string 0+
 Partitions []PartitionData 0+
  PartitionIndex int32 0+
  ReplicaEpoch int32 0+
  ReplicaId int32 0+
  ReplicaDirectoryId uuid 1+ ignorable
  VoterDirectoryId uuid 1+ ignorable
  LastOffsetEpoch int32 0+
  LastOffset int64 0+
  PreVote bool 2+
""",
    "VoteResponse": """\
response 52 0-2 0+
ErrorCode int16 0+
Topics []TopicData 0+
 TopicName string 0+
 Partitions []PartitionData 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
  LeaderId int32 0+
  LeaderEpoch int32 0+
  VoteGranted bool 0+
NodeEndpoints []NodeEndpoint 1+ tag=0:1+
 NodeId int32 1+ mapKey
 Host string 1+
 Port uint16 1+
""",
    "WriteShareGroupStateRequest": """\
request 85 0-1 0+
GroupId string 0+
Topics []WriteStateData 0+
 TopicId uuid 0+
 Partitions []PartitionData 0+
  Partition int32 0+
  StateEpoch int32 0+
  LeaderEpoch int32 0+
  StartOffset int64 0+
  DeliveryCompleteCount int32 1+ default=-1 ignorable
  StateBatches []StateBatch 0+
   FirstOffset int64 0+
   LastOffset int64 0+
   DeliveryState int8 0+
   DeliveryCount int16 0+
""",
    "WriteShareGroupStateResponse": """\
response 85 0-1 0+
Results []WriteStateResult 0+
 TopicId uuid 0+
 Partitions []PartitionResult 0+
  Partition int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ null=0+ default=null
""",
    "WriteTxnMarkersRequest": """\
request 27 1-2 1+
Markers []WritableTxnMarker 0+
 ProducerId int64 0+
 ProducerEpoch int16 0+
 TransactionResult bool 0+
 Topics []WritableTxnMarkerTopic 0+
  Name string 0+
  PartitionIndexes []int32 0+
 CoordinatorEpoch int32 0+
 TransactionVersion int8 2+ default=0 ignorable
""",
    "WriteTxnMarkersResponse": """\
response 27 1-2 1+
Markers []WritableTxnMarkerResult 0+
 ProducerId int64 0+
 Topics []WritableTxnMarkerTopicResult 0+
  Name string 0+
  Partitions []WritableTxnMarkerPartitionResult 0+
   PartitionIndex int32 0+
   ErrorCode int16 0+
""",
}
