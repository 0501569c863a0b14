"""The transaction coordinator in a broker: connects it to leadership, channels and tasks.

Source: KafkaServer.startup, RequestHandlerHelper.onLeadershipChange,
TransactionCoordinator.startup; SCH-12.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from engine.api.transaction_verifier import TransactionVerifier
from engine.broker.add_partitions_to_txn import AddPartitionsToTxnRequests
from engine.broker.coordinator_topic import CoordinatorTopic
from engine.broker.host import BrokerHost
from engine.broker.isr_proposals import SendToController
from engine.broker.peers import Peers
from engine.broker.storage import Storage
from engine.broker.tasks import LoopTasks
from engine.broker.transaction_channels import TransactionChannels
from engine.broker.transaction_topic import TransactionTopic
from engine.config.broker_config import BrokerConfig
from engine.host.promise import Promise
from engine.host.turns import LoopTurns
from engine.model import TopicPartition
from engine.naming import TRANSACTION_STATE
from engine.replication.metadata_cache import MetadataCache
from engine.replication.partition import Partition
from engine.transactions.coordinator import TransactionCoordinator
from engine.transactions.ports import TransactionPorts, TransactionSettings
from engine.transactions.producer_ids import ProducerIdBlock, ProducerIds
from engine.wire import messages
from engine.znode.values import TopicAssignment

_log = logging.getLogger("kafka.coordinator.transaction.ProducerIdManager")


class BrokerTransactions(NamedTuple):
    """The transaction coordinator, producer ids, and verification of a broker."""

    coordinator: TransactionCoordinator
    producer_ids: ProducerIds
    verifier: TransactionVerifier
    channels: TransactionChannels

    def stop(self) -> None:
        """Stop the transaction coordinator, and close its channels to brokers."""
        self.coordinator.stop()
        self.channels.close()


class TransactionDeps(NamedTuple):
    """The other parts of a broker that its transactions use."""

    host: BrokerHost
    settings: Callable[[], BrokerConfig]
    metadata_cache: MetadataCache
    storage: Storage
    tasks: LoopTasks
    peers: Peers
    send_to_controller: SendToController
    #: Returns the broker id and the broker epoch.
    identity: Callable[[], tuple[int, int]]
    #: `__transaction_state` in the metadata store, None if it does not exist.
    stored: TopicAssignment | None = None


def open_transactions(deps: TransactionDeps) -> BrokerTransactions:
    """Create a broker's transaction parts: coordinator, producer ids, verifier and channels.

    They follow the broker's leadership of `__transaction_state`.
    """
    host, config, metadata_cache = deps.host, deps.settings(), deps.metadata_cache
    replica_manager = deps.storage.replica_manager
    channels = TransactionChannels(metadata_cache, deps.peers)
    producer_ids = ProducerIds(lambda: _request_producer_id_block(deps), host.clock)
    topic = CoordinatorTopic(
        TRANSACTION_STATE,
        replica_manager,
        metadata_cache,
        host.clock,
        made_with=config.transaction_state_log_num_partitions,
        stored=deps.stored,
    )
    coordinator = TransactionCoordinator(
        TransactionSettings(
            config.transaction_max_timeout_ms,
            config.transactional_id_expiration_ms,
            config.request_timeout_ms,
        ),
        TransactionPorts(
            host.clock,
            host.timers,
            TransactionTopic(topic, config),
            channels,
            producer_ids.generate,
        ),
        LoopTurns(host.timers, host.clock, host.ends_early),
    )
    verifier = TransactionVerifier(
        replica_manager.find,
        AddPartitionsToTxnRequests(coordinator.registry.partition_of, channels).verify,
        lambda: deps.settings().transaction_partition_verification_enable,
    )
    _follow_leadership(coordinator, deps.storage)
    _begin_tasks(coordinator, config, deps.tasks)
    return BrokerTransactions(coordinator, producer_ids, verifier, channels)


def _follow_leadership(coordinator: TransactionCoordinator, storage: Storage) -> None:
    """Let the coordinator load a partition's transactions when this broker becomes its leader.

    They are unloaded when it resigns, or when the replica is stopped here.
    """
    registry = coordinator.registry

    def took_role(partition: Partition) -> None:
        """Load or unload the transactions of a partition by this broker's new role."""
        if partition.topic_partition.topic != TRANSACTION_STATE:
            return
        index = partition.topic_partition.partition
        if partition.is_leader:
            registry.on_elected(index, partition.leader_epoch)
        else:
            registry.on_resigned(index)

    def stopped(key: TopicPartition) -> None:
        """Unload the transactions of a partition whose replica was stopped here."""
        if key.topic == TRANSACTION_STATE:
            registry.on_resigned(key.partition)

    storage.leadership.on_role(took_role, stopped)


def _begin_tasks(
    coordinator: TransactionCoordinator, config: BrokerConfig, tasks: LoopTasks
) -> None:
    """Start the tasks that abort timed-out transactions and expire transactional ids."""
    period_ms = config.transaction_abort_timed_out_transaction_cleanup_interval_ms
    tasks.every_in_steps(
        "transaction-abort", period_ms, coordinator.ends.abort_timed_out, first_after_ms=period_ms
    )
    period_ms = config.transaction_remove_expired_transaction_cleanup_interval_ms
    tasks.every_in_steps(
        "transactionalId-expiration",
        period_ms,
        coordinator.admin.expire_ids,
        first_after_ms=period_ms,
    )


def _request_producer_id_block(deps: TransactionDeps) -> Promise[ProducerIdBlock | None]:
    """Request a block of producer ids from the controller.

    Promises it, or None after an error code.
    """

    def request(_version: int) -> messages.AllocateProducerIdsRequest:
        """Build the request with this broker's present id and epoch."""
        broker_id, broker_epoch = deps.identity()
        return messages.AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=broker_epoch)

    def block(response: messages.AllocateProducerIdsResponse) -> ProducerIdBlock | None:
        """Return the allocated block, None if the response has an error."""
        if response.error_code:
            _log.warning("no producer ids: error %d", response.error_code)
            return None
        return ProducerIdBlock(response.producer_id_start, response.producer_id_len)

    return deps.send_to_controller("AllocateProducerIds", request).then(block)
