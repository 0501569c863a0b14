"""Every API that is served, with what its handler needs: the one place where rooms meet.

What stands here is what ApiVersions tells; docs/compatibility.md says the same in words.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine.admin.admin_ports import AdminPorts
from engine.admin.auto_creation import AutoCreation
from engine.admin.config_admin import ConfigAdmin
from engine.admin.topic_admin import TopicAdmin
from engine.admin.topic_waiting import TopicWaiting
from engine.api.acls import Acls
from engine.api.alter_configs import AlterConfigs
from engine.api.config_alteration import ConfigAlteration
from engine.api.create_partitions import CreatePartitions
from engine.api.create_topics import CreateTopics
from engine.api.delete_records import DeleteRecords
from engine.api.delete_topics import DeleteTopics
from engine.api.describe_cluster import DescribeCluster
from engine.api.describe_configs import DescribeConfigs
from engine.api.describe_log_dirs import DescribeLogDirs
from engine.api.describe_producers import DescribeProducers
from engine.api.describe_topic_partitions import DescribeTopicPartitions
from engine.api.dispatch import DispatchTable, Rule
from engine.api.elect_leaders import ElectLeaders
from engine.api.fetch import Fetch, FetchDeps
from engine.api.fetch_session import FetchSessionCache
from engine.api.find_coordinator import FindCoordinator
from engine.api.incremental_alter_configs import IncrementalAlterConfigs
from engine.api.init_producer_id import InitProducerId
from engine.api.leader_and_isr import LeaderAndIsr
from engine.api.list_offsets import ListOffsets
from engine.api.metadata import Metadata
from engine.api.offset_for_leader_epoch import OffsetForLeaderEpoch
from engine.api.produce import Produce
from engine.api.stop_replica import StopReplica
from engine.api.to_controller import ToController
from engine.api.update_metadata import UpdateMetadata
from engine.api.usual_produce import UsualProduce
from engine.controller.controller import Controller
from engine.transactions.producer_ids import ProducerIdBlock, ProducerIds
from engine.wire.produce_bytes import decode_produce_request
from engine.wire.structs import message_class
from engine.wire.usual_fetch_bytes import read_fetch_request

if TYPE_CHECKING:
    from engine.broker.broker import Broker

_log = logging.getLogger("kafka.server.KafkaApis")


class ServedApis:
    """The handlers of one broker."""

    def __init__(self, broker: Broker, controller: Controller) -> None:
        self._broker = broker
        self._controller = controller

    def fill(self, table: DispatchTable) -> None:
        """Add all rows."""
        self._add_data(table)
        self._add_cluster(table)
        self._add_leaders(table)
        self._add_configs(table)
        self._add_acls(table)
        self._add_inter_broker(table)

    def _add_data(self, table: DispatchTable) -> None:
        broker = self._broker
        replicas, cache = broker.storage.replicas, broker.cache
        config = broker.live.config
        slots = config.max_incremental_fetch_session_cache_slots
        sessions = FetchSessionCache(cache, broker.host.entropy, slots=slots)
        fetch = Fetch(FetchDeps(replicas, cache, sessions, config.fetch_max_bytes))
        produce = Produce(replicas, cache)
        table.serve(
            "Produce",
            produce.handle,
            Rule.PER_RESOURCE,
            decode=decode_produce_request,
            serve_usual=UsualProduce(produce, cache, broker.host.clock).answer,
        )
        table.serve("Fetch", fetch.handle, Rule.PER_RESOURCE, decode=read_fetch_request)
        for name, handler in (
            ("ListOffsets", ListOffsets(replicas, broker.host.clock)),
            ("DeleteRecords", DeleteRecords(replicas, cache)),
            ("OffsetForLeaderEpoch", OffsetForLeaderEpoch(replicas)),
            ("DescribeProducers", DescribeProducers(replicas, cache)),
            ("InitProducerId", InitProducerId(self._producer_ids())),
        ):
            table.serve(name, handler.handle, Rule.PER_RESOURCE)

    def _producer_ids(self) -> ProducerIds:
        request_of = message_class("AllocateProducerIdsRequest")
        broker = self._broker

        def allocate(take: Callable[[ProducerIdBlock | None], None]) -> None:
            def answered(reply: Any) -> None:
                if reply.error_code:
                    _log.warning("no producer ids: error %d", reply.error_code)
                    take(None)
                else:
                    take(ProducerIdBlock(reply.producer_id_start, reply.producer_id_len))

            request = request_of(broker_id=broker.broker_id, broker_epoch=broker.epoch)
            self._controller.allocate_producer_ids(request, answered)

        return ProducerIds(allocate, broker.host.clock)

    def _add_cluster(self, table: DispatchTable) -> None:
        cache = self._broker.cache
        versions = self._broker.server.api_versions
        table.serve("ApiVersions", versions.handle, Rule.ANYONE)
        self._add_topics(table)
        storage, files = self._broker.storage, self._broker.host.files
        log_dirs = DescribeLogDirs(files, storage.logs, storage.replicas)
        # Who may not describe the cluster learns all but what may be done to it.
        table.serve("DescribeCluster", DescribeCluster(cache).handle, Rule.PER_RESOURCE)
        table.serve("DescribeLogDirs", log_dirs.handle, Rule.CLUSTER_DESCRIBE)
        table.serve("FindCoordinator", FindCoordinator().handle, Rule.PER_RESOURCE)
        # Brokers with znodes do not offer it, and Java's tools print more where it is offered.
        table.serve(
            "DescribeTopicPartitions",
            DescribeTopicPartitions(cache).handle,
            Rule.PER_RESOURCE,
            is_advertised=False,
        )

    def _add_topics(self, table: DispatchTable) -> None:
        broker, controller, cache = self._broker, self._controller, self._broker.cache
        config, host = broker.live.config, broker.host
        ports = AdminPorts(
            broker.znodes,
            cache,
            host.clock,
            host.timers,
            host.entropy,
            lambda: broker.live.settings,
        )
        admin = TopicAdmin(config, ports)
        cache.on_update(admin.on_metadata)
        creation = AutoCreation(config, admin)
        auto_create = creation.auto_create if config.auto_create_topics_enable else None
        can_delete = config.delete_topic_enable
        for name, handler in (
            ("Metadata", Metadata(cache, auto_create)),
            ("CreateTopics", CreateTopics(controller, admin)),
            ("CreatePartitions", CreatePartitions(controller, admin)),
            ("DeleteTopics", DeleteTopics(controller, admin, cache, is_enabled=can_delete)),
        ):
            table.serve(name, handler.handle, Rule.PER_RESOURCE)

    def _add_leaders(self, table: DispatchTable) -> None:
        cache, host = self._broker.cache, self._broker.host
        waiting = TopicWaiting(cache, host.clock, host.timers)
        cache.on_update(waiting.check)
        elect = ElectLeaders(self._controller, cache, waiting, host.clock)
        table.serve("ElectLeaders", elect.handle, Rule.CLUSTER_ALTER)
        moves = ToController(self._controller).list_reassignments
        table.serve("ListPartitionReassignments", moves, Rule.CLUSTER_DESCRIBE)

    def _add_configs(self, table: DispatchTable) -> None:
        broker = self._broker
        admin = ConfigAdmin(broker.znodes)
        loggers = broker.loggers

        def settings() -> Any:
            return broker.live.settings

        alteration = ConfigAlteration(broker.broker_id, broker.cache, admin, settings)
        describe = DescribeConfigs(broker.broker_id, broker.cache, admin, settings, loggers)
        for name, handler in (
            ("DescribeConfigs", describe),
            ("AlterConfigs", AlterConfigs(alteration)),
            ("IncrementalAlterConfigs", IncrementalAlterConfigs(alteration, loggers)),
        ):
            table.serve(name, handler.handle, Rule.PER_RESOURCE)

    def _add_acls(self, table: DispatchTable) -> None:
        acls = Acls()
        table.serve("DescribeAcls", acls.describe, Rule.CLUSTER_DESCRIBE)
        table.serve("CreateAcls", acls.create, Rule.CLUSTER_ALTER)
        table.serve("DeleteAcls", acls.delete, Rule.CLUSTER_ALTER)

    def _add_inter_broker(self, table: DispatchTable) -> None:
        broker = self._broker
        leadership = broker.storage.leadership

        def epoch() -> int:
            return broker.epoch

        to_controller = ToController(self._controller)
        lead = LeaderAndIsr(leadership, epoch, broker.dynamic.load_topics)
        stop = StopReplica(leadership, epoch)
        update = UpdateMetadata(leadership, broker.cache, epoch)
        for name, handle in (
            ("LeaderAndIsr", lead.handle),
            ("StopReplica", stop.handle),
            ("UpdateMetadata", update.handle),
            ("ControlledShutdown", to_controller.controlled_shutdown),
            ("AlterPartition", to_controller.alter_partition),
            ("AllocateProducerIds", to_controller.allocate_producer_ids),
        ):
            table.serve(name, handle, Rule.CLUSTER_ACTION, is_inter_broker=True)
