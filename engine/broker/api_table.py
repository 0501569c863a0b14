"""The table of all served APIs and the construction of their handlers.

An API is a file in `engine/api` and a row in one of the lists here. ApiVersions advertises these
rows; docs/compatibility.md describes them in words.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from engine.admin.acl_admin import AclAdmin
from engine.admin.admin_ports import AdminPorts
from engine.admin.auto_creation import AutoCreation
from engine.admin.config_admin import ConfigAdmin
from engine.admin.config_alteration import ConfigAlteration
from engine.admin.policies import Policies
from engine.admin.quota_admin import QuotaAdmin
from engine.admin.token_admin import TokenAdmin
from engine.admin.topic_admin import TopicAdmin
from engine.admin.topic_waiting import TopicWaiting
from engine.admin.user_credentials import CredentialAdmin
from engine.api.acls import Acls
from engine.api.alter_configs import AlterConfigs
from engine.api.alter_replica_log_dirs import AlterReplicaLogDirs, MoveTo
from engine.api.api_versions import ApiVersions
from engine.api.client_quotas import ClientQuotas
from engine.api.consumer_protocol import ConsumerProtocol
from engine.api.create_partitions import CreatePartitions
from engine.api.create_topics import CreateTopics
from engine.api.delegation_tokens import DelegationTokens
from engine.api.delete_records import DeleteRecords
from engine.api.delete_topics import DeleteTopics
from engine.api.describe_cluster import DescribeCluster
from engine.api.describe_configs import DescribeConfigs
from engine.api.describe_log_dirs import DescribeLogDirs
from engine.api.describe_producers import DescribeProducers
from engine.api.describe_topic_partitions import DescribeTopicPartitions
from engine.api.dispatch import DispatchTable, FastHandler, KindOfRequest, RequestDecoder, Rule
from engine.api.elect_leaders import ElectLeaders
from engine.api.exchange import Handler
from engine.api.fast_follower_fetch import FastFollowerFetch
from engine.api.fast_offset_commit import FastOffsetCommit
from engine.api.fast_produce import FastProduce
from engine.api.fetch import Fetch, FetchDeps, is_of_follower
from engine.api.fetch_session import FetchSessionCache
from engine.api.find_coordinator import FindCoordinator
from engine.api.groups import Groups
from engine.api.heartbeat import Heartbeat
from engine.api.in_turns import InTurns, Rows
from engine.api.incremental_alter_configs import IncrementalAlterConfigs
from engine.api.init_producer_id import InitProducerId
from engine.api.join_group import JoinGroup
from engine.api.leader_and_isr import LeaderAndIsr
from engine.api.leave_group import LeaveGroup
from engine.api.list_offsets import ListOffsets
from engine.api.local_fetch import AnswerLocalFetch
from engine.api.metadata import Metadata
from engine.api.offset_commit import OffsetCommit
from engine.api.offset_delete import OffsetDelete
from engine.api.offset_fetch import OffsetFetch
from engine.api.offset_for_leader_epoch import OffsetForLeaderEpoch
from engine.api.produce import Produce
from engine.api.sasl_requests import SaslRequests
from engine.api.stop_replica import StopReplica
from engine.api.sync_group import SyncGroup
from engine.api.to_controller import ToController
from engine.api.transaction_admin import TransactionAdminApis
from engine.api.transactions import Transactions, is_verification
from engine.api.txn_offset_commit import TxnOffsetCommit
from engine.api.update_features import UpdateFeatures
from engine.api.update_metadata import UpdateMetadata
from engine.api.user_credentials import UserScramCredentials
from engine.api.write_txn_markers import WriteTxnMarkers
from engine.broker.isr_proposals import SendToController
from engine.broker.live_tls import LiveTls
from engine.broker.loggers import PythonLoggers
from engine.broker.transactions import BrokerTransactions
from engine.broker.unserved import check_listener_change
from engine.config.broker_config import BrokerConfig
from engine.config.settings import BrokerSettings
from engine.controller.controller import Controller
from engine.groups.coordinator import GroupCoordinator
from engine.host.coroutine import PromiseCoroutine
from engine.host.ports import Clock, Entropy, Files
from engine.host.turns import LoopTurns
from engine.log.directory.log_manager import LogManager
from engine.replication.leadership import Leadership
from engine.replication.metadata_cache import MetadataCache
from engine.replication.replica_manager import ReplicaManager
from engine.security.password_encoder import PasswordEncoder
from engine.wire.fast_fetch_bytes import read_fetch_request
from engine.wire.produce_bytes import decode_produce_request
from engine.wire.structs import Message
from engine.znode.client import ZnodeClient

_log = logging.getLogger("kafka.server.KafkaApis")


class ApiDeps(NamedTuple):
    """All parts of a broker that API handlers need."""

    broker_id: int
    #: The settings at the start, for settings that do not change while the broker runs.
    config: BrokerConfig
    settings: Callable[[], BrokerSettings]
    broker_epoch: Callable[[], int]
    clock: Clock
    files: Files
    entropy: Entropy
    znodes: ZnodeClient
    metadata_cache: MetadataCache
    logs: LogManager
    replica_manager: ReplicaManager
    leadership: Leadership
    #: Reads the settings of topics.
    load_topics: Callable[[Iterable[str]], PromiseCoroutine[None]]
    waiting: TopicWaiting
    controller: Controller
    #: Sends requests to the current controller, on this or another broker.
    send_to_controller: SendToController
    loggers: PythonLoggers
    #: Starts the move of a replica to another log directory.
    move_to: MoveTo
    #: The group coordinator.
    groups: GroupCoordinator
    transactions: BrokerTransactions
    turns: LoopTurns
    #: The ACLs; None without an authorizer.
    acl_admin: AclAdmin | None
    #: Resolves a host name to an address, None if it cannot be resolved.
    address_of: Callable[[str], str | None]
    #: The operator's policies for topics and settings.
    policies: Policies
    #: The keys and certificates of listeners with TLS.
    tls: LiveTls
    #: Encrypts passwords in stored settings; None without a configured secret.
    passwords: PasswordEncoder | None
    #: The delegation tokens; None if they are not enabled.
    tokens: TokenAdmin | None
    #: Returns the security protocol of a listener.
    security_protocol_of: Callable[[str], str]
    fetch_sessions: FetchSessionCache


class Row(NamedTuple):
    """One API with its handler; see `DispatchTable.serve`."""

    name: str
    handler: Handler
    rule: Rule
    decode: RequestDecoder | None = None
    serve_fast: FastHandler | None = None
    is_advertised: bool = True
    local: Handler | None = None
    is_of_others: KindOfRequest | None = None


def _named_row(row: Message) -> str:
    """Return the name of a request's row: rows of one request with equal names are duplicates."""
    return str(row.name)


