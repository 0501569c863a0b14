"""The loggers of a broker, by Kafka's levels.

| Kafka | Python |
|---|---|
| FATAL | CRITICAL |
| ERROR, WARN, INFO, DEBUG | the same |
| TRACE | 5, below DEBUG |

Loggers have the names of Kafka's where they log the same (`kafka.server.KafkaServer`),
so that an operator's knowledge of them holds. The root is all of them, and those of Python's
libraries, which are not listed.

Source: kafka.utils.Log4jController.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from engine.api.config_loggers import ROOT_LOGGER

#: Below everything that Python's logging has a name for.
TRACE = 5

_OWN_PREFIXES = ("kafka.", "state.change.")
#: Kafka's logging configuration names these above those that exist; operators set them.
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
    """The loggers below one of Python's loggers, which is called root here.

    For a process that is a broker that is Python's root; several brokers in one process share
    their loggers.
    """

    def __init__(self, root: logging.Logger | None = None) -> None:
        self._root = root or logging.getLogger()
        # The levels of those that were given others here, as they were.
        self._before: dict[str, int] = {}

    def levels(self) -> Mapping[str, str]:
        """Return the level that counts for each logger, by its name."""
        levels = {
            name: level_name(self._logger(name).getEffectiveLevel())
            for name in (ROOT_LOGGER, *_ABOVE_OTHERS)
        }
        for name, logger in list(self._root.manager.loggerDict.items()):
            # Others are places in the tree that no code has requested as a logger.
            if isinstance(logger, logging.Logger) and name.startswith(_OWN_PREFIXES):
                levels[name] = level_name(logger.getEffectiveLevel())
        return levels

    def set_level(self, name: str, level: str) -> None:
        """Set a logger's level, which then does not follow its parent's."""
        self._set(name, _NUMBERS[level])

    def unset_level(self, name: str) -> None:
        """Unset a logger's level, so that it follows its parent's."""
        self._set(name, logging.NOTSET)

    def restore(self) -> None:
        """Restore the levels that loggers had before."""
        for name, level in self._before.items():
            self._logger(name).setLevel(level)
        self._before.clear()

    def _set(self, name: str, level: int) -> None:
        """Set a logger's level; keep its level before the first change for `restore`."""
        logger = self._logger(name)
        self._before.setdefault(name, logger.level)
        logger.setLevel(level)

    def _logger(self, name: str) -> logging.Logger:
        """Return a logger by its name; `root` is the one above all others."""
        return self._root if name == ROOT_LOGGER else self._root.manager.getLogger(name)


def level_name(number: int) -> str:
    """Return Kafka's name of the level at or next below a number."""
    return next((name for name, least in _NUMBERS.items() if number >= least), "TRACE")
