"""The embedded store against ZooKeeper's rules written down plainly, restarts in between."""

from __future__ import annotations

import tempfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.host.memory import ManualClock
from engine.znode.errors import NodeError
from engine.znode.model import Check, Create, Delete, Operation, SetData, WatchEvent, WatchKind
from engine.znode.sqlite_journal import SqliteJournal
from engine.znode.store import ZnodeStore

# Few paths, the first of them there from the start: most operations find what they ask for.
FIRST = ("/a", "/a/a", "/b")
PATHS = st.sampled_from([*FIRST, "/a/b", "/a/a/a", "/c", "/c/a"])
VERSIONS = st.sampled_from([-1, -1, -1, -1, 0, 1])
DATA = st.sampled_from([None, b"", b"x"])
OPERATIONS = st.one_of(
    st.builds(Create, PATHS, DATA, st.booleans(), st.sampled_from([False, False, True])),
    st.builds(SetData, PATHS, DATA, VERSIONS),
    st.builds(Delete, PATHS, VERSIONS),
)
CHECKED = st.builds(Check, st.sampled_from(FIRST), st.sampled_from([0, -1]))
SESSIONS = st.integers(0, 1)
SINGLE = st.tuples(st.just("multi"), SESSIONS, st.tuples(OPERATIONS).map(list))
STEP = st.one_of(
    SINGLE,
    SINGLE,
    st.tuples(st.just("multi"), SESSIONS, st.tuples(OPERATIONS, CHECKED, OPERATIONS).map(list)),
    st.tuples(st.just("watch"), SESSIONS, st.tuples(PATHS, st.sampled_from(WatchKind))),
    st.tuples(st.just("watch"), SESSIONS, st.tuples(PATHS, st.sampled_from(WatchKind))),
    st.tuples(st.sampled_from(["end", "restart"]), SESSIONS, st.none()),
)
# Long runs: a short one hardly gets anywhere.
STEPS = st.lists(STEP, min_size=20, max_size=40)


class Refused(Exception):
    """The model refuses, with ZooKeeper's code."""