def _resource_row(row: Message) -> tuple[int, str]:
    """Return resource type and name of a request's row: rows with equal ones are duplicates."""
    return row.resource_type, row.resource_name


#: APIs whose large requests are split into groups of rows, with the key of a row. Each changed
#: setting is written and synced for each row.
_ROWS = {
    rows.api_name: rows
    for rows in (
        Rows("ListOffsets", "topics", "topics", _named_row),
        Rows("OffsetForLeaderEpoch", "topics", "topics", lambda row: str(row.topic)),
        Rows("DescribeProducers", "topics", "topics", _named_row),
        Rows("DeleteRecords", "topics", "topics", _named_row),
        Rows("DescribeConfigs", "resources", "results", _resource_row),
        Rows("AlterConfigs", "resources", "responses", _resource_row, at_once=1),
        Rows("IncrementalAlterConfigs", "resources", "responses", _resource_row, at_once=1),
    )
}


def serve_apis(table: DispatchTable, deps: ApiDeps) -> None:
    """Register the handlers of all APIs that a broker serves in the dispatch table."""
    table.serve("ApiVersions", ApiVersions(table).handle, Rule.ANYONE)
    for area in _AREAS:
        for row in area(deps):
            _register(table, _in_turns(row, deps.turns), is_inter_broker=False)
    for row in inter_broker_rows(deps):
        _register(table, row, is_inter_broker=True)


def _in_turns(row: Row, turns: LoopTurns) -> Row:
    """Return the API's row with a handler that works in turns, if it is in `_ROWS`."""
    rows = _ROWS.get(row.name)
    return row if rows is None else row._replace(handler=InTurns(row.handler, rows, turns).handle)


