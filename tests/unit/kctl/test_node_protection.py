"""The nodes of a store that was open become its brokers' while the cluster runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.znode.model import OPEN_ACL, Create, Delete, NodeAclEntry, Stat
from engine.znode.store import ZnodeStore
from kctl.commands.cluster.node_protection import protect_nodes
from tests.unit.znode.zookeeper_loop import LoopServer

_USERS = {"kafka": "secret"}
_OWN = NodeAclEntry(31, "sasl", "kafka")
_READ = NodeAclEntry(1, "world", "anyone")


@pytest.fixture
def server() -> Iterator[LoopServer]:
    server = LoopServer(_USERS)
    yield server
    server.close()


def protect(server: LoopServer, folder: Path) -> None:
    """Protect the nodes of a server, as a command does on a thread."""
    jaas = folder / "store.jaas"
    module = "org.apache.zookeeper.server.auth.DigestLoginModule required"
    jaas.write_text(f'Client {{ {module} username="kafka" password="secret"; }};\n')
    settings = {"java.security.auth.login.config": str(jaas)}
    errors: list[Exception] = []

    def work() -> None:
        try:
            protect_nodes(f"127.0.0.1:{server.port}", settings, 20)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    server.until(lambda: not thread.is_alive())
    assert [] == errors


class Changes:
    """What another client does with nodes as the children of one have just been read."""

    def __init__(self, store: ZnodeStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = store
        self.session_id = store.open_session(60_000)
        self.after: dict[str, Create | Delete] = {}
        self._children = store.children
        monkeypatch.setattr(store, "children", self.children)

    def children(self, session_id: int, path: str) -> tuple[list[str], Stat]:
        """Return the children as they were before the change."""
        found = self._children(session_id, path)
        if path in self.after:
            self.store.apply(self.session_id, self.after.pop(path))
        return found

    def acl(self, path: str) -> tuple[NodeAclEntry, ...]:
        """Return who may do what with a node."""
        return self.store.acl(self.session_id, path)[0]


def test_nodes_that_go_meanwhile_are_passed_over(
    server: LoopServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = Changes(server.store, monkeypatch)
    for path in ("/a", "/a/b", "/config", "/config/users"):
        server.store.apply(changes.session_id, Create(path))
    changes.after["/a"] = Delete("/a/b", -1)
    protect(server, tmp_path)
    assert (_OWN, _READ) == changes.acl("/") == changes.acl("/a") == changes.acl("/config")
    assert (_OWN,) == changes.acl("/config/users")


def test_nodes_of_others_are_left(
    server: LoopServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session_id = server.store.open_session(60_000)
    theirs = (NodeAclEntry(31, "digest", "x:y"),)
    server.store.apply(session_id, Create("/theirs", acl=theirs))
    server.store.apply(session_id, Create("/consumers"))
    protect(server, tmp_path)
    assert theirs == server.store.acl(session_id, "/theirs")[0]
    assert OPEN_ACL == server.store.acl(session_id, "/consumers")[0]
    assert (_OWN, _READ) == server.store.acl(session_id, "/")[0]
    assert "node /theirs is another user's" in capsys.readouterr().err
    server.store.apply(session_id, Create("/later"))
    # The root is protected: so was all below it.
    protect(server, tmp_path)
    assert OPEN_ACL == server.store.acl(session_id, "/later")[0]
