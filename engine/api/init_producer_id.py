"""InitProducerId (22): the id and epoch of an idempotent or transactional producer.

| request | response |
|---|---|
| no transactional id | a new id with epoch 0, also for one that had an id before |
| an id without an epoch, or an epoch without an id | INVALID_REQUEST 42 |
| an empty transactional id | INVALID_REQUEST 42 |
| a transactional id | as its coordinator decides (`engine/transactions/producers.py`) |

Below version 4 PRODUCER_FENCED is INVALID_PRODUCER_EPOCH.

Source: KafkaApis.handleInitProducerIdRequest, TransactionCoordinator.handleInitProducerId; KIP-360.
"""

from __future__ import annotations

from engine.api.admission import (
    UNLOGGED_DENIAL,
    AclOperation,
    AclResource,
    Session,
)
from engine.api.exchange import Exchange
from engine.host.promise import Promise
from engine.kafka_errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_PRODUCER_EPOCH,
    INVALID_REQUEST,
    PRODUCER_FENCED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
from engine.transactions.producer_ids import ProducerIds, ProducerIdsNotReady
from engine.transactions.producers import InitResult, ProducerOfEpoch, Producers
from engine.wire import messages

_NO_PRODUCER = -1
_FIRST_WITH_FENCED = 4


class InitProducerId:
    """Answers InitProducerId."""

    def __init__(self, producer_ids: ProducerIds, producers: Producers) -> None:
        self._producer_ids = producer_ids
        self._producers = producers

    def handle(
        self, request: messages.InitProducerIdRequest, exchange: Exchange
    ) -> messages.InitProducerIdResponse | Promise[messages.InitProducerIdResponse]:
        """Return a new producer id, or promise the id and epoch of a transactional id.

        Without a transactional id an idempotent producer gets the next id of this broker's block.
        """
        code = _denial_code(request.transactional_id, exchange.session)
        if code:
            return self._refusal_response(code)
        has_id = request.producer_id != _NO_PRODUCER
        has_epoch = request.producer_epoch != _NO_PRODUCER
        if has_id != has_epoch or request.transactional_id == "":
            return self._refusal_response(INVALID_REQUEST)
        if request.transactional_id is not None:
            expected = ProducerOfEpoch(request.producer_id, request.producer_epoch)
            begun = self._producers.init_producer(
                request.transactional_id,
                request.transaction_timeout_ms,
                expected if has_id else None,
            )
            return begun.then(lambda result: _response(result, exchange.api_version))
        try:
            producer_id = self._producer_ids.generate()
        except ProducerIdsNotReady as error:
            return self._refusal_response(error.code)
        return messages.InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)

    def _refusal_response(self, code: int) -> messages.InitProducerIdResponse:
        """Return the response with an error code and no producer id."""
        return messages.InitProducerIdResponse(
            error_code=code, producer_id=_NO_PRODUCER, producer_epoch=-1
        )


def _response(result: InitResult, version: int) -> messages.InitProducerIdResponse:
    """Return the response; older versions get INVALID_PRODUCER_EPOCH for PRODUCER_FENCED."""
    code, producer_id, producer_epoch = result
    if code == PRODUCER_FENCED and version < _FIRST_WITH_FENCED:
        code = INVALID_PRODUCER_EPOCH
    return messages.InitProducerIdResponse(
        error_code=code, producer_id=producer_id, producer_epoch=producer_epoch
    )


def _denial_code(transactional_id: str | None, session: Session) -> int:
    """Return the error code if a client may not get a producer id, 0 if it may.

    Without a transactional id the right to write to any topic is enough.
    """
    if transactional_id is not None:
        kind = AclResource.TRANSACTIONAL_ID
        may = session.may(AclOperation.WRITE, kind, transactional_id)
        return 0 if may else TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if session.may_on_cluster(AclOperation.IDEMPOTENT_WRITE, UNLOGGED_DENIAL):
        return 0
    authorizer = session.admission.authorizer
    may = authorizer.may_to_some(session, AclOperation.WRITE, AclResource.TOPIC)
    return 0 if may else CLUSTER_AUTHORIZATION_FAILED
