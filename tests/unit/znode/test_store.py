"""The embedded store: ZooKeeper's rules, sessions and watches; figures as a real ensemble's."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import limits
from engine.host.memory import ManualClock
from engine.znode.errors import (
    BadVersion,
    InvalidZnodePath,
    NoChildrenForEphemerals,
    NodeError,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    ZnodeLimitExceeded,
    ZnodeStoreFailed,
)
from engine.znode.model import (
    OPEN_ACL,
    Check,
    Create,
    Delete,
    NodeAclEntry,
    Operation,
    SetAcl,
    SetData,
    Stat,
    WatchEvent,
    WatchKind,
)
from engine.znode.sqlite_journal import SqliteJournal
from engine.znode.store import ZnodeStore
from tests.unit.znode.stores import TIMEOUT_MS, Told, store_with_session


def test_counters_are_those_of_a_real_ensemble() -> None:
    """The same commands were given to ZooKeeper 3.8, which answered these figures."""
    store, me, _ = store_with_session()
    before = store.zxid

    def create(path: str, data: bytes | None = None, **more: bool) -> object:
        return store.apply(me, Create(path, data, **more))

    create("/z")
    create("/z/a")
    create("/z/b", b"x")
    assert "/z/s-0000000002" == create("/z/s-", b"y", sequential=True)
    store.apply(me, Delete("/z/a"))
    assert "/z/s-0000000003" == create("/z/s-", b"y", sequential=True)
    stat = store.exists(me, "/z")
    assert stat is not None
    assert (5, 0, 3) == (stat.cversion, stat.version, stat.child_count)
    assert (1, 6) == (stat.czxid - before, stat.pzxid - before)
    with pytest.raises(BadVersion) as error:
        store.apply(me, SetData("/z/b", b"q", 3))
    assert (3, 0, -103) == (error.value.expected, error.value.got, error.value.code)
    store.apply(me, SetData("/z/b", b"q", 0))
    store.apply(me, SetData("/z/b", b"r"))
    data, stat = store.get(me, "/z/b")
    assert (b"r", 2, 1) == (data, stat.version, stat.data_length_bytes)
    assert stat.czxid == stat.pzxid < stat.mzxid
    create("/z/e", b"e", ephemeral=True)
    assert "/z/0000000005" == create("/z/", b"v", sequential=True, ephemeral=True)
    names, stat = store.children(me, "/z")
    assert ["0000000005", "b", "e", "s-0000000002", "s-0000000003"] == names
    assert (7, 5) == (stat.cversion, stat.child_count)


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (Create("/no/x"), NoNode),
        (Create("/a"), NodeExists),
        (Create("/"), NodeExists),
        (Create("/e/x"), NoChildrenForEphemerals),
        (SetData("/no", b""), NoNode),
        (SetData("/a", b"", 7), BadVersion),
        (Delete("/no"), NoNode),
        (Delete("/a"), NotEmpty),
        (Delete("/a", 7), BadVersion),
        (Delete("/"), InvalidZnodePath),
        (Check("/no", 0), NoNode),
        (Check("/a", 1), BadVersion),
        (Create(""), InvalidZnodePath),
        (Create("a"), InvalidZnodePath),
        (Create("/x/"), InvalidZnodePath),
        (Create("//x"), InvalidZnodePath),
        (Create("/./x"), InvalidZnodePath),
        (Create("/a/.."), InvalidZnodePath),
        (Create("/a/\0"), InvalidZnodePath),
        (Create("/a/\ud800"), InvalidZnodePath),
        (Create("/a/x", b"0" * (limits.ZNODE_DATA_BYTES_MAX + 1)), ZnodeLimitExceeded),
        (SetData("/a", b"0" * (limits.ZNODE_DATA_BYTES_MAX + 1)), ZnodeLimitExceeded),
        (Create("/a/" + "x" * limits.ZNODE_PATH_CHARS_MAX), ZnodeLimitExceeded),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else type(value).__name__,
)
def test_a_refusal_is_typed_and_changes_nothing(
    operation: Operation, error: type[NodeError]
) -> None:
    store, me, _ = store_with_session()
    store.multi(me, [Create("/a"), Create("/a/b"), Create("/e", None, True)])
    zxid, stat, root = store.zxid, store.exists(me, "/a"), store.exists(me, "/")
    twice = [Create("/new"), SetData("/a", b"1"), Create("/new2"), SetData("/a", b"2")]
    with pytest.raises(error) as raised:
        store.multi(me, [*twice, operation, Create("/newer")])
    assert 4 == raised.value.operation_index
    assert (stat, root) == (store.exists(me, "/a"), store.exists(me, "/"))
    with pytest.raises(error) as raised:
        store.apply(me, operation)
    assert raised.value.operation_index is None
    assert (zxid, stat) == (store.zxid, store.exists(me, "/a"))
    assert ["a", "e"] == store.children(me, "/")[0]


def test_data_of_the_largest_size_is_taken() -> None:
    store, me, _ = store_with_session()
    store.apply(me, Create("/a", b"0" * limits.ZNODE_DATA_BYTES_MAX))


def test_no_data_and_empty_data_differ() -> None:
    store, me, _ = store_with_session()
    store.multi(me, [Create("/none"), Create("/empty", b"")])
    assert (None, b"") == (store.get(me, "/none")[0], store.get(me, "/empty")[0])


def test_operations_of_a_multi_see_each_other_and_share_a_zxid() -> None:
    """A broker's registration: data version 1, epoch = czxid."""
    store, me, clock = store_with_session()
    clock.advance(5)
    results = store.multi(
        me,
        [
            Create("/b"),
            Create("/b/1", b"", ephemeral=True),
            SetData("/b/1", b"here", 0),
            Check("/b/1", 1),
            Create("/b/n", sequential=True),
            Delete("/b/n0000000001", 0),
        ],
    )
    assert results[0] == "/b"
    assert isinstance(results[2], Stat)
    assert [None, "/b/n0000000001", None] == results[3:]
    data, stat = store.get(me, "/b/1")
    assert b"here" == data
    assert (1, me) == (stat.version, stat.ephemeral_owner)
    assert stat.czxid == stat.mzxid == store.zxid
    assert stat.ctime_ms == stat.mtime_ms == 1_000_005
    parent = store.exists(me, "/b")
    assert parent is not None
    assert (3, 1) == (parent.cversion, parent.child_count)


