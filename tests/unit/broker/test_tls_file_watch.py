"""Replaced files of keys and certificates are used without a request, if they are fine."""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.broker import live_tls
from engine.broker.dynamic_config import LiveConfig
from engine.broker.live_tls import LiveTls
from engine.broker.tasks import LoopTasks
from engine.broker.tls_file_watch import TlsFileWatch
from engine.config.settings import BrokerSettings
from engine.errors import ConfigError, EngineError
from engine.host import tls_listener
from engine.host.event_loop import EventLoop
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers, MemoryWorkers
from engine.host.ports import Connection
from engine.host.real import RealClock
from engine.host.real_network import RealNetwork
from engine.host.tls_listener import TlsListenerSettings, create_client_layer
from engine.host.tls_stores import BadTlsFile, read_file_state
from engine.limits import TLS_FILES_CHECK_MS
from tests.unit.broker.memory_broker import MemoryBroker
from tests.unit.broker.test_live_tls import LOCATION, A, B, alter, hosts, pems, stage, stores
from tests.unit.host.listening import Told

__all__ = ["stage", "stores"]

Lines = Callable[[], list[tuple[str, str]]]


def replace(stores: Path, content: bytes) -> None:
    """Put another file in the place of the one in use, whole, as `mv` does."""
    (stores / "next.pem").write_bytes(content)
    os.replace(stores / "next.pem", stores / "live.pem")


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """Return a function that returns the new lines about TLS, with their levels."""
    caplog.set_level(logging.INFO, logger="kafka.network.SocketServer")

    def take() -> list[tuple[str, str]]:
        found = [
            (one.levelname, one.getMessage())
            for one in caplog.records
            if one.name == "kafka.network.SocketServer"
        ]
        caplog.clear()
        return found

    return take


