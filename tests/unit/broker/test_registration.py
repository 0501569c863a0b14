"""Who has a broker's id: this session, another, or nobody any more."""

from __future__ import annotations

import pytest

from engine.broker.registration import BrokerIdInUse, create_persistent_paths, register
from engine.host.coroutine import drive
from engine.host.memory import ManualClock
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.memory_journal import MemoryJournal
from engine.znode.model import Stat
from engine.znode.store import ZnodeStore
from engine.znode.values import BrokerRegistration

TIMEOUT_MS = 6000
HERE = BrokerRegistration(("PLAINTEXT://h:9092",), {"PLAINTEXT": "PLAINTEXT"}, "h", 9092, 7)


class Forgetful(EmbeddedZnodeClient):
    """A client that looks for a node just after its owner's session has ended."""

    async def exists(self, path: str) -> Stat | None:
        await self.delete(path)
        return await super().exists(path)


def _clients() -> tuple[EmbeddedZnodeClient, Forgetful]:
    store = ZnodeStore(MemoryJournal(), ManualClock())
    first, second = EmbeddedZnodeClient(store, TIMEOUT_MS), Forgetful(store, TIMEOUT_MS)
    drive(first.connect()).result()
    drive(second.connect()).result()
    drive(create_persistent_paths(first)).result()
    return first, second


def test_what_a_session_has_said_already_stands() -> None:
    first, _ = _clients()
    epoch = drive(register(first, 1, HERE)).result()
    assert epoch == drive(register(first, 1, HERE)).result()


def test_an_id_that_another_session_has_is_refused_even_if_it_ends_then() -> None:
    first, second = _clients()
    drive(register(first, 1, HERE)).result()
    with pytest.raises(BrokerIdInUse):
        drive(register(second, 1, HERE)).result()
