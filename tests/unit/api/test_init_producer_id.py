"""InitProducerId: ids for producers without a transaction, refusals for the rest."""

from __future__ import annotations

from typing import Any

import pytest

from engine.api.dispatch import Rule
from engine.api.init_producer_id import InitProducerId
from engine.host.promise import Promise
from engine.transactions.producer_ids import ProducerIdBlock, ProducerIds
from engine.wire.structs import message_class
from tests.unit.api.data_stage import DataStage


def stage_with(block: ProducerIdBlock | None) -> DataStage:
    stage = DataStage()
    ids = ProducerIds(lambda: Promise.of(block), stage.clock)
    stage.table.serve("InitProducerId", InitProducerId(ids).handle, Rule.PER_RESOURCE)
    return stage


def init(stage: DataStage, version: int = 5, **fields: Any) -> tuple[int, int, int]:
    fields.setdefault("transactional_id", None)
    request = message_class("InitProducerIdRequest")(transaction_timeout_ms=1000, **fields)
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
        ({"transactional_id": "tx"}, 15),
    ],
)
def test_refusals(fields: dict[str, Any], code: int) -> None:
    assert (code, -1, -1) == init(stage_with(ProducerIdBlock(0, 1000)), **fields)


def test_without_a_block_the_client_is_to_come_again() -> None:
    assert (14, -1, -1) == init(stage_with(None))
