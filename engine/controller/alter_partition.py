"""AlterPartition: a leader requests a change of its partition's ISR.

For each partition the first row that applies decides:

| the request | response |
|---|---|
| has an unknown topic id | UNKNOWN_TOPIC_ID |
| has a partition that never had a leader | UNKNOWN_TOPIC_OR_PARTITION |
| has a newer leader or partition epoch | NOT_CONTROLLER: this controller's state is too old |
| has an older leader epoch | FENCED_LEADER_EPOCH |
| requests the present state | the present state |
| has an older partition epoch | INVALID_UPDATE_VERSION |
| is from a recovering leader and adds other replicas to the ISR | INVALID_REQUEST |
| would set a recovered leader back to recovering | INVALID_REQUEST |
| has a broker in ISR that is not alive | INELIGIBLE_REPLICA (before v2 OPERATION_NOT_ATTEMPTED) |
| has a broker in ISR that is not assigned | the same |
| any other | written; the leader epoch stays, the partition epoch rises by one |

Source: REPL-6, R13, ZN:isr-change, ISR-6, KIP-497, KIP-841;
KafkaController.tryProcessAlterPartition.
Differs: Kafka's controller with ZooKeeper accepts a broker that is not assigned. A request sent
before a reassignment was cancelled may reach a new controller that does not know the reassignment,
after the added replica was deleted.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import NamedTuple, TypeAlias

from engine.controller.context import ControllerContext, PartitionLeadership
from engine.controller.machines import Machines
from engine.controller.reassignment import Reassignment
from engine.controller.state_writer import StateResults, StateWriter
from engine.kafka_errors import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NOT_CONTROLLER,
    OPERATION_NOT_ATTEMPTED,
    STALE_BROKER_EPOCH,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.model import TopicPartition
from engine.wire import messages
from engine.wire.layout import NO_UUID
from engine.znode.values import PartitionStateNode

_TOPIC_IDS_SINCE = 2
_BROKER_EPOCHS_SINCE = 3


_RequestedTopic: TypeAlias = "messages.AlterPartitionRequest.TopicData"


class Proposal(NamedTuple):
    """The state that a leader requests for a partition; the ISR is in the order of the request."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    leader_recovery_state: int
    partition_epoch: int


def judge_proposal(
    proposal: Proposal,
    current: PartitionLeadership | None,
    assigned: Collection[int],
    context: ControllerContext,
    version: int,
) -> PartitionLeadership | int | None:
    """Decide on a leader's ISR proposal: return the state to write, or an error code.

    None: the stored state is as proposed already. `current` None: the partition is unknown.
    `assigned` are its replicas; `version` is that of the request, and determines some error codes.
    Source: ISR-10.
    """
    if current is None:
        return UNKNOWN_TOPIC_OR_PARTITION
    state = current.state
    rows = (
        (
            proposal.partition_epoch > current.partition_epoch
            or proposal.leader_epoch > state.leader_epoch,
            NOT_CONTROLLER,
        ),
        (proposal.leader_epoch < state.leader_epoch, FENCED_LEADER_EPOCH),
        (_is_repeated(proposal, state), None),
        (proposal.partition_epoch < current.partition_epoch, INVALID_UPDATE_VERSION),
        (proposal.leader_recovery_state != 0 and len(proposal.isr) > 1, INVALID_REQUEST),
        (
            proposal.leader_recovery_state != 0 and state.leader_recovery_state == 0,
            INVALID_REQUEST,
        ),
        (
            not all(context.is_live(member) and member in assigned for member in proposal.isr),
            INELIGIBLE_REPLICA if version >= _TOPIC_IDS_SINCE else OPERATION_NOT_ATTEMPTED,
        ),
    )
    for holds, verdict in rows:
        if holds:
            return verdict
    new = PartitionStateNode(
        proposal.leader,
        proposal.leader_epoch,
        proposal.isr,
        context.epoch,
        proposal.leader_recovery_state,
    )
    return PartitionLeadership(new, current.partition_epoch)


