"""The minimum ACLs that Kafka's clients need for a job.

| job | topics read | topics written | group | transactional id | |
|---|---|---|---|---|---|
| consumer | READ | | READ | | |
| producer | | WRITE | | | |
| transactional | READ | WRITE | READ | WRITE | the group of the consumer |
| streams | READ | WRITE | READ: the application | WRITE, prefixed | its topics, prefixed: |
| | | | | | READ, WRITE, CREATE, DELETE |

READ and WRITE imply DESCRIBE. Since 2.8 an idempotent producer needs no permission on the cluster:
WRITE on any topic is sufficient (KIP-679). Streams deletes records of its repartition topics, which
needs DELETE on topics; its topics and transactional ids begin with `<application>-`.

Source: KafkaApis of 3.9.1 (handleFetchRequest, handleProduceRequest, handleTxnOffsetCommitRequest,
handleInitProducerIdRequest, handleDeleteRecordsRequest); KIP-37, KIP-290, KIP-679.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from engine.security.acls import AclOperation, AclPattern, AclResource, PatternType


class Job(Enum):
    """The kind of work of a client."""

    CONSUMER = "consumer"
    PRODUCER = "producer"
    TRANSACTIONAL = "transactional"
    STREAMS = "streams"


class JobNames(NamedTuple):
    """The resource names of a job; `application_id` is that of a Streams application."""

    read_topics: Sequence[str] = ()
    written_topics: Sequence[str] = ()
    groups: Sequence[str] = ()
    transactional_ids: Sequence[str] = ()
    application_id: str | None = None


class NeededRule(NamedTuple):
    """An operation that must be allowed on a resource, or on all names of a prefix."""

    resource: AclPattern
    operation: AclOperation


_Op: Final = AclOperation
#: The operations of Streams on its internal topics.
_INTERNAL_TOPICS: Final = (_Op.READ, _Op.WRITE, _Op.CREATE, _Op.DELETE)


def needed_rules(names: JobNames, *, pattern_type: PatternType) -> list[NeededRule]:
    """Return the ACLs that a job needs to work with the named resources, each once.

    The names are literal or prefixes, by `pattern_type`.
    """
    parts = (
        (AclResource.TOPIC, names.read_topics, _Op.READ),
        (AclResource.TOPIC, names.written_topics, _Op.WRITE),
        (AclResource.GROUP, names.groups, _Op.READ),
        (AclResource.TRANSACTIONAL_ID, names.transactional_ids, _Op.WRITE),
    )
    needed = [
        NeededRule(AclPattern(kind, name, pattern_type), operation)
        for kind, of_kind, operation in parts
        for name in of_kind
    ]
    if names.application_id is not None:
        needed += _application_rules(names.application_id)
    return list(dict.fromkeys(needed))


def _application_rules(application_id: str) -> list[NeededRule]:
    """Return the ACLs of a Streams application: for its internal topics, group and producer ids."""
    prefix = f"{application_id}-"
    topics = AclPattern(AclResource.TOPIC, prefix, PatternType.PREFIXED)
    transactional_ids = AclPattern(AclResource.TRANSACTIONAL_ID, prefix, PatternType.PREFIXED)
    group = AclPattern(AclResource.GROUP, application_id, PatternType.LITERAL)
    return [
        *(NeededRule(topics, operation) for operation in _INTERNAL_TOPICS),
        NeededRule(group, _Op.READ),
        NeededRule(transactional_ids, _Op.WRITE),
    ]
