"""The store behind ZooKeeper's protocol: real clients' frames, sessions, bad bytes."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from engine.limits import ZOOKEEPER_FRAME_BYTES_MAX
from engine.znode.model import Create
from tests.unit.znode.zookeeper_replay import (
    OPEN_ACL,
    Client,
    Served,
    buffer,
    create_body,
    masked,
    text,
    texts,
    told,
)

FRAMES = json.loads(Path(__file__).with_name("zookeeper_frames.json").read_text())


class Replay:
    """Sends recorded requests, with our session and our transactions in place of theirs."""

    def __init__(self) -> None:
        self.served = Served()
        self.client = self.served.client()
        self.zxids: dict[bytes, bytes] = {}
        self.sessions: dict[bytes, bytes] = {}
        self.type = 0
        self.is_connecting = True

    def request(self, frame: bytes) -> list[bytes]:
        if frame[:4] == bytes(4) and len(frame) in (44, 45):
            self.client = self.served.client()
            self.is_connecting = True
            session = self.sessions.get(frame[16:44], frame[16:44])
            return self.client.send(frame[:16] + session + frame[44:])
        self.type = struct.unpack_from(">i", frame, 4)[0]
        if self.type == 101:
            frame = frame[:8] + self.zxids[frame[8:16]] + frame[16:]
        return self.client.send(frame)

    def same(self, real: bytes, ours: bytes) -> None:
        if self.is_connecting:
            self.is_connecting = False
            self.sessions[real[8:36]] = ours[8:36]
            # A session that is over has neither id nor password, at both.
            is_over = real[4:8] == bytes(4)
            assert (real[:8], real[36:], len(real)) == (ours[:8], ours[36:], len(ours))
            assert is_over == (ours[8:16] == bytes(8))
            return
        self.zxids[real[4:12]] = ours[4:12]
        assert masked(real, self.type) == masked(ours, self.type)


@pytest.mark.parametrize("who", FRAMES)
def test_what_real_clients_say_is_answered_as_zookeeper_does(who: str) -> None:
    replay = Replay()
    answers: list[bytes] = []
    for line in FRAMES[who]:
        frame = bytes.fromhex(line[1:])
        if line[0] == ">":
            assert answers == []
            answers = replay.request(frame)
        else:
            replay.same(frame, answers.pop(0))
    assert answers == []


def test_timeouts_are_kept_between_two_and_twenty_ticks() -> None:
    served = Served()
    assert [served.client().connect(timeout_ms=ms) for ms in (1, 6000, 10**9)] == [
        4000,
        6000,
        40000,
    ]


def test_a_session_and_its_nodes_outlive_a_connection_until_the_timeout() -> None:
    served = Served()
    first = served.session()
    first.ask(1, create_body("/e", flags=1))
    first.connection.close("cable")
    served.timers.run_until_idle()
    served.clock.advance(5999)
    served.store.expire_sessions()
    second = served.client()
    assert second.connect(first.session_id, first.password) == 6000
    assert second.session_id == first.session_id
    assert second.ask(3, text("/e") + b"\0")[0] == 0
    second.connection.close("cable")
    served.timers.run_until_idle()
    served.clock.advance(6000)
    served.store.expire_sessions()
    third = served.client()
    assert third.connect(first.session_id, first.password) == 0
    served.timers.run_until_idle()
    assert third.closed
    assert served.session().ask(3, text("/e") + b"\0")[0] == -101


def test_a_silent_client_is_cut_off_when_its_session_expires() -> None:
    served = Served()
    client = served.session()
    served.clock.advance(5000)
    client.send(struct.pack(">ii", -2, 11))
    served.clock.advance(5000)
    served.store.expire_sessions()
    served.timers.run_until_idle()
    assert client.closed == []
    served.clock.advance(6000)
    served.store.expire_sessions()
    served.timers.run_until_idle()
    assert len(client.closed) == 1


def test_a_session_moves_only_with_its_password() -> None:
    served = Served()
    client = served.session()
    assert served.client().connect(client.session_id, b"x" * 16) == 0
    served.timers.run_until_idle()
    assert client.closed == []
    moved = served.client()
    assert moved.connect(client.session_id, client.password) == 6000
    served.timers.run_until_idle()
    assert len(client.closed) == 1
    assert moved.ask(9, text("/"))[0] == 0


def test_a_session_outlives_the_process_of_its_server() -> None:
    served = Served()
    client = served.session()
    client.ask(1, create_body("/e", flags=1))
    served.restart()
    impostor = served.client()
    assert impostor.connect(client.session_id, b"x" * 16) == 0
    again = served.client()
    assert again.connect(client.session_id, client.password) == 6000
    assert (again.session_id, again.password) == (client.session_id, client.password)
    assert again.ask(3, text("/e") + b"\0")[0] == 0


def test_watches_go_with_their_connection_and_are_set_again() -> None:
    served = Served()
    client = served.session()
    client.ask(1, create_body("/a"))
    client.ask(4, text("/a") + b"\1")
    seen = served.store.zxid
    client.connection.close("cable")
    served.timers.run_until_idle()
    other = served.session()
    other.ask(5, text("/a") + buffer(b"x") + struct.pack(">i", -1))
    back = served.client()
    back.connect(client.session_id, client.password)
    assert back.take() == []
    event, answer = back.send(
        struct.pack(">iiq", -8, 101, seen) + texts("/a") + texts() + texts("/")
    )
    assert told(event) == (-1, 3, 3, "/a")
    assert struct.unpack_from(">iqi", answer)[::2] == (-8, 0)
    other.ask(1, create_body("/b"))
    assert [told(frame) for frame in back.take()] == [(-1, 4, 3, "/")]


def test_an_event_comes_before_the_answer_that_shows_it() -> None:
    served = Served()
    reader, writer = served.session(), served.session()
    reader.ask(3, text("/n") + b"\1")
    # Both are on their way before the server looks.
    writer.connection.send([struct.pack(">ii", 9, 1) + create_body("/n")])
    event, answer = reader.send(struct.pack(">ii", 2, 3) + text("/n") + b"\0")
    assert told(event) == (-1, 1, 3, "/n")
    assert struct.unpack_from(">iqi", answer)[::2] == (2, 0)


def test_a_removed_node_notifies_a_client_once() -> None:
    served = Served()
    client = served.session()
    client.ask(1, create_body("/a"))
    client.ask(4, text("/a") + b"\1")
    client.ask(8, text("/a") + b"\1")
    event, _ = client.send(struct.pack(">ii", 9, 2) + text("/a") + struct.pack(">i", -1))
    assert told(event) == (-1, 2, 3, "/a")


@pytest.mark.parametrize(
    ("type_", "body", "code"),
    [
        (1, text("/p") + buffer(b"") + struct.pack(">ii", 0, 0), -114),
        (1, text("/p") + buffer(b"") + OPEN_ACL.replace(b"anyone", b"nobody") + bytes(4), -114),
        (1, create_body("/p", flags=4), -8),
        (1, create_body("/p", b"x" * (1 << 20) + b"x"), -8),
        (1, create_body("p"), -8),
        (7, text("/") + OPEN_ACL + struct.pack(">i", 3), -103),
        (7, text("/") + struct.pack(">ii", 0, 0), -114),
        (16, texts(), -123),
        (17, text("/") + struct.pack(">i", 3), -121),
        (18, text("/") + struct.pack(">i", 1), -121),
        (18, text("/") + struct.pack(">i", 4), -8),
        (106, text("/") + struct.pack(">i", 2), -8),
        (106, text("x") + bytes(4), -8),
        (9999, b"", -6),
        (13, text("/") + bytes(4), -6),
    ],
)
def test_what_is_not_carried_out_has_zookeepers_code(type_: int, body: bytes, code: int) -> None:
    served = Served()
    client = served.session()
    assert client.ask(type_, body) == (code, b"")
    assert client.ask(9, text("/"))[0] == 0


def test_an_acl_refused_within_a_multi_refuses_all_of_it() -> None:
    client = Served().session()
    head = struct.pack(">i?i", 1, False, -1)
    closed_acl = text("/b") + buffer(b"") + struct.pack(">ii", 0, 0)
    body = head + create_body("/a") + head + closed_acl + head + create_body("/c")
    code, answer = client.ask(14, body + struct.pack(">i?i", -1, True, -1))
    found = [struct.unpack_from(">i?ii", answer, at) for at in (0, 13, 26)]
    assert (code, [each[3] for each in found]) == (0, [0, -114, -2])
    assert client.ask(3, text("/a") + b"\0")[0] == -101


def test_an_unknown_scheme_ends_the_connection() -> None:
    served = Served()
    client = served.session()
    (answer,) = client.send(struct.pack(">iii", -4, 100, 0) + text("kerberos") + buffer(b""))
    assert struct.unpack_from(">iqi", answer)[::2] == (-4, -115)
    assert len(client.closed) == 1


def test_a_client_of_a_later_state_is_turned_away() -> None:
    served = Served()
    client = served.client()
    frame = struct.pack(">iqiq", 0, served.store.zxid + 1, 6000, 0) + buffer(bytes(16))
    assert client.send(frame) == []
    assert len(client.closed) == 1


def _bad_frames() -> list[bytes]:
    head = struct.pack(">ii", 1, 4)
    multi = struct.pack(">ii", 1, 14)
    return [
        b"",
        b"\0\0\0",
        head,
        head + struct.pack(">i", 1 << 30),
        head + struct.pack(">i", -2),
        head + text("/a"),
        head + struct.pack(">i", -1) + b"\0",
        head + struct.pack(">i", 2) + b"/\xff\0",
        struct.pack(">ii", 1, 1) + text("/a") + buffer(b"") + struct.pack(">i", 1 << 28),
        struct.pack(">iiq", 1, 101, 0) + struct.pack(">i", 1 << 30),
        multi + struct.pack(">i?i", 4, False, -1) + text("/") + b"\0",
        multi + struct.pack(">i?i", 1, False, -1),
        struct.pack(">ii", 1, 22) + struct.pack(">i?i", 1, False, -1) + create_body("/a"),
        struct.pack(">ii", 1, 9) + bytes(ZOOKEEPER_FRAME_BYTES_MAX),
    ]


@pytest.mark.parametrize("number", range(len(_bad_frames())))
def test_bytes_that_are_not_zookeepers_close_the_connection(number: int) -> None:
    served = Served()
    client = served.session()
    assert client.send(_bad_frames()[number]) == []
    assert len(client.closed) == 1
    # The session waits for its client, as after any lost connection.
    assert served.client().connect(client.session_id, client.password) == 6000


def test_more_operations_than_a_multi_may_have_close_the_connection() -> None:
    client = Served().session()
    one = struct.pack(">i?i", 13, False, -1) + text("/") + bytes(4)
    assert client.send(struct.pack(">ii", 1, 14) + one * 10_001) == []
    assert len(client.closed) == 1


def test_an_answer_of_many_reads_is_bounded() -> None:
    client = Served().session()
    client.ask(1, create_body("/big", b"x" * (1 << 20)))
    one = struct.pack(">i?i", 4, False, -1) + text("/big") + b"\0"
    code, body = client.ask(22, one * 5 + struct.pack(">i?i", -1, True, -1))
    assert (code, body) == (-8, b"")


def test_what_others_write_in_this_process_is_seen() -> None:
    served = Served()
    client = served.session()
    client.ask(8, text("/") + b"\1")
    me = served.store.open_session(6000)
    served.store.apply(me, Create("/x"))
    assert [told(frame) for frame in client.take()] == [(-1, 4, 3, "/")]


def test_closing_a_session_removes_its_nodes_and_answers() -> None:
    served = Served()
    client: Client = served.session()
    client.ask(1, create_body("/e", flags=1))
    assert client.ask(-11) == (0, b"")
    assert len(client.closed) == 1
    assert served.session().ask(3, text("/e") + b"\0")[0] == -101


@pytest.mark.parametrize(
    ("type_", "body"),
    [(9, text("/")), (14, struct.pack(">ibi", -1, 1, -1)), (4, text("/") + b"\0")],
)
def test_any_request_is_a_sign_of_life(type_: int, body: bytes) -> None:
    """A sync, an empty multi and a read keep a session as a ping does."""
    served = Served()
    client = served.session()
    served.clock.advance(5999)
    assert 0 == client.ask(type_, body)[0]
    served.clock.advance(5999)
    assert [] == served.store.expire_sessions()
    served.clock.advance(1)
    assert [client.session_id] == served.store.expire_sessions()