def test_bounds_are_refused_at_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.znode.tree.ZNODE_CHILDREN_MAX", 2)
    monkeypatch.setattr("engine.znode.watches.ZNODE_WATCHES_MAX", 1)
    monkeypatch.setattr("engine.znode.store.ZNODE_SESSIONS_MAX", 2)
    monkeypatch.setattr("engine.znode.store.ZNODE_MULTI_OPERATIONS_MAX", 2)
    store, me, _ = store_with_session()
    store.multi(me, [Create("/a"), Create("/b")])
    with pytest.raises(ZnodeLimitExceeded, match="/: more than 2 children"):
        store.apply(me, Create("/c"))
    with pytest.raises(ZnodeLimitExceeded, match="operations in a multi"):
        store.multi(me, [Check("/a", 0)] * 3)
    watcher = Told().watcher()
    store.watch(me, "/a", WatchKind.DATA, watcher)
    store.watch(me, "/a", WatchKind.DATA, watcher)
    with pytest.raises(ZnodeLimitExceeded, match="watches"):
        store.watch(me, "/b", WatchKind.DATA, watcher)
    store.apply(me, SetData("/a", b""))
    other = store.open_session(1)
    store.watch(other, "/b", WatchKind.DATA, watcher)
    store.close_session(other)
    store.watch(me, "/b", WatchKind.DATA, watcher)
    store.open_session(1)
    with pytest.raises(ZnodeLimitExceeded, match="sessions"):
        store.open_session(1)


def test_watches_go_off_once_in_the_order_of_the_changes() -> None:
    store, me, _ = store_with_session()
    told = Told()
    store.watch(me, "/a", WatchKind.DATA, told.watcher("data"))
    store.watch(me, "/", WatchKind.CHILDREN, told.watcher("root"))
    store.apply(me, Create("/a"))
    assert [("data", "CREATED", "/a"), ("root", "CHILDREN_CHANGED", "/")] == told.take()
    store.apply(me, SetData("/a", b"1"))
    assert [] == told.take()
    store.watch(me, "/a", WatchKind.DATA, told.watcher("data"))
    store.watch(me, "/a", WatchKind.CHILDREN, told.watcher("children"))
    store.multi(me, [SetData("/a", b"2"), Create("/a/b"), Create("/a/c")])
    assert [
        ("data", "DATA_CHANGED", "/a"),
        ("children", "CHILDREN_CHANGED", "/a"),
    ] == told.take()
    with pytest.raises(NoNode):
        store.watch(me, "/no", WatchKind.CHILDREN, told.watcher())