class AlterPartition:
    """Handles AlterPartition requests, each as one event of the controller. Source: ISR-2."""

    def __init__(self, machines: Machines, reassignment: Reassignment) -> None:
        """Create the handler of AlterPartition; only events of the active controller call it."""
        self._machines = machines
        self._reassignment = reassignment
        self._context = machines.context
        #: Writes partition states, and keeps the context equal to them.
        self._writer = StateWriter(machines.context, machines.parts.znodes)

    def refusal(self, code: int = NOT_CONTROLLER) -> messages.AlterPartitionResponse:
        """Return a response with an error for the whole request, by default NOT_CONTROLLER."""
        return messages.AlterPartitionResponse(error_code=code)

    def failure(self) -> messages.AlterPartitionResponse:
        """Return the response after a failure of the metadata store."""
        return self.refusal(UNKNOWN_SERVER_ERROR)

    async def handle(
        self, request: messages.AlterPartitionRequest, version: int
    ) -> messages.AlterPartitionResponse:
        """Write the ISRs that are granted, send them to the replicas, and return the response.

        Source: REPL-8.
        """
        broker = self._context.live_brokers.get(request.broker_id)
        if broker is None or broker.epoch != request.broker_epoch:
            return self.refusal(STALE_BROKER_EPOCH)
        unknown: list[_RequestedTopic] = []
        proposals = self._parse_proposals(request, version, unknown)
        codes: dict[TopicPartition, int] = {}
        decided: dict[TopicPartition, PartitionLeadership] = {}
        results: StateResults = {}
        for partition, proposal in proposals.items():
            current = self._context.leaderships.get(partition)
            assigned = self._context.assignment(partition).replicas
            verdict = judge_proposal(proposal, current, assigned, self._context, version)
            if isinstance(verdict, int):
                codes[partition] = verdict
            elif verdict is not None:
                decided[partition] = verdict
            elif current is not None:
                results[partition] = current
        outdated = await self._writer.write_states(decided, results)
        codes.update(dict.fromkeys(outdated, INVALID_UPDATE_VERSION))
        self._machines.send_metadata(self._context.live_ids(), list(proposals))
        self._check_reassignments(results)
        return self._build_response(codes, results, unknown, version)

    def _check_reassignments(self, results: StateResults) -> None:
        """Queue a check of the reassignments whose ISR has changed.

        All target replicas of these may be in sync now.
        Source: RSN-2.
        """
        changed = [
            partition
            for partition, result in results.items()
            if partition in self._context.reassigning and not isinstance(result, str)
        ]
        if changed:
            work = partial(self._reassignment.on_isr_changes, changed)
            self._machines.put("PartitionReassignmentIsrChange", work)

    def _parse_proposals(
        self, request: messages.AlterPartitionRequest, version: int, unknown: list[_RequestedTopic]
    ) -> dict[TopicPartition, Proposal]:
        """Return the proposals by partition; add topics with unknown ids to `unknown`."""
        proposals = {}
        for topic in request.topics:
            name: str | None = topic.topic_name
            if version >= _TOPIC_IDS_SINCE:
                name = self._context.topic_names.get(topic.topic_id)
            if name is None:
                unknown.append(topic)
                continue
            for partition in topic.partitions:
                isr = tuple(partition.new_isr)
                if version >= _BROKER_EPOCHS_SINCE:
                    isr = tuple(broker.broker_id for broker in partition.new_isr_with_epochs)
                proposals[TopicPartition(name, partition.partition_index)] = Proposal(
                    request.broker_id,
                    partition.leader_epoch,
                    isr,
                    partition.leader_recovery_state,
                    partition.partition_epoch,
                )
        return proposals

    def _build_response(
        self,
        codes: dict[TopicPartition, int],
        results: StateResults,
        unknown: list[_RequestedTopic],
        version: int,
    ) -> messages.AlterPartitionResponse:
        """Return the response: a state or an error code for each partition, unknown topics first.

        `codes` are the refused partitions. `results` are the written ones, and have a text for a
        failed write.
        """
        response = messages.AlterPartitionResponse
        topics: dict[str, messages.AlterPartitionResponse.TopicData] = {}

        def add(topic: str, row: messages.AlterPartitionResponse.PartitionData) -> None:
            """Add a partition's row to that of its topic."""
            if topic not in topics:
                topics[topic] = self._topic_row(topic, version)
            topics[topic].partitions.append(row)

        for (topic, index), code in codes.items():
            add(topic, response.PartitionData(partition_index=index, error_code=code))
        for (topic, index), result in results.items():
            if isinstance(result, str):
                code = UNKNOWN_SERVER_ERROR
                add(topic, response.PartitionData(partition_index=index, error_code=code))
                continue
            state = result.state
            row = response.PartitionData(
                partition_index=index,
                leader_id=state.leader,
                leader_epoch=state.leader_epoch,
                isr=list(state.isr),
                leader_recovery_state=state.leader_recovery_state,
                partition_epoch=result.partition_epoch,
            )
            add(topic, row)
        return response(topics=[*map(_unknown_topic_row, unknown), *topics.values()])

    def _topic_row(self, topic: str, version: int) -> messages.AlterPartitionResponse.TopicData:
        """Return an empty row for a topic, by id or by name as `version` requires."""
        row = messages.AlterPartitionResponse.TopicData
        if version >= _TOPIC_IDS_SINCE:
            return row(topic_id=self._context.topic_ids.get(topic, NO_UUID))
        return row(topic_name=topic)


def _unknown_topic_row(topic: _RequestedTopic) -> messages.AlterPartitionResponse.TopicData:
    """Return a row with UNKNOWN_TOPIC_ID for each requested partition of a topic."""
    response = messages.AlterPartitionResponse
    return response.TopicData(
        topic_id=topic.topic_id,
        partitions=[
            response.PartitionData(
                partition_index=partition.partition_index, error_code=UNKNOWN_TOPIC_ID
            )
            for partition in topic.partitions
        ],
    )


def _is_repeated(proposal: Proposal, state: PartitionStateNode) -> bool:
    """True if the stored state has the proposed values already, as after a repeated request."""
    return (
        proposal.leader == state.leader
        and proposal.isr == state.isr
        and proposal.leader_recovery_state == state.leader_recovery_state
    )
