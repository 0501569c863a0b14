"""Transactional batches wait for their coordinator: the questions, and the answers to clients."""

from __future__ import annotations

from typing import Any

import pytest

from engine.model import TopicPartition
from engine.replication.partition_types import PartitionState
from tests.unit.api.data_stage import T0, DataStage
from tests.unit.log.writing import end_of_transaction, sent, sent_by

T1 = TopicPartition("t", 1)
P = 7


def stage_with(code: int = 0) -> DataStage:
    stage = DataStage()
    stage.coordinator_code = code
    return stage


def produced(
    stage: DataStage, sequence: int = 0, *, version: int = 9, epoch: int = 0, **more: Any
) -> list[tuple[int, str | None]] | None:
    """Return codes and messages of one transactional batch; None while nothing was answered."""
    batch = sent_by(P, sequence, producer_epoch=epoch, is_transactional=True)
    more.setdefault("transactional_id", "x")
    found = stage.produce(batch, version=version, **more)
    return found and [(row.error_code, row.error_message) for row in found]


def end_offset(stage: DataStage) -> int:
    return stage.manager.find(T0).log.log_end_offset


def mark(stage: DataStage, epoch: int = 0) -> None:
    log = stage.manager.find(T0).log
    log.append_as_follower(_placed(end_of_transaction(P, epoch=epoch), log.log_end_offset), 1)


def _placed(batch: memoryview, offset: int) -> memoryview:
    raw = bytearray(batch)
    raw[0:8] = offset.to_bytes(8, "big")
    raw[12:16] = (0).to_bytes(4, "big")
    return memoryview(raw)


def test_the_first_batch_is_asked_about_and_those_behind_it_are_not() -> None:
    stage = stage_with()
    assert [(0, None)] == produced(stage, 0)
    assert [(0, None)] == produced(stage, 1)
    assert [("x", P, 0)] == stage.questions
    assert 2 == end_offset(stage)


def test_each_transaction_is_asked_about() -> None:
    stage = stage_with()
    produced(stage, 0)
    mark(stage)
    assert [(0, None)] == produced(stage, 1)
    assert 2 == len(stage.questions)


def test_two_partitions_are_one_question() -> None:
    stage = stage_with()
    batches = [sent_by(P, 0, is_transactional=True) for _ in range(2)]
    found = stage.produce(*batches, transactional_id="x")
    assert [0, 0] == [row.error_code for row in found]
    assert 1 == len(stage.questions)


@pytest.mark.parametrize(
    ("said", "version", "code", "message"),
    [
        (120, 10, 48, "Partition was not added to the transaction"),
        (48, 10, 48, "Partition was not added to the transaction"),
        (120, 11, 120, None),
        (90, 11, 47, None),
        (49, 11, 49, None),
        (51, 11, 19, "CONCURRENT_TRANSACTIONS"),
        (14, 11, 19, "COORDINATOR_LOAD_IN_PROGRESS"),
        (15, 11, 19, "COORDINATOR_NOT_AVAILABLE"),
        (16, 9, 19, "NOT_COORDINATOR"),
        (13, 9, 19, "NETWORK_EXCEPTION"),
    ],
)
def test_what_the_coordinator_says_is_put_into_words_of_produce(
    said: int, version: int, code: int, message: str | None
) -> None:
    stage = stage_with(said)
    ((found, text),) = produced(stage, version=version) or []
    assert code == found
    if code == 19:
        assert text == (
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {message}"
        )
    else:
        assert message == text
    assert 0 == end_offset(stage)


def test_a_batch_of_no_transaction_beside_it_is_written_anyway() -> None:
    stage = stage_with(120)
    transactional = sent_by(P, 0, is_transactional=True)
    found = stage.produce(transactional, sent(1), transactional_id="x")
    assert {0: 120, 1: 0} == {row.index: row.error_code for row in found}


def test_while_the_coordinator_is_asked_the_client_waits_and_so_do_its_next_requests() -> None:
    stage = stage_with()
    stage.answers = []
    assert None is produced(stage, 0)
    assert None is stage.produce(sent(1))
    assert 0 == end_offset(stage)
    stage.answers[0].keep({T0: 0})
    answered = [stage.answer("Produce", 9), stage.answer("Produce", 11)]
    offsets = [row.responses[0].partition_responses[0].base_offset for row in answered]
    assert [0, 1] == offsets


def test_a_marker_in_between_leaves_the_batch_out() -> None:
    stage = stage_with()
    stage.answers = []
    assert None is produced(stage, 0)
    mark(stage)
    stage.answers[0].keep({T0: 0})
    row = stage.answer("Produce", 9).responses[0].partition_responses[0]
    assert (48, 1) == (row.error_code, end_offset(stage))


def test_a_leader_that_resigns_in_between_writes_nothing() -> None:
    stage = stage_with()
    stage.answers = []
    assert None is produced(stage, 0)
    stage.manager.find(T0).become_follower(PartitionState(2, 5, (1, 2), 9, (1, 2)))
    stage.answers[0].keep({T0: 0})
    row = stage.answer("Produce", 9).responses[0].partition_responses[0]
    assert 6 == row.error_code


@pytest.mark.parametrize("leads_again", [False, True])
def test_what_a_follower_forgets_in_between_is_no_end_of_the_transaction(
    leads_again: bool,
) -> None:
    stage = stage_with()
    stage.produce(sent(1))
    stage.answers = []
    assert None is produced(stage, 0)
    partition = stage.manager.find(T0)
    partition.become_follower(PartitionState(2, 5, (1, 2), 9, (1, 2)))
    partition.truncate_to(0)
    if leads_again:
        partition.become_leader(PartitionState(1, 6, (1, 2), 10, (1, 2)))
    stage.answers[0].keep({T0: 0})
    row = stage.answer("Produce", 9).responses[0].partition_responses[0]
    assert 6 == row.error_code


def test_who_does_not_lead_asks_nobody() -> None:
    stage = stage_with()
    stage.manager.find(T0).become_follower(PartitionState(2, 5, (1, 2), 9, (1, 2)))
    assert [(6, None)] == produced(stage)
    assert [] == stage.questions


def test_a_batch_behind_one_that_was_refused_is_out_of_order() -> None:
    stage = stage_with(120)
    produced(stage, 0)
    stage.coordinator_code = 0
    assert [(45, None)] == produced(stage, 1)
    assert [(0, None)] == produced(stage, 0)


def test_records_of_two_producers_refuse_the_whole_request() -> None:
    stage = stage_with()
    batches = [sent_by(producer, 0, is_transactional=True) for producer in (P, 8)]
    found = stage.produce(*batches, transactional_id="x")
    assert [49, 49] == [row.error_code for row in found]
    assert [] == stage.questions


def test_without_verification_nobody_is_asked() -> None:
    stage = stage_with(120)
    stage.verifies = False
    assert [(0, None)] == produced(stage)
    assert [] == stage.questions


def test_acks_0_ends_the_connection_at_what_is_not_confirmed() -> None:
    stage = stage_with(120)
    assert None is produced(stage, acks=0)
    assert 1 == len(stage.closed) or stage.client.is_closed