def _register(table: DispatchTable, row: Row, *, is_inter_broker: bool) -> None:
    """Register one API's handlers in the table: for clients, and for brokers of this process."""
    table.serve(
        row.name,
        row.handler,
        row.rule,
        is_inter_broker=is_inter_broker,
        decode=row.decode,
        is_advertised=row.is_advertised,
        serve_fast=row.serve_fast,
    )
    if row.is_of_others is not None:
        table.measure_apart(row.name, row.is_of_others)
    if row.local is not None:
        table.serve_local(row.name, row.local)


def authentication_rows(_deps: ApiDeps) -> list[Row]:
    """Return the API rows of SASL requests on connections that need no authentication."""
    sasl = SaslRequests()
    return [
        Row("SaslHandshake", sasl.handshake, Rule.ANYONE),
        Row("SaslAuthenticate", sasl.authenticate, Rule.ANYONE),
    ]


def data_rows(deps: ApiDeps) -> list[Row]:
    """Return the API rows of records and offsets: Produce, Fetch, ListOffsets and others."""
    replica_manager, metadata_cache = deps.replica_manager, deps.metadata_cache
    clock, rule = deps.clock, Rule.PER_RESOURCE
    sessions = deps.fetch_sessions
    fetch_deps = FetchDeps(replica_manager, metadata_cache, sessions, deps.config.fetch_max_bytes)
    followers = FastFollowerFetch(metadata_cache, sessions, clock)
    fetch = Fetch(fetch_deps, deps.turns, followers)
    local_fetch = AnswerLocalFetch(fetch_deps)
    verifier = deps.transactions.verifier
    produce = Produce(replica_manager, metadata_cache, deps.turns, verifier)
    return [
        Row(
            "Produce",
            produce.handle,
            rule,
            decode_produce_request,
            FastProduce(produce, metadata_cache, clock).answer,
        ),
        Row(
            "Fetch",
            fetch.handle,
            rule,
            read_fetch_request,
            followers.answer,
            local=local_fetch.handle,
            is_of_others=is_of_follower,
        ),
        Row("ListOffsets", ListOffsets(replica_manager, clock).handle, rule),
        Row("DeleteRecords", DeleteRecords(replica_manager, metadata_cache).handle, rule),
        Row("OffsetForLeaderEpoch", OffsetForLeaderEpoch(replica_manager).handle, rule),
        Row("DescribeProducers", DescribeProducers(replica_manager, metadata_cache).handle, rule),
    ]


def transaction_rows(deps: ApiDeps) -> list[Row]:
    """Return the API rows of producer ids and transactions."""
    broker_side, groups, rule = deps.transactions, deps.groups, Rule.PER_RESOURCE
    coordinator, verifier = broker_side.coordinator, broker_side.verifier
    transactions = Transactions(coordinator, deps.metadata_cache, groups.registry.partition_of)
    commit = TxnOffsetCommit(
        groups.commits,
        groups.registry.check_served,
        groups.registry.partition_of,
        deps.metadata_cache,
        deps.clock,
        verifier,
    )
    admin = TransactionAdminApis(coordinator.admin)
    init = InitProducerId(broker_side.producer_ids, coordinator.producers)
    return [
        Row("InitProducerId", init.handle, rule),
        Row(
            "AddPartitionsToTxn",
            transactions.add_partitions,
            rule,
            local=transactions.verify_local,
            is_of_others=is_verification,
        ),
        Row("AddOffsetsToTxn", transactions.add_offsets, rule),
        Row("EndTxn", transactions.end, rule),
        Row("TxnOffsetCommit", commit.handle, rule),
        Row("DescribeTransactions", admin.describe, rule),
        Row("ListTransactions", admin.list, rule),
    ]


def cluster_rows(deps: ApiDeps) -> list[Row]:
    """Return the API rows of the cluster, its brokers and their log directories."""
    log_dirs = DescribeLogDirs(deps.files, deps.logs, deps.replica_manager, deps.turns)
    moves = AlterReplicaLogDirs(deps.move_to, deps.turns)
    topic_partitions = DescribeTopicPartitions(deps.metadata_cache)
    return [
        # Without DESCRIBE on the cluster a client gets everything but the authorized operations.
        Row("DescribeCluster", DescribeCluster(deps.metadata_cache).handle, Rule.PER_RESOURCE),
        Row("DescribeLogDirs", log_dirs.handle, Rule.CLUSTER_DESCRIBE),
        Row("AlterReplicaLogDirs", moves.handle, Rule.CLUSTER_ALTER),
        # Brokers with ZooKeeper do not advertise it, and Java's tools print more if it is
        # advertised.
        Row(
            "DescribeTopicPartitions",
            topic_partitions.handle,
            Rule.PER_RESOURCE,
            is_advertised=False,
        ),
    ]