def test_a_replaced_file_is_used_within_a_period_and_not_loaded_again(
    stage: MemoryBroker, stores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace(stores, pems()["b"])
    stage.pass_time(TLS_FILES_CHECK_MS - 1)
    assert hosts(stage) == A
    stage.pass_time(1)
    assert hosts(stage) == B

    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(live_tls, "listener_layer", fail)
    for _ in range(3):
        stage.pass_time(TLS_FILES_CHECK_MS)


def test_a_file_written_in_its_place_is_used(stage: MemoryBroker, stores: Path) -> None:
    """Also one of the same size and age of a second, as of `cp -p`: its time counts exactly."""
    live = stores / "live.pem"
    before = os.stat(live)
    live.write_bytes(pems()["b"])
    os.utime(live, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    stage.pass_time(TLS_FILES_CHECK_MS)
    assert hosts(stage) == B


def test_a_bad_file_is_logged_once_and_tried_again_when_it_changes(
    stage: MemoryBroker, stores: Path, lines: Lines
) -> None:
    whole = pems()["b"]
    for half in (whole[:100], whole[:-40]):
        replace(stores, half)
        lines()
        for _ in range(3):
            stage.pass_time(TLS_FILES_CHECK_MS)
        ((level, text),) = lines()
        assert "ERROR" == level
        assert "Listener SSL keeps the keys and certificates that it has" in text
        assert str(stores / "live.pem") in text
        assert "no request is needed" in text
        assert hosts(stage) == A
    replace(stores, whole)
    stage.pass_time(TLS_FILES_CHECK_MS)
    assert hosts(stage) == B
    assert [("INFO", "Listener SSL goes by the certificate of CN=localhost")] == lines()


def test_a_file_that_is_gone_for_a_while_is_logged_once(
    stage: MemoryBroker, stores: Path, lines: Lines
) -> None:
    content = (stores / "live.pem").read_bytes()
    (stores / "live.pem").unlink()
    for _ in range(3):
        stage.pass_time(TLS_FILES_CHECK_MS)
    ((level, text),) = lines()
    assert ("ERROR", True) == (level, "No such file" in text)
    replace(stores, content)
    before = stage.broker.tls._loaded["SSL"].layer
    stage.pass_time(TLS_FILES_CHECK_MS)
    assert [("INFO", "The files of listener SSL are those that it goes by again")] == lines()
    assert before is stage.broker.tls._loaded["SSL"].layer


def test_a_file_that_cannot_be_read_is_logged_once_and_used_once_it_can(
    stage: MemoryBroker, stores: Path, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for want of descriptors, or of permission: its time, size and inode stay as they are."""

    def fail(path: str, *_: object) -> bytes:
        raise BadTlsFile(path, "cannot be read") from OSError(errno.EMFILE, "Too many open files")

    replace(stores, pems()["b"])
    with monkeypatch.context() as failing:
        failing.setattr(live_tls, "read_store_file", fail)
        failing.setattr(tls_listener, "read_store_file", fail)
        for _ in range(3):
            stage.pass_time(TLS_FILES_CHECK_MS)
        ((level, text),) = lines()
        assert ("ERROR", True) == (level, "cannot be read" in text)
        assert hosts(stage) == A
    stage.pass_time(TLS_FILES_CHECK_MS)
    assert hosts(stage) == B


def test_a_key_that_cannot_be_handed_to_openssl_is_loaded_later(
    stage: MemoryBroker, stores: Path, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    replace(stores, pems()["b"])
    with monkeypatch.context() as failing:
        failing.setattr(os, "memfd_create", fail, raising=False)
        stage.pass_time(TLS_FILES_CHECK_MS)
        ((level, text),) = lines()
        assert ("ERROR", True) == (level, "Too many open files" in text)
    stage.pass_time(TLS_FILES_CHECK_MS)
    assert hosts(stage) == B


def test_files_are_watched_on_after_a_fault(
    stage: MemoryBroker, stores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a fault of our code")

    replace(stores, pems()["b"])
    with monkeypatch.context() as failing:
        failing.setattr(live_tls, "listener_layer", fail)
        with pytest.raises(RuntimeError):
            stage.pass_time(TLS_FILES_CHECK_MS)
    stage.pass_time(TLS_FILES_CHECK_MS)
    stage.pass_time(TLS_FILES_CHECK_MS)
    assert hosts(stage) == B


def test_another_name_is_refused_unless_it_is_allowed(
    stage: MemoryBroker, stores: Path, lines: Lines
) -> None:
    replace(stores, pems()["stranger"])
    stage.pass_time(TLS_FILES_CHECK_MS)
    ((level, text),) = lines()
    assert "ERROR" == level
    assert "Keystore DistinguishedName does not match" in text
    assert "ssl.allow.dn.changes" in text
    assert hosts(stage) == A
    replace(stores, pems()["b"])
    stage.pass_time(TLS_FILES_CHECK_MS)
    assert hosts(stage) == B
    replace(stores, pems()["a"])
    lines()
    stage.pass_time(TLS_FILES_CHECK_MS)
    ((_, text),) = lines()
    assert "Keystore SubjectAltNames do not match" in text
    assert hosts(stage) == B


def test_another_name_is_used_where_it_is_allowed(stores: Path) -> None:
    stage = MemoryBroker(listeners="PLAINTEXT://here:0,SSL://here:0")
    stage.set("ssl.keystore.type", "PEM")
    stage.set("ssl.keystore.location", str(stores / "live.pem"))
    stage.set("ssl.allow.dn.changes", "true")
    stage.start()
    replace(stores, pems()["stranger"])
    stage.pass_time(TLS_FILES_CHECK_MS)
    assert "CN=stranger" == stage.broker.tls._loaded["SSL"].certificate.name
    stage.stop()


def test_a_replaced_trust_store_is_used_and_one_without_certificates_is_not(
    stores: Path, lines: Lines
) -> None:
    trusted = stores / "trusted.pem"
    shutil.copy(stores / "a.pem", trusted)
    stage = MemoryBroker(listeners="PLAINTEXT://here:0,SSL://here:0")
    for store, path in (("keystore", stores / "live.pem"), ("truststore", trusted)):
        stage.set(f"ssl.{store}.type", "PEM")
        stage.set(f"ssl.{store}.location", str(path))
    stage.start()
    first = stage.broker.tls._loaded["SSL"].layer
    lines()
    trusted.write_bytes(b"")
    stage.pass_time(TLS_FILES_CHECK_MS)
    assert first is stage.broker.tls._loaded["SSL"].layer
    ((_, text),) = lines()
    assert str(trusted) in text
    shutil.copy(stores / "b.pem", trusted)
    stage.pass_time(TLS_FILES_CHECK_MS)
    assert first is not stage.broker.tls._loaded["SSL"].layer
    stage.stop()


def test_connections_to_other_brokers_use_the_replaced_file_too(
    stage: MemoryBroker, stores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both or neither: a file that fails for them leaves the listener as it is."""
    tls = stage.broker.tls
    between = next(one for one in tls._live.config.bound_listeners if one.name == "SSL")
    tls.layer_to_peers(between)
    monkeypatch.setattr(type(tls._live.config), "inter_broker_endpoint", between)
    before = tls._peer

    def fail(*_: object) -> None:
        raise ConfigError("listener.name.ssl.ssl.*", "live.pem", "is half of a file")

    replace(stores, pems()["b"])
    with monkeypatch.context() as failing:
        failing.setattr(live_tls, "peer_layer", fail)
        stage.pass_time(TLS_FILES_CHECK_MS)
        assert (A, before) == (hosts(stage), tls._peer)
    replace(stores, pems()["b"])
    stage.pass_time(TLS_FILES_CHECK_MS)
    assert (B, True) == (hosts(stage), before is not tls._peer)


def test_a_change_of_settings_while_files_are_read_counts(
    stage: MemoryBroker, stores: Path
) -> None:
    """What was read for the settings before is dropped, and the new files are watched."""
    watch = TlsFileWatch(stage.broker.tls, stage.broker.tasks)
    replace(stores, pems()["b"])
    watch.check()
    assert (0, None) == alter(stage, LOCATION, stores / "b.pem")
    of_settings = stage.broker.tls._loaded["SSL"]
    stage.timers.run_until_idle()
    assert of_settings is stage.broker.tls._loaded["SSL"]
    replace(stores, b"junk")
    stage.pass_time(TLS_FILES_CHECK_MS)
    assert hosts(stage) == B


def test_a_request_uses_what_was_replaced_before_the_period_is_over(
    stage: MemoryBroker, stores: Path, lines: Lines
) -> None:
    replace(stores, pems()["b"])
    assert (0, None) == alter(stage, "log.cleaner.threads", "2")
    assert hosts(stage) == B
    of_request = stage.broker.tls._loaded["SSL"]
    lines()
    stage.pass_time(TLS_FILES_CHECK_MS)
    assert of_request is stage.broker.tls._loaded["SSL"]
    assert [] == lines()


def test_a_broker_without_files_of_keys_watches_none(stores: Path) -> None:
    key, begin, chain = (stores / "a.pem").read_text().partition("-----BEGIN CERTIFICATE")
    texts = {"ssl.keystore.key": key, "ssl.keystore.certificate.chain": begin + chain}
    for settings in ({}, {"ssl.keystore.type": "PEM", **texts}):
        listeners = "PLAINTEXT://here:0" + (",SSL://here:0" if settings else "")
        stage = MemoryBroker(listeners=listeners)
        for name, text in settings.items():
            stage.set(name, text)
        stage.start()
        loaded = dict(stage.broker.tls._loaded)
        stage.pass_time(TLS_FILES_CHECK_MS)
        assert loaded == stage.broker.tls._loaded
        stage.stop()


class RealStage:
    """A listener with TLS on a real socket; its files are watched by a clock of the test's."""

    def __init__(self, key_store: Path) -> None:
        settings = BrokerSettings(
            {
                "broker.id": "1",
                "zookeeper.connect": "here:2181",
                "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(key_store),
            }
        )
        live = LiveConfig(settings)
        self.loop = EventLoop()
        self.network = RealNetwork(self.loop, RealClock())
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        workers = MemoryWorkers(self.timers)
        self.failures: list[EngineError] = []
        tasks = LoopTasks(
            self.timers,
            self.clock,
            workers=workers,
            on_failure=lambda _name, error: self.failures.append(error),
        )
        tls = LiveTls(live)
        listener = next(one for one in live.config.bound_listeners if one.has_tls)
        options = Told().options(layer=tls.layer(listener))
        self.port = self.network.listen("127.0.0.1", 0, self._accept, options).port
        TlsFileWatch(tls, tasks).start()

    def _accept(self, connection: Connection) -> None:
        connection.on_frame = lambda frame: connection.send([bytes(frame)])

    def connect(self, trusted: str) -> tuple[Connection, list[bytes]]:
        """Connect as a client that trusts one certificate alone, without looking at names."""
        key, begin, chain = pems()["a"].decode().partition("-----BEGIN CERTIFICATE")
        settings = TlsListenerSettings(
            None, None, None, key, begin + chain, None, None, trusted, verifies_host=False
        )
        layer = create_client_layer(settings)("localhost")
        connection = self.network.connect("127.0.0.1", self.port, layer=layer)
        heard: list[bytes] = []
        connection.on_frame = lambda frame: heard.append(bytes(frame))
        connection.on_close = lambda reason: heard.append(b"closed")
        self.ask(connection, heard)
        return connection, heard

    def ask(self, connection: Connection, heard: list[bytes]) -> None:
        """Send a frame, and wait for what comes of it."""
        before = len(heard)
        connection.send([b"frame"])
        for _ in range(1_000_000):
            self.loop.call_soon(self.loop.stop)
            self.loop.run()
            if len(heard) > before:
                return
        raise AssertionError("nothing came")

    def pass_time(self, duration_ms: int) -> None:
        self.clock.advance(duration_ms)
        self.timers.run_until_idle()

    def close(self) -> None:
        self.network.close()
        self.loop.close()


@pytest.fixture
def real(stores: Path) -> Iterator[RealStage]:
    made = RealStage(stores / "live.pem")
    yield made
    made.close()
    assert [] == made.failures


def test_new_connections_see_the_new_certificate_and_open_ones_live_on(
    real: RealStage, stores: Path
) -> None:
    old, new = (pems()[name].decode() for name in "ab")
    of_old, heard = real.connect(old)
    assert [b"frame"] == heard
    replace(stores, pems()["b"])
    assert [b"closed"] == real.connect(new)[1]
    real.pass_time(TLS_FILES_CHECK_MS)
    assert [b"frame"] == real.connect(new)[1]
    assert [b"closed"] == real.connect(old)[1]
    real.ask(of_old, heard)
    assert [b"frame", b"frame"] == heard
    replace(stores, pems()["a"][:200])
    real.pass_time(TLS_FILES_CHECK_MS)
    assert [b"frame"] == real.connect(new)[1]


def test_the_state_of_a_file_is_that_of_what_a_link_leads_to(tmp_path: Path) -> None:
    """So do secrets of Kubernetes change: a link of a folder is renamed."""
    link = tmp_path / "link.pem"
    assert read_file_state(str(link)) is None
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(b"same")
        os.utime(tmp_path / name, ns=(1, 1))
    link.symlink_to(tmp_path / "one")
    first = read_file_state(str(link))
    link.unlink()
    link.symlink_to(tmp_path / "two")
    assert first != read_file_state(str(link))
    second = read_file_state(str(link))
    assert second == read_file_state(str(link))
    (tmp_path / "two").write_bytes(b"longer")
    os.utime(tmp_path / "two", ns=(1, 1))
    assert second != read_file_state(str(link))