def test_a_removed_node_notifies_each_watcher_once() -> None:
    store, me, _ = store_with_session()
    told = Told()
    both, other = told.watcher("both"), told.watcher("other")
    store.apply(me, Create("/a"))
    store.watch(me, "/a", WatchKind.DATA, both)
    store.watch(me, "/a", WatchKind.CHILDREN, both)
    store.watch(me, "/a", WatchKind.CHILDREN, other)
    store.apply(me, Delete("/a"))
    assert [("both", "DELETED", "/a"), ("other", "DELETED", "/a")] == told.take()


def test_a_refused_multi_notifies_nobody() -> None:
    store, me, _ = store_with_session()
    told = Told()
    store.watch(me, "/a", WatchKind.DATA, told.watcher())
    with pytest.raises(BadVersion):
        store.multi(me, [Create("/a"), Check("/a", 9)])
    assert [] == told.take()
    store.apply(me, Create("/a"))
    assert 1 == len(told.take())


def test_changes_that_a_watcher_makes_are_notified_after_the_event_it_got() -> None:
    store, me, _ = store_with_session()
    told = Told()
    store.watch(me, "/a", WatchKind.DATA, lambda event: store.apply(me, Create("/b")) and None)
    store.watch(me, "/b", WatchKind.DATA, told.watcher("b"))
    store.watch(me, "/a", WatchKind.DATA, told.watcher("a"))
    store.apply(me, Create("/a"))
    assert [("a", "CREATED", "/a"), ("b", "CREATED", "/b")] == told.take()


def test_watchers_that_set_each_other_off_are_not_nested() -> None:
    store, me, _ = store_with_session()
    last = 400

    def create_next(event: WatchEvent) -> None:
        number = int(event.path[2:]) + 1
        if number <= last:
            store.watch(me, f"/n{number}", WatchKind.DATA, create_next)
            store.apply(me, Create(f"/n{number}"))

    store.watch(me, "/n0", WatchKind.DATA, create_next)
    store.apply(me, Create("/n0"))
    assert store.exists(me, f"/n{last}") is not None


def test_the_end_of_a_session_removes_its_nodes_in_one_transaction() -> None:
    store, me, _ = store_with_session()
    other = store.open_session(TIMEOUT_MS)
    told = Told()
    store.multi(other, [Create("/p"), Create("/p/e", None, True), Create("/q", None, True)])
    store.watch(me, "/p", WatchKind.CHILDREN, told.watcher("p"))
    store.watch(me, "/q", WatchKind.DATA, told.watcher("q"))
    store.watch(other, "/q", WatchKind.DATA, told.watcher("own"))
    zxid = store.zxid
    store.close_session(other)
    assert zxid + 1 == store.zxid
    assert [("p", "CHILDREN_CHANGED", "/p"), ("q", "DELETED", "/q")] == told.take()
    assert ["p"] == store.children(me, "/")[0]
    assert zxid + 1 == store.children(me, "/p")[1].pzxid
    for call in (store.close_session, store.heartbeat, store.resume_session):
        with pytest.raises(SessionExpired):
            call(other)
    with pytest.raises(SessionExpired):
        store.get(other, "/p")


def test_a_silent_session_expires_and_any_call_is_a_sign_of_life() -> None:
    store, me, clock = store_with_session()
    told: list[str] = []
    silent = store.open_session(1000, lambda: told.append("expired"))
    reading = store.open_session(1000)
    store.apply(silent, Create("/e", None, True))
    assert 1000 == store.next_expiry_ms()
    clock.advance(999)
    assert [] == store.expire_sessions()
    store.exists(reading, "/e")
    clock.advance(1)
    assert [silent] == store.expire_sessions()
    assert ["expired"] == told
    assert store.exists(me, "/e") is None
    assert 1999 == store.next_expiry_ms()
    assert [me, reading] == store.session_ids()


