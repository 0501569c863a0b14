"""One request to several brokers beside calls of others on the same connections."""

from __future__ import annotations

from typing import Any, cast

import pytest

from engine.client.broker_connections import BrokerConnections, CallResult
from engine.client.connection import Call, Response
from engine.client.errors import NotKafka
from engine.client.first_response import FirstResponse
from engine.client.settings import Address
from engine.wire import messages
from tests.client_session import FakeClock

_CALL = Call("ApiVersions", messages.ApiVersionsRequest())


class OneWait:
    """Connections on which everything arrives together."""

    def __init__(self, own: CallResult, others: list[tuple[object, CallResult]]) -> None:
        self._own = own
        self._others = others
        self._tokens: list[object] = []
        self.abandoned: set[object] = set()

    def submit(self, address: Address, call: Call, token: object, timeout_ms: int) -> None:
        self._tokens.append(token)

    def wait(self, timeout_ms: int) -> list[tuple[object, CallResult]]:
        return [(self._tokens.pop(), self._own), *self._others]

    def abandon(self, tokens: Any) -> None:
        self.abandoned.update(tokens)


def test_an_error_that_ends_the_question_loses_no_result_of_others() -> None:
    stored = Response("produce", 9, None)
    connections = OneWait(NotKafka("a response", "HTTP"), [("produce", stored)])
    question = FirstResponse(
        cast(BrokerConnections, connections), FakeClock(), _CALL, 30_000, 30_000
    )
    with pytest.raises(NotKafka):
        question.request_from([Address("127.0.0.1", 9001)])
    assert [("produce", stored)] == question.of_others
    assert set() == connections.abandoned
