"""Reasons why a topic is not created, deleted or extended, with Kafka's codes and messages.

Tools print the message, so its text is part of the interface.
"""

from __future__ import annotations

from engine.errors import ApiError


class TopicRefused(ApiError):
    """One topic of a request was refused; the others go on."""
