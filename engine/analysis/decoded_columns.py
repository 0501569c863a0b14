"""The columns of the views of records that brokers write to internal topics, decoded.

The last columns locate a record in the log. A row with a `problem` stands for a record that cannot
be decoded, or for damage in the log: its other columns are null, because the content is unknown.
"""

from __future__ import annotations

from engine.analysis.view_column import ViewColumn

_PLACE = (
    ViewColumn("timestamp", "timestamp", True, "of the record"),
    ViewColumn("timestampMs", "long", True, "the same exactly"),
    ViewColumn("segment", "string", False, "path of the .log file"),
    ViewColumn("position", "long", False, "the batch's byte position in the segment"),
    ViewColumn("problem", "string", True, "what is wrong; null in a good row"),
)
_LOG = (
    ViewColumn("logPartition", "int", False, "partition of the internal topic"),
    ViewColumn("logOffset", "long", True, "the record's offset in it"),
)

OFFSETS = (
    ViewColumn("groupId", "string", True, "the group"),
    ViewColumn("topic", "string", True, "what the commit is of"),
    ViewColumn("partition", "int", True, "what the commit is of"),
    ViewColumn("committedOffset", "long", True, "null where the commit was deleted or expired"),
    ViewColumn("leaderEpoch", "int", True, "-1 for none"),
    ViewColumn("metadata", "string", True, "text of the client"),
    ViewColumn("commitTimestamp", "timestamp", True, "when it was committed"),
    ViewColumn("commitTimestampMs", "long", True, "the same exactly"),
    ViewColumn("expireTimestampMs", "long", True, "-1 or null for none"),
    ViewColumn("isTombstone", "boolean", True, "the commit was deleted or expired"),
    ViewColumn("isTransactional", "boolean", True, "counts when its transaction is committed"),
    ViewColumn("producerId", "long", True, "of the transaction, -1 for none"),
    *_LOG,
    *_PLACE,
)

GROUPS = (
    ViewColumn("groupId", "string", True, "the group"),
    ViewColumn("type", "string", True, "GroupMetadata, ConsumerGroupMemberMetadata, …"),
    ViewColumn("version", "int", True, "of the value; null for a tombstone"),
    ViewColumn("isTombstone", "boolean", True, "the group, or its part, is gone"),
    ViewColumn("generation", "int", True, "of a classic group"),
    ViewColumn("protocolType", "string", True, "of a classic group"),
    ViewColumn("protocol", "string", True, "the assignor; null while there is none"),
    ViewColumn("leader", "string", True, "member id of the group's leader"),
    ViewColumn("memberCount", "int", True, "of a classic group"),
    ViewColumn("keyFields", "string", True, "all fields of the key as JSON"),
    ViewColumn("fields", "string", True, "all fields of the value as JSON"),
    *_LOG,
    *_PLACE,
)

TRANSACTIONS = (
    ViewColumn("kind", "string", True, "state: of a coordinator; marker: in a partition's log"),
    ViewColumn("transactionalId", "string", True, "null for a marker, which does not store it"),
    ViewColumn("producerId", "long", True, ""),
    ViewColumn("producerEpoch", "int", True, ""),
    ViewColumn("state", "string", True, "Empty, Ongoing, …; of a marker COMMIT or ABORT"),
    ViewColumn("timeoutMs", "int", True, "transaction.timeout.ms of the producer"),
    ViewColumn("partitions", "string", True, "JSON: the partitions in the transaction"),
    ViewColumn("startTimestampMs", "long", True, "when it began, -1 for never"),
    ViewColumn("updateTimestampMs", "long", True, "when the state was written"),
    ViewColumn("coordinatorEpoch", "int", True, "of a marker"),
    ViewColumn("isTombstone", "boolean", True, "the transactional id has expired"),
    ViewColumn("logTopic", "string", False, "whose log the record is in"),
    *_LOG,
    *_PLACE,
)

METADATA = (
    ViewColumn("type", "string", True, "TopicRecord, PartitionRecord, … or a control record's"),
    ViewColumn("version", "int", True, "of the record"),
    ViewColumn("fields", "string", True, "all fields as JSON"),
    ViewColumn("isControl", "boolean", True, "written by the quorum for itself"),
    ViewColumn("leaderEpoch", "int", True, "of the batch"),
    ViewColumn("logOffset", "long", True, "the record's offset"),
    *_PLACE,
)
