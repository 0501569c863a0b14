"""Start the driver's JVM quickly, on any Java from 17 on.

Spark's own start script is not used: it requires a module that small Java runtimes lack, and
cannot be given the options for a quick start.
"""

from __future__ import annotations

import os
import shlex
import signal
import struct
import subprocess
import time
from collections.abc import Sequence

from engine.analysis.class_archive import ClassArchive, class_archive
from engine.analysis.java import find_java, read_java_version
from engine.errors import EngineError
from engine.host.real import RealFiles
from engine.host.temporary import temporary_folder

# What Spark's launcher opens to its libraries (its JavaModuleOptions), less the vector module.
_OPENED = (
    "java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.lang.reflect",
    "java.base/java.io", "java.base/java.net", "java.base/java.nio", "java.base/java.util",
    "java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref", "java.base/sun.nio.ch", "java.base/sun.nio.cs",
    "java.base/sun.security.action", "java.base/sun.util.calendar",
)  # fmt: skip
_START_TIMEOUT_S = 120
_END_TIMEOUT_S = 20
# Writing the class archive takes 3 s on an idle processor.
_ARCHIVE_TIMEOUT_S = 120
_PORT = struct.Struct(">i")
# The environment variable by which PySpark finds a running JVM.
PORT_VARIABLE, SECRET_VARIABLE = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_DRIVER_MEMORY = "1g"


class SparkFailed(EngineError):
    """Spark did not start, or one of its jobs failed."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}")
        self.what = what
        self.reason = reason


class _JvmCrashed(SparkFailed):
    """The JVM ended by SIGABRT, which Spark never causes."""


def start_jvm(settings: dict[str, str]) -> None:
    """Start the driver's JVM, and set the environment variables by which PySpark finds it.

    1. SparkSubmit writes port and secret to a file that an environment variable names.
    2. The JVM ends when its standard input is closed, at the latest with this process.

    Raises NoJava, NoTemporaryFolder, SparkFailed.
    """
    java, archive = find_java(), None
    if "spark.driver.extraClassPath" not in settings:
        archive = class_archive(java, _spark_home())
    try:
        _start(java, settings, archive)
    except _JvmCrashed:
        # A JVM checks only the archive's header: a truncated archive crashes each JVM that uses it.
        if archive is None or not archive.discard():
            raise
        _start(java, settings, None)


def _start(java: str, settings: dict[str, str], archive: ClassArchive | None) -> None:
    """Start a JVM that uses or writes a class archive (None: neither); raises SparkFailed."""
    with temporary_folder("kctl-spark-") as folder:
        address = f"{folder}/address"
        process = subprocess.Popen(
            _command(java, settings, archive.prepare_options() if archive else ()),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=None if os.environ.get("KCTL_DEBUG") else subprocess.DEVNULL,
            env={
                **os.environ,
                "_PYSPARK_DRIVER_CONN_INFO_PATH": address,
                "SPARK_CONNECT_MODE": "0",
            },
            start_new_session=True,
        )
        try:
            port, secret = _await_address(process, address)
        except BaseException:
            # It would wait for a client for ever, also once its standard input is closed.
            process.kill()
            process.communicate()
            raise
    _jvms.append((process, archive))
    os.environ[PORT_VARIABLE] = str(port)
    os.environ[SECRET_VARIABLE] = secret


# The JVMs of this process; each entry keeps the pipe to the JVM's standard input open.
_jvms: list[tuple[subprocess.Popen[bytes], ClassArchive | None]] = []


def keeps_classes() -> bool:
    """Return True if a JVM of this process will write a class archive when it ends.

    That takes a few seconds, which the user is notified of.
    """
    return any(archive is not None and archive.is_made for _, archive in _jvms)


def end_jvms(end_s: float | None = None) -> None:
    """End the JVMs of this process, and wait until they have ended; their sessions must be stopped.

    A JVM that takes longer than `end_s` is killed; None allows _END_TIMEOUT_S, or more while it
    writes an archive of classes. A process that exits without an interrupt needs no such call: its
    exit closes the pipes.
    """
    while _jvms:
        process, archive = _jvms.pop()
        assert process.stdin is not None
        process.stdin.close()
        makes_archive = archive is not None and archive.is_made
        longest_s = _ARCHIVE_TIMEOUT_S if makes_archive else _END_TIMEOUT_S
        code: int | None = None
        try:
            code = process.wait(timeout=longest_s if end_s is None else end_s)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if code is None:
                process.kill()
                process.wait()
            if archive is not None and makes_archive:
                archive.keep(code)


def _spark_home() -> str:
    """Return the folder of the installed Spark."""
    from pyspark.find_spark_home import _find_spark_home

    return str(_find_spark_home())


def _command(java: str, settings: dict[str, str], options: Sequence[str] = ()) -> list[str]:
    """Return the command line of Spark's driver JVM; `options` are those of the class archive."""
    opened = [f"--add-opens={name}=ALL-UNNAMED" for name in _OPENED]
    newer = ["--sun-misc-unsafe-memory-access=allow", "--enable-native-access=ALL-UNNAMED"]
    conf = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    more = settings.get("spark.driver.extraClassPath")
    return [
        java,
        "-cp",
        f"{_spark_home()}/jars/*" + (f":{more}" if more else ""),
        f"-Xmx{settings.get('spark.driver.memory', _DRIVER_MEMORY)}",
        "-XX:+IgnoreUnrecognizedVMOptions",
        # Most of the work is done in Python: the quick JIT compiler is enough.
        "-XX:TieredStopAtLevel=1",
        "-Xshare:auto",
        *options,
        *opened,
        *(newer if (read_java_version(java) or 0) >= 24 else []),
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
        # What SparkSubmit would give to a JVM that it starts itself.
        *shlex.split(settings.get("spark.driver.extraJavaOptions", "")),
        "org.apache.spark.deploy.SparkSubmit",
        *conf,
        "pyspark-shell",
    ]


def _await_address(process: subprocess.Popen[bytes], path: str) -> tuple[int, str]:
    """Wait until the JVM has written its port and secret, and return them; raises SparkFailed."""
    deadline = time.perf_counter() + _START_TIMEOUT_S
    while not os.path.exists(path):
        try:
            code = process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            if time.perf_counter() > deadline:
                process.kill()
                raise SparkFailed("Spark's JVM did not start", "it did not answer") from None
            continue
        failure = _JvmCrashed if code == -signal.SIGABRT else SparkFailed
        raise failure("Spark's JVM did not start", f"it ended with exit code {code}")
    # The file is renamed into place, so it is complete as soon as it exists.
    raw = RealFiles().read_bytes(path)
    (port,) = _PORT.unpack_from(raw)
    (length,) = _PORT.unpack_from(raw, 4)
    return port, raw[8 : 8 + length].decode()