def topic_rows(deps: ApiDeps) -> list[Row]:
    """Return the API rows of topics: metadata, creation, partitions, deletion."""
    config, controller, metadata_cache = deps.config, deps.controller, deps.metadata_cache
    admin = TopicAdmin(config, _admin_ports(deps))
    creation = AutoCreation(config, admin)
    auto_create = creation.auto_create if config.auto_create_topics_enable else None
    delete = DeleteTopics(controller, admin, metadata_cache, is_enabled=config.delete_topic_enable)
    rule = Rule.PER_RESOURCE
    return [
        Row("Metadata", Metadata(metadata_cache, deps.turns, auto_create).handle, rule),
        Row("CreateTopics", CreateTopics(controller, admin, deps.turns).handle, rule),
        Row("CreatePartitions", CreatePartitions(controller, admin).handle, rule),
        Row("DeleteTopics", delete.handle, rule),
    ]


def group_rows(deps: ApiDeps) -> list[Row]:
    """Return the API rows of groups: members, offsets, administration, coordinators."""
    groups, metadata_cache, rule = deps.groups, deps.metadata_cache, Rule.PER_RESOURCE
    members, commits, admin = groups.memberships, groups.commits, Groups(groups.admin)
    creation = AutoCreation(deps.config, TopicAdmin(deps.config, _admin_ports(deps)))
    coordinators = FindCoordinator(
        metadata_cache,
        groups.registry.partition_of,
        deps.transactions.coordinator.registry.partition_of,
        creation.auto_create,
    )
    return [
        Row("FindCoordinator", coordinators.handle, rule),
        Row("JoinGroup", JoinGroup(members).handle, rule),
        Row("SyncGroup", SyncGroup(members).handle, rule),
        Row("Heartbeat", Heartbeat(members).handle, rule),
        Row("LeaveGroup", LeaveGroup(members).handle, rule),
        Row(
            "OffsetCommit",
            OffsetCommit(commits, metadata_cache, deps.clock).handle,
            rule,
            serve_fast=FastOffsetCommit(commits, metadata_cache, deps.clock).answer,
        ),
        Row("OffsetFetch", OffsetFetch(commits).handle, rule),
        Row("OffsetDelete", OffsetDelete(commits, metadata_cache).handle, rule),
        Row("ListGroups", admin.list_groups, rule),
        Row("DescribeGroups", admin.describe, rule),
        Row("DeleteGroups", admin.delete, rule),
        Row("ConsumerGroupHeartbeat", ConsumerProtocol().heartbeat, rule),
        Row("ConsumerGroupDescribe", ConsumerProtocol().describe, rule),
    ]


def _admin_ports(deps: ApiDeps) -> AdminPorts:
    """Return the parts of the broker that a TopicAdmin uses."""
    return AdminPorts(
        deps.znodes,
        deps.metadata_cache,
        deps.waiting,
        deps.entropy,
        deps.settings,
        deps.turns,
        deps.policies.create_topic,
    )


def leader_rows(deps: ApiDeps) -> list[Row]:
    """Return the API rows of elections, reassignments and features."""
    elect = ElectLeaders(deps.controller, deps.metadata_cache, deps.waiting, deps.clock)
    moves = ToController(deps.controller)
    return [
        Row("ElectLeaders", elect.handle, Rule.CLUSTER_ALTER),
        Row("AlterPartitionReassignments", moves.alter_reassignments, Rule.CLUSTER_ALTER),
        Row("ListPartitionReassignments", moves.list_reassignments, Rule.CLUSTER_DESCRIBE),
        Row("UpdateFeatures", UpdateFeatures(deps.controller).handle, Rule.CLUSTER_ALTER),
    ]


