"""The loggers of a broker, with Kafka's levels.

| Kafka | Python |
|---|---|
| FATAL | CRITICAL |
| ERROR, WARN, INFO, DEBUG | the same |
| TRACE | 5, below DEBUG |

Loggers with the same content as in Kafka have Kafka's names (`kafka.server.KafkaServer`). The root
logger also covers the loggers of Python's libraries, which are not listed.

Source: kafka.utils.Log4jController.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from engine.api.config_loggers import ROOT_LOGGER

#: Python's number for TRACE, below all levels of Python's logging.
TRACE = 5

_OWN_PREFIXES = ("kafka.", "state.change.")
#: Loggers of Kafka's logging configuration that are parents of existing loggers; operators set
#: them.
_ABOVE_OTHERS = ("kafka", "kafka.controller")
_NUMBERS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
}


class PythonLoggers:
    """Reads and sets the levels of the loggers below one Python logger, called root here.

    In a broker process that is Python's root logger; several brokers in one process share their
    loggers.
    """

    def __init__(self, root: logging.Logger | None = None) -> None:
        self._root = root or logging.getLogger()
        # The levels of changed loggers before the first change.
        self._before: dict[str, int] = {}

    def levels(self) -> Mapping[str, str]:
        """Return the effective level of each logger of the broker, by name, as Kafka's level."""
        levels = {
            name: level_name(self._logger(name).getEffectiveLevel())
            for name in (ROOT_LOGGER, *_ABOVE_OTHERS)
        }
        for name, logger in list(self._root.manager.loggerDict.items()):
            # Other entries are placeholders in the tree, which are not loggers.
            if isinstance(logger, logging.Logger) and name.startswith(_OWN_PREFIXES):
                levels[name] = level_name(logger.getEffectiveLevel())
        return levels

    def set_level(self, name: str, level: str) -> None:
        """Set a logger's level by Kafka's name."""
        self._set(name, _NUMBERS[level])

    def unset_level(self, name: str) -> None:
        """Remove a logger's level, so that it inherits its parent's."""
        self._set(name, logging.NOTSET)

    def restore(self) -> None:
        """Restore the levels that the loggers had before the broker changed them.

        Called at its stop.
        """
        for name, level in self._before.items():
            self._logger(name).setLevel(level)
        self._before.clear()

    def _set(self, name: str, level: int) -> None:
        """Set a logger's level; store its level before the first change for `restore`."""
        logger = self._logger(name)
        self._before.setdefault(name, logger.level)
        logger.setLevel(level)

    def _logger(self, name: str) -> logging.Logger:
        """Return a logger by name; `root` is the root logger."""
        return self._root if name == ROOT_LOGGER else self._root.manager.getLogger(name)


def level_name(number: int) -> str:
    """Return Kafka's name of a level of Python's logging.

    It is the name of the highest level that is not above `number`.
    """
    return next((name for name, least in _NUMBERS.items() if number >= least), "TRACE")
