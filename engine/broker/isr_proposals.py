"""Send ISR proposals of leaders to the controller in AlterPartition requests.

```
propose ──> waiting, one for each partition ── one request in flight ──> controller
               ^                                                          │
               └── no response, or an error for all: retry after a pause ─┤
 `decided` for each partition, with an ISR or an error code <─────────────┘
```

1. Later proposals wait, and are sent together after the response.
2. A second proposal of a partition with a pending one gets OPERATION_NOT_ATTEMPTED: the
   partition proposes again later if it still has a reason.
3. A partition that is missing in the response stays pending, and is sent again.
4. Topic ids are those of the proposing replicas, not of the metadata cache at the time of
   sending: by then the topic may be deleted, or another topic have its name.

Source: REPL-6, ISR-6, KIP-497; Kafka's DefaultAlterPartitionManager.
Differs: a new proposal of a partition after an error waits for the pause.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from engine.host.ports import Clock, Timers
from engine.host.promise import Promise
from engine.kafka_errors import NONE, OPERATION_NOT_ATTEMPTED, kafka_error
from engine.limits import ISR_PROPOSAL_RETRY_MS
from engine.model import TopicPartition
from engine.replication.effects import ProposeIsr
from engine.replication.partition_types import IsrDecision
from engine.wire import messages
from engine.wire.layout import NO_UUID
from engine.wire.structs import Message, Struct

_log = logging.getLogger("kafka.server.DefaultAlterPartitionManager")

_TOPIC_IDS_SINCE = 2
_BROKER_EPOCHS_SINCE = 3
#: Broker epochs in the ISR are used only without ZooKeeper: with it Kafka's brokers send none.
_UNKNOWN_EPOCH = -1


class SendToController(Protocol):
    """Sends a request to the current controller."""

    def __call__(
        self, api_name: str, message: Callable[[int], Struct], *, highest: int | None = None
    ) -> Promise[Message]:
        """Send a request to the controller; promise the response.

        `message` builds it for the version that both sides know, up to `highest` (None: any).
        """
        ...


class IsrProposalPorts(NamedTuple):
    """The parts of a broker that proposals use; `decided` gets the controller's decisions."""

    epoch: Callable[[], int]
    send: SendToController
    decided: Callable[[ProposeIsr, IsrDecision], None]


