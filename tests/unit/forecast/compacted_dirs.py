"""Log directories that Kafka's cleaner was given, and what is done with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

from engine.broker.host import real_directory_lock
from engine.config.settings import BrokerSettings
from engine.config.topic_config import TopicConfig
from engine.forecast.compaction_run import run_compaction
from engine.forecast.compaction_trial import trial_files, try_compaction
from engine.forecast.dirtiness import CompactedLog
from engine.forecast.opened_directory import DirectoryHost
from engine.host.memory import ManualClock, SeededEntropy
from engine.host.real import RealFiles
from engine.log.cleaner.cleaning_facts import CleaningSettings
from engine.log.directory.log_dir import find_log_dir
from engine.log.log_config import LogConfig
from engine.log.topic_log_config import build_log_config
from tests.golden_cases import case_dir

FILES = RealFiles()
NOW_MS = 1_900_000_000_000


def golden_directory(tmp_path: Path) -> str:
    return str(copytree(case_dir("compact") / "before1", tmp_path / "logs"))


def config(**overrides: str) -> LogConfig:
    told = {"cleanup.policy": "compact", "segment.bytes": "8192", "index.interval.bytes": "512"}
    told |= {key.replace("_", "."): value for key, value in overrides.items()}
    return build_log_config(
        TopicConfig.of(told, BrokerSettings({})), producer_id_expiration_ms=86_400_000
    )


def cleaned(directory: str, *topics: str, map_bytes: int = 1 << 20) -> Iterator[CompactedLog]:
    clock, entropy = ManualClock(wall_ms=NOW_MS), SeededEntropy(1)
    host = DirectoryHost(FILES, clock, entropy, real_directory_lock())
    settings = CleaningSettings(map_bytes=map_bytes)
    return run_compaction(host, directory, lambda _: config(), topics.__contains__, settings)


def tried(
    directory: str, folder: Path, *topics: str, map_bytes: int = 1 << 20
) -> list[CompactedLog]:
    folder.mkdir()
    files = trial_files()
    machine = (ManualClock(wall_ms=NOW_MS), SeededEntropy(1), real_directory_lock())
    settings = CleaningSettings(map_bytes=map_bytes)
    log_dir = find_log_dir(files, directory)
    return list(
        try_compaction(
            files,
            machine,
            log_dir,
            str(folder),
            lambda _: config(),
            topics.__contains__,
            settings,
        )
    )
