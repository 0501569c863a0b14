"""Writes to a real ZooKeeper, which cuts a connection at a frame larger than jute.maxbuffer."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import OPEN_ACL_UNSAFE

from engine.controller.grouped_writes import write_groups
from engine.host.coroutine import drive
from engine.host.event_loop import EventLoop
from engine.host.promise import Promise
from engine.host.real import RealClock, RealEntropy
from engine.znode.errors import ZnodeLimitExceeded, ZnodeLoginRefused
from engine.znode.kazoo_client import KazooZnodeClient, ZookeeperAddress, ZookeeperSecurity
from engine.znode.login import ZookeeperLogin
from engine.znode.model import Create, SessionEvent
from engine.znode.retrying_client import RetryingZnodeClient
from engine.znode.zookeeper_wire import RequestRefused
from tests.cluster.java_tools import NO_TOOLS, JavaTools
from tests.cluster.real_kafka import JAVA
from tests.soak.broker_process import free_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(JavaTools.found() is None, reason=NO_TOOLS),
]
_DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a ZooKeeper with its default bounds."""
    yield from _running(tmp_path_factory.mktemp("zookeeper"), [])


def _running(folder: Path, options: list[str]) -> Iterator[str]:
    """Run a ZooKeeper, and yield its address."""
    port = free_port()
    libs = os.environ["KCTL_TEST_KAFKA_LIBS"]
    main = "org.apache.zookeeper.server.ZooKeeperServerMain"
    command = [*JAVA, *options, "-Dzookeeper.admin.enableServer=false", "-cp", f"{libs}/*", main]
    process = subprocess.Popen(
        [*command, str(port), str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline_s = time.monotonic() + _DEADLINE_S
    while not _serves(port):
        assert process.poll() is None, "ZooKeeper ended"
        assert time.monotonic() < deadline_s, "ZooKeeper does not serve"
        time.sleep(0.05)
    yield f"127.0.0.1:{port}"
    process.kill()
    process.wait()


def _serves(port: int) -> bool:
    """Return True once it takes sessions: it listens before that, and keeps silent meanwhile."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(b"srvr")
            return b"Mode:" in connection.makefile("rb").read()
    except OSError:
        return False


class Session:
    """A broker's session, on a loop of its own; `events` are those of its connection."""

    def __init__(self, address: str, security: ZookeeperSecurity | None = None) -> None:
        self.loop = EventLoop()
        clock = RealClock()
        kazoo = KazooZnodeClient(
            ZookeeperAddress(address),
            self.loop,
            clock,
            session_timeout_ms=18_000,
            connection_timeout_ms=18_000,
            security=security,
        )
        self.client = RetryingZnodeClient(kazoo)
        self.events: list[SessionEvent] = []
        self.client.on_session = self.events.append
        self.run(self.client.connect())

    def run(self, work: Coroutine[Any, None, Any]) -> Any:
        promise: Promise[Any] = drive(work)
        promise.watch(lambda: self.loop.call_soon(self.loop.stop))
        self.loop.call_at(RealClock().monotonic_ms() + int(_DEADLINE_S * 1000), self.loop.stop)
        self.loop.run()
        return promise.result()

    def close(self) -> None:
        self.run(self.client.close())
        self.loop.close()


@pytest.fixture
def session(zookeeper: str) -> Iterator[Session]:
    session = Session(zookeeper)
    yield session
    session.close()


def test_three_hundred_topics_of_three_hundred_partitions_are_written(session: Session) -> None:
    # 2.7 MB: a transaction of all would end the connection, again and again.
    groups = [[Create(f"/topic-{number}", bytes(9_000))] for number in range(300)]
    results = session.run(write_groups(session.client.multi, groups))
    assert [[f"/topic-{number}"] for number in range(300)] == results
    assert [SessionEvent.CONNECTED] == session.events


def test_a_request_that_ends_its_connection_is_not_repeated_for_ever(session: Session) -> None:
    too_large = [Create(f"/large-{number}", bytes(600_000)) for number in range(2)]
    with pytest.raises(ZnodeLimitExceeded):
        session.run(session.client.multi(too_large))
    assert SessionEvent.EXPIRED not in session.events
    assert session.run(session.client.exists("/large-0")) is None
    # The largest that a server of this bound takes.
    session.run(session.client.multi([Create("/largest", bytes(0xFFFFF - 200))]))


_JAAS = """
Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_kafka="secret" user_z="zoë"; };
"""  # noqa: E501 - a file
_SASL = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"


@pytest.fixture(scope="module")
def secured_zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a ZooKeeper with users."""
    jaas = tmp_path_factory.mktemp("jaas") / "jaas.conf"
    jaas.write_text(_JAAS)
    options = [f"-Djava.security.auth.login.config={jaas}", f"-Dzookeeper.authProvider.1={_SASL}"]
    yield from _running(tmp_path_factory.mktemp("zookeeper"), options)


def _security(username: str, password: str) -> ZookeeperSecurity:
    return ZookeeperSecurity(RealEntropy(), ZookeeperLogin(username, password), protects=True)


@contextmanager
def _stranger(address: str) -> Iterator[KazooClient]:
    """Yield a client without a login."""
    client = KazooClient(address)
    client.start()
    yield client
    client.stop()
    client.close()


def test_nodes_of_a_broker_that_logs_in_are_its_own(secured_zookeeper: str) -> None:
    owner = Session(f"{secured_zookeeper}/a/k", _security("kafka", "secret"))
    owner.run(owner.client.create("/config"))
    owner.run(owner.client.multi([Create("/config/users", b"hidden"), Create("/consumers")]))
    with _stranger(secured_zookeeper) as stranger:
        found = {path: stranger.get_acls(path)[0] for path in ("/a", "/a/k/config")}
        assert {tuple((e.id.scheme, e.id.id, e.perms) for e in acl) for acl in found.values()} == {
            (("sasl", "kafka", 31), ("world", "anyone", 1))
        }
        assert stranger.get_acls("/a/k/consumers")[0] == OPEN_ACL_UNSAFE
        with pytest.raises(NoAuthError):
            stranger.get("/a/k/config/users")
    other = Session(f"{secured_zookeeper}/a/k", _security("z", "zoë"))
    with pytest.raises(RequestRefused):
        other.run(other.client.get("/config/users"))
    assert owner.run(owner.client.get("/config/users"))[0] == b"hidden"
    for session in (owner, other):
        session.close()


@pytest.mark.parametrize(("username", "password"), [("kafka", "wrong"), ("nobody", "any")])
def test_a_wrong_login_begins_no_session(
    secured_zookeeper: str, username: str, password: str
) -> None:
    with pytest.raises(ZnodeLoginRefused, match=username):
        Session(secured_zookeeper, _security(username, password))


def test_a_server_without_users_takes_no_login(zookeeper: str) -> None:
    with pytest.raises(ZnodeLoginRefused):
        Session(zookeeper, _security("kafka", "secret"))
