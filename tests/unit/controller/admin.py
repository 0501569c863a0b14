"""The topic admin beside a cluster: its broker's metadata follows what the controller tells."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from engine.admin.admin_ports import AdminPorts
from engine.admin.auto_creation import AutoCreation
from engine.admin.topic_admin import TopicAdmin
from engine.admin.topic_waiting import TopicWaiting
from engine.api.admission import Session, allow_all
from engine.api.exchange import Exchange
from engine.broker.deadlines import Deadlines
from engine.config.broker_config import BrokerConfig
from engine.host.coroutine import drive
from engine.host.memory import SeededEntropy
from engine.host.promise import Promise
from engine.host.turns import LoopTurns
from engine.model import TopicPartition
from engine.replication.metadata_cache import BrokerNode, MetadataCache, PartitionMetadata
from engine.wire.codec import message_codec
from tests.unit.controller.cluster import Cluster

DELETED = -2


class AdminBench:
    """A cluster, the metadata of its first broker, and the admin of that broker.

    `policy` is asked before a topic is created. With `ends_early` a share of a turn is over at each
    look.
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        racks: dict[int, str] | None = None,
        answers_later: bool = False,
        ends_early: bool = False,
        policy: Any = None,
        **properties: str,
    ) -> None:
        self.cluster = Cluster(brokers, answers_later=answers_later, **properties)
        self.node = self.cluster.active
        self.cache = MetadataCache(self.node.broker_id, "c")
        self.racks = racks or {}
        self.config = BrokerConfig.parse(self.node.settings)
        self.deadlines = Deadlines(self.cluster.timers)
        self.waiting = TopicWaiting(self.cache, self.cluster.clock, self.deadlines.note)
        self.deadlines.add(self.waiting)
        self.turns = LoopTurns(self.cluster.timers, self.cluster.clock, lambda: ends_early)
        self.admin = TopicAdmin(
            self.config,
            AdminPorts(
                self.node.ports.znodes,
                self.cache,
                self.waiting,
                SeededEntropy(1),
                lambda: self.node.settings,
                self.turns,
                policy,
            ),
        )
        self.auto = AutoCreation(self.config, self.admin)
        self.is_listening = True
        self._listen()
        self._learn_brokers()

    def settle(self) -> None:
        """Run until nothing is left to do."""
        self.cluster.settle()

    def outcomes(
        self, call: Callable[..., Coroutine[Any, None, Any]], *topics: Any, **options: Any
    ) -> Any:
        """Call the admin and return what it answers once all has settled, None if not yet."""
        answer = drive(call(list(topics), **options))
        self.settle()
        return answer.result() if answer.is_kept else None

    def _learn_brokers(self) -> None:
        live = self.cluster.controller.context.live_brokers
        nodes = [
            BrokerNode(broker_id, each.node.endpoints, self.racks.get(broker_id))
            for broker_id, each in live.items()
        ]
        self.cache.update(1, nodes, {}, {})

    def _listen(self) -> None:
        channel = self.node.channel
        send = channel.send

        def send_and_learn(broker_id: int, name: str, request: Any) -> Promise[Any]:
            sent = send(broker_id, name, request)
            if name == "UpdateMetadataRequest" and broker_id == self.node.broker_id:
                self.cluster.timers.call_soon(lambda: self.learn(request))
            return sent

        channel.send = send_and_learn  # type: ignore[method-assign]

    def learn(self, request: Any) -> None:
        """Take in an UpdateMetadata request, as a broker does."""
        if not self.is_listening:
            return
        partitions: dict[TopicPartition, PartitionMetadata | None] = {}
        ids: dict[str, bytes] = {}
        for topic in request.topic_states:
            ids[topic.topic_name] = topic.topic_id
            for each in topic.partition_states:
                partition = TopicPartition(topic.topic_name, each.partition_index)
                if each.leader == DELETED:
                    partitions[partition] = None
                else:
                    partitions[partition] = PartitionMetadata(
                        each.leader,
                        each.leader_epoch,
                        tuple(each.isr),
                        each.zk_version,
                        tuple(each.replicas),
                    )
        self.cache.update(1, self.cache.brokers.values(), partitions, ids)
        self.waiting.check(ids)


def exchange(api_version: int) -> Exchange:
    """Return what a handler is told of a request."""
    return Exchange(Session("peer", allow_all()), 0, api_version, 1, "client", 0)


def reply_of(bench: AdminBench, answer: Any) -> Any:
    """Return a handler's reply once all has settled, None if it is not there yet."""
    if not isinstance(answer, Promise):
        return answer
    bench.settle()
    return answer.result() if answer.is_kept else None


def over_the_wire(message: Any, version: int) -> Any:
    """Return a message as its receiver decodes it."""
    codec = message_codec(message.message_name, version)
    return codec.decode(codec.encode(message))
