"""The client that asks again what was lost with its connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from engine.host.coroutine import drive
from engine.host.memory import ManualClock
from engine.limits import ZNODE_REQUEST_BYTES_MAX
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.errors import (
    BadVersion,
    NodeExists,
    NoNode,
    SessionExpired,
    ZnodeConnectionLost,
    ZnodeLimitExceeded,
)
from engine.znode.memory_journal import MemoryJournal
from engine.znode.model import Check, Create, Delete, Operation, SessionEvent, SetData, WatchKind
from engine.znode.request_size import request_bytes
from engine.znode.retrying_client import RetryingZnodeClient
from engine.znode.store import ZnodeStore
from tests.unit.znode.stores import TIMEOUT_MS, Told

BEFORE, BEHIND = False, True


class LossyClient(EmbeddedZnodeClient):
    """Loses its connection at the next calls, before or behind the work of each."""

    def __init__(self, store: ZnodeStore) -> None:
        super().__init__(store, TIMEOUT_MS)
        self.losses: list[bool] = []

    async def _losing(self, work: Any) -> Any:
        loss = self.losses.pop(0) if self.losses else None
        if loss is BEFORE:
            work.close()
            raise ZnodeConnectionLost("cut")
        result = await work
        if loss is BEHIND:
            raise ZnodeConnectionLost("cut")
        return result

    async def get(self, path: str) -> Any:
        return await self._losing(super().get(path))

    async def create(self, path: str, data: bytes | None = None, **more: Any) -> Any:
        return await self._losing(super().create(path, data, **more))

    async def set(self, path: str, data: bytes | None, version: int = -1) -> Any:
        return await self._losing(super().set(path, data, version))

    async def delete(self, path: str, version: int = -1) -> Any:
        return await self._losing(super().delete(path, version))

    async def children(self, path: str) -> Any:
        return await self._losing(super().children(path))

    async def multi(self, operations: Sequence[Operation]) -> Any:
        return await self._losing(super().multi(operations))


class Stage:
    """A store, a client that loses its connection, and the patient one over it."""

    def __init__(self) -> None:
        self.store = ZnodeStore(MemoryJournal(), ManualClock())
        self.lossy = LossyClient(self.store)
        self.patient = RetryingZnodeClient(self.lossy)
        self.do(self.patient.connect())

    def do(self, work: Any, *losses: bool) -> Any:
        self.lossy.losses = list(losses)
        return drive(work).result()


@pytest.mark.parametrize("loss", [BEFORE, BEHIND])
def test_a_lost_read_is_asked_again(loss: bool) -> None:
    stage = Stage()
    stage.do(stage.patient.create("/a", b"1"))
    assert b"1" == stage.do(stage.patient.get("/a"), loss, loss)[0]
    assert ["a"] == stage.do(stage.patient.children("/"), loss)


@pytest.mark.parametrize("loss", [BEFORE, BEHIND])
def test_a_lost_write_is_done_once(loss: bool) -> None:
    stage = Stage()
    assert "/a" == stage.do(stage.patient.create("/a", b"1"), loss)
    assert 1 == stage.do(stage.patient.set("/a", b"2", 0), loss).version
    operations = [Check("/a", 1), SetData("/a", b"3", 1), Create("/b", b"4", ephemeral=True)]
    _, stat, path = stage.do(stage.patient.multi(operations), loss)
    assert (2, "/b") == (stat.version, path)
    assert b"3" == stage.do(stage.patient.get("/a"))[0]
    stage.do(stage.patient.multi([Delete("/a", 2), Delete("/b")]), loss)
    assert [] == stage.do(stage.patient.children("/"))


def test_several_operations_on_one_node_are_found_done_by_the_last() -> None:
    stage = Stage()
    operations = [Create("/a", ephemeral=True), SetData("/a", b"1")]
    path, stat = stage.do(stage.patient.multi(operations), BEHIND)
    assert ("/a", 1) == (path, stat.version)


def test_what_another_wrote_meanwhile_is_not_taken_for_the_own() -> None:
    stage = Stage()
    stage.do(stage.patient.create("/a", b"1"))
    stage.do(stage.patient.set("/a", b"other", 0))
    with pytest.raises(BadVersion):
        stage.do(stage.patient.set("/a", b"2", 0), BEFORE)
    with pytest.raises(NodeExists):
        stage.do(stage.patient.create("/a", b"1"), BEFORE)
    other = EmbeddedZnodeClient(stage.store, TIMEOUT_MS)
    drive(other.connect()).result()
    drive(other.create("/mine", b"1", ephemeral=True)).result()
    with pytest.raises(NodeExists):
        stage.do(stage.patient.create("/mine", b"1", ephemeral=True), BEFORE)


def _with_note(operation: Operation, number: int = 0) -> list[Operation]:
    return [operation, Create("/notes/c_", b"of %d" % number, sequential=True)]


@pytest.mark.parametrize("loss", [BEFORE, BEHIND])
def test_a_lost_write_is_done_once_with_its_sequential_node(loss: bool) -> None:
    stage = Stage()
    stage.do(stage.patient.create("/notes"))
    stage.do(stage.patient.create("/notes/c", b"of 0"))
    write = stage.patient.multi
    assert ["/a", "/notes/c_0000000001"] == stage.do(write(_with_note(Create("/a"))), loss)
    stat, path = stage.do(write(_with_note(SetData("/a", b"2", 0))), loss)
    assert (1, "/notes/c_0000000002") == (stat.version, path)
    assert [None, "/notes/c_0000000003"] == stage.do(write(_with_note(Delete("/a", 1))), loss)
    assert 4 == len(stage.do(stage.patient.children("/notes")))


def test_a_sequential_node_of_another_transaction_is_not_taken_for_the_own() -> None:
    stage = Stage()
    stage.do(stage.patient.create("/notes"))
    stage.do(stage.patient.multi(_with_note(Create("/a", b"1"))))
    stage.do(stage.patient.set("/a", b"2", 0))
    stage.do(stage.patient.multi(_with_note(Create("/b"), 1)))
    for refused in (SetData("/a", b"2", 0), Check("/a", 0)):
        with pytest.raises(BadVersion):
            stage.do(stage.patient.multi(_with_note(refused)), BEFORE)
    stage.do(stage.patient.delete("/a"))
    with pytest.raises(NoNode):
        stage.do(stage.patient.multi(_with_note(Delete("/a"), 2)), BEFORE)
    assert 2 == len(stage.do(stage.patient.children("/notes")))


def test_a_request_that_ends_each_connection_is_refused_in_the_end() -> None:
    stage = Stage()
    too_large = [Create(f"/n{number}", bytes(300_000)) for number in range(4)]
    with pytest.raises(ZnodeLimitExceeded, match="bytes in a request"):
        stage.do(stage.patient.multi(too_large), *[BEFORE] * 3)
    # A server that takes more is sent it.
    assert 4 == len(stage.do(stage.patient.multi(too_large), *[BEFORE] * 2))


def test_a_request_of_any_size_within_the_bound_is_repeated_for_as_long_as_it_takes() -> None:
    stage = Stage()
    create = Create("/n", bytes(ZNODE_REQUEST_BYTES_MAX - 66))
    assert ZNODE_REQUEST_BYTES_MAX == request_bytes([create])
    assert ["/n"] == stage.do(stage.patient.multi([create]), *[BEFORE] * 9)
    above = [SetData("/n", bytes(ZNODE_REQUEST_BYTES_MAX - 65))]
    with pytest.raises(ZnodeLimitExceeded):
        stage.do(stage.patient.multi(above), *[BEFORE] * 9)


def test_the_end_of_the_session_ends_the_patience() -> None:
    stage = Stage()
    told: list[SessionEvent] = []
    stage.patient.on_session = told.append
    stage.store.close_session(stage.patient.session_id)
    with pytest.raises(SessionExpired):
        stage.do(stage.patient.get("/"), BEFORE)


def test_a_watch_is_set_by_the_client_below() -> None:
    stage = Stage()
    told = Told()
    stage.do(stage.patient.watch("/a", WatchKind.DATA, told.watcher()))
    stage.do(stage.patient.create("/a"))
    assert 1 == len(told.events)
    assert stage.do(stage.patient.exists("/a")) is not None
    stage.do(stage.patient.delete("/a"))
    stage.do(stage.patient.close())
