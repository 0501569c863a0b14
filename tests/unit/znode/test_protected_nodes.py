"""A protected cluster: clients that log in, the ACLs of what they create, and who is kept out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.host.real import RealEntropy
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.errors import SessionExpired, ZnodeLoginRefused
from engine.znode.kazoo_client import KazooZnodeClient, ZookeeperSecurity
from engine.znode.login import ZookeeperLogin
from engine.znode.model import ANY_VERSION, Create, NodeAclEntry, SetData
from engine.znode.zookeeper_wire import RequestRefused
from tests.unit.znode.zookeeper_loop import LoopServer, Sessions

_USERS = {"kafka": "secret", "other": "more"}
_OWN = NodeAclEntry(31, "sasl", "kafka")
_READ = NodeAclEntry(1, "world", "anyone")
_NO_AUTH = -102
_INVALID_ACL = -114


@pytest.fixture
def server() -> Iterator[LoopServer]:
    server = LoopServer(dict(_USERS))
    yield server
    server.close()


def _security(username: str, password: str, *, protects: bool = True) -> ZookeeperSecurity:
    return ZookeeperSecurity(RealEntropy(), ZookeeperLogin(username, password), protects)


def _connected(server: LoopServer, security: ZookeeperSecurity | None = None) -> KazooZnodeClient:
    client = server.client(security=security)
    server.run(client.connect())
    return client


def _acl(server: LoopServer, path: str) -> tuple[NodeAclEntry, ...]:
    session_id = server.store.open_session(60_000)
    acl, _ = server.store.acl(session_id, path)
    return acl


def test_nodes_belong_to_who_created_them(server: LoopServer) -> None:
    client = server.client("/a/k", security=_security("kafka", "secret"))
    server.run(client.connect())
    server.run(client.create("/config"))
    server.run(client.multi([Create("/config/users"), SetData("/config", b"x", ANY_VERSION)]))
    server.run(client.create("/config/users/bob", b"secret", ephemeral=True))
    server.run(client.create("/config/change_", sequential=True))
    assert (_OWN, _READ) == _acl(server, "/a") == _acl(server, "/a/k")
    assert (_OWN, _READ) == _acl(server, "/a/k/config")
    assert (_OWN, _READ) == _acl(server, "/a/k/config/change_0000000001")
    assert (_OWN,) == _acl(server, "/a/k/config/users")
    assert (_OWN,) == _acl(server, "/a/k/config/users/bob")


@pytest.mark.parametrize("security", [None, _security("other", "more")])
def test_others_read_what_is_no_secret_and_change_nothing(
    server: LoopServer, security: ZookeeperSecurity | None
) -> None:
    owner, other = _connected(server, _security("kafka", "secret")), _connected(server, security)
    run = server.run
    run(owner.create("/config", b"seen"))
    run(owner.create("/config/users", b"hidden"))
    run(owner.create("/consumers"))
    assert run(other.get("/config"))[0] == b"seen"
    with pytest.raises(RequestRefused) as unseen:
        run(other.exists("/config/users"))
    assert _NO_AUTH == unseen.value.code
    run(other.create("/consumers/c"))
    refused = [
        other.get("/config/users"),
        other.children("/config/users"),
        other.set("/config", b"x"),
        other.create("/config/topics"),
        other.delete("/config/users"),
        other.multi([Create("/mine"), SetData("/config", b"x")]),
    ]
    for attempt in refused:
        with pytest.raises(RequestRefused) as error:
            run(attempt)
        assert error.value.code == _NO_AUTH
    assert run(other.exists("/mine")) is None
    run(owner.set("/config", b"mine"))
    run(owner.delete("/config/users"))


def test_a_client_that_only_logs_in_leaves_its_nodes_open(server: LoopServer) -> None:
    client = _connected(server, _security("kafka", "secret", protects=False))
    server.run(client.create("/config/users".rpartition("/")[0]))
    assert _acl(server, "/config") == (NodeAclEntry(31, "world", "anyone"),)


def test_a_chroot_that_is_there_needs_no_rights_above_it(server: LoopServer) -> None:
    owner = _connected(server, _security("kafka", "secret"))
    server.run(owner.create("/a"))
    server.run(owner.create("/a/k"))
    other = server.client("/a/k", security=_security("other", "more"))
    server.run(other.connect())
    missing = server.client("/a/b/c", security=_security("other", "more"))
    with pytest.raises(RequestRefused) as refused:
        server.run(missing.connect())
    assert refused.value.code == _NO_AUTH


@pytest.mark.parametrize(("username", "password"), [("kafka", "wrong"), ("nobody", "secret")])
def test_a_wrong_login_begins_no_session(server: LoopServer, username: str, password: str) -> None:
    client = server.client(security=_security(username, password))
    told = Sessions(client)
    with pytest.raises(ZnodeLoginRefused, match=username):
        server.run(client.connect())
    assert told.events == []
    assert password not in str(ZnodeLoginRefused(username, "a:1"))


def test_a_server_without_users_is_no_place_for_a_login() -> None:
    server = LoopServer()
    client = server.client(security=_security("kafka", "secret"))
    with pytest.raises(ZnodeLoginRefused):
        server.run(client.connect())
    # Nor for an ACL of a user that nobody can be.
    plain = server.client(security=ZookeeperSecurity(RealEntropy(), None, protects=True))
    server.run(plain.connect())
    with pytest.raises(RequestRefused) as refused:
        server.run(plain.create("/a"))
    assert refused.value.code == _INVALID_ACL
    server.close()


def test_a_client_logs_in_again_after_a_lost_connection(server: LoopServer) -> None:
    client = _connected(server, _security("kafka", "secret"))
    told = Sessions(client)
    server.run(client.create("/config"))
    server.connections[-1].close("lost")
    server.until(lambda: "RECONNECTED" in told.events)
    server.run(client.set("/config", b"still mine"))


def test_a_login_refused_after_a_lost_connection_ends_the_session(server: LoopServer) -> None:
    client = _connected(server, _security("kafka", "secret"))
    told = Sessions(client)
    server.users["kafka"] = "changed"
    server.connections[-1].close("lost")
    server.until(lambda: "EXPIRED" in told.events)
    with pytest.raises(SessionExpired):
        server.run(client.get("/"))


def test_clients_of_the_stores_process_create_the_same(server: LoopServer) -> None:
    client = EmbeddedZnodeClient(server.store, 60_000, ("sasl", "kafka"))
    server.run(client.connect())
    server.run(client.create("/config"))
    server.run(client.multi([Create("/config/users"), Create("/consumers")]))
    assert (_OWN, _READ) == _acl(server, "/config")
    assert (_OWN,) == _acl(server, "/config/users")
    # The owner is the store itself.
    server.run(client.set("/config/users", b"x"))
    owner = _connected(server, _security("kafka", "secret"))
    assert server.run(owner.get("/config/users"))[0] == b"x"
