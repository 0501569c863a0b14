"""How the driver's JVM is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.analysis import spark_jvm


def _java(folder: Path, says: str) -> str:
    """Return a program that names a version as Java does."""
    program = folder / "java"
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("says", "is_newer"),
    [
        ('openjdk version "25.0.1" 2025-10-21', True),
        ('openjdk version "24" 2025-03-18', True),
        ('openjdk version "17.0.12" 2024-07-16', False),
        ("no version", False),
    ],
)
def test_a_newer_java_is_allowed_what_spark_does(tmp_path: Path, says: str, is_newer: bool) -> None:
    command = spark_jvm._command(_java(tmp_path, says), {"spark.ui.enabled": "false"})
    assert is_newer is ("--enable-native-access=ALL-UNNAMED" in command)
    assert ["--conf", "spark.ui.enabled=false", "pyspark-shell"] == command[-3:]
