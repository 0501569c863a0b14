"""Producer ids: blocks, prefetching and refusals."""

from __future__ import annotations

import pytest

from engine.host.memory import ManualClock
from engine.host.promise import Promise
from engine.limits import PRODUCER_ID_RETRY_MS
from engine.transactions.producer_ids import ProducerIdBlock, ProducerIds, ProducerIdsNotReady


class Controller:
    """Gives blocks when the test says so."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.requested: list[Promise[ProducerIdBlock | None]] = []
        self.ids = ProducerIds(self.ask, self.clock)

    def ask(self) -> Promise[ProducerIdBlock | None]:
        self.requested.append(Promise())
        return self.requested[-1]

    def give(self, first_id: int, size: int = 1000) -> None:
        self.requested.pop(0).keep(ProducerIdBlock(first_id, size))

    def refuse(self) -> None:
        self.requested.pop(0).keep(None)

    def is_waiting(self) -> bool:
        with pytest.raises(ProducerIdsNotReady) as refused:
            self.ids.generate()
        return refused.value.code == 14


def test_ids_come_from_the_controllers_block() -> None:
    controller = Controller()
    assert controller.is_waiting()
    assert controller.is_waiting()
    assert 1 == len(controller.requested)
    controller.give(5000)
    assert [5000, 5001] == [controller.ids.generate() for _ in range(2)]


def test_the_next_block_is_requested_before_the_last_id() -> None:
    controller = Controller()
    controller.ids.request_next_block()
    controller.give(0, 10)
    assert list(range(9)) == [controller.ids.generate() for _ in range(9)]
    assert 0 == len(controller.requested)
    assert 9 == controller.ids.generate()
    assert 1 == len(controller.requested)
    controller.give(50, 10)
    assert list(range(50, 60)) == [controller.ids.generate() for _ in range(10)]


def test_a_refused_ask_is_repeated_after_a_pause() -> None:
    controller = Controller()
    controller.ids.request_next_block()
    controller.refuse()
    assert controller.is_waiting()
    assert [] == controller.requested
    controller.clock.advance(PRODUCER_ID_RETRY_MS)
    assert controller.is_waiting()
    controller.give(0)
    assert 0 == controller.ids.generate()


@pytest.mark.parametrize("first_id", [-1, 5, (1 << 63) - 1])
def test_a_block_that_would_repeat_ids_is_not_used(first_id: int) -> None:
    controller = Controller()
    controller.ids.request_next_block()
    controller.give(0, 10)
    for _ in range(10):
        controller.ids.generate()
    controller.give(first_id, 10)
    assert controller.is_waiting()


def test_an_empty_block_is_not_used() -> None:
    controller = Controller()
    controller.ids.request_next_block()
    controller.give(0, 0)
    assert controller.is_waiting()


def test_a_block_that_is_there_at_once_is_used_at_once() -> None:
    given = iter([ProducerIdBlock(0, 2), ProducerIdBlock(2, 2)])
    ids = ProducerIds(lambda: Promise.of(next(given)), ManualClock())
    assert [0, 1, 2] == [ids.generate() for _ in range(3)]
