"""A broker of ours does among real ones what the real one did: their recorded session is played."""

from __future__ import annotations

import pytest

from engine.broker import isr_proposals
from tests.broker_sessions import (
    BROKER_IDS,
    CONTROLLER_ID,
    VERSION,
    differences,
    load_session,
    read_ask,
)
from tests.played_broker import PlayedBroker
from tests.scripts.test_scripts import (
    Fault,
    new_leaders_alone,
    no_divergence,
    truncating_to_the_watermark,
)

#: What is compared of a broker at least: requests that it sent, and answers that it gave.
FRAMES_COMPARED = {CONTROLLER_ID: 100, 2: 150, 3: 140}


@pytest.mark.parametrize("broker_id", BROKER_IDS)
def test_a_broker_asks_and_answers_as_the_recorded_one_did(broker_id: int) -> None:
    played = PlayedBroker(broker_id, load_session(VERSION))
    played.play()
    assert [] == played.differences
    assert FRAMES_COMPARED[broker_id] <= played.compared_count


def test_the_session_has_every_request_between_brokers() -> None:
    requested = {
        event.api_name
        for event in load_session(VERSION)
        if event.kind == "ask" and event.asker is not None
    }
    assert {
        "AllocateProducerIds",
        "AlterPartition",
        "ApiVersions",
        "ControlledShutdown",
        "Fetch",
        "LeaderAndIsr",
        "StopReplica",
        "UpdateMetadata",
    } == requested


def epochs_in_proposals(patch: pytest.MonkeyPatch) -> None:
    """Name an epoch for each broker of an in-sync set."""
    patch.setattr(isr_proposals, "_UNKNOWN_EPOCH", 40)


@pytest.mark.parametrize(
    ("broker_id", "fault"),
    [
        (CONTROLLER_ID, new_leaders_alone),
        (2, epochs_in_proposals),
        (2, truncating_to_the_watermark),
        (3, no_divergence),
    ],
    ids=lambda value: value if isinstance(value, int) else value.__name__,
)
def test_a_planted_fault_is_heard(
    broker_id: int, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    played = PlayedBroker(broker_id, load_session(VERSION))
    played.play()
    assert played.differences


def test_rows_without_an_order_are_compared_by_their_number() -> None:
    (frame, *_) = (
        event.frame
        for event in load_session(VERSION)
        if (event.kind, event.api_name) == ("ask", "LeaderAndIsr")
    )
    one, other = read_ask(frame), read_ask(frame)
    rows = other.message.topic_states[0].partition_states
    rows.reverse()
    assert [] == differences(one, other)
    rows[0].leader_epoch += 1
    (found,) = differences(one, other)
    assert "leader_epoch" in found
