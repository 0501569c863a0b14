"""Watches that stay, watches that are taken off, and nodes that the server fills itself."""

from __future__ import annotations

import struct

import pytest

from engine.limits import ZNODE_WATCHES_MAX
from engine.znode import watches
from engine.znode.errors import ZnodeLimitExceeded
from engine.znode.watches import WatchTable
from tests.unit.znode.zookeeper_replay import Client, Served, buffer, create_body, text, texts, told

_ADD, _CHECK, _REMOVE = 106, 17, 18
_CREATED, _DELETED, _DATA, _CHILDREN = 1, 2, 3, 4


def _typed(path: str, type_: int) -> bytes:
    return text(path) + struct.pack(">i", type_)


def _change(client: Client) -> None:
    assert 0 == client.ask(5, text("/a") + buffer(b"x") + struct.pack(">i", -1))[0]
    assert 0 == client.ask(1, create_body("/a/b"))[0]
    assert 0 == client.ask(2, text("/a/b") + struct.pack(">i", -1))[0]


def _events(client: Client) -> list[tuple[int, str]]:
    return [(type_, path) for _, type_, _, path in map(told, client.take())]


@pytest.fixture
def served() -> Served:
    served = Served()
    served.session().ask(1, create_body("/a"))
    return served


def test_a_persistent_watch_gets_every_change_of_its_node(served: Served) -> None:
    client, other = served.session(), served.session()
    assert (0, bytes(4)) == client.ask(_ADD, _typed("/a", 0))
    for _ in range(2):
        _change(other)
        assert [(_DATA, "/a"), (_CHILDREN, "/a"), (_CHILDREN, "/a")] == _events(client)


def test_a_recursive_watch_gets_the_changes_below_too(served: Served) -> None:
    client, other = served.session(), served.session()
    assert (0, bytes(4)) == client.ask(_ADD, _typed("/", 1))
    for _ in range(2):
        _change(other)
        assert [(_DATA, "/a"), (_CREATED, "/a/b"), (_DELETED, "/a/b")] == _events(client)


def test_a_client_gets_an_event_once_though_it_watches_twice(served: Served) -> None:
    client, other = served.session(), served.session()
    client.ask(_ADD, _typed("/", 1))
    client.ask(_ADD, _typed("/a", 0))
    client.ask(4, text("/a") + b"\1")
    _change(other)
    assert [(_DATA, "/a"), (_CREATED, "/a/b"), (_CHILDREN, "/a")] == _events(client)[:3]


def test_a_second_watch_of_a_node_takes_the_place_of_the_first(served: Served) -> None:
    client, other = served.session(), served.session()
    client.ask(_ADD, _typed("/a", 0))
    client.ask(_ADD, _typed("/a", 1))
    _change(other)
    assert [(_DATA, "/a"), (_CREATED, "/a/b"), (_DELETED, "/a/b")] == _events(client)
    client.ask(_REMOVE, _typed("/a", 3))
    assert served.store.watch_count == 0


@pytest.mark.parametrize(("type_", "left"), [(1, [_DATA]), (2, [_CHILDREN]), (3, [])])
def test_watches_are_taken_off_by_their_kind(served: Served, type_: int, left: list[int]) -> None:
    client, other = served.session(), served.session()
    client.ask(4, text("/a") + b"\1")
    client.ask(8, text("/a") + b"\1")
    other.ask(8, text("/a") + b"\1")
    assert (0, b"") == client.ask(_CHECK, _typed("/a", type_))
    assert (0, b"") == client.ask(_REMOVE, _typed("/a", type_))
    assert (-121, b"") == client.ask(_CHECK, _typed("/a", type_))
    _change(served.session())
    assert left == [type_ for type_, _ in _events(client)]
    assert [(_CHILDREN, "/a")] == _events(other)


def test_watches_of_children_and_data_are_not_persistent_ones(served: Served) -> None:
    client = served.session()
    client.ask(_ADD, _typed("/a", 0))
    assert -121 == client.ask(_REMOVE, _typed("/a", 1))[0]
    assert -121 == client.ask(_REMOVE, _typed("/a", 2))[0]
    assert 0 == client.ask(_REMOVE, _typed("/a", 3))[0]
    assert served.store.watch_count == 0


