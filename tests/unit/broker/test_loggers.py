"""Levels of Python's loggers by Kafka's names."""

from __future__ import annotations

import logging

import pytest

from engine.api.config_loggers import LEVELS
from engine.broker.loggers import TRACE, PythonLoggers, level_name


def loggers() -> tuple[logging.Logger, PythonLoggers]:
    """Return a root of its own, apart from those of this process."""
    root = logging.RootLogger(logging.INFO)
    root.manager = logging.Manager(root)
    return root, PythonLoggers(root)


def test_a_logger_goes_by_the_one_above_it() -> None:
    root, found = loggers()
    root.manager.getLogger("kafka.server.KafkaServer")
    names = ("root", "kafka", "kafka.controller", "kafka.server.KafkaServer")
    assert dict.fromkeys(names, "INFO") == found.levels()
    found.set_level("root", "ERROR")
    assert dict.fromkeys(names, "ERROR") == found.levels()


def test_one_logger_is_above_all_of_a_broker() -> None:
    root, found = loggers()
    root.manager.getLogger("kafka.server.KafkaServer")
    found.set_level("kafka", "DEBUG")
    assert "DEBUG" == found.levels()["kafka.server.KafkaServer"]
    assert "INFO" == found.levels()["root"]


def test_a_level_of_its_own_is_set_and_unset() -> None:
    root, found = loggers()
    logger = root.manager.getLogger("kafka.a")
    found.set_level("kafka.a", "DEBUG")
    assert logging.DEBUG == logger.level
    assert logger.isEnabledFor(logging.DEBUG)
    found.unset_level("kafka.a")
    assert not logger.isEnabledFor(logging.DEBUG)


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_comes_back_as_it_was_set(level: str) -> None:
    root, found = loggers()
    root.manager.getLogger("kafka.a")
    found.set_level("kafka.a", level)
    assert level == found.levels()["kafka.a"]


@pytest.mark.parametrize(
    ("number", "name"), [(25, "INFO"), (TRACE, "TRACE"), (1, "TRACE"), (60, "FATAL")]
)
def test_other_levels_are_named_as_the_next_below(number: int, name: str) -> None:
    assert name == level_name(number)


def test_a_process_has_pythons_local_loggers() -> None:
    logging.getLogger("kafka.test.logger")
    assert "kafka.test.logger" in PythonLoggers().levels()


def test_loggers_of_libraries_and_places_in_the_tree_are_not_listed() -> None:
    root, found = loggers()
    root.manager.getLogger("asyncio")
    root.manager.getLogger("kafka.a.b")
    root.manager.getLogger("state.change.logger")
    above = {"root", "kafka", "kafka.controller"}
    assert above | {"kafka.a.b", "state.change.logger"} == set(found.levels())


def test_what_is_said_of_log_directories_has_kafkas_logger() -> None:
    import engine.broker.storage  # noqa: F401 - it asks for its loggers

    assert {"kafka.log.LogManager", "kafka.server.ReplicaManager"} <= set(PythonLoggers().levels())
