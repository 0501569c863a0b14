"""InitProducerId: ids for producers, with a transactional id those of its coordinator."""

from __future__ import annotations

from typing import Any

import pytest

from engine.api.dispatch import Rule
from engine.api.init_producer_id import InitProducerId
from engine.host.promise import Promise
from engine.transactions.producer_ids import ProducerIdBlock, ProducerIds
from engine.wire.structs import message_class
from tests.unit.api.data_stage import DataStage
from tests.unit.transactions.stage import Stage as Coordinator


def stage_with(block: ProducerIdBlock | None) -> DataStage:
    stage = DataStage()
    ids = ProducerIds(lambda: Promise.of(block), stage.clock)
    producers = Coordinator().coordinator.producers
    handler = InitProducerId(ids, producers)
    stage.table.serve("InitProducerId", handler.handle, Rule.PER_RESOURCE)
    return stage


def init(stage: DataStage, version: int = 5, **fields: Any) -> tuple[int, int, int]:
    fields.setdefault("transactional_id", None)
    fields.setdefault("transaction_timeout_ms", 1000)
    request = message_class("InitProducerIdRequest")(**fields)
    found = stage.ask("InitProducerId", version, request)
    return found.error_code, found.producer_id, found.producer_epoch


def test_every_producer_gets_an_id_of_its_own() -> None:
    stage = stage_with(ProducerIdBlock(4000, 1000))
    assert [(0, 4000 + version, 0) for version in range(6)] == [
        init(stage, version) for version in range(6)
    ]


def test_a_producer_that_had_an_id_gets_a_new_one() -> None:
    stage = stage_with(ProducerIdBlock(0, 1000))
    assert (0, 0, 0) == init(stage, producer_id=77, producer_epoch=3)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"producer_id": 5}, 42),
        ({"producer_epoch": 5}, 42),
        ({"transactional_id": ""}, 42),
        ({"transactional_id": "tx", "producer_id": 3}, 42),
        ({"transactional_id": "tx", "transaction_timeout_ms": 900_001}, 50),
    ],
)
def test_refusals(fields: dict[str, Any], code: int) -> None:
    assert (code, -1, -1) == init(stage_with(ProducerIdBlock(0, 1000)), **fields)


def test_a_transactional_id_is_asked_of_its_coordinator() -> None:
    stage = stage_with(ProducerIdBlock(0, 1000))
    assert [(0, 100, 0), (0, 100, 1)] == [init(stage, transactional_id="x") for _ in range(2)]
    own = {"producer_id": 100, "producer_epoch": 1}
    assert (0, 100, 2) == init(stage, transactional_id="x", **own)


def test_before_version_4_a_fenced_producer_has_an_invalid_epoch() -> None:
    stage = stage_with(ProducerIdBlock(0, 1000))
    for _ in range(3):
        init(stage, transactional_id="x")
    other = {"producer_id": 77, "producer_epoch": 0}
    assert (47, -1, -1) == init(stage, 3, transactional_id="x", **other)
    assert (90, -1, -1) == init(stage, 4, transactional_id="x", **other)


def test_without_a_block_the_client_is_to_come_again() -> None:
    assert (14, -1, -1) == init(stage_with(None))
