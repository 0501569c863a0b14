"""Every path that Kafka uses.

Names of topics, ids and sequence numbers go into a path as they are; names of users, clients and
addresses are sanitized (`sanitized`), and the default entity is called `<default>`.

Source: kafka.zk.ZkData; `znodes.md` §1.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from engine.errors import ZnodeError
from engine.model import TopicPartition

CLUSTER = "/cluster"
CLUSTER_ID = "/cluster/id"
BROKERS = "/brokers"
BROKER_IDS = "/brokers/ids"
BROKER_SEQUENCE_ID = "/brokers/seqid"
TOPICS = "/brokers/topics"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
FEATURE = "/feature"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
CONFIG = "/config"
CONFIG_CHANGES = "/config/changes"
ADMIN = "/admin"
DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
ISR_CHANGE_NOTIFICATION = "/isr_change_notification"
LOG_DIR_EVENT_NOTIFICATION = "/log_dir_event_notification"
ACLS = "/kafka-acl"
EXTENDED_ACLS = "/kafka-acl-extended"
ACL_CHANGES = "/kafka-acl-changes"
EXTENDED_ACL_CHANGES = "/kafka-acl-extended-changes"
DELEGATION_TOKENS = "/delegation_token/tokens"
DELEGATION_TOKEN_CHANGES = "/delegation_token/token_changes"
MIGRATION = "/migration"
CONSUMERS = "/consumers"

#: Types of entities that have configs.
TOPIC_CONFIGS = "topics"
BROKER_CONFIGS = "brokers"
CLIENT_CONFIGS = "clients"
USER_CONFIGS = "users"
IP_CONFIGS = "ips"

#: The name of the entity whose configs apply to all entities without their own.
DEFAULT_ENTITY = "<default>"

#: The nodes that the first broker creates before it registers, in this order (`znodes.md` §2).
PERSISTENT_PATHS = (
    CONSUMERS,
    BROKERS,
    BROKER_IDS,
    TOPICS,
    CONFIG,
    CONFIG_CHANGES,
    ADMIN,
    DELETE_TOPICS,
    BROKER_SEQUENCE_ID,
    ISR_CHANGE_NOTIFICATION,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENT_NOTIFICATION,
    "/config/topics",
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
)

#: Prefixes of sequential nodes.
CONFIG_CHANGE_PREFIX = f"{CONFIG_CHANGES}/config_change_"
ISR_CHANGE_PREFIX = f"{ISR_CHANGE_NOTIFICATION}/isr_change_"
LOG_DIR_EVENT_PREFIX = f"{LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_"
ACL_CHANGE_PREFIX = f"{ACL_CHANGES}/acl_changes_"
EXTENDED_ACL_CHANGE_PREFIX = f"{EXTENDED_ACL_CHANGES}/acl_changes_"
DELEGATION_TOKEN_CHANGE_PREFIX = f"{DELEGATION_TOKEN_CHANGES}/token_change_"

_SEQUENCE_DIGITS = 10


class NotSequential(ZnodeError):
    """A name does not end in the ten digits of a sequential node."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name}: not the name of a sequential node")
        self.name = name


def broker_path(broker_id: int) -> str:
    """Return the path of a broker's registration."""
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    """Return the path of a topic's assignment."""
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    """Return the path of the parent of a topic's partitions."""
    return f"{TOPICS}/{topic}/partitions"


def partition_path(partition: TopicPartition) -> str:
    """Return the path of a partition."""
    return f"{TOPICS}/{partition.topic}/partitions/{partition.partition}"


def partition_state_path(partition: TopicPartition) -> str:
    """Return the path of a partition's leader and ISR."""
    return f"{partition_path(partition)}/state"


def delete_topic_path(topic: str) -> str:
    """Return the path of the request to delete a topic."""
    return f"{DELETE_TOPICS}/{topic}"


def config_path(entity_path: str) -> str:
    """Return the path of an entity's configs; the entity is written as `topics/t1`."""
    return f"{CONFIG}/{entity_path}"


def topic_config_path(topic: str) -> str:
    """Return the path of a topic's configs."""
    return f"{CONFIG}/{TOPIC_CONFIGS}/{topic}"


def broker_config_path(broker_id: int | None) -> str:
    """Return the path of a broker's configs, or of all brokers' for None."""
    name = DEFAULT_ENTITY if broker_id is None else broker_id
    return f"{CONFIG}/{BROKER_CONFIGS}/{name}"


def quota_entity_path(
    *, user: str | None = None, client_id: str | None = None, ip: str | None = None
) -> str:
    """Return the path below `/config` of an entity with quotas or SCRAM credentials: `users/alice`.

    Given is `ip` alone, or `user`, `client_id` or both.
    """
    if ip is not None:
        return f"{IP_CONFIGS}/{_entity_name(ip)}"
    if user is None:
        assert client_id is not None
        return f"{CLIENT_CONFIGS}/{_entity_name(client_id)}"
    whole = f"{USER_CONFIGS}/{_entity_name(user)}"
    if client_id is None:
        return whole
    return f"{whole}/{CLIENT_CONFIGS}/{_entity_name(client_id)}"


def acl_path(resource_type: str, name: str, *, prefixed: bool) -> str:
    """Return the path of a resource's ACLs; the type is written as in `Topic`."""
    root = f"{EXTENDED_ACLS}/prefixed" if prefixed else ACLS
    return f"{root}/{resource_type}/{name}"


def delegation_token_path(token_id: str) -> str:
    """Return the path of a delegation token's node."""
    return f"{DELEGATION_TOKENS}/{token_id}"


def sequence_of(name: str) -> int:
    """Return the number after the name or path of a sequential node; raises NotSequential.

    A counter beyond 32 bits would continue below zero, with a sign among the ten digits.
    """
    digits = name[-_SEQUENCE_DIGITS:]
    if len(digits) < _SEQUENCE_DIGITS or not (digits.isascii() and digits.isdigit()):
        raise NotSequential(name)
    return int(digits)


def sanitized(name: str) -> str:
    """Return the name of a user, client or address in the form used in paths.

    Source: org.apache.kafka.common.utils.Sanitizer: URL encoding, with %20 for a space and %2A
    for a star.
    """
    return quote(name, safe="-_.").replace("~", "%7E")


def unsanitized(name: str) -> str:
    """Return the original of a sanitized name."""
    return unquote(name)


def _entity_name(name: str) -> str:
    """Return the name of an entity in a path: sanitized, but for `<default>`."""
    return name if name == DEFAULT_ENTITY else sanitized(name)