def config_rows(deps: ApiDeps) -> list[Row]:
    """Return the API rows that describe and alter settings."""
    admin, loggers, rule = ConfigAdmin(deps.znodes), deps.loggers, Rule.PER_RESOURCE
    alteration = ConfigAlteration(
        deps.broker_id,
        deps.metadata_cache,
        admin,
        deps.settings,
        partial(check_listener_change, check_tls=deps.tls.check),
        deps.policies.alter_config,
        deps.passwords,
        deps.tls.reload_replaced_files,
    )
    describe = DescribeConfigs(deps.broker_id, deps.metadata_cache, admin, deps.settings, loggers)
    return [
        Row("DescribeConfigs", describe.handle, rule),
        Row("AlterConfigs", AlterConfigs(alteration).handle, rule),
        Row("IncrementalAlterConfigs", IncrementalAlterConfigs(alteration, loggers).handle, rule),
    ]


def quota_rows(deps: ApiDeps) -> list[Row]:
    """Return the API rows of client quotas."""
    admin = QuotaAdmin(deps.znodes, ConfigAdmin(deps.znodes), deps.address_of)
    quotas = ClientQuotas(admin)
    return [
        Row("DescribeClientQuotas", quotas.describe, Rule.CLUSTER_DESCRIBE_CONFIGS),
        Row("AlterClientQuotas", quotas.alter, Rule.CLUSTER_ALTER_CONFIGS),
    ]


def credential_rows(deps: ApiDeps) -> list[Row]:
    """Return the API rows of users' SCRAM credentials."""
    admin = CredentialAdmin(deps.znodes, ConfigAdmin(deps.znodes))
    credentials = UserScramCredentials(admin, deps.controller)
    return [
        Row("DescribeUserScramCredentials", credentials.describe, Rule.CLUSTER_DESCRIBE),
        Row("AlterUserScramCredentials", credentials.alter, Rule.PER_RESOURCE),
    ]


def acl_rows(deps: ApiDeps) -> list[Row]:
    """Return the API rows of ACLs."""
    acls = Acls(deps.acl_admin)
    return [
        Row("DescribeAcls", acls.describe, Rule.CLUSTER_DESCRIBE),
        Row("CreateAcls", acls.create, Rule.CLUSTER_ALTER),
        Row("DeleteAcls", acls.delete, Rule.CLUSTER_ALTER),
    ]


def token_rows(deps: ApiDeps) -> list[Row]:
    """Return the API rows of delegation tokens."""
    tokens, rule = DelegationTokens(deps.tokens, deps.security_protocol_of), Rule.PER_RESOURCE
    return [
        Row("CreateDelegationToken", tokens.create, rule),
        Row("RenewDelegationToken", tokens.renew, rule),
        Row("ExpireDelegationToken", tokens.expire, rule),
        Row("DescribeDelegationToken", tokens.describe, rule),
    ]


def inter_broker_rows(deps: ApiDeps) -> list[Row]:
    """Return the API rows that only brokers call.

    The controller's requests are applied one at a time (`line`), and take turns of the loop
    separately from the work of other requests (`apart`).
    """
    leadership, epoch, rule = deps.leadership, deps.broker_epoch, Rule.CLUSTER_ACTION
    to_controller, line = ToController(deps.controller), deps.turns.line()
    orders = deps.turns.apart()
    markers = WriteTxnMarkers(
        deps.replica_manager, deps.groups.commits, deps.clock, deps.config.request_timeout_ms
    )
    roles = LeaderAndIsr(leadership, epoch, deps.load_topics, orders, line)
    stop = StopReplica(leadership, epoch, orders, line)
    update = UpdateMetadata(leadership, deps.metadata_cache, epoch, orders, line)
    return [
        Row("LeaderAndIsr", roles.handle, rule),
        Row("StopReplica", stop.handle, rule),
        Row("UpdateMetadata", update.handle, rule),
        Row(
            "WriteTxnMarkers",
            markers.handle,
            Rule.CLUSTER_ALTER_OR_ACTION,
            local=markers.handle_local,
        ),
        Row("ControlledShutdown", to_controller.controlled_shutdown, rule),
        Row("AlterPartition", to_controller.alter_partition, rule),
        Row("AllocateProducerIds", to_controller.allocate_producer_ids, rule),
    ]


_AREAS = (
    authentication_rows,
    data_rows,
    transaction_rows,
    cluster_rows,
    topic_rows,
    group_rows,
    leader_rows,
    config_rows,
    acl_rows,
    quota_rows,
    credential_rows,
    token_rows,
)
