"""A Spark session for kctl's own jobs, started quickly and on any Java from 17 on.

With a local master the JVM is started here and not by Spark's script: the script asks for a
module that small Java run times lack, and cannot be told to start quickly. Everything here that
knows Spark's inside has a fallback to the stock way.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from engine.analysis.java import find_java, java_version
from engine.analysis.spark_failures import failure_of
from engine.errors import EngineError
from engine.host.real import RealFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
_PORT = struct.Struct(">i")
# Where PySpark looks for a JVM that runs already.
_PORT_VARIABLE, _SECRET_VARIABLE = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"


class SparkMissing(EngineError):
    """PySpark or pyarrow is not installed."""

    hint = "pip install 'kctl-kafka[spark]'"

    def __init__(self, package: str) -> None:
        super().__init__(f"{package} is not installed, and this command runs on Spark")
        self.package = package


class SparkFailed(EngineError):
    """Spark did not start, or a job of it failed."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}")
        self.what = what
        self.reason = reason


def require_spark() -> None:
    """Raise SparkMissing unless the packages of the extra `spark` can be imported."""
    from importlib.util import find_spec

    for package in ("pyspark", "pyarrow"):
        if find_spec(package) is None:
            raise SparkMissing(package)


def start_session(master: str, *, parallelism: int | None = None) -> SparkSession:
    """Return a session on `master`; with a local one its JVM ends with this process.

    Raises SparkMissing, NoJava, SparkFailed.
    """
    require_spark()
    # Workers need the packages of this environment; `python3` on the path may be another.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = _settings(master, parallelism)
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("kctl").master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    is_connected = SparkContext._gateway is not None or _PORT_VARIABLE in os.environ
    starts_jvm = master.startswith("local") and not is_connected
    try:
        if starts_jvm:
            _start_jvm(settings)
        session = builder.getOrCreate()
    except EngineError:
        raise
    except Exception as error:
        raise SparkFailed("Spark did not start", failure_of(error)) from error
    finally:
        if starts_jvm:
            # A child would take this JVM for its own, and Spark refuses a second context in it.
            os.environ.pop(_PORT_VARIABLE, None)
            os.environ.pop(_SECRET_VARIABLE, None)
    session.sparkContext.setLogLevel("OFF")
    _calm()
    return session


def _calm() -> None:
    """Leave errors and Ctrl-C to us: PySpark would log the ones and ask the JVM at the other."""
    import logging
    import signal
    import threading

    logging.getLogger("SQLQueryContextLogger").disabled = True
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _settings(master: str, parallelism: int | None) -> dict[str, str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.python.worker.reuse": "true",
        "spark.sql.shuffle.partitions": str(parallelism or 8),
    }
    if master.startswith("local"):
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
        settings["spark.sql.warehouse.dir"] = f"{tempfile.gettempdir()}/kctl-spark-warehouse"
    return settings


def _start_jvm(settings: dict[str, str]) -> None:
    """Start the driver's JVM and leave its address where PySpark looks for it.

    1. SparkSubmit writes port and secret to a file that the environment names.
    2. It ends when its standard input does, so it never outlives this process.
    """
    java = find_java()
    with tempfile.TemporaryDirectory(prefix="kctl-spark-") as folder:
        address = f"{folder}/address"
        process = subprocess.Popen(
            _command(java, settings),
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
        _jvms.append(process)
        try:
            port, secret = _await_address(process, address)
        except BaseException:
            # It would wait for a client for ever, also once its standard input is closed.
            process.kill()
            raise
    os.environ[_PORT_VARIABLE] = str(port)
    os.environ[_SECRET_VARIABLE] = secret


# The pipe to a JVM's standard input stays open as long as this list has it.
_jvms: list[subprocess.Popen[bytes]] = []


def end_jvms() -> None:
    """End the JVMs of this process and wait for that; sessions on them are over.

    A process that ends needs no such call: its end closes the pipes.
    """
    while _jvms:
        process = _jvms.pop()
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(timeout=_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _command(java: str, settings: dict[str, str]) -> list[str]:
    from pyspark.find_spark_home import _find_spark_home

    opened = [f"--add-opens={name}=ALL-UNNAMED" for name in _OPENED]
    newer = ["--sun-misc-unsafe-memory-access=allow", "--enable-native-access=ALL-UNNAMED"]
    conf = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    return [
        java,
        "-cp",
        f"{_find_spark_home()}/jars/*",
        "-Xmx1g",
        "-XX:+IgnoreUnrecognizedVMOptions",
        # Most of the work is done in Python: the quick compiler starts sooner.
        "-XX:TieredStopAtLevel=1",
        "-Xshare:auto",
        *opened,
        *(newer if (java_version(java) or 0) >= 24 else []),
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
        "org.apache.spark.deploy.SparkSubmit",
        *conf,
        "pyspark-shell",
    ]


def _await_address(process: subprocess.Popen[bytes], path: str) -> tuple[int, str]:
    """Wait for the JVM's port and secret; raises SparkFailed."""
    deadline = time.perf_counter() + _START_TIMEOUT_S
    while not os.path.exists(path):
        try:
            code = process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            if time.perf_counter() > deadline:
                process.kill()
                raise SparkFailed("Spark's JVM did not start", "it did not answer") from None
            continue
        raise SparkFailed("Spark's JVM did not start", f"it ended with exit code {code}")
    # The file is renamed into place, so it is whole once it is there.
    raw = RealFiles().read_bytes(path)
    (port,) = _PORT.unpack_from(raw)
    (length,) = _PORT.unpack_from(raw, 4)
    return port, raw[8 : 8 + length].decode()
