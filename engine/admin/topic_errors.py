"""The error of a topic that is not created, deleted or extended, with Kafka's code and message.

Tools print the message, so its text is part of the interface.
"""

from __future__ import annotations

from engine.errors import ApiError


class TopicRefused(ApiError):
    """One topic of a request was rejected; the others are processed."""
