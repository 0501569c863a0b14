"""What a forked child is refused: sockets and threads of its parent."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator

import pytest

from engine.client.blocking import KafkaClient
from engine.client.settings import Address
from engine.host import process_guard
from engine.host.owner_thread import OwnerThread
from engine.host.process_guard import ProcessGuard, UsedAfterFork
from engine.host.real_streams import RealStreams
from tests.client_session import FakeClock, FixedEntropy


@pytest.fixture
def as_child(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def become() -> None:
        monkeypatch.setattr(process_guard.os, "getpid", lambda: 4711)

    return become


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_the_error_names_both_processes_and_what_to_do(as_child: Callable[[], None]) -> None:
    guard, maker = ProcessGuard(), os.getpid()
    guard.check()
    assert guard.is_in_creating_process
    as_child()
    assert not guard.is_in_creating_process
    with pytest.raises(UsedAfterFork, match=f"process 4711 uses .* process {maker} made") as caught:
        guard.check()
    assert "create the client in the child" in (caught.value.hint or "")


def test_streams_of_the_parent_neither_connect_nor_send_nor_wait(
    as_child: Callable[[], None], port: int
) -> None:
    streams = RealStreams.create_wakeable()
    stream = streams.connect("127.0.0.1", port)
    assert ["opened"] == [event.kind for event in streams.wait(10_000)]
    as_child()
    for use in (
        lambda: streams.connect("127.0.0.1", port),
        lambda: stream.send([b"a"]),
        lambda: streams.wait(0),
        streams.wake,
    ):
        with pytest.raises(UsedAfterFork):
            use()
    # Closing is of the copies alone: the parent's selector, which is shared, keeps the socket.
    kept = len(streams._selector.get_map())
    stream.close()
    assert kept == len(streams._selector.get_map())
    streams.close()


def test_a_client_of_the_parent_fails_and_may_be_closed(as_child: Callable[[], None]) -> None:
    with KafkaClient(
        [Address("127.0.0.1", 1)],
        streams=RealStreams(),
        clock=FakeClock(),
        entropy=FixedEntropy(),
    ) as client:
        as_child()
        with pytest.raises(UsedAfterFork):
            client.view(None)


def test_a_thread_of_the_parent_takes_no_work_of_a_child(
    monkeypatch: pytest.MonkeyPatch, as_child: Callable[[], None]
) -> None:
    thread = OwnerThread(
        "kctl-owner", interrupt=lambda: None, proceed=lambda: None, idle=lambda: None
    )
    as_child()
    with pytest.raises(UsedAfterFork):
        thread.submit(lambda: None)
    with pytest.raises(UsedAfterFork):
        thread.close()
    monkeypatch.undo()
    thread.close()
