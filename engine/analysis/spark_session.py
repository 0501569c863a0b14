"""A Spark session for kctl's own jobs: of this process, of a cluster, or of a Connect server.

With a local or a standalone master the JVM is started by `spark_jvm.py` and not by Spark's script;
with others Spark's own way is taken, which reads what they need. Everything here that knows Spark's
inside has a fallback to the stock way.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from engine.analysis.plan_text import FIELDS_MAX, FIELDS_SETTING
from engine.analysis.shipping import TASK_PACKAGES, ship
from engine.analysis.spark_failures import failure_of
from engine.analysis.spark_jvm import (
    PORT_VARIABLE,
    SECRET_VARIABLE,
    SparkFailed,
    end_jvms,
    keeps_classes,
    start_jvm,
)
from engine.analysis.spark_target import SparkTarget
from engine.analysis.spark_thread import on_spark_thread, start_on_thread
from engine.errors import EngineError
from engine.host.temporary import find_temporary_place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "SparkFailed",
    "SparkMissing",
    "end_jvms",
    "require_spark",
    "start_session",
    "stop_session_after",
]

_CONNECT_TIMEOUT_S = 10
#: How long a JVM may take to end after an interrupt; then it is killed, and leaves its own
#: temporary files. Of a busy machine it takes more than a second.
_INTERRUPTED_END_S = 2.0


class SparkMissing(EngineError):
    """PySpark, pyarrow or a package of Spark Connect is not installed."""

    def __init__(self, package: str, extra: str = "spark") -> None:
        super().__init__(f"{package} is not installed, and this command runs on Spark")
        self.package = package
        self.hint = f"pip install 'kctl-kafka[{extra}]'"


def require_spark() -> None:
    """Raise SparkMissing unless the packages of the extra `spark` can be imported."""
    for package in ("pyspark", "pyarrow"):
        if find_spec(package) is None:
            raise SparkMissing(package)


def start_session(target: SparkTarget, *, parallelism: int | None = None) -> SparkSession:
    """Return a Spark session on a target, started or shared with this process.

    The JVM of a session of this process ends with the process. `parallelism` is the number of
    shuffle partitions. Raises SparkMissing, NoJava, SparkFailed.
    """
    require_spark()
    settings = {**_settings(target, parallelism), **dict(target.settings)}
    with _end_jvms_after_interrupt():
        if target.remote is None:
            session = _start_own_session(target.master, settings)
        else:
            session = _connect_session(target, settings)
        _quiet_errors()
        if not target.is_local:
            ship(session, TASK_PACKAGES)
    return session


@contextmanager
def _end_jvms_after_interrupt() -> Iterator[None]:
    """End the JVMs quickly if the block is interrupted, so that none outlives the process."""
    try:
        yield
    except Exception:
        raise
    except BaseException:
        end_jvms(_INTERRUPTED_END_S)
        raise


@contextmanager
def stop_session_after(session: SparkSession, show_step: Callable[[str], None]) -> Iterator[None]:
    """Stop a session after its work; `show_step` gets the names of slow steps.

    The first session of a machine keeps its classes for the next, also after a failure: see
    `class_archive.py`. After an interrupt the JVM has two seconds to end; an interrupt while
    classes are kept ends only that step, because the work's result is still to be shown.
    """
    with _end_jvms_after_interrupt():
        try:
            yield
        except Exception:
            _keep_classes(show_step)
            raise
        on_spark_thread(session, session.stop)
    _keep_classes(show_step)


def _keep_classes(show_step: Callable[[str], None]) -> None:
    """End the JVMs where that writes the class archive; Ctrl-C skips the wait, not the result."""
    if keeps_classes():
        show_step("keeping Spark's classes for the next start, once")
        with suppress(KeyboardInterrupt):
            end_jvms()


def _start_own_session(master: str, settings: dict[str, str]) -> SparkSession:
    """Start Spark, or reuse the session of this process; raises SparkFailed with the reason."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    _name_python(master, settings)
    builder = SparkSession.builder.appName("kctl").master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    is_connected = SparkContext._gateway is not None or PORT_VARIABLE in os.environ
    starts_jvm = master.startswith(("local", "spark://")) and not is_connected
    try:
        if starts_jvm:
            start_jvm(settings)
        session = start_on_thread(builder.getOrCreate)
    except EngineError:
        raise
    except Exception as error:
        raise SparkFailed("Spark did not start", failure_of(error)) from error
    finally:
        if starts_jvm:
            # A child would take this JVM for its own, and Spark refuses a second context in it.
            os.environ.pop(PORT_VARIABLE, None)
            os.environ.pop(SECRET_VARIABLE, None)
    session.sparkContext.setLogLevel("OFF")
    _silence_accumulators(session)
    return session


def _silence_accumulators(session: SparkSession) -> None:
    """Have PySpark print no traceback where the JVM ends before this process."""
    if (server := getattr(session.sparkContext, "_accumulatorServer", None)) is not None:
        server.handle_error = lambda *_: None


def _name_python(master: str, settings: dict[str, str]) -> None:
    """Set the Python program of tasks in the environment variable that PySpark reads."""
    if named := settings.get("spark.pyspark.python"):
        os.environ["PYSPARK_PYTHON"] = named
    elif master.startswith("local"):
        # They need the packages of this environment; `python3` on the path may be another.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _connect_session(target: SparkTarget, settings: dict[str, str]) -> SparkSession:
    """Return a session of a Spark Connect server.

    Raises SparkFailed if it does not answer, or refuses a setting.
    """
    _require_connect()
    assert target.remote is not None
    from pyspark.sql import SparkSession

    try:
        _await_server(target.remote)
        session = SparkSession.builder.remote(target.remote).getOrCreate()
        for key, value in settings.items():
            session.conf.set(key, value)
    except EngineError:
        raise
    except Exception as error:
        raise SparkFailed(f"no session at {target.remote}", failure_of(error)) from error
    return session


def _require_connect() -> None:
    """Raise SparkMissing if a package that Spark Connect needs is not installed."""
    for package in ("grpc", "grpc_status", "google.rpc"):
        try:
            found = find_spec(package)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise SparkMissing(package, "connect")


def _await_server(url: str) -> None:
    """Raise SparkFailed unless a Connect server answers within _CONNECT_TIMEOUT_S.

    PySpark would try again for many minutes.
    """
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    with DefaultChannelBuilder(url).toChannel() as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_CONNECT_TIMEOUT_S)
        except grpc.FutureTimeoutError:
            reason = f"no server answered within {_CONNECT_TIMEOUT_S} s"
            raise SparkFailed(f"no session at {url}", reason) from None


def _quiet_errors() -> None:
    """Disable PySpark's error logs and its Ctrl-C handler: this process handles both."""
    import logging
    import signal
    import threading

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).disabled = True
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _settings(target: SparkTarget, parallelism: int | None) -> dict[str, str]:
    """Return the Spark settings of kctl's jobs; a remote session gets only those of queries."""
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    if target.remote is not None:
        return {**settings, FIELDS_SETTING: FIELDS_MAX}
    settings |= {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.worker.reuse": "true",
    }
    if target.is_local:
        settings["spark.sql.shuffle.partitions"] = str(parallelism or 8)
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
    settings["spark.sql.warehouse.dir"] = f"{find_temporary_place()}/kctl-spark-warehouse"
    return settings