def test_a_client_that_comes_back_sets_persistent_watches_again(served: Served) -> None:
    client = served.session()
    client.ask(_ADD, _typed("/a", 0))
    client.connection.close("test")
    client.take()
    assert served.store.watch_count == 0
    again = served.client()
    again.connect(client.session_id, client.password)
    lists = texts() * 3 + texts("/a") + texts("/c")
    assert (0, b"") == again.ask(105, struct.pack(">q", served.store.zxid) + lists)
    served.session().ask(1, create_body("/c"))
    _change(served.session())
    assert [(_CREATED, "/c"), (_DATA, "/a"), (_CHILDREN, "/a"), (_CHILDREN, "/a")] == _events(again)


def test_events_of_nodes_that_a_client_may_not_read_are_kept_from_it(served: Served) -> None:
    client, owner = served.session(), served.session()
    owner.ask(100, struct.pack(">i", 0) + text("digest") + buffer(b"u:p"))
    client.ask(_ADD, _typed("/", 1))
    closed = struct.pack(">ii", 1, 31) + text("auth") + text("")
    assert 0 == owner.ask(1, text("/s") + buffer(b"") + closed + bytes(4))[0]
    assert 0 == owner.ask(5, text("/s") + buffer(b"x") + struct.pack(">i", -1))[0]
    assert 0 == owner.ask(1, text("/s/t") + buffer(b"") + closed + bytes(4))[0]
    assert 0 == owner.ask(2, text("/s/t") + struct.pack(">i", -1))[0]
    assert [] == _events(client)


def test_an_event_is_no_sign_of_life(served: Served) -> None:
    client, other = served.session(), served.session(20_000)
    client.ask(_ADD, _typed("/a", 0))
    served.clock.advance(5000)
    _change(other)
    served.clock.advance(1000)
    assert client.session_id in served.store.expire_sessions()


def test_persistent_watches_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ZNODE_WATCHES_MAX > 2
    monkeypatch.setattr(watches, "ZNODE_WATCHES_MAX", 2)
    table = WatchTable()
    for path in ("/a", "/b", "/a"):
        table.add_persistent(1, path, print, is_recursive=False)
    with pytest.raises(ZnodeLimitExceeded):
        table.add_persistent(1, "/c", print, is_recursive=False)
    table.drop_session(1)
    assert 0 == len(table)


def test_a_client_is_shown_what_it_is(served: Served) -> None:
    client = served.session()
    client.ask(100, struct.pack(">i", 0) + text("digest") + buffer(b"u:p"))
    code, body = client.ask(107)
    assert (0, 2) == (code, struct.unpack_from(">i", body)[0])
    assert body.endswith(text("digest") + text("u"))


def test_statistics_of_a_quota_are_counted_when_they_are_read(served: Served) -> None:
    client = served.session()
    for path in ("/zookeeper", "/zookeeper/quota", "/zookeeper/quota/a"):
        client.ask(1, create_body(path))
    path = "/zookeeper/quota/a/zookeeper_stats"
    client.ask(1, create_body(path, b"count=0,bytes=0"))
    client.ask(1, create_body("/a/b", b"four"))
    code, body = client.ask(4, text(path) + b"\0")
    counted = b"count=2,bytes=4"
    assert (0, buffer(counted)) == (code, body[: 4 + len(counted)])
    client.ask(2, text("/a/b") + struct.pack(">i", -1))
    client.ask(2, text("/a") + struct.pack(">i", -1))
    assert client.ask(4, text(path) + b"\0")[1].startswith(buffer(b"count=0,bytes=0"))


def test_the_configuration_of_a_single_server_is_empty(served: Served) -> None:
    code, body = served.session().ask(4, text("/zookeeper/config") + b"\1")
    assert (0, buffer(b"")) == (code, body[:4])
    assert -1 == struct.unpack_from(">qqqqiii", body, 4)[6]
    assert not served.store.watch_count
