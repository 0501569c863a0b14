"""DescribeTransactions (65), ListTransactions (66): the administration of transactions.

Ids that a client may not describe are not listed, and topics that it may not are left out.

Source: KafkaApis.handleDescribeTransactionsRequest, handleListTransactionsRequest of 3.9.1;
KIP-664.
"""

from __future__ import annotations

from engine.api.admission import AclOperation, AclResource, Session
from engine.api.exchange import Exchange
from engine.kafka_errors import TRANSACTIONAL_ID_AUTHORIZATION_FAILED
from engine.transactions.transaction_admin import (
    DescribedTransaction,
    TransactionAdmin,
    TransactionFilter,
)
from engine.wire import messages

_Described = messages.DescribeTransactionsResponse
_Listed = messages.ListTransactionsResponse


class TransactionAdminApis:
    """Answers DescribeTransactions and ListTransactions."""

    def __init__(self, admin: TransactionAdmin) -> None:
        self._admin = admin

    def describe(
        self, request: messages.DescribeTransactionsRequest, exchange: Exchange
    ) -> messages.DescribeTransactionsResponse:
        """Return the state of each transactional id's transaction, or its error code."""
        session = exchange.session
        states = []
        for transactional_id in request.transactional_ids:
            if _may_describe(session, transactional_id):
                described = self._admin.describe(transactional_id)
            else:
                described = DescribedTransaction(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            states.append(_transaction_row(transactional_id, described, session))
        return _Described(transaction_states=states)

    def list(
        self, request: messages.ListTransactionsRequest, exchange: Exchange
    ) -> messages.ListTransactionsResponse:
        """Return the transactions that this broker coordinates and that pass the request's filters.

        Those that the client may not describe are left out.
        """
        found = self._admin.list(
            TransactionFilter(
                request.state_filters,
                request.producer_id_filters,
                request.duration_filter,
            )
        )
        session = exchange.session
        return _Listed(
            error_code=found.error_code,
            unknown_state_filters=list(dict.fromkeys(found.unknown_states)),
            transaction_states=[
                _Listed.TransactionState(
                    transactional_id=row.transactional_id,
                    producer_id=row.producer_id,
                    transaction_state=row.state,
                )
                for row in found.transactions
                if _may_describe(session, row.transactional_id)
            ],
        )


def _may_describe(session: Session, transactional_id: str) -> bool:
    """Return True if ACLs allow the client to DESCRIBE a transactional id."""
    return session.may(AclOperation.DESCRIBE, AclResource.TRANSACTIONAL_ID, transactional_id)


def _transaction_row(
    transactional_id: str, described: DescribedTransaction, session: Session
) -> _Described.TransactionState:
    """Return the response row of one transaction, with the partitions visible to the client."""
    topics: dict[str, list[int]] = {}
    for partition in described.partitions:
        if session.may(AclOperation.DESCRIBE, AclResource.TOPIC, partition.topic):
            topics.setdefault(partition.topic, []).append(partition.partition)
    row = _Described.TransactionState(
        error_code=described.error_code, transactional_id=transactional_id
    )
    if described.error_code:
        return row
    row.transaction_state = described.state
    row.producer_id = described.producer_id
    row.producer_epoch = described.producer_epoch
    row.transaction_timeout_ms = described.timeout_ms
    row.transaction_start_time_ms = described.start_ms
    row.topics = [
        _Described.TopicData(topic=topic, partitions=partitions)
        for topic, partitions in topics.items()
    ]
    return row
