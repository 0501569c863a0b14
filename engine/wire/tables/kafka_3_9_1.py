"""Message schemas of Apache Kafka 3.9.1 (see schema.py).

Written by tools/pack_wire_tables.py: do not edit.
"""

from __future__ import annotations

#: Messages of the base release that this one no longer has.
GONE: frozenset[str] = frozenset()

#: Names of the APIs of this release by their keys.
API_NAMES: dict[int, str] = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    4: "LeaderAndIsr",
    5: "StopReplica",
    6: "UpdateMetadata",
    7: "ControlledShutdown",
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
    74: "ListClientMetricsResources",
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
}

MESSAGES: dict[str, str] = {
    "AbortTransactionRecord": """\
metadata 25 0 0+
Reason string 0+ null=0+ tag=0:0+ default=null
""",
    "AccessControlEntryRecord": """\
metadata 18 0 0+
Id uuid 0+
ResourceType int8 0+
ResourceName string 0+
PatternType int8 0+
Principal string 0+
Host string 0+
Operation int8 0+
PermissionType int8 0+
""",
    "AddOffsetsToTxnRequest": """\
request 25 0-4 3+
TransactionalId string 0+
ProducerId int64 0+
ProducerEpoch int16 0+
GroupId string 0+
""",
    "AddOffsetsToTxnResponse": """\
response 25 0-4 3+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
""",
    "AddPartitionsToTxnRequest": """\
request 24 0-5 3+
Transactions []AddPartitionsToTxnTransaction 4+
 TransactionalId string 4+ mapKey
 ProducerId int64 4+
 ProducerEpoch int16 4+
 VerifyOnly bool 4+ default=false
 Topics []AddPartitionsToTxnTopic 4+
V3AndBelowTransactionalId string 0-3
V3AndBelowProducerId int64 0-3
V3AndBelowProducerEpoch int16 0-3
V3AndBelowTopics []AddPartitionsToTxnTopic 0-3
= AddPartitionsToTxnTopic 0+
Name string 0+ mapKey
Partitions []int32 0+
""",
    "AddPartitionsToTxnResponse": """\
response 24 0-5 3+
ThrottleTimeMs int32 0+
ErrorCode int16 4+ ignorable
ResultsByTransaction []AddPartitionsToTxnResult 4+
 TransactionalId string 4+ mapKey
 TopicResults []AddPartitionsToTxnTopicResult 4+
ResultsByTopicV3AndBelow []AddPartitionsToTxnTopicResult 0-3
= AddPartitionsToTxnTopicResult 0+
Name string 0+ mapKey
ResultsByPartition []AddPartitionsToTxnPartitionResult 0+
= AddPartitionsToTxnPartitionResult 0+
PartitionIndex int32 0+ mapKey
PartitionErrorCode int16 0+
""",
    "AddRaftVoterRequest": """\
request 80 0 0+
ClusterId string 0+ null=0+
TimeoutMs int32 0+
VoterId int32 0+
VoterDirectoryId uuid 0+
Listeners []Listener 0+
 Name string 0+ mapKey
 Host string 0+
 Port uint16 0+
""",
    "AddRaftVoterResponse": """\
response 80 0 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+ ignorable
""",
    "AllocateProducerIdsRequest": """\
request 67 0 0+
BrokerId int32 0+
BrokerEpoch int64 0+ default=-1
""",
    "AllocateProducerIdsResponse": """\
response 67 0 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ProducerIdStart int64 0+
ProducerIdLen int32 0+
""",
    "AlterClientQuotasRequest": """\
request 49 0-1 1+
Entries []EntryData 0+
 Entity []EntityData 0+
  EntityType string 0+
  EntityName string 0+ null=0+
 Ops []OpData 0+
  Key string 0+
  Value float64 0+
  Remove bool 0+
ValidateOnly bool 0+
""",
    "AlterClientQuotasResponse": """\
response 49 0-1 1+
ThrottleTimeMs int32 0+
Entries []EntryData 0+
 ErrorCode int16 0+
 ErrorMessage string 0+ null=0+
 Entity []EntityData 0+
  EntityType string 0+
  EntityName string 0+ null=0+
""",
    "AlterConfigsRequest": """\
request 33 0-2 2+
Resources []AlterConfigsResource 0+
 ResourceType int8 0+ mapKey
 ResourceName string 0+ mapKey
 Configs []AlterableConfig 0+
  Name string 0+ mapKey
  Value string 0+ null=0+
ValidateOnly bool 0+
""",
    "AlterConfigsResponse": """\
response 33 0-2 2+
ThrottleTimeMs int32 0+
Responses []AlterConfigsResourceResponse 0+
 ErrorCode int16 0+
 ErrorMessage string 0+ null=0+
 ResourceType int8 0+
 ResourceName string 0+
""",
    "AlterPartitionReassignmentsRequest": """\
request 45 0 0+
TimeoutMs int32 0+ default=60000
Topics []ReassignableTopic 0+
 Name string 0+
 Partitions []ReassignablePartition 0+
  PartitionIndex int32 0+
  Replicas []int32 0+ null=0+ default=null
""",
    "AlterPartitionReassignmentsResponse": """\
response 45 0 0+
ThrottleTimeMs int32 0+
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
request 56 0-3 0+
BrokerId int32 0+
BrokerEpoch int64 0+ default=-1
Topics []TopicData 0+
 TopicName string 0-1 ignorable
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
response 56 0-3 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
Topics []TopicData 0+
 TopicName string 0-1 ignorable
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
request 34 0-2 2+
Dirs []AlterReplicaLogDir 0+
 Path string 0+ mapKey
 Topics []AlterReplicaLogDirTopic 0+
  Name string 0+ mapKey
  Partitions []int32 0+
""",
    "AlterReplicaLogDirsResponse": """\
response 34 0-2 2+
ThrottleTimeMs int32 0+
Results []AlterReplicaLogDirTopicResult 0+
 TopicName string 0+
 Partitions []AlterReplicaLogDirPartitionResult 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
""",
    "AlterUserScramCredentialsRequest": """\
request 51 0 0+
Deletions []ScramCredentialDeletion 0+
 Name string 0+
 Mechanism int8 0+
Upsertions []ScramCredentialUpsertion 0+
 Name string 0+
 Mechanism int8 0+
 Iterations int32 0+
 Salt bytes 0+
 SaltedPassword bytes 0+
""",
    "AlterUserScramCredentialsResponse": """\
response 51 0 0+
ThrottleTimeMs int32 0+
Results []AlterUserScramCredentialsResult 0+
 User string 0+
 ErrorCode int16 0+
 ErrorMessage string 0+ null=0+
""",
    "ApiVersionsRequest": """\
request 18 0-4 3+
ClientSoftwareName string 3+ ignorable
ClientSoftwareVersion string 3+ ignorable
""",
    "ApiVersionsResponse": """\
response 18 0-4 3+
ErrorCode int16 0+
ApiKeys []ApiVersion 0+
 ApiKey int16 0+ mapKey
 MinVersion int16 0+
 MaxVersion int16 0+
ThrottleTimeMs int32 1+ ignorable
SupportedFeatures []SupportedFeatureKey 3+ tag=0:3+ ignorable
 Name string 3+ mapKey
 MinVersion int16 3+
 MaxVersion int16 3+
FinalizedFeaturesEpoch int64 3+ tag=1:3+ default=-1 ignorable
FinalizedFeatures []FinalizedFeatureKey 3+ tag=2:3+ ignorable
 Name string 3+ mapKey
 MaxVersionLevel int16 3+
 MinVersionLevel int16 3+
ZkMigrationReady bool 3+ tag=3:3+ default=false ignorable
""",
    "AssignReplicasToDirsRequest": """\
request 73 0 0+
BrokerId int32 0+
BrokerEpoch int64 0+ default=-1
Directories []DirectoryData 0+
 Id uuid 0+
 Topics []TopicData 0+
  TopicId uuid 0+
  Partitions []PartitionData 0+
   PartitionIndex int32 0+
""",
    "AssignReplicasToDirsResponse": """\
response 73 0 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
Directories []DirectoryData 0+
 Id uuid 0+
 Topics []TopicData 0+
  TopicId uuid 0+
  Partitions []PartitionData 0+
   PartitionIndex int32 0+
   ErrorCode int16 0+
""",
    "BeginQuorumEpochRequest": """\
request 53 0-1 1+
ClusterId string 0+ null=0+ default=null
VoterId int32 1+ default=-1 ignorable
Topics []TopicData 0+
 TopicName string 0+
 Partitions []PartitionData 0+
  PartitionIndex int32 0+
  VoterDirectoryId uuid 1+ ignorable
  LeaderId int32 0+
  LeaderEpoch int32 0+
LeaderEndpoints []LeaderEndpoint 1+ ignorable
 Name string 1+ mapKey
 Host string 1+
 Port uint16 1+
""",
    "BeginQuorumEpochResponse": """\
response 53 0-1 1+
ErrorCode int16 0+
Topics []TopicData 0+
 TopicName string 0+
 Partitions []PartitionData 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
  LeaderId int32 0+
  LeaderEpoch int32 0+
NodeEndpoints []NodeEndpoint 1+ tag=0:1+
 NodeId int32 1+ mapKey
 Host string 1+
 Port uint16 1+
""",
    "BeginTransactionRecord": """\
metadata 23 0 0+
Name string 0+ null=0+ tag=0:0+ default=null
""",
    "BrokerHeartbeatRequest": """\
request 63 0-1 0+
BrokerId int32 0+
BrokerEpoch int64 0+ default=-1
CurrentMetadataOffset int64 0+
WantFence bool 0+
WantShutDown bool 0+
OfflineLogDirs []uuid 1+ tag=0:1+
""",
    "BrokerHeartbeatResponse": """\
response 63 0-1 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
IsCaughtUp bool 0+ default=false
IsFenced bool 0+ default=true
ShouldShutDown bool 0+
""",
    "BrokerRegistrationChangeRecord": """\
metadata 17 0-2 0+
BrokerId int32 0+
BrokerEpoch int64 0+
Fenced int8 0+ tag=0:0+
InControlledShutdown int8 1+ tag=1:1+
LogDirs []uuid 2+ tag=2:2+
""",
    "BrokerRegistrationRequest": """\
request 62 0-4 0+
BrokerId int32 0+
ClusterId string 0+
IncarnationId uuid 0+
Listeners []Listener 0+
 Name string 0+ mapKey
 Host string 0+
 Port uint16 0+
 SecurityProtocol int16 0+
Features []Feature 0+
 Name string 0+ mapKey
 MinSupportedVersion int16 0+
 MaxSupportedVersion int16 0+
Rack string 0+ null=0+
IsMigratingZkBroker bool 1+ default=false
LogDirs []uuid 2+ ignorable
PreviousBrokerEpoch int64 3+ default=-1 ignorable
""",
    "BrokerRegistrationResponse": """\
response 62 0-4 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
BrokerEpoch int64 0+ default=-1
""",
    "ClientQuotaRecord": """\
metadata 14 0 0+
Entity []EntityData 0+
 EntityType string 0+
 EntityName string 0+ null=0+
Key string 0+
Value float64 0+
Remove bool 0+
""",
    "ConfigRecord": """\
metadata 4 0 0+
ResourceType int8 0+
ResourceName string 0+
Name string 0+
Value string 0+ null=0+
""",
    "ConsumerGroupCurrentMemberAssignmentKey": """\
data - 8 none
GroupId string 8
MemberId string 8
""",
    "ConsumerGroupCurrentMemberAssignmentValue": """\
data - 0 0+
MemberEpoch int32 0+
PreviousMemberEpoch int32 0+
State int8 0+
AssignedPartitions []TopicPartitions 0+
PartitionsPendingRevocation []TopicPartitions 0+
= TopicPartitions 0+
TopicId uuid 0+
Partitions []int32 0+
""",
    "ConsumerGroupDescribeRequest": """\
request 69 0 0+
GroupIds []string 0+
IncludeAuthorizedOperations bool 0+
""",
    "ConsumerGroupDescribeResponse": """\
response 69 0 0+
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
 AuthorizedOperations int32 0+ default=-2147483648
= TopicPartitions 0+
TopicId uuid 0+
TopicName string 0+
Partitions []int32 0+
= Assignment 0+
TopicPartitions []TopicPartitions 0+
""",
    "ConsumerGroupHeartbeatRequest": """\
request 68 0 0+
GroupId string 0+
MemberId string 0+
MemberEpoch int32 0+
InstanceId string 0+ null=0+ default=null
RackId string 0+ null=0+ default=null
RebalanceTimeoutMs int32 0+ default=-1
SubscribedTopicNames []string 0+ null=0+ default=null
ServerAssignor string 0+ null=0+ default=null
TopicPartitions []TopicPartitions 0+ null=0+ default=null
 TopicId uuid 0+
 Partitions []int32 0+
""",
    "ConsumerGroupHeartbeatResponse": """\
response 68 0 0+
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
data - 5 none
GroupId string 5
MemberId string 5
""",
    "ConsumerGroupMemberMetadataValue": """\
data - 0 0+
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
data - 3 none
GroupId string 3
""",
    "ConsumerGroupMetadataValue": """\
data - 0 0+
Epoch int32 0+
""",
    "ConsumerGroupPartitionMetadataKey": """\
data - 4 none
GroupId string 4
""",
    "ConsumerGroupPartitionMetadataValue": """\
data - 0 0+
Topics []TopicMetadata 0+
 TopicId uuid 0+
 TopicName string 0+
 NumPartitions int32 0+
 PartitionMetadata []PartitionMetadata 0+
  Partition int32 0+
  Racks []string 0+
""",
    "ConsumerGroupTargetAssignmentMemberKey": """\
data - 7 none
GroupId string 7
MemberId string 7
""",
    "ConsumerGroupTargetAssignmentMemberValue": """\
data - 0 0+
TopicPartitions []TopicPartition 0+
 TopicId uuid 0+
 Partitions []int32 0+
""",
    "ConsumerGroupTargetAssignmentMetadataKey": """\
data - 6 none
GroupId string 6
""",
    "ConsumerGroupTargetAssignmentMetadataValue": """\
data - 0 0+
AssignmentEpoch int32 0+
""",
    "ConsumerProtocolAssignment": """\
data - 0-3 none
AssignedPartitions []TopicPartition 0+
 Topic string 0+ mapKey
 Partitions []int32 0+
UserData bytes 0+ null=0+ default=null
""",
    "ConsumerProtocolSubscription": """\
data - 0-3 none
Topics []string 0+
UserData bytes 0+ null=0+ default=null
OwnedPartitions []TopicPartition 1+ ignorable
 Topic string 1+ mapKey
 Partitions []int32 1+
GenerationId int32 2+ default=-1 ignorable
RackId string 3+ null=3+ default=null ignorable
""",
    "ControlledShutdownRequest": """\
request 7 0-3 3+
BrokerId int32 0+
BrokerEpoch int64 2+ default=-1 ignorable
""",
    "ControlledShutdownResponse": """\
response 7 0-3 3+
ErrorCode int16 0+
RemainingPartitions []RemainingPartition 0+
 TopicName string 0+ mapKey
 PartitionIndex int32 0+ mapKey
""",
    "ControllerRegistrationRequest": """\
request 70 0 0+
ControllerId int32 0+
IncarnationId uuid 0+
ZkMigrationReady bool 0+
Listeners []Listener 0+
 Name string 0+ mapKey
 Host string 0+
 Port uint16 0+
 SecurityProtocol int16 0+
Features []Feature 0+
 Name string 0+ mapKey
 MinSupportedVersion int16 0+
 MaxSupportedVersion int16 0+
""",
    "ControllerRegistrationResponse": """\
response 70 0 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+
""",
    "CreateAclsRequest": """\
request 30 0-3 2+
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
response 30 0-3 2+
ThrottleTimeMs int32 0+
Results []AclCreationResult 0+
 ErrorCode int16 0+
 ErrorMessage string 0+ null=0+
""",
    "CreateDelegationTokenRequest": """\
request 38 0-3 2+
OwnerPrincipalType string 3+ null=3+
OwnerPrincipalName string 3+ null=3+
Renewers []CreatableRenewers 0+
 PrincipalType string 0+
 PrincipalName string 0+
MaxLifetimeMs int64 0+
""",
    "CreateDelegationTokenResponse": """\
response 38 0-3 2+
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
    "CreatePartitionsRequest": """\
request 37 0-3 2+
Topics []CreatePartitionsTopic 0+
 Name string 0+ mapKey
 Count int32 0+
 Assignments []CreatePartitionsAssignment 0+ null=0+
  BrokerIds []int32 0+
TimeoutMs int32 0+
ValidateOnly bool 0+
""",
    "CreatePartitionsResponse": """\
response 37 0-3 2+
ThrottleTimeMs int32 0+
Results []CreatePartitionsTopicResult 0+
 Name string 0+
 ErrorCode int16 0+
 ErrorMessage string 0+ null=0+ default=null
""",
    "CreateTopicsRequest": """\
request 19 0-7 5+
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
response 19 0-7 5+
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
    "DefaultPrincipalData": """\
data - 0 0+
Type string 0+
Name string 0+
TokenAuthenticated bool 0+
""",
    "DelegationTokenRecord": """\
metadata 10 0 0+
Owner string 0+
Requester string 0+
Renewers []string 0+
IssueTimestamp int64 0+
MaxTimestamp int64 0+
ExpirationTimestamp int64 0+
TokenId string 0+
""",
    "DeleteAclsRequest": """\
request 31 0-3 2+
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
response 31 0-3 2+
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
    "DeleteGroupsRequest": """\
request 42 0-2 2+
GroupsNames []string 0+
""",
    "DeleteGroupsResponse": """\
response 42 0-2 2+
ThrottleTimeMs int32 0+
Results []DeletableGroupResult 0+
 GroupId string 0+ mapKey
 ErrorCode int16 0+
""",
    "DeleteRecordsRequest": """\
request 21 0-2 2+
Topics []DeleteRecordsTopic 0+
 Name string 0+
 Partitions []DeleteRecordsPartition 0+
  PartitionIndex int32 0+
  Offset int64 0+
TimeoutMs int32 0+
""",
    "DeleteRecordsResponse": """\
response 21 0-2 2+
ThrottleTimeMs int32 0+
Topics []DeleteRecordsTopicResult 0+
 Name string 0+ mapKey
 Partitions []DeleteRecordsPartitionResult 0+
  PartitionIndex int32 0+ mapKey
  LowWatermark int64 0+
  ErrorCode int16 0+
""",
    "DeleteShareGroupStateRequest": """\
request 86 0 0+ unstable
GroupId string 0+
Topics []DeleteStateData 0+
 TopicId uuid 0+
 Partitions []PartitionData 0+
  Partition int32 0+
""",
    "DeleteShareGroupStateResponse": """\
response 86 0 0+
Results []DeleteStateResult 0+
 TopicId uuid 0+
 Partitions []PartitionResult 0+
  Partition int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ null=0+ default=null
""",
    "DeleteTopicsRequest": """\
request 20 0-6 4+
Topics []DeleteTopicState 6+
 Name string 6+ null=6+ default=null
 TopicId uuid 6+
TopicNames []string 0-5 ignorable
TimeoutMs int32 0+
""",
    "DeleteTopicsResponse": """\
response 20 0-6 4+
ThrottleTimeMs int32 1+ ignorable
Responses []DeletableTopicResult 0+
 Name string 0+ null=6+ mapKey
 TopicId uuid 6+ ignorable
 ErrorCode int16 0+
 ErrorMessage string 5+ null=5+ default=null ignorable
""",
    "DescribeAclsRequest": """\
request 29 0-3 2+
ResourceTypeFilter int8 0+
ResourceNameFilter string 0+ null=0+
PatternTypeFilter int8 1+ default=3
PrincipalFilter string 0+ null=0+
HostFilter string 0+ null=0+
Operation int8 0+
PermissionType int8 0+
""",
    "DescribeAclsResponse": """\
response 29 0-3 2+
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
    "DescribeClientQuotasRequest": """\
request 48 0-1 1+
Components []ComponentData 0+
 EntityType string 0+
 MatchType int8 0+
 Match string 0+ null=0+
Strict bool 0+
""",
    "DescribeClientQuotasResponse": """\
response 48 0-1 1+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+
Entries []EntryData 0+ null=0+
 Entity []EntityData 0+
  EntityType string 0+
  EntityName string 0+ null=0+
 Values []ValueData 0+
  Key string 0+
  Value float64 0+
""",
    "DescribeClusterRequest": """\
request 60 0-1 0+
IncludeClusterAuthorizedOperations bool 0+
EndpointType int8 1+ default=1
""",
    "DescribeClusterResponse": """\
response 60 0-1 0+
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
ClusterAuthorizedOperations int32 0+ default=-2147483648
""",
    "DescribeConfigsRequest": """\
request 32 0-4 4+
Resources []DescribeConfigsResource 0+
 ResourceType int8 0+
 ResourceName string 0+
 ConfigurationKeys []string 0+ null=0+
IncludeSynonyms bool 1+ default=false
IncludeDocumentation bool 3+ default=false
""",
    "DescribeConfigsResponse": """\
response 32 0-4 4+
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
  IsDefault bool 0
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
request 41 0-3 2+
Owners []DescribeDelegationTokenOwner 0+ null=0+
 PrincipalType string 0+
 PrincipalName string 0+
""",
    "DescribeDelegationTokenResponse": """\
response 41 0-3 2+
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
request 15 0-5 5+
Groups []string 0+
IncludeAuthorizedOperations bool 3+
""",
    "DescribeGroupsResponse": """\
response 15 0-5 5+
ThrottleTimeMs int32 1+ ignorable
Groups []DescribedGroup 0+
 ErrorCode int16 0+
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
request 35 0-4 2+
Topics []DescribableLogDirTopic 0+ null=0+
 Topic string 0+ mapKey
 Partitions []int32 0+
""",
    "DescribeLogDirsResponse": """\
response 35 0-4 2+
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
""",
    "DescribeProducersRequest": """\
request 61 0 0+
Topics []TopicRequest 0+
 Name string 0+
 PartitionIndexes []int32 0+
""",
    "DescribeProducersResponse": """\
response 61 0 0+
ThrottleTimeMs int32 0+
Topics []TopicResponse 0+
 Name string 0+
 Partitions []PartitionResponse 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ null=0+ default=null
  ActiveProducers []ProducerState 0+
   ProducerId int64 0+
   ProducerEpoch int32 0+
   LastSequence int32 0+ default=-1
   LastTimestamp int64 0+ default=-1
   CoordinatorEpoch int32 0+
   CurrentTxnStartOffset int64 0+ default=-1
""",
    "DescribeQuorumRequest": """\
request 55 0-2 0+
Topics []TopicData 0+
 TopicName string 0+
 Partitions []PartitionData 0+
  PartitionIndex int32 0+
""",
    "DescribeQuorumResponse": """\
response 55 0-2 0+
ErrorCode int16 0+
ErrorMessage string 2+ null=2+ ignorable
Topics []TopicData 0+
 TopicName string 0+
 Partitions []PartitionData 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
  ErrorMessage string 2+ null=2+ ignorable
  LeaderId int32 0+
  LeaderEpoch int32 0+
  HighWatermark int64 0+
  CurrentVoters []ReplicaState 0+
  Observers []ReplicaState 0+
Nodes []Node 2+
 NodeId int32 2+ mapKey
 Listeners []Listener 2+
  Name string 2+ mapKey
  Host string 2+
  Port uint16 2+
= ReplicaState 0+
ReplicaId int32 0+
ReplicaDirectoryId uuid 2+
LogEndOffset int64 0+
LastFetchTimestamp int64 1+ default=-1 ignorable
LastCaughtUpTimestamp int64 1+ default=-1 ignorable
""",
    "DescribeTopicPartitionsRequest": """\
request 75 0 0+
Topics []TopicRequest 0+
 Name string 0+
ResponsePartitionLimit int32 0+ default=2000
Cursor Cursor 0+ null=0+ default=null
 TopicName string 0+
 PartitionIndex int32 0+
""",
    "DescribeTopicPartitionsResponse": """\
response 75 0 0+
ThrottleTimeMs int32 0+ ignorable
Topics []DescribeTopicPartitionsResponseTopic 0+
 ErrorCode int16 0+
 Name string 0+ null=0+ mapKey
 TopicId uuid 0+ ignorable
 IsInternal bool 0+ default=false ignorable
 Partitions []DescribeTopicPartitionsResponsePartition 0+
  ErrorCode int16 0+
  PartitionIndex int32 0+
  LeaderId int32 0+
  LeaderEpoch int32 0+ default=-1 ignorable
  ReplicaNodes []int32 0+
  IsrNodes []int32 0+
  EligibleLeaderReplicas []int32 0+ null=0+ default=null
  LastKnownElr []int32 0+ null=0+ default=null
  OfflineReplicas []int32 0+ ignorable
 TopicAuthorizedOperations int32 0+ default=-2147483648
NextCursor Cursor 0+ null=0+ default=null
 TopicName string 0+
 PartitionIndex int32 0+
""",
    "DescribeTransactionsRequest": """\
request 65 0 0+
TransactionalIds []string 0+
""",
    "DescribeTransactionsResponse": """\
response 65 0 0+
ThrottleTimeMs int32 0+
TransactionStates []TransactionState 0+
 ErrorCode int16 0+
 TransactionalId string 0+
 TransactionState string 0+
 TransactionTimeoutMs int32 0+
 TransactionStartTimeMs int64 0+
 ProducerId int64 0+
 ProducerEpoch int16 0+
 Topics []TopicData 0+
  Topic string 0+ mapKey
  Partitions []int32 0+
""",
    "DescribeUserScramCredentialsRequest": """\
request 50 0 0+
Users []UserName 0+ null=0+
 Name string 0+
""",
    "DescribeUserScramCredentialsResponse": """\
response 50 0 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+
Results []DescribeUserScramCredentialsResult 0+
 User string 0+
 ErrorCode int16 0+
 ErrorMessage string 0+ null=0+
 CredentialInfos []CredentialInfo 0+
  Mechanism int8 0+
  Iterations int32 0+
""",
    "ElectLeadersRequest": """\
request 43 0-2 2+
ElectionType int8 1+
TopicPartitions []TopicPartitions 0+ null=0+
 Topic string 0+ mapKey
 Partitions []int32 0+
TimeoutMs int32 0+ default=60000
""",
    "ElectLeadersResponse": """\
response 43 0-2 2+
ThrottleTimeMs int32 0+
ErrorCode int16 1+
ReplicaElectionResults []ReplicaElectionResult 0+
 Topic string 0+
 PartitionResult []PartitionResult 0+
  PartitionId int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ null=0+
""",
    "EndQuorumEpochRequest": """\
request 54 0-1 1+
ClusterId string 0+ null=0+ default=null
Topics []TopicData 0+
 TopicName string 0+
 Partitions []PartitionData 0+
  PartitionIndex int32 0+
  LeaderId int32 0+
  LeaderEpoch int32 0+
  PreferredSuccessors []int32 0 ignorable
  PreferredCandidates []ReplicaInfo 1+ ignorable
   CandidateId int32 1+
   CandidateDirectoryId uuid 1+
LeaderEndpoints []LeaderEndpoint 1+ ignorable
 Name string 1+ mapKey
 Host string 1+
 Port uint16 1+
""",
    "EndQuorumEpochResponse": """\
response 54 0-1 1+
ErrorCode int16 0+
Topics []TopicData 0+
 TopicName string 0+
 Partitions []PartitionData 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
  LeaderId int32 0+
  LeaderEpoch int32 0+
NodeEndpoints []NodeEndpoint 1+ tag=0:1+
 NodeId int32 1+ mapKey
 Host string 1+
 Port uint16 1+
""",
    "EndTransactionRecord": """\
metadata 24 0 0+
""",
    "EndTxnRequest": """\
request 26 0-4 3+
TransactionalId string 0+
ProducerId int64 0+
ProducerEpoch int16 0+
Committed bool 0+
""",
    "EndTxnResponse": """\
response 26 0-4 3+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
""",
    "EnvelopeRequest": """\
request 58 0 0+
RequestData bytes 0+
RequestPrincipal bytes 0+ null=0+
ClientHostAddress bytes 0+
""",
    "EnvelopeResponse": """\
response 58 0 0+
ResponseData bytes 0+ null=0+ default=null
ErrorCode int16 0+
""",
    "ExpireDelegationTokenRequest": """\
request 40 0-2 2+
Hmac bytes 0+
ExpiryTimePeriodMs int64 0+
""",
    "ExpireDelegationTokenResponse": """\
response 40 0-2 2+
ErrorCode int16 0+
ExpiryTimestampMs int64 0+
ThrottleTimeMs int32 0+
""",
    "FeatureLevelRecord": """\
metadata 12 0 0+
Name string 0+
FeatureLevel int16 0+
""",
    "FenceBrokerRecord": """\
metadata 7 0 0+
Id int32 0+
Epoch int64 0+
""",
    "FetchRequest": """\
request 1 0-17 12+
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
ForgottenTopicsData []ForgottenTopic 7+
 Topic string 7-12 ignorable
 TopicId uuid 13+ ignorable
 Partitions []int32 7+
RackId string 11+ ignorable
""",
    "FetchResponse": """\
response 1 0-17 12+
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
    "FetchSnapshotRequest": """\
request 59 0-1 0+
ClusterId string 0+ null=0+ tag=0:0+ default=null
ReplicaId int32 0+ default=-1
MaxBytes int32 0+ default=0x7fffffff
Topics []TopicSnapshot 0+
 Name string 0+
 Partitions []PartitionSnapshot 0+
  Partition int32 0+
  CurrentLeaderEpoch int32 0+
  SnapshotId SnapshotId 0+
   EndOffset int64 0+
   Epoch int32 0+
  Position int64 0+
  ReplicaDirectoryId uuid 1+ tag=0:1+ ignorable
""",
    "FetchSnapshotResponse": """\
response 59 0-1 0+
ThrottleTimeMs int32 0+ ignorable
ErrorCode int16 0+
Topics []TopicSnapshot 0+
 Name string 0+
 Partitions []PartitionSnapshot 0+
  Index int32 0+
  ErrorCode int16 0+
  SnapshotId SnapshotId 0+
   EndOffset int64 0+
   Epoch int32 0+
  CurrentLeader LeaderIdAndEpoch 0+ tag=0:0+
   LeaderId int32 0+
   LeaderEpoch int32 0+
  Size int64 0+
  Position int64 0+
  UnalignedRecords records 0+
NodeEndpoints []NodeEndpoint 1+ tag=0:1+
 NodeId int32 1+ mapKey
 Host string 1+
 Port uint16 1+
""",
    "FindCoordinatorRequest": """\
request 10 0-6 3+
Key string 0-3
KeyType int8 1+ default=0
CoordinatorKeys []string 4+
""",
    "FindCoordinatorResponse": """\
response 10 0-6 3+
ThrottleTimeMs int32 1+ ignorable
ErrorCode int16 0-3
ErrorMessage string 1-3 null=1-3 ignorable
NodeId int32 0-3
Host string 0-3
Port int32 0-3
Coordinators []Coordinator 4+
 Key string 4+
 NodeId int32 4+
 Host string 4+
 Port int32 4+
 ErrorCode int16 4+
 ErrorMessage string 4+ null=4+ ignorable
""",
    "GetTelemetrySubscriptionsRequest": """\
request 71 0 0+
ClientInstanceId uuid 0+
""",
    "GetTelemetrySubscriptionsResponse": """\
response 71 0 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ClientInstanceId uuid 0+
SubscriptionId int32 0+
AcceptedCompressionTypes []int8 0+
PushIntervalMs int32 0+
TelemetryMaxBytes int32 0+
DeltaTemporality bool 0+
RequestedMetrics []string 0+
""",
    "GroupMetadataKey": """\
data - 2 none
group string 2
""",
    "GroupMetadataValue": """\
data - 0-4 4+
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
    "HeartbeatRequest": """\
request 12 0-4 4+
GroupId string 0+
GenerationId int32 0+
MemberId string 0+
GroupInstanceId string 3+ null=3+ default=null
""",
    "HeartbeatResponse": """\
response 12 0-4 4+
ThrottleTimeMs int32 1+ ignorable
ErrorCode int16 0+
""",
    "IncrementalAlterConfigsRequest": """\
request 44 0-1 1+
Resources []AlterConfigsResource 0+
 ResourceType int8 0+ mapKey
 ResourceName string 0+ mapKey
 Configs []AlterableConfig 0+
  Name string 0+ mapKey
  ConfigOperation int8 0+ mapKey
  Value string 0+ null=0+
ValidateOnly bool 0+
""",
    "IncrementalAlterConfigsResponse": """\
response 44 0-1 1+
ThrottleTimeMs int32 0+
Responses []AlterConfigsResourceResponse 0+
 ErrorCode int16 0+
 ErrorMessage string 0+ null=0+
 ResourceType int8 0+
 ResourceName string 0+
""",
    "InitProducerIdRequest": """\
request 22 0-5 2+
TransactionalId string 0+ null=0+
TransactionTimeoutMs int32 0+
ProducerId int64 3+ default=-1
ProducerEpoch int16 3+ default=-1
""",
    "InitProducerIdResponse": """\
response 22 0-5 2+
ThrottleTimeMs int32 0+ ignorable
ErrorCode int16 0+
ProducerId int64 0+ default=-1
ProducerEpoch int16 0+
""",
    "InitializeShareGroupStateRequest": """\
request 83 0 0+ unstable
GroupId string 0+
Topics []InitializeStateData 0+
 TopicId uuid 0+
 Partitions []PartitionData 0+
  Partition int32 0+
  StateEpoch int32 0+
  StartOffset int64 0+
""",
    "InitializeShareGroupStateResponse": """\
response 83 0 0+
Results []InitializeStateResult 0+
 TopicId uuid 0+
 Partitions []PartitionResult 0+
  Partition int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ null=0+ default=null
""",
    "JoinGroupRequest": """\
request 11 0-9 6+
GroupId string 0+
SessionTimeoutMs int32 0+
RebalanceTimeoutMs int32 1+ default=-1 ignorable
MemberId string 0+
GroupInstanceId string 5+ null=5+ default=null
ProtocolType string 0+
Protocols []JoinGroupRequestProtocol 0+
 Name string 0+ mapKey
 Metadata bytes 0+
Reason string 8+ null=8+ default=null ignorable
""",
    "JoinGroupResponse": """\
response 11 0-9 6+
ThrottleTimeMs int32 2+ ignorable
ErrorCode int16 0+
GenerationId int32 0+ default=-1
ProtocolType string 7+ null=7+ default=null ignorable
ProtocolName string 0+ null=7+
Leader string 0+
SkipAssignment bool 9+ default=false
MemberId string 0+
Members []JoinGroupResponseMember 0+
 MemberId string 0+
 GroupInstanceId string 5+ null=5+ default=null ignorable
 Metadata bytes 0+
""",
    "KRaftVersionRecord": """\
data - 0 0+
Version int16 0+
KRaftVersion int16 0+
""",
    "LeaderAndIsrRequest": """\
request 4 0-7 4+
ControllerId int32 0+
isKRaftController bool 7+ default=false
ControllerEpoch int32 0+
BrokerEpoch int64 2+ default=-1 ignorable
Type int8 5+
UngroupedPartitionStates []LeaderAndIsrPartitionState 0-1
TopicStates []LeaderAndIsrTopicState 2+
 TopicName string 2+
 TopicId uuid 5+ ignorable
 PartitionStates []LeaderAndIsrPartitionState 2+
LiveLeaders []LeaderAndIsrLiveLeader 0+
 BrokerId int32 0+
 HostName string 0+
 Port int32 0+
= LeaderAndIsrPartitionState 0+
TopicName string 0-1 ignorable
PartitionIndex int32 0+
ControllerEpoch int32 0+
Leader int32 0+
LeaderEpoch int32 0+
Isr []int32 0+
PartitionEpoch int32 0+
Replicas []int32 0+
AddingReplicas []int32 3+ ignorable
RemovingReplicas []int32 3+ ignorable
IsNew bool 1+ default=false ignorable
LeaderRecoveryState int8 6+ default=0
""",
    "LeaderAndIsrResponse": """\
response 4 0-7 4+
ErrorCode int16 0+
PartitionErrors []LeaderAndIsrPartitionError 0-4
Topics []LeaderAndIsrTopicError 5+
 TopicId uuid 5+ mapKey
 PartitionErrors []LeaderAndIsrPartitionError 5+
= LeaderAndIsrPartitionError 0+
TopicName string 0-4 ignorable
PartitionIndex int32 0+
ErrorCode int16 0+
""",
    "LeaderChangeMessage": """\
data - 0-1 0+
Version int16 0+
LeaderId int32 0+
Voters []Voter 0+
GrantingVoters []Voter 0+
= Voter 0+
VoterId int32 0+
VoterDirectoryId uuid 1+
""",
    "LeaveGroupRequest": """\
request 13 0-5 4+
GroupId string 0+
MemberId string 0-2
Members []MemberIdentity 3+
 MemberId string 3+
 GroupInstanceId string 3+ null=3+ default=null
 Reason string 5+ null=5+ default=null ignorable
""",
    "LeaveGroupResponse": """\
response 13 0-5 4+
ThrottleTimeMs int32 1+ ignorable
ErrorCode int16 0+
Members []MemberResponse 3+
 MemberId string 3+
 GroupInstanceId string 3+ null=3+
 ErrorCode int16 3+
""",
    "ListClientMetricsResourcesRequest": """\
request 74 0 0+
""",
    "ListClientMetricsResourcesResponse": """\
response 74 0 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ClientMetricsResources []ClientMetricsResource 0+
 Name string 0+
""",
    "ListGroupsRequest": """\
request 16 0-5 3+
StatesFilter []string 4+
TypesFilter []string 5+
""",
    "ListGroupsResponse": """\
response 16 0-5 3+
ThrottleTimeMs int32 1+ ignorable
ErrorCode int16 0+
Groups []ListedGroup 0+
 GroupId string 0+
 ProtocolType string 0+
 GroupState string 4+ ignorable
 GroupType string 5+ ignorable
""",
    "ListOffsetsRequest": """\
request 2 0-9 6+
ReplicaId int32 0+
IsolationLevel int8 2+
Topics []ListOffsetsTopic 0+
 Name string 0+
 Partitions []ListOffsetsPartition 0+
  PartitionIndex int32 0+
  CurrentLeaderEpoch int32 4+ default=-1 ignorable
  Timestamp int64 0+
  MaxNumOffsets int32 0 default=1
""",
    "ListOffsetsResponse": """\
response 2 0-9 6+
ThrottleTimeMs int32 2+ ignorable
Topics []ListOffsetsTopicResponse 0+
 Name string 0+
 Partitions []ListOffsetsPartitionResponse 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
  OldStyleOffsets []int64 0
  Timestamp int64 1+ default=-1
  Offset int64 1+ default=-1
  LeaderEpoch int32 4+ default=-1
""",
    "ListPartitionReassignmentsRequest": """\
request 46 0 0+
TimeoutMs int32 0+ default=60000
Topics []ListPartitionReassignmentsTopics 0+ null=0+ default=null
 Name string 0+
 PartitionIndexes []int32 0+
""",
    "ListPartitionReassignmentsResponse": """\
response 46 0 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+
Topics []OngoingTopicReassignment 0+
 Name string 0+
 Partitions []OngoingPartitionReassignment 0+
  PartitionIndex int32 0+
  Replicas []int32 0+
  AddingReplicas []int32 0+
  RemovingReplicas []int32 0+
""",
    "ListTransactionsRequest": """\
request 66 0-1 0+
StateFilters []string 0+
ProducerIdFilters []int64 0+
DurationFilter int64 1+ default=-1
""",
    "ListTransactionsResponse": """\
response 66 0-1 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
UnknownStateFilters []string 0+
TransactionStates []TransactionState 0+
 TransactionalId string 0+
 ProducerId int64 0+
 TransactionState string 0+
""",
    "MetadataRequest": """\
request 3 0-12 9+
Topics []MetadataRequestTopic 0+ null=1+
 TopicId uuid 10+ ignorable
 Name string 0+ null=10+
AllowAutoTopicCreation bool 4+ default=true
IncludeClusterAuthorizedOperations bool 8-10
IncludeTopicAuthorizedOperations bool 8+
""",
    "MetadataResponse": """\
response 3 0-12 9+
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
""",
    "NoOpRecord": """\
metadata 20 0 0+
""",
    "OffsetCommitKey": """\
data - 0-1 none
group string 0-1
topic string 0-1
partition int32 0-1
""",
    "OffsetCommitRequest": """\
request 8 0-9 8+
GroupId string 0+
GenerationIdOrMemberEpoch int32 1+ default=-1 ignorable
MemberId string 1+ ignorable
GroupInstanceId string 7+ null=7+ default=null
RetentionTimeMs int64 2-4 default=-1 ignorable
Topics []OffsetCommitRequestTopic 0+
 Name string 0+
 Partitions []OffsetCommitRequestPartition 0+
  PartitionIndex int32 0+
  CommittedOffset int64 0+
  CommittedLeaderEpoch int32 6+ default=-1 ignorable
  CommitTimestamp int64 1 default=-1
  CommittedMetadata string 0+ null=0+
""",
    "OffsetCommitResponse": """\
response 8 0-9 8+
ThrottleTimeMs int32 3+ ignorable
Topics []OffsetCommitResponseTopic 0+
 Name string 0+
 Partitions []OffsetCommitResponsePartition 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
""",
    "OffsetCommitValue": """\
data - 0-4 4+
offset int64 0+
leaderEpoch int32 3+ default=-1 ignorable
metadata string 0+
commitTimestamp int64 0+
expireTimestamp int64 1 default=-1 ignorable
""",
    "OffsetDeleteRequest": """\
request 47 0 none
GroupId string 0+
Topics []OffsetDeleteRequestTopic 0+
 Name string 0+ mapKey
 Partitions []OffsetDeleteRequestPartition 0+
  PartitionIndex int32 0+
""",
    "OffsetDeleteResponse": """\
response 47 0 none
ErrorCode int16 0+
ThrottleTimeMs int32 0+ ignorable
Topics []OffsetDeleteResponseTopic 0+
 Name string 0+ mapKey
 Partitions []OffsetDeleteResponsePartition 0+
  PartitionIndex int32 0+ mapKey
  ErrorCode int16 0+
""",
    "OffsetFetchRequest": """\
request 9 0-9 6+
GroupId string 0-7
Topics []OffsetFetchRequestTopic 0-7 null=2-7
 Name string 0-7
 PartitionIndexes []int32 0-7
Groups []OffsetFetchRequestGroup 8+
 GroupId string 8+
 MemberId string 9+ null=9+ default=null ignorable
 MemberEpoch int32 9+ default=-1 ignorable
 Topics []OffsetFetchRequestTopics 8+ null=8+
  Name string 8+
  PartitionIndexes []int32 8+
RequireStable bool 7+ default=false
""",
    "OffsetFetchResponse": """\
response 9 0-9 6+
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
  Name string 8+
  Partitions []OffsetFetchResponsePartitions 8+
   PartitionIndex int32 8+
   CommittedOffset int64 8+
   CommittedLeaderEpoch int32 8+ default=-1 ignorable
   Metadata string 8+ null=8+
   ErrorCode int16 8+
 ErrorCode int16 8+ default=0
""",
    "OffsetForLeaderEpochRequest": """\
request 23 0-4 4+
ReplicaId int32 3+ default=-2 ignorable
Topics []OffsetForLeaderTopic 0+
 Topic string 0+ mapKey
 Partitions []OffsetForLeaderPartition 0+
  Partition int32 0+
  CurrentLeaderEpoch int32 2+ default=-1 ignorable
  LeaderEpoch int32 0+
""",
    "OffsetForLeaderEpochResponse": """\
response 23 0-4 4+
ThrottleTimeMs int32 2+ ignorable
Topics []OffsetForLeaderTopicResult 0+
 Topic string 0+ mapKey
 Partitions []EpochEndOffset 0+
  ErrorCode int16 0+
  Partition int32 0+
  LeaderEpoch int32 1+ default=-1 ignorable
  EndOffset int64 0+ default=-1
""",
    "PartitionChangeRecord": """\
metadata 5 0-2 0+
PartitionId int32 0+ default=-1
TopicId uuid 0+
Isr []int32 0+ null=0+ tag=0:0+ default=null
Leader int32 0+ tag=1:0+ default=-2
Replicas []int32 0+ null=0+ tag=2:0+ default=null
RemovingReplicas []int32 0+ null=0+ tag=3:0+ default=null
AddingReplicas []int32 0+ null=0+ tag=4:0+ default=null
LeaderRecoveryState int8 0+ tag=5:0+ default=-1
Directories []uuid 1+ null=1+ tag=8:1+ default=null
EligibleLeaderReplicas []int32 2+ null=2+ tag=6:2+ default=null
LastKnownElr []int32 2+ null=2+ tag=7:2+ default=null
""",
    "PartitionRecord": """\
metadata 3 0-2 0+
PartitionId int32 0+ default=-1
TopicId uuid 0+
Replicas []int32 0+
Isr []int32 0+
RemovingReplicas []int32 0+
AddingReplicas []int32 0+
Leader int32 0+ default=-1
LeaderRecoveryState int8 0+ tag=0:0+ default=0
LeaderEpoch int32 0+ default=-1
PartitionEpoch int32 0+ default=-1
Directories []uuid 1+
EligibleLeaderReplicas []int32 2+ null=2+ tag=1:2+ default=null
LastKnownElr []int32 2+ null=2+ tag=2:2+ default=null
""",
    "ProduceRequest": """\
request 0 0-11 9+
TransactionalId string 3+ null=3+ default=null
Acks int16 0+
TimeoutMs int32 0+
TopicData []TopicProduceData 0+
 Name string 0+ mapKey
 PartitionData []PartitionProduceData 0+
  Index int32 0+
  Records records 0+ null=0+
""",
    "ProduceResponse": """\
response 0 0-11 9+
Responses []TopicProduceResponse 0+
 Name string 0+ mapKey
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
    "ProducerIdsRecord": """\
metadata 15 0 0+
BrokerId int32 0+
BrokerEpoch int64 0+ default=-1
NextProducerId int64 0+
""",
    "PushTelemetryRequest": """\
request 72 0 0+
ClientInstanceId uuid 0+
SubscriptionId int32 0+
Terminating bool 0+
CompressionType int8 0+
Metrics bytes 0+
""",
    "PushTelemetryResponse": """\
response 72 0 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
""",
    "QuorumStateData": """\
data - 0-1 0+
ClusterId string 0
LeaderId int32 0+ default=-1
LeaderEpoch int32 0+ default=-1
VotedId int32 0+ default=-1
VotedDirectoryId uuid 1+
AppliedOffset int64 0
CurrentVoters []Voter 0 null=0
 VoterId int32 0
""",
    "ReadShareGroupStateRequest": """\
request 84 0 0+ unstable
GroupId string 0+
Topics []ReadStateData 0+
 TopicId uuid 0+
 Partitions []PartitionData 0+
  Partition int32 0+
  LeaderEpoch int32 0+
""",
    "ReadShareGroupStateResponse": """\
response 84 0 0+
Results []ReadStateResult 0+
 TopicId uuid 0+
 Partitions []PartitionResult 0+
  Partition int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ null=0+ default=null
  StateEpoch int32 0+
  StartOffset int64 0+
  StateBatches []StateBatch 0+
   FirstOffset int64 0+
   LastOffset int64 0+
   DeliveryState int8 0+
   DeliveryCount int16 0+
""",
    "ReadShareGroupStateSummaryRequest": """\
request 87 0 0+ unstable
GroupId string 0+
Topics []ReadStateSummaryData 0+
 TopicId uuid 0+
 Partitions []PartitionData 0+
  Partition int32 0+
  LeaderEpoch int32 0+
""",
    "ReadShareGroupStateSummaryResponse": """\
response 87 0 0+
Results []ReadStateSummaryResult 0+
 TopicId uuid 0+
 Partitions []PartitionResult 0+
  Partition int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ null=0+ default=null
  StateEpoch int32 0+
  StartOffset int64 0+
""",
    "RegisterBrokerRecord": """\
metadata 0 0-3 0+
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
""",
    "RegisterControllerRecord": """\
metadata 27 0 0+
ControllerId int32 0+
IncarnationId uuid 0+
ZkMigrationReady bool 0+
EndPoints []ControllerEndpoint 0+
 Name string 0+ mapKey
 Host string 0+
 Port uint16 0+
 SecurityProtocol int16 0+
Features []ControllerFeature 0+
 Name string 0+ mapKey
 MinSupportedVersion int16 0+
 MaxSupportedVersion int16 0+
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
""",
    "RemoteLogSegmentMetadataUpdateRecord": """\
metadata 1 0 0+
RemoteLogSegmentId RemoteLogSegmentIdEntry 0+
 TopicIdPartition TopicIdPartitionEntry 0+
  Name string 0+
  Id uuid 0+
  Partition int32 0+
 Id uuid 0+
BrokerId int32 0+
EventTimestampMs int64 0+
CustomMetadata bytes 0+ null=0+ default=null
RemoteLogSegmentState int8 0+
""",
    "RemotePartitionDeleteMetadataRecord": """\
metadata 2 0 0+
TopicIdPartition TopicIdPartitionEntry 0+
 Name string 0+
 Id uuid 0+
 Partition int32 0+
BrokerId int32 0+
EventTimestampMs int64 0+
RemotePartitionDeleteState int8 0+
""",
    "RemoveAccessControlEntryRecord": """\
metadata 19 0 0+
Id uuid 0+
""",
    "RemoveDelegationTokenRecord": """\
metadata 26 0 0+
TokenId string 0+
""",
    "RemoveRaftVoterRequest": """\
request 81 0 0+
ClusterId string 0+ null=0+
VoterId int32 0+
VoterDirectoryId uuid 0+
""",
    "RemoveRaftVoterResponse": """\
response 81 0 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+ ignorable
""",
    "RemoveTopicRecord": """\
metadata 9 0 0+
TopicId uuid 0+
""",
    "RemoveUserScramCredentialRecord": """\
metadata 22 0 0+
Name string 0+
Mechanism int8 0+
""",
    "RenewDelegationTokenRequest": """\
request 39 0-2 2+
Hmac bytes 0+
RenewPeriodMs int64 0+
""",
    "RenewDelegationTokenResponse": """\
response 39 0-2 2+
ErrorCode int16 0+
ExpiryTimestampMs int64 0+
ThrottleTimeMs int32 0+
""",
    "RequestHeader": """\
header - 0-2 2+
RequestApiKey int16 0+
RequestApiVersion int16 0+
CorrelationId int32 0+
ClientId string 1+ null=1+ plain ignorable
""",
    "ResponseHeader": """\
header - 0-1 1+
CorrelationId int32 0+
""",
    "SaslAuthenticateRequest": """\
request 36 0-2 2+
AuthBytes bytes 0+
""",
    "SaslAuthenticateResponse": """\
response 36 0-2 2+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+
AuthBytes bytes 0+
SessionLifetimeMs int64 1+ default=0 ignorable
""",
    "SaslHandshakeRequest": """\
request 17 0-1 none
Mechanism string 0+
""",
    "SaslHandshakeResponse": """\
response 17 0-1 none
ErrorCode int16 0+
Mechanisms []string 0+
""",
    "ShareAcknowledgeRequest": """\
request 79 0 0+ unstable
GroupId string 0+ null=0+ default=null
MemberId string 0+ null=0+
ShareSessionEpoch int32 0+
Topics []AcknowledgeTopic 0+
 TopicId uuid 0+
 Partitions []AcknowledgePartition 0+
  PartitionIndex int32 0+
  AcknowledgementBatches []AcknowledgementBatch 0+
   FirstOffset int64 0+
   LastOffset int64 0+
   AcknowledgeTypes []int8 0+
""",
    "ShareAcknowledgeResponse": """\
response 79 0 0+
ThrottleTimeMs int32 0+ ignorable
ErrorCode int16 0+ ignorable
ErrorMessage string 0+ null=0+ default=null
Responses []ShareAcknowledgeTopicResponse 0+
 TopicId uuid 0+ ignorable
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
request 78 0 0+ unstable
GroupId string 0+ null=0+ default=null
MemberId string 0+ null=0+
ShareSessionEpoch int32 0+
MaxWaitMs int32 0+
MinBytes int32 0+
MaxBytes int32 0+ default=0x7fffffff ignorable
Topics []FetchTopic 0+
 TopicId uuid 0+ ignorable
 Partitions []FetchPartition 0+
  PartitionIndex int32 0+
  PartitionMaxBytes int32 0+
  AcknowledgementBatches []AcknowledgementBatch 0+
   FirstOffset int64 0+
   LastOffset int64 0+
   AcknowledgeTypes []int8 0+
ForgottenTopicsData []ForgottenTopic 0+
 TopicId uuid 0+ ignorable
 Partitions []int32 0+
""",
    "ShareFetchResponse": """\
response 78 0 0+
ThrottleTimeMs int32 0+ ignorable
ErrorCode int16 0+ ignorable
ErrorMessage string 0+ null=0+ default=null
Responses []ShareFetchableTopicResponse 0+
 TopicId uuid 0+ ignorable
 Partitions []PartitionData 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ null=0+ default=null
  AcknowledgeErrorCode int16 0+
  AcknowledgeErrorMessage string 0+ null=0+ default=null
  CurrentLeader LeaderIdAndEpoch 0+
   LeaderId int32 0+
   LeaderEpoch int32 0+
  Records records 0+ null=0+
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
    "ShareGroupDescribeRequest": """\
request 77 0 0+ unstable
GroupIds []string 0+
IncludeAuthorizedOperations bool 0+
""",
    "ShareGroupDescribeResponse": """\
response 77 0 0+
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
request 76 0 0+ unstable
GroupId string 0+
MemberId string 0+
MemberEpoch int32 0+
RackId string 0+ null=0+ default=null
SubscribedTopicNames []string 0+ null=0+ default=null
""",
    "ShareGroupHeartbeatResponse": """\
response 76 0 0+
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
data - 10 none
GroupId string 10
MemberId string 10
""",
    "ShareGroupMemberMetadataValue": """\
data - 0 0+
RackId string 0+ null=0+
ClientId string 0+
ClientHost string 0+
SubscribedTopicNames []string 0+
""",
    "ShareGroupMetadataKey": """\
data - 11 none
GroupId string 11
""",
    "ShareGroupMetadataValue": """\
data - 0 0+
Epoch int32 0+
""",
    "ShareGroupPartitionMetadataKey": """\
data - 9 none
GroupId string 9
""",
    "ShareGroupPartitionMetadataValue": """\
data - 0 0+
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
    "SnapshotFooterRecord": """\
data - 0 0+
Version int16 0+
""",
    "SnapshotHeaderRecord": """\
data - 0 0+
Version int16 0+
LastContainedLogTimestamp int64 0+
""",
    "StopReplicaRequest": """\
request 5 0-4 2+
ControllerId int32 0+
isKRaftController bool 4+ default=false
ControllerEpoch int32 0+
BrokerEpoch int64 1+ default=-1 ignorable
DeletePartitions bool 0-2
UngroupedPartitions []StopReplicaPartitionV0 0
 TopicName string 0
 PartitionIndex int32 0
Topics []StopReplicaTopicV1 1-2
 Name string 1-2
 PartitionIndexes []int32 1-2
TopicStates []StopReplicaTopicState 3+
 TopicName string 3+
 PartitionStates []StopReplicaPartitionState 3+
  PartitionIndex int32 3+
  LeaderEpoch int32 3+ default=-1
  DeletePartition bool 3+
""",
    "StopReplicaResponse": """\
response 5 0-4 2+
ErrorCode int16 0+
PartitionErrors []StopReplicaPartitionError 0+
 TopicName string 0+
 PartitionIndex int32 0+
 ErrorCode int16 0+
""",
    "SyncGroupRequest": """\
request 14 0-5 4+
GroupId string 0+
GenerationId int32 0+
MemberId string 0+
GroupInstanceId string 3+ null=3+ default=null
ProtocolType string 5+ null=5+ default=null ignorable
ProtocolName string 5+ null=5+ default=null ignorable
Assignments []SyncGroupRequestAssignment 0+
 MemberId string 0+
 Assignment bytes 0+
""",
    "SyncGroupResponse": """\
response 14 0-5 4+
ThrottleTimeMs int32 1+ ignorable
ErrorCode int16 0+
ProtocolType string 5+ null=5+ default=null ignorable
ProtocolName string 5+ null=5+ default=null ignorable
Assignment bytes 0+
""",
    "TopicRecord": """\
metadata 2 0 0+
Name string 0+
TopicId uuid 0+
""",
    "TransactionLogKey": """\
data - 0 none
TransactionalId string 0
""",
    "TransactionLogValue": """\
data - 0-1 1+
ProducerId int64 0+
ProducerEpoch int16 0+
TransactionTimeoutMs int32 0+
TransactionStatus int8 0+
TransactionPartitions []PartitionsSchema 0+ null=0+
 Topic string 0+
 PartitionIds []int32 0+
TransactionLastUpdateTimestampMs int64 0+
TransactionStartTimestampMs int64 0+
""",
    "TxnOffsetCommitRequest": """\
request 28 0-4 3+
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
response 28 0-4 3+
ThrottleTimeMs int32 0+
Topics []TxnOffsetCommitResponseTopic 0+
 Name string 0+
 Partitions []TxnOffsetCommitResponsePartition 0+
  PartitionIndex int32 0+
  ErrorCode int16 0+
""",
    "UnfenceBrokerRecord": """\
metadata 8 0 0+
Id int32 0+
Epoch int64 0+
""",
    "UnregisterBrokerRecord": """\
metadata 1 0 0+
BrokerId int32 0+
BrokerEpoch int64 0+
""",
    "UnregisterBrokerRequest": """\
request 64 0 0+
BrokerId int32 0+
""",
    "UnregisterBrokerResponse": """\
response 64 0 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+
""",
    "UpdateFeaturesRequest": """\
request 57 0-1 0+
timeoutMs int32 0+ default=60000
FeatureUpdates []FeatureUpdateKey 0+
 Feature string 0+ mapKey
 MaxVersionLevel int16 0+
 AllowDowngrade bool 0
 UpgradeType int8 1+ default=1
ValidateOnly bool 1+ default=false
""",
    "UpdateFeaturesResponse": """\
response 57 0-1 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
ErrorMessage string 0+ null=0+
Results []UpdatableFeatureResult 0+
 Feature string 0+ mapKey
 ErrorCode int16 0+
 ErrorMessage string 0+ null=0+
""",
    "UpdateMetadataRequest": """\
request 6 0-8 6+
ControllerId int32 0+
isKRaftController bool 8+ default=false
Type int8 8+ tag=0:8+ default=0
ControllerEpoch int32 0+
BrokerEpoch int64 5+ default=-1 ignorable
UngroupedPartitionStates []UpdateMetadataPartitionState 0-4
TopicStates []UpdateMetadataTopicState 5+
 TopicName string 5+
 TopicId uuid 7+ ignorable
 PartitionStates []UpdateMetadataPartitionState 5+
LiveBrokers []UpdateMetadataBroker 0+
 Id int32 0+
 V0Host string 0 ignorable
 V0Port int32 0 ignorable
 Endpoints []UpdateMetadataEndpoint 1+ ignorable
  Port int32 1+
  Host string 1+
  Listener string 3+ ignorable
  SecurityProtocol int16 1+
 Rack string 2+ null=0+ ignorable
= UpdateMetadataPartitionState 0+
TopicName string 0-4 ignorable
PartitionIndex int32 0+
ControllerEpoch int32 0+
Leader int32 0+
LeaderEpoch int32 0+
Isr []int32 0+
ZkVersion int32 0+
Replicas []int32 0+
OfflineReplicas []int32 4+ ignorable
""",
    "UpdateMetadataResponse": """\
response 6 0-8 6+
ErrorCode int16 0+
""",
    "UpdateRaftVoterRequest": """\
request 82 0 0+
ClusterId string 0+ null=0+
CurrentLeaderEpoch int32 0+
VoterId int32 0+
VoterDirectoryId uuid 0+
Listeners []Listener 0+
 Name string 0+ mapKey
 Host string 0+
 Port uint16 0+
KRaftVersionFeature KRaftVersionFeature 0+
 MinSupportedVersion int16 0+
 MaxSupportedVersion int16 0+
""",
    "UpdateRaftVoterResponse": """\
response 82 0 0+
ThrottleTimeMs int32 0+
ErrorCode int16 0+
CurrentLeader CurrentLeader 0+ tag=0:0+
 LeaderId int32 0+ default=-1
 LeaderEpoch int32 0+ default=-1
 Host string 0+
 Port int32 0+
""",
    "UserScramCredentialRecord": """\
metadata 11 0 0+
Name string 0+
Mechanism int8 0+
Salt bytes 0+
StoredKey bytes 0+
ServerKey bytes 0+
Iterations int32 0+
""",
    "VoteRequest": """\
request 52 0-1 0+
ClusterId string 0+ null=0+ default=null
VoterId int32 1+ default=-1 ignorable
Topics []TopicData 0+
 TopicName string 0+
 Partitions []PartitionData 0+
  PartitionIndex int32 0+
  CandidateEpoch int32 0+
  CandidateId int32 0+
  CandidateDirectoryId uuid 1+ ignorable
  VoterDirectoryId uuid 1+ ignorable
  LastOffsetEpoch int32 0+
  LastOffset int64 0+
""",
    "VoteResponse": """\
response 52 0-1 0+
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
    "VotersRecord": """\
data - 0 0+
Version int16 0+
Voters []Voter 0+
 VoterId int32 0+
 VoterDirectoryId uuid 0+
 Endpoints []Endpoint 0+
  Name string 0+ mapKey
  Host string 0+
  Port uint16 0+
 KRaftVersionFeature KRaftVersionFeature 0+
  MinSupportedVersion int16 0+
  MaxSupportedVersion int16 0+
""",
    "WriteShareGroupStateRequest": """\
request 85 0 0+ unstable
GroupId string 0+
Topics []WriteStateData 0+
 TopicId uuid 0+
 Partitions []PartitionData 0+
  Partition int32 0+
  StateEpoch int32 0+
  LeaderEpoch int32 0+
  StartOffset int64 0+
  StateBatches []StateBatch 0+
   FirstOffset int64 0+
   LastOffset int64 0+
   DeliveryState int8 0+
   DeliveryCount int16 0+
""",
    "WriteShareGroupStateResponse": """\
response 85 0 0+
Results []WriteStateResult 0+
 TopicId uuid 0+
 Partitions []PartitionResult 0+
  Partition int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ null=0+ default=null
""",
    "WriteTxnMarkersRequest": """\
request 27 0-1 1+
Markers []WritableTxnMarker 0+
 ProducerId int64 0+
 ProducerEpoch int16 0+
 TransactionResult bool 0+
 Topics []WritableTxnMarkerTopic 0+
  Name string 0+
  PartitionIndexes []int32 0+
 CoordinatorEpoch int32 0+
""",
    "WriteTxnMarkersResponse": """\
response 27 0-1 1+
Markers []WritableTxnMarkerResult 0+
 ProducerId int64 0+
 Topics []WritableTxnMarkerTopicResult 0+
  Name string 0+
  Partitions []WritableTxnMarkerPartitionResult 0+
   PartitionIndex int32 0+
   ErrorCode int16 0+
""",
    "ZkMigrationStateRecord": """\
metadata 21 0 0+
ZkMigrationState int8 0+
""",
}
