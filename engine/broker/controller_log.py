"""The controller's log lines in the broker's log."""

from __future__ import annotations

import logging
from collections.abc import Callable

from engine.errors import EngineError

_log = logging.getLogger("kafka.controller.KafkaController")
_changes_log = logging.getLogger("state.change.logger")


class ControllerLog:
    """Logs the controller's reports; implements `engine.controller.ports.ControllerReporter`."""

    def __init__(self, broker_id: int, on_elected: Callable[[], None]) -> None:
        """Create the controller's log.

        `on_elected` is called when this broker becomes the controller.
        """
        self._broker_id = broker_id
        self._on_elected = on_elected

    def on_controller_change(self, epoch: int | None) -> None:
        """Log that this broker became the controller in `epoch`, or resigned (None).

        After an election `on_elected` is called.
        """
        if epoch is None:
            _log.info("broker %d is no longer the controller", self._broker_id)
        else:
            _log.info("broker %d is the controller, epoch %d", self._broker_id, epoch)
            self._on_elected()

    def event_failed(self, event: str, error: EngineError) -> None:
        """Log that a controller event ended with an error."""
        _log.error("the event %s was given up: %s", event, error)

    def change_refused(self, subject: str, target: str, reason: str) -> None:
        """Log that a partition or replica does not change to the phase `target`."""
        _changes_log.error("%s was not moved to %s: %s", subject, target, reason)
