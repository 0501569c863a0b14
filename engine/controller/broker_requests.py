"""Handle ControlledShutdown and AllocateProducerIds requests of brokers to the controller.

Source: KafkaController.doControlledShutdown, ZkProducerIdManager;
ZN:controlled-shutdown, ZN:producer-ids.
"""

from __future__ import annotations

from engine.controller.elections import ElectionReason
from engine.controller.machines import Machines
from engine.controller.request_batch import RequestBatch
from engine.controller.states import PartitionPhase, Replica, ReplicaPhase
from engine.errors import EngineError
from engine.kafka_errors import (
    BROKER_ID_NOT_REGISTERED,
    BROKER_NOT_AVAILABLE,
    NOT_CONTROLLER,
    STALE_BROKER_EPOCH,
    STALE_CONTROLLER_EPOCH,
    UNKNOWN_SERVER_ERROR,
)
from engine.model import TopicPartition
from engine.wire import messages
from engine.znode.errors import BadVersion
from engine.znode.paths import PRODUCER_ID_BLOCK
from engine.znode.values import (
    ProducerIdBlockNode,
    decode_producer_id_block,
    encode_producer_id_block,
)

_BLOCK_IDS = 1000
_ID_MAX = (1 << 63) - 1
_UNKNOWN_EPOCH = -1


class ProducerIdsExhausted(EngineError):
    """All 2^63 producer ids are used."""

    def __init__(self, last_producer_id: int) -> None:
        super().__init__(f"no producer ids are left after {last_producer_id}")
        self.last_producer_id = last_producer_id


class ControlledShutdown:
    """Moves leaderships away from a broker before it stops. Source: ZN:controlled-shutdown."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self._context = machines.context

    def refusal(self) -> messages.ControlledShutdownResponse:
        """Return the response of a broker that is not the controller."""
        return messages.ControlledShutdownResponse(error_code=STALE_CONTROLLER_EPOCH)

    def failure(self) -> messages.ControlledShutdownResponse:
        """Return the response after a failure of the metadata store."""
        return messages.ControlledShutdownResponse(error_code=UNKNOWN_SERVER_ERROR)

    async def handle(
        self, request: messages.ControlledShutdownRequest
    ) -> messages.ControlledShutdownResponse:
        """Elect other leaders for the partitions that a broker leads, and remove it from the ISRs.

        The response has the partitions that the broker still leads, because no other replica is in
        sync: the broker asks again.
        """
        context = self._context
        broker = context.live_brokers.get(request.broker_id)
        if broker is None:
            # Kafka checks an epoch, where one is given, before it checks the broker.
            has_broker_epoch = request.broker_epoch != _UNKNOWN_EPOCH
            code = UNKNOWN_SERVER_ERROR if has_broker_epoch else BROKER_NOT_AVAILABLE
            return messages.ControlledShutdownResponse(error_code=code)
        if request.broker_epoch != _UNKNOWN_EPOCH and request.broker_epoch < broker.epoch:
            return messages.ControlledShutdownResponse(error_code=STALE_BROKER_EPOCH)
        context.shutting_down.add(request.broker_id)
        led, followed = self._shared_partitions(request.broker_id)
        machines = self._machines
        await machines.partitions.change_phase(
            led, PartitionPhase.ONLINE, ElectionReason.CONTROLLED_SHUTDOWN
        )
        batch = RequestBatch(machines.parts.sender)
        for replica in followed:
            batch.add_stop_replica(replica.broker_id, replica.partition, delete=False)
        batch.send()
        await machines.replicas.change_phase(followed, ReplicaPhase.OFFLINE)
        row = messages.ControlledShutdownResponse.RemainingPartition
        return messages.ControlledShutdownResponse(
            remaining_partitions=[
                row(topic_name=partition.topic, partition_index=partition.partition)
                for partition in context.partitions_led_by(request.broker_id)
            ]
        )

    def _shared_partitions(self, broker_id: int) -> tuple[list[TopicPartition], list[Replica]]:
        """Return the partitions that a broker leads, and its replicas that follow.

        Partitions with a single replica and topics to delete are left out: no other broker has
        them.
        """
        context = self._context
        led, followed = [], []
        for replica in context.replicas_on((broker_id,)):
            partition = replica.partition
            leadership = context.leaderships.get(partition)
            if (
                leadership is None
                or partition.topic in context.to_delete
                or len(context.assignment(partition).replicas) == 1
            ):
                continue
            if leadership.state.leader == broker_id:
                led.append(partition)
            else:
                followed.append(replica)
        return led, followed


class AllocateProducerIds:
    """Allocates blocks of 1000 producer ids, each block once. Source: REPL-12, ZN:producer-ids."""

    def __init__(self, machines: Machines) -> None:
        self._context = machines.context
        self._client = machines.parts.znodes.client

    def refusal(self) -> messages.AllocateProducerIdsResponse:
        """Return the response of a broker that is not the controller."""
        return messages.AllocateProducerIdsResponse(error_code=NOT_CONTROLLER)

    def failure(self) -> messages.AllocateProducerIdsResponse:
        """Return the response after a failure of the metadata store."""
        return messages.AllocateProducerIdsResponse(error_code=UNKNOWN_SERVER_ERROR)

    async def handle(
        self, request: messages.AllocateProducerIdsRequest
    ) -> messages.AllocateProducerIdsResponse:
        """Reserve the next block of producer ids for a broker; return it in the response.

        An unknown broker, or one with another epoch, gets an error code.
        """
        broker = self._context.live_brokers.get(request.broker_id)
        if broker is None:
            return messages.AllocateProducerIdsResponse(error_code=BROKER_ID_NOT_REGISTERED)
        if broker.epoch != request.broker_epoch:
            return messages.AllocateProducerIdsResponse(error_code=STALE_BROKER_EPOCH)
        block = await self._next_block(request.broker_id)
        return messages.AllocateProducerIdsResponse(
            producer_id_start=block.first_producer_id, producer_id_len=_BLOCK_IDS
        )

    async def _next_block(self, broker_id: int) -> ProducerIdBlockNode:
        """Reserve the next 1000 producer ids; retry after a concurrent write of the node.

        Raises ProducerIdsExhausted.
        """
        # Brokers before 3.0 write the node themselves: the first writer gets the block.
        while True:
            data, stat = await self._client.get(PRODUCER_ID_BLOCK)
            last = decode_producer_id_block(data, PRODUCER_ID_BLOCK)
            first = 0 if last is None else last.last_producer_id + 1
            if first > _ID_MAX - _BLOCK_IDS:
                raise ProducerIdsExhausted(first - 1)
            block = ProducerIdBlockNode(broker_id, first, first + _BLOCK_IDS - 1)
            try:
                await self._client.set(
                    PRODUCER_ID_BLOCK, encode_producer_id_block(block), stat.version
                )
            except BadVersion:
                continue
            return block
