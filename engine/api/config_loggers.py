"""A broker's loggers as resources: their levels, and which changes of them are allowed.

Levels are Kafka's: FATAL, ERROR, WARN, INFO, DEBUG, TRACE. Levels can be set and deleted, except
that the root logger's cannot be deleted. They are kept in memory, until the process ends (KIP-412).

Source: kafka.server.logger.RuntimeLoggerManager, kafka.utils.Log4jController of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from engine.admin.config_errors import InvalidConfiguration, InvalidRequest, UnexpectedChange
from engine.admin.config_operations import Operation
from engine.wire import messages

ROOT_LOGGER = "root"
LEVELS = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")


class LoggerLevels(Protocol):
    """The loggers of a broker."""

    def levels(self) -> Mapping[str, str]:
        """Return the effective level of each logger, by its name."""
        ...

    def set_level(self, name: str, level: str) -> None:
        """Set a logger's own level, which overrides that of its parent."""
        ...

    def unset_level(self, name: str) -> None:
        """Remove a logger's own level: its parent's becomes effective."""
        ...


def alter_loggers(
    loggers: LoggerLevels,
    configs: Iterable[messages.IncrementalAlterConfigsRequest.AlterableConfig],
    *,
    validate_only: bool,
) -> None:
    """Apply all changes of logger levels, or none if one of them is invalid.

    Raises InvalidConfiguration, InvalidRequest or UnexpectedChange. `validate_only` checks them and
    changes nothing.
    """
    changes = list(configs)
    levels = loggers.levels()
    for change in changes:
        _check_logger_change(change, levels)
    if validate_only:
        return
    for change in changes:
        if change.config_operation == Operation.SET:
            assert change.value in LEVELS
            loggers.set_level(change.name, change.value)
        else:
            loggers.unset_level(change.name)


def _check_logger_change(
    change: messages.IncrementalAlterConfigsRequest.AlterableConfig, levels: Mapping[str, str]
) -> None:
    """Raise if the change of a logger has an unknown operation, logger or level.

    Raises UnexpectedChange, InvalidRequest, InvalidConfiguration. `levels` has all loggers.
    """
    name, operation = change.name, change.config_operation
    if operation not in tuple(Operation):
        raise UnexpectedChange(f"an operation {operation}")
    if operation not in (Operation.SET, Operation.DELETE):
        raise InvalidRequest(f"loggers have no operation {Operation.name_of(operation)}")
    if name not in levels:
        raise InvalidConfiguration(f"Logger {name} does not exist!")
    if operation == Operation.SET and change.value not in LEVELS:
        raise InvalidConfiguration(
            f"Cannot set the log level of {name} to {change.value} as it is not a supported log "
            f"level. Valid log levels are {', '.join(LEVELS)}"
        )
    if operation == Operation.DELETE and name == ROOT_LOGGER:
        raise InvalidRequest(f"the {ROOT_LOGGER} logger must have a level")