class IsrProposals:
    """The ISR proposals of one broker."""

    def __init__(self, broker_id: int, ports: IsrProposalPorts, timers: Timers, clock: Clock):
        """Create the queue of ISR proposals to the controller, without any."""
        self._broker_id = broker_id
        self._ports = ports
        self._timers = timers
        self._clock = clock
        #: The pending proposal of each partition.
        self._waiting: dict[TopicPartition, ProposeIsr] = {}
        #: Whether a request is scheduled, in flight, or waits for a retry.
        self._is_busy = False
        self._is_stopped = False
        #: Cancels the timer of the pause; None without one.
        self._cancel: Callable[[], None] | None = None
        #: The last failure that was logged; the same reason is not logged again. None after a
        #: success.
        self._logged_reason: str | None = None

    @property
    def waiting_count(self) -> int:
        """Return the number of partitions with a pending proposal."""
        return len(self._waiting)

    def propose(self, proposal: ProposeIsr) -> None:
        """Queue an ISR proposal for the next AlterPartition; `decided` is called on a later turn.

        A second proposal for the same partition is refused with OPERATION_NOT_ATTEMPTED.
        """
        if self._is_stopped:
            return
        if proposal.topic_partition in self._waiting:
            refused = IsrDecision(OPERATION_NOT_ATTEMPTED)
            self._timers.call_soon(lambda: self._ports.decided(proposal, refused))
            return
        self._waiting[proposal.topic_partition] = proposal
        self._send_soon()

    def stop(self) -> None:
        """Drop all proposals; `decided` is not called any more."""
        self._is_stopped = True
        self._waiting.clear()
        if self._cancel is not None:
            self._cancel()

    def _send_soon(self) -> None:
        """Send all pending proposals in a later turn, unless one is scheduled or in flight."""
        if self._waiting and not self._is_busy:
            self._is_busy = True
            # Proposals made later in this turn are in the same request.
            self._timers.call_soon(self._send)

    def _send(self) -> None:
        """Send all pending proposals in one AlterPartition request.

        It names topics by id, or by name if the id of one is missing.
        """
        self._cancel = None
        proposals = tuple(self._waiting.values())
        if self._is_stopped or not proposals:
            self._is_busy = False
            return
        has_ids = all(proposal.topic_id is not None for proposal in proposals)
        epoch = self._ports.epoch()

        def message(version: int) -> messages.AlterPartitionRequest:
            """Build the request for the version that both sides know."""
            return self._request(proposals, epoch, version)

        highest = None if has_ids else _TOPIC_IDS_SINCE - 1
        response = self._ports.send("AlterPartition", message, highest=highest)
        response.watch(lambda: self._on_response(proposals, response))

    def _request(
        self, proposals: Iterable[ProposeIsr], epoch: int, version: int
    ) -> messages.AlterPartitionRequest:
        """Return the AlterPartition request of the proposals in `version`."""
        request = messages.AlterPartitionRequest
        topics: dict[str | bytes, messages.AlterPartitionRequest.TopicData] = {}
        for proposal in proposals:
            name, index = proposal.topic_partition
            if version >= _TOPIC_IDS_SINCE:
                topic_id = proposal.topic_id or NO_UUID
                topic = topics.setdefault(topic_id, request.TopicData(topic_id=topic_id))
            else:
                topic = topics.setdefault(name, request.TopicData(topic_name=name))
            partition = request.PartitionData(
                partition_index=index,
                leader_epoch=proposal.leader_epoch,
                partition_epoch=proposal.partition_epoch,
            )
            if version < _BROKER_EPOCHS_SINCE:
                partition.new_isr = list(proposal.isr)
            else:
                partition.new_isr_with_epochs = [
                    request.BrokerState(broker_id=broker_id, broker_epoch=_UNKNOWN_EPOCH)
                    for broker_id in proposal.isr
                ]
            topic.partitions.append(partition)
        return request(broker_id=self._broker_id, broker_epoch=epoch, topics=list(topics.values()))

    def _on_response(
        self,
        proposals: tuple[ProposeIsr, ...],
        promise: Promise[messages.AlterPartitionResponse],
    ) -> None:
        """Pass the controller's decisions to the partitions; retry after a failed request."""
        if self._is_stopped:
            return
        if promise.error is not None:
            self._retry_later(str(promise.error))
            return
        response = promise.result()
        if response.error_code != NONE:
            self._retry_later(kafka_error(response.error_code).name)
            return
        self._logged_reason = None
        names = {proposal.topic_id: proposal.topic_partition.topic for proposal in proposals}
        decisions = _parse_decisions(response, names)
        requested_again = False
        for proposal in proposals:
            decision = decisions.get(proposal.topic_partition)
            if decision is None:
                _log.warning("the controller's response leaves out %s", proposal.topic_partition)
                requested_again = True
                continue
            if decision.error_code != NONE:
                name = kafka_error(decision.error_code).name
                _log.info("%s: ISR %s refused: %s", proposal.topic_partition, proposal.isr, name)
            # Removed before the partition is notified: it may propose again at once.
            del self._waiting[proposal.topic_partition]
            self._ports.decided(proposal, decision)
            requested_again |= proposal.topic_partition in self._waiting
        if requested_again:
            self._pause()
        else:
            self._is_busy = False
            self._send_soon()

    def _retry_later(self, reason: str) -> None:
        """Log a new reason, and send the same proposals again after a pause."""
        if reason != self._logged_reason:
            self._logged_reason = reason
            _log.warning("in-sync sets could not be changed, trying again: %s", reason)
        self._pause()

    def _pause(self) -> None:
        """Send the pending proposals again after ISR_PROPOSAL_RETRY_MS."""
        due_ms = self._clock.monotonic_ms() + ISR_PROPOSAL_RETRY_MS
        self._cancel = self._timers.call_at(due_ms, self._send)


def _parse_decisions(
    response: messages.AlterPartitionResponse, names: Mapping[bytes | None, str]
) -> dict[TopicPartition, IsrDecision]:
    """Return the controller's decision on each partition; `names` has topic names by id."""
    return {
        TopicPartition(topic.topic_name or names.get(topic.topic_id, ""), row.partition_index): (
            IsrDecision(row.error_code, tuple(row.isr), row.leader_epoch, row.partition_epoch)
        )
        for topic in response.topics
        for row in topic.partitions
    }
