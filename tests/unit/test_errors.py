"""Errors as people see them."""

from __future__ import annotations

import pytest

from engine.errors import api_error
from engine.kafka_errors import CLUSTER_AUTHORIZATION_FAILED

_REQUEST = (
    "Request Request(processor=5, connectionId=127.0.0.1:9092-127.0.0.1:46662-82, "
    "session=org.apache.kafka.network.Session@434fd91, listenerName=ListenerName(SASL_PLAINTEXT), "
    "securityProtocol=SASL_PLAINTEXT, buffer=null, envelope=None)"
)


@pytest.mark.parametrize("end", ["is not authorized.", "needs DESCRIBE permission."])
def test_a_refused_request_is_not_shown_as_the_object_of_java_that_it_is(end: str) -> None:
    """3.9.1 and 4.3.0; tools in Kafka's place print it as it came."""
    error = api_error(CLUSTER_AUTHORIZATION_FAILED, f"{_REQUEST} {end}")
    assert f"CLUSTER_AUTHORIZATION_FAILED: the request {end}" == str(error)
    assert f"{_REQUEST} {end}" == error.detail


def test_other_words_of_a_broker_are_shown_as_they_are() -> None:
    for words in ("Request Request(", "Request of a (b) is not authorized."):
        error = api_error(CLUSTER_AUTHORIZATION_FAILED, words)
        assert f"CLUSTER_AUTHORIZATION_FAILED: {words}" == str(error)