class Model:
    """Nodes as mutable records; a multi works on a copy."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {"/": self.node(0, 0, None)}
        self.events: list[tuple[str, str]] = []

    @staticmethod
    def node(zxid: int, owner: int, data: bytes | None) -> dict[str, Any]:
        return {
            "data": data,
            "czxid": zxid,
            "mzxid": zxid,
            "pzxid": zxid,
            "version": 0,
            "created": 0,
            "removed": 0,
            "owner": owner,
        }

    def children(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        below = [p[len(prefix) :] for p in self.nodes if p.startswith(prefix) and p != "/"]
        return sorted(name for name in below if "/" not in name)

    def of_version(self, operation: Any) -> dict[str, Any]:
        node = self.nodes.get(operation.path)
        if node is None:
            raise Refused(-101)
        if operation.version != -1 and operation.version != node["version"]:
            raise Refused(-103)
        return node

    def do(self, operation: Operation, zxid: int, session_id: int) -> None:
        path = operation.path
        parent_path = path.rpartition("/")[0] or "/"
        if isinstance(operation, Create):
            parent = self.nodes.get(parent_path)
            if parent is None:
                raise Refused(-101)
            if operation.sequential:
                path += f"{parent['created']:010}"
            if path in self.nodes:
                raise Refused(-110)
            if parent["owner"]:
                raise Refused(-108)
            owner = session_id if operation.ephemeral else 0
            self.nodes[path] = self.node(zxid, owner, operation.data)
            parent["created"] += 1
            parent["pzxid"] = zxid
            self.events += [("CREATED", path), ("CHILDREN_CHANGED", parent_path)]
        elif isinstance(operation, SetData):
            node = self.of_version(operation)
            node["data"] = operation.data
            node["version"] += 1
            node["mzxid"] = zxid
            self.events.append(("DATA_CHANGED", path))
        else:
            self.of_version(operation)
            if isinstance(operation, Check):
                return
            if self.children(path):
                raise Refused(-111)
            del self.nodes[path]
            self.nodes[parent_path]["removed"] += 1
            self.nodes[parent_path]["pzxid"] = zxid
            self.events += [("DELETED", path), ("CHILDREN_CHANGED", parent_path)]


class Run:
    """Both, side by side."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.clock = ManualClock()
        self.store = ZnodeStore(SqliteJournal(path), self.clock)
        self.model = Model()
        self.sessions = [self.store.open_session(1000), self.store.open_session(1000)]
        self.watches: list[tuple[int, WatchKind, str, object]] = []
        self.heard: list[tuple[object, str, str]] = []

    def multi(self, session: int, operations: list[Operation]) -> None:
        zxid = self.store.zxid + 1
        before = {path: dict(node) for path, node in self.model.nodes.items()}
        self.model.events = []
        refusal = None
        for index, operation in enumerate(operations):
            try:
                self.model.do(operation, zxid, self.sessions[session])
            except Refused as refused:
                refusal = (index, refused.args[0])
                self.model.nodes, self.model.events = before, []
                break
        got = None
        try:
            self.store.multi(self.sessions[session], operations)
        except NodeError as error:
            got = (error.operation_index, error.code)
        assert refusal == got
        self.compare_events()

    def watch(self, session: int, path: str, kind: WatchKind) -> None:
        token = object()

        def watcher(event: WatchEvent) -> None:
            # What was heard can be read already, and nothing newer was told before.
            self.heard.append((token, event.type.name, event.path))

        try:
            self.store.watch(self.sessions[session], path, kind, watcher)
        except NodeError:
            assert kind is WatchKind.CHILDREN
            assert path not in self.model.nodes
        else:
            self.watches.append((session, kind, path, token))

    def end(self, session: int) -> None:
        zxid, owner = self.store.zxid + 1, self.sessions[session]
        self.model.events = []
        self.watches = [watch for watch in self.watches if watch[0] != session]
        for path in sorted(p for p, node in self.model.nodes.items() if node["owner"] == owner):
            self.model.do(Delete(path), zxid, owner)
        self.clock.advance(999)
        self.store.heartbeat(self.sessions[1 - session])
        self.clock.advance(1)
        assert [owner] == self.store.expire_sessions()
        assert zxid == self.store.zxid
        self.compare_events()
        self.sessions[session] = self.store.open_session(1000)

    def restart(self) -> None:
        self.store.close()
        self.watches = []
        self.store = ZnodeStore(SqliteJournal(self.path), self.clock)
        assert sorted(self.sessions) == self.store.session_ids()

    def compare_events(self) -> None:
        expected = []
        for kind, path in self.model.events:
            for watch in list(self.watches):
                _, wanted, watched, token = watch
                if watched != path:
                    continue
                of_children = wanted is WatchKind.CHILDREN
                if kind == "DELETED" or of_children == (kind == "CHILDREN_CHANGED"):
                    self.watches.remove(watch)
                    expected.append((token, kind, path))
        # Of one event, data watchers may hear before children's watchers that came earlier.
        assert sorted(expected, key=str) == sorted(self.heard, key=str)
        assert [each[1:] for each in expected] == [each[1:] for each in self.heard]
        self.heard = []

    def compare(self) -> None:
        me = self.sessions[0]
        assert len(self.model.nodes) == self.store.node_count
        for path, node in self.model.nodes.items():
            data, stat = self.store.get(me, path)
            children = self.model.children(path)
            assert (children, stat) == self.store.children(me, path)
            assert data == node["data"]
            assert stat.cversion == node["created"] + node["removed"]
            assert (stat.czxid, stat.mzxid, stat.pzxid, stat.version, stat.ephemeral_owner) == (
                node["czxid"],
                node["mzxid"],
                node["pzxid"],
                node["version"],
                node["owner"],
            )
            assert stat.child_count == len(children)


@pytest.mark.slow
@settings(max_examples=40)
@given(STEPS)
def test_the_store_behaves_as_zookeepers_rules_say(steps: list[tuple[str, int, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Run(f"{folder}/znodes.db")
        run.multi(0, [Create(path) for path in FIRST])
        for step, session, argument in steps:
            if step == "multi":
                run.multi(session, argument)
            elif step == "watch":
                run.watch(session, *argument)
            elif step == "end":
                run.end(session)
            else:
                run.restart()
            run.compare()
        run.restart()
        run.compare()
        run.store.close()