def test_sessions_survive_a_restart_with_their_whole_timeout(tmp_path: Path) -> None:
    path = str(tmp_path / "znodes.db")
    store, me, clock = store_with_session(path)
    store.multi(me, [Create("/a", b"1"), Create("/e", None, True)])
    store.apply(me, Create("/gone"))
    store.apply(me, Delete("/gone"))
    stat, zxid = store.exists(me, "/a"), store.zxid
    clock.advance(TIMEOUT_MS - 1)
    store.close()
    store = ZnodeStore(SqliteJournal(path), clock)
    assert zxid == store.zxid
    assert TIMEOUT_MS == store.resume_session(me)
    assert (b"1", stat) == store.get(me, "/a")
    assert ["a", "e"] == store.children(me, "/")[0]
    clock.advance(TIMEOUT_MS)
    assert [me] == store.expire_sessions()
    newer = store.open_session(TIMEOUT_MS)
    assert newer > me
    assert ["a"] == store.children(newer, "/")[0]
    store.close()
    store.close()


def test_a_second_store_on_one_file_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "znodes.db")
    store, _, _ = store_with_session(path)
    with pytest.raises(ZnodeStoreFailed, match="locked"):
        SqliteJournal(path)
    store.close()
    SqliteJournal(path).close()


@pytest.mark.parametrize("content", [b"no database " * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "znodes.db"
    path.write_bytes(content)
    with pytest.raises(ZnodeStoreFailed):
        SqliteJournal(str(path))
    assert content == path.read_bytes()
    with pytest.raises(ZnodeStoreFailed):
        SqliteJournal(str(tmp_path / "no" / "folder"))


def test_a_store_whose_journal_failed_accepts_nothing_more(tmp_path: Path) -> None:
    clock = ManualClock()
    journal = SqliteJournal(str(tmp_path / "znodes.db"))
    store = ZnodeStore(journal, clock)
    me = store.open_session(TIMEOUT_MS)
    told = Told()
    store.watch(me, "/a", WatchKind.DATA, told.watcher())
    journal.close()
    for _ in range(2):
        with pytest.raises(ZnodeStoreFailed):
            store.apply(me, Create("/a"))
        with pytest.raises(ZnodeStoreFailed):
            store.exists(me, "/a")
    assert [] == told.take()


def test_no_two_sessions_ever_have_the_same_id(tmp_path: Path) -> None:
    path = str(tmp_path / "znodes.db")
    store, first, clock = store_with_session(path)
    assert (1 << 56) + 1 == first
    given = [first]
    for _ in range(3):
        store.close_session(given[-1])
        given.append(store.open_session(TIMEOUT_MS))
        store.close()
        store = ZnodeStore(SqliteJournal(path), clock)
        given.append(store.open_session(TIMEOUT_MS))
    store.close()
    assert sorted(set(given)) == given


def test_acls_survive_a_restart_and_not_their_nodes(tmp_path: Path) -> None:
    path, clock = str(tmp_path / "store"), ManualClock()
    own = (NodeAclEntry(31, "sasl", "kafka"),)
    store = ZnodeStore(SqliteJournal(path), clock)
    session_id = store.open_session(TIMEOUT_MS)
    store.apply(session_id, Create("/a", acl=own))
    store.apply(session_id, Create("/b"))
    store.apply(session_id, SetAcl("/b", own))
    store.apply(session_id, Create("/gone", acl=own))
    store.apply(session_id, Delete("/gone"))
    store.apply(session_id, Create("/gone"))
    store.close()
    store = ZnodeStore(SqliteJournal(path), clock)
    found = {path: store.acl(session_id, path) for path in ("/a", "/b", "/gone", "/")}
    assert {path: acl for path, (acl, _) in found.items()} == {
        "/a": own,
        "/b": own,
        "/gone": OPEN_ACL,
        "/": OPEN_ACL,
    }
    assert [stat.acl_version for _, stat in found.values()] == [0, 1, 0, 0]
    with pytest.raises(BadVersion):
        store.apply(session_id, SetAcl("/b", OPEN_ACL, 0))
    store.apply(session_id, SetAcl("/b", OPEN_ACL, 1))
    store.close()
    store = ZnodeStore(SqliteJournal(path), clock)
    assert store.acl(session_id, "/b")[0] == OPEN_ACL
    store.close()


def test_what_a_store_keeps_is_for_its_owner_alone(tmp_path: Path) -> None:
    """It has credentials of users, and the secret of the passwords of sessions."""
    path = tmp_path / "znodes.db"
    for _ in range(2):
        store = ZnodeStore(SqliteJournal(str(path)), ManualClock())
        store.open_session(TIMEOUT_MS)
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
        assert {"znodes.db": 0o600, "znodes.db-wal": 0o600} == modes
        store.close()
        # As earlier releases left it.
        path.chmod(0o644)
