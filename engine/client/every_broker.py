"""Send one request to every broker, for instance if each coordinator has a part of a list."""

from __future__ import annotations

from engine.client.blocking import KafkaClient
from engine.client.connection import Call
from engine.errors import EngineError, api_error
from engine.kafka_errors import NONE
from engine.wire.structs import Message


def send_to_every_broker(
    client: KafkaClient, call: Call
) -> tuple[dict[int, Message], dict[int, EngineError]]:
    """Send `call` to every broker; return the responses by broker id, and the errors by broker id.

    A response with an error code counts as that error. Both dicts are in the order of the ids.
    """
    brokers = client.brokers_view().brokers
    calls = {broker_id: (broker.address, call) for broker_id, broker in brokers.items()}
    results = client.exchange(calls, client.clock.monotonic_ms() + client.timeout_ms)
    responses: dict[int, Message] = {}
    failures: dict[int, EngineError] = {}
    for broker_id, result in sorted(results.items()):
        if isinstance(result, EngineError):
            failures[broker_id] = result
        elif result.message.error_code != NONE:
            failures[broker_id] = api_error(result.message.error_code)
        else:
            responses[broker_id] = result.message
    return responses, failures
