"""The input of commands over log directories: the directories, the partitions and the engine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.analysis.spark_target import SparkTarget
    from engine.analysis.splits import ReadingPlan, Split


LOGDIRS_HELP = (
    "Log directories, also of several brokers, single partition directories, tar archives of these"
    " (.tar, .tar.gz, .tgz), addresses of s3://, gs://, abfs://, hdfs://; in quotes with"
    " wildcards, or separated by commas as in log.dirs."
)


class WrongSelection(EngineError):
    """The value of `--topics` or `--partitions` is malformed."""

    exit_code = 2

    def __init__(self, option: str, text: str, rule: str) -> None:
        super().__init__(f"{option} {text}: {rule}")
        self.option = option
        self.text = text


class UnknownEngine(EngineError):
    """The value of `--engine` does not exist, or does not accept the options for Spark."""

    exit_code = 2

    def __init__(self, reason: str) -> None:
        super().__init__(f"--engine {reason}")
        self.reason = reason


def parse_target(
    master: str | None, remote: str | None, conf: list[str] | None
) -> SparkTarget | None:
    """Return where Spark runs by its options, None if none of them is given.

    `master` is a Spark master URL, `remote` a Spark Connect URL, `conf` are NAME=VALUE settings.

    Errors: WrongSparkTarget.
    """
    if master is None and remote is None and not conf:
        return None
    from engine.analysis.spark_target import parse_spark_target

    return parse_spark_target(master, remote, conf or ())


def checked_engine(name: str, target: SparkTarget | None) -> str:
    """Return the value of --engine: auto, local or spark.

    Errors: UnknownEngine, also for local with options for Spark, which give a `target`.
    """
    if name not in ("auto", "local", "spark"):
        raise UnknownEngine(f"{name}: expected auto, local or spark")
    if name == "local" and target is not None:
        raise UnknownEngine("local: --master, --remote and --conf are for Spark")
    return name


def choose_engine(name: str, target: SparkTarget | None, splits: list[Split]) -> str:
    """Return the engine that reads the splits of logs, `local` or `spark`.

    `name` is the value of --engine. For auto it is local below LOCAL_ENGINE_BYTES and without a
    target, and spark if the packages of the local engine are missing.
    """
    from engine.analysis.local_query import missing_package
    from engine.limits import LOCAL_ENGINE_BYTES

    if name != "auto":
        return name
    is_large = sum(split.end - split.start for split in splits) >= LOCAL_ENGINE_BYTES
    return "spark" if target is not None or is_large or missing_package() else "local"


class Inputs:
    """The log directories of a command and its selection of topics and partitions."""

    def __init__(
        self, logdirs: list[str], topics: str | None, partitions: frozenset[int] | None
    ) -> None:
        self._paths = logdirs
        self._topics = topics
        self._partitions = partitions

    def plan(self) -> ReadingPlan:
        """Return which log files are read, by the options; it lists the log directories.

        Errors: WrongSelection and those of `plan_reading`.
        """
        from engine.analysis.sources import find_log_dirs_in
        from engine.analysis.splits import Selection, plan_reading
        from engine.host.source_files import SourceFiles

        pattern = None
        if self._topics is not None:
            try:
                pattern = re.compile(self._topics)
            except re.error as error:
                raise WrongSelection("--topics", self._topics, str(error)) from error
        files = SourceFiles()
        paths = find_log_dirs_in(files, self._paths)
        return plan_reading(files, paths, Selection(pattern, self._partitions))


@contextmanager
def silence_py4j() -> Iterator[None]:
    """Suppress logging in this block: py4j logs a traceback for a call that Ctrl-C interrupts.

    With KCTL_DEBUG nothing is suppressed.
    """
    import logging

    root, before = logging.getLogger(), logging.getLogger().level
    if not os.environ.get("KCTL_DEBUG"):
        root.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        root.setLevel(before)


def parse_partition_numbers(text: str | None) -> frozenset[int] | None:
    """Return the numbers in --partitions, such as `0,2,5-9`; None for None.

    Errors: WrongSelection.
    """
    if text is None:
        return None
    from engine.analysis.partition_numbers import parse_numbers

    try:
        return parse_numbers(text)
    except ValueError as error:
        raise WrongSelection("--partitions", text, str(error)) from error


def column_names(text: str | None) -> list[str] | None:
    """Return the names in an option's comma-separated list, without empty ones; None for None."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
