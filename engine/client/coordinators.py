"""Cache of the coordinators of groups and transactional ids, looked up by FindCoordinator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from engine.client.connection import RequestMessage, Response
from engine.client.settings import Address
from engine.errors import api_error
from engine.kafka_errors import NONE
from engine.wire import messages
from engine.wire.structs import Message

GROUP_KEY_TYPE: Final = 0


class AnyBrokerRequest(Protocol):
    """The signature of `KafkaClient.send` to any broker, retried while the code is retriable."""

    def __call__(
        self, api_name: str, message: RequestMessage, *, retriable_code: Callable[[Message], int]
    ) -> Response:
        """Send a request to any broker and return its response.

        Raises the errors of the request.
        """
        ...


class Coordinators:
    """The coordinators that one client has found, by key type and key."""

    def __init__(self, send: AnyBrokerRequest) -> None:
        self._send = send
        self._addresses: dict[tuple[int, str], Address] = {}

    def address(self, key: str, key_type: int) -> Address:
        """Return the coordinator's address for a group (key type 0) or a transactional id (1).

        It comes from the cache, else from FindCoordinator. Raises the errors of that request, and
        ApiError if its code is not retriable.
        """
        address = self._addresses.get((key_type, key))
        if address is None:
            address = self._addresses[key_type, key] = self._find(key, key_type)
        return address

    def forget(self, key: str, key_type: int) -> None:
        """Remove a coordinator from the cache: the next `address` sends FindCoordinator again.

        Called when the coordinator has moved, or does not respond.
        """
        self._addresses.pop((key_type, key), None)

    def _find(self, key: str, key_type: int) -> Address:
        """Return the coordinator's address by FindCoordinator to any broker.

        The request is retried after COORDINATOR_NOT_AVAILABLE. Raises ApiError for other codes.
        """
        response = self._send(
            "FindCoordinator",
            lambda version: _find_coordinator_request(version, key, key_type),
            retriable_code=lambda message: _coordinator_in(message).error_code,
        )
        coordinator = _coordinator_in(response.message)
        if coordinator.error_code != NONE:
            raise api_error(coordinator.error_code, coordinator.error_message)
        return Address(coordinator.host, coordinator.port)


def _find_coordinator_request(
    version: int, key: str, key_type: int
) -> messages.FindCoordinatorRequest:
    """Return FindCoordinator for one key; version 0 knows only groups."""
    if version >= 4:
        return messages.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    if version >= 1:
        return messages.FindCoordinatorRequest(key_type=key_type, key=key)
    return messages.FindCoordinatorRequest(key=key)


def _coordinator_in(
    message: messages.FindCoordinatorResponse,
) -> messages.FindCoordinatorResponse | messages.FindCoordinatorResponse.Coordinator:
    """Return the part of a FindCoordinator response that has error code, host and port.

    Before version 4 that is the response itself.
    """
    return message.coordinators[0] if message.coordinators else message
