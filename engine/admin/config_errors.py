"""Errors when settings are read or changed.

Source: ConfigAdminManager, ZkAdminManager of 3.9.1.
"""

from __future__ import annotations

from engine.errors import ApiError
from engine.kafka_errors import (
    INVALID_CONFIG,
    INVALID_REQUEST,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
)


class InvalidRequest(ApiError):
    """A request that breaks a rule of its API."""

    def __init__(self, reason: str) -> None:
        super().__init__(INVALID_REQUEST, reason)


class InvalidConfiguration(ApiError):
    """A setting that is invalid for its resource."""

    def __init__(self, reason: str) -> None:
        super().__init__(INVALID_CONFIG, reason)


class UnexpectedChange(ApiError):
    """A change for which Kafka fails with UNKNOWN_SERVER_ERROR and no message."""

    def __init__(self, reason: str) -> None:
        super().__init__(UNKNOWN_SERVER_ERROR, reason)


class PolicyFailed(ApiError):
    """A policy of the operator failed with an unexpected exception."""

    def __init__(self, reason: str) -> None:
        super().__init__(UNKNOWN_SERVER_ERROR, reason)


class UnknownTopic(ApiError):
    """The topic does not exist."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            UNKNOWN_TOPIC_OR_PARTITION,
            f"The topic '{topic}' does not exist.",
        )
        self.topic = topic
