"""Policies as an operator writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.admin.policies import PolicyViolationError
from engine.errors import ConfigError


class ByName:
    """Decides by the name of a topic or resource, and keeps what it was asked for."""

    asked: list[Any] = []  # noqa: RUF012 - one list for all brokers of a test
    events: list[str] = []  # noqa: RUF012 - the same

    def configure(self, settings: Mapping[str, str]) -> None:
        self.events.append(f"configured by broker {settings['broker.id']}")

    def validate(self, request: Any) -> None:
        self.asked.append(request)
        named = getattr(request, "topic", None) or request.configs.get("retention.ms", "")
        if named.startswith(("bad", "13")):
            raise PolicyViolationError(f"no {named}")
        if named.startswith(("broken", "14")):
            raise RuntimeError("broken")
        if named.startswith(("wrong", "15")):
            raise ConfigError("x", named, "wrong words")

    def close(self) -> None:
        self.events.append("closed")


class NoPolicy:
    """A class without validate."""


class CannotBeMade:
    """A class that fails."""

    def __init__(self) -> None:
        raise RuntimeError("no licence")
