"""Copies on brokers in memory, stopped anywhere: nothing is lost, nothing is there twice."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest

from engine.client.blocking import KafkaClient
from engine.client.fetching import Fetcher, FetchOptions
from engine.client.group_admin import delete_groups, set_offsets
from engine.client.groups import committed_offsets
from engine.client.offsets import LATEST, FoundOffset, list_offsets
from engine.client.producing import OutgoingRecord, Producer, ProducerOptions
from engine.client.topic_admin import delete_topics
from engine.client.transactions import describe_transaction
from engine.copying import copying_run
from engine.copying.copied_content import ContentRules
from engine.copying.copy_continuation import SourceReplaced
from engine.copying.copy_journal import CopyJournal, read_copy
from engine.copying.copy_plan import (
    AT_LEAST_ONCE,
    EXACTLY_ONCE,
    CopiedTopic,
    CopyRange,
    GroupOffset,
    TopicCopy,
)
from engine.copying.copy_resumption import ProgressLost, find_never_written
from engine.copying.copy_writers import AtLeastOnceWriter, CopyWriter, ExactlyOnceWriter, NotCopied
from engine.copying.copying_run import CopyingRun, PartitionUnreadable
from engine.errors import api_error
from engine.host.memory_held_file import MemoryHeldFiles
from engine.host.process_identity import ProcessIdentity
from engine.ids import uuid_text
from engine.kafka_errors import TOPIC_AUTHORIZATION_FAILED
from engine.model import TopicPartition
from engine.records.record import Record
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.reassign.memory_streams import MemoryStreams, client_of

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
C0, C1 = TopicPartition("c", 0), TopicPartition("c", 1)
COUNT = 30


class Stage:
    """A broker with topic t of two partitions with records, and topic c for the copy."""

    def __init__(self, *, max_bytes: int | None = None) -> None:
        self.cluster = MemoryCluster(
            is_one_process=True,
            offsets_topic_num_partitions="1",
            transaction_state_log_num_partitions="1",
            transaction_state_log_min_isr="1",
        )
        settings = {} if max_bytes is None else {"max.message.bytes": str(max_bytes)}
        self.cluster.create_topic("t", ((1, 2), (2, 1)))
        self.cluster.create_topic("c", ((1, 2), (2, 1)), **settings)
        self.cluster.pass_time(1_000)
        self.files = MemoryHeldFiles()
        self.client = self.new_client()
        self.fill()

    def fill(self, key_prefix: bytes = b"k") -> None:
        producer = Producer(self.client)
        for number in range(COUNT):
            for key in (T0, T1):
                value = None if number == 7 else b"%d" % number
                producer.add(
                    OutgoingRecord(
                        "t",
                        b"%s%d" % (key_prefix, number),
                        value,
                        (("h", b"x"),),
                        1000 + number,
                        key.partition,
                    )
                )
            # Batches of few records, so that a copy has many steps.
            producer.flush()

    def new_client(self) -> KafkaClient:
        return client_of(self.cluster, MemoryStreams(self.cluster))

    def plan(
        self, *groups: GroupOffset, delivery: str = EXACTLY_ONCE, end: int = COUNT
    ) -> TopicCopy:
        ranges = {T0: CopyRange(0, end), T1: CopyRange(0, end)}
        topics = (CopiedTopic("t", "c", 2),)
        return TopicCopy("id", "asked", "a", "b", topics, ranges, groups, delivery)

    def exactly_once(self, plan: TopicCopy) -> ExactlyOnceWriter:
        """Return a writer as another process makes it."""
        if not self.files.exists("/e"):
            self.journal = CopyJournal(self.files, self.files.hold("/e", create=True))
            self.journal.begin(plan, ProcessIdentity(1, "here", "lee"))
        state = read_copy(self.files, "/e")
        assert state is not None
        options = ProducerOptions()
        return ExactlyOnceWriter(self.new_client(), plan, self.journal, state.stored, options)

    def make_again(self, topic: str) -> None:
        """Delete a topic of the copy and create it, as somebody may while no copy runs."""
        assert delete_topics(self.client, [topic])[topic] is None
        self.cluster.pass_time(1_000)
        self.cluster.create_topic(topic, ((1, 2), (2, 1)))
        self.cluster.pass_time(1_000)

    def run(
        self, plan: TopicCopy, writer: CopyWriter, rules: ContentRules | None = None
    ) -> CopyingRun:
        positions = writer.positions()
        return CopyingRun(self.new_client(), plan, writer, positions, rules or ContentRules())

    def records(self, key: TopicPartition, *, committed: bool = True) -> list[Record]:
        """Return what readers of a partition see."""
        client = self.new_client()
        end = list_offsets(client, {key: LATEST}, read_committed=committed)[key]
        assert isinstance(end, FoundOffset)
        fetcher = Fetcher(client, {key: 0}, FetchOptions(read_committed=committed, max_wait_ms=1))
        found: list[Record] = []
        while fetcher.position(key) < end.offset:
            found += [record for one in fetcher.poll(100) for record, _ in one.records]
        return found

    def contents(self, key: TopicPartition) -> list[tuple[object, ...]]:
        return [(r.key, r.value, r.timestamp_ms, r.headers) for r in self.records(key)]


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture(autouse=True)
def small_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a commit after a few records, so that a copy has many."""
    monkeypatch.setattr(copying_run, "COMMIT_RECORDS", 8)


def some_fetches(run: CopyingRun, count: int) -> None:
    for _ in range(count):
        if not run.is_done:
            run.store(run.fetch(100))


def run_out(run: CopyingRun) -> None:
    some_fetches(run, 1000)
    assert run.is_done
    run.finish()


def test_everything_of_a_record_is_copied_to_its_partition(stage: Stage) -> None:
    plan = stage.plan()
    run = stage.run(plan, stage.exactly_once(plan))
    run_out(run)
    for here, there in ((T0, C0), (T1, C1)):
        assert stage.contents(here) == stage.contents(there)
    assert 2 * COUNT == run.counts.records.total()
    assert {T0: COUNT, T1: COUNT} == run.committed


def test_a_throttle_lets_a_second_of_bytes_pass_before_it_waits(stage: Stage) -> None:
    plan = stage.plan()
    writer = stage.exactly_once(plan)
    positions = writer.positions()
    run = CopyingRun(
        stage.new_client(), plan, writer, positions, ContentRules(), rate_bytes_per_s=100
    )
    assert 0 == run._pause_ms()
    some_fetches(run, 1)
    _, size_bytes = run.progress
    assert 100 < size_bytes
    # Of a second's hundred bytes, and no more; a tick of the clock may have passed.
    assert (size_bytes - 100) * 10 - 20 <= run._pause_ms() <= (size_bytes - 100) * 10


def test_a_copy_that_dies_anywhere_goes_on_exactly_there(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kill it at each of its fetches: with records on their way, and right behind a commit."""
    monkeypatch.setattr(copying_run, "_fetch_options", _few_bytes)
    plan = stage.plan()
    deaths = 0
    while True:
        run = stage.run(plan, stage.exactly_once(plan))
        some_fetches(run, 10 + deaths % 4)
        if run.is_done:
            run.finish()
            break
        deaths += 1
        assert deaths < 100
    assert deaths >= 2
    for here, there in ((T0, C0), (T1, C1)):
        assert stage.contents(here) == stage.contents(there)
    # What the dead had on its way is there, for readers of everything.
    assert COUNT <= len(stage.records(C0, committed=False))


def _few_bytes(_rate: int | None) -> FetchOptions:
    return FetchOptions(read_committed=True, max_bytes=300, partition_max_bytes=150, max_wait_ms=1)


def test_an_interrupted_copy_has_committed_what_it_read(stage: Stage) -> None:
    plan = stage.plan()
    run = stage.run(plan, stage.exactly_once(plan))
    some_fetches(run, 1)
    run.commit()
    read = run.positions
    assert read == run.committed == stage.exactly_once(plan).positions()


GROUPS = (
    GroupOffset("early", T0, 0),
    GroupOffset("middle", T0, 17),
    GroupOffset("middle", T1, 17),
    GroupOffset("done", T1, COUNT),
)


@pytest.mark.parametrize("is_killed", [False, True])
def test_groups_go_on_at_the_same_record(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, *, is_killed: bool
) -> None:
    monkeypatch.setattr(copying_run, "_fetch_options", _few_bytes)
    plan = stage.plan(*GROUPS)
    if is_killed:
        for fetches in (7, 20):
            some_fetches(stage.run(plan, stage.exactly_once(plan)), fetches)
    run_out(stage.run(plan, stage.exactly_once(plan)))
    assert b"0" == read_next(stage, "early", C0)
    assert b"17" == read_next(stage, "middle", C0)
    assert b"17" == read_next(stage, "middle", C1)
    assert read_next(stage, "done", C1) is None


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_group_before_the_first_copied_offset_begins_with_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, *, is_killed: bool
) -> None:
    """As of records that the source has deleted, or with --from behind where the group is."""
    monkeypatch.setattr(copying_run, "_fetch_options", _few_bytes)
    ranges = {T0: CopyRange(12, COUNT), T1: CopyRange(COUNT, COUNT)}
    groups = (GroupOffset("late", T0, 3), GroupOffset("late", T1, 3))
    plan = stage.plan(*groups)._replace(ranges=ranges)
    if is_killed:
        some_fetches(stage.run(plan, stage.exactly_once(plan)), 7)
    run_out(stage.run(plan, stage.exactly_once(plan)))
    assert b"12" == read_next(stage, "late", C0)
    assert read_next(stage, "late", C1) is None


def read_next(stage: Stage, group_id: str, key: TopicPartition) -> bytes | None:
    """Return the next record that a group would read, None at the end."""
    offset = committed_offsets(stage.client, group_id, [key])[key]
    left = [record for record in stage.records(key) if record.offset >= offset]
    return None if not left else left[0].value


def test_a_sample_leaves_out_records_and_groups_miss_none(stage: Stage) -> None:
    rules = ContentRules(share=0.5)
    plan = stage.plan(*GROUPS)
    run = stage.run(plan, stage.exactly_once(plan), rules)
    run_out(run)
    kept = [r.value for r in stage.records(T0) if rules.picks(r.key, 0, r.offset)]
    assert kept == [record.value for record in stage.records(C0)]
    assert COUNT == run.counts.records[T0] + run.counts.left_out[T0]
    after = [r.value for r in stage.records(T0) if r.offset >= 17 and rules.picks(r.key, 0, 0)]
    assert (after or [None])[0] == read_next(stage, "middle", C0)


def test_a_copy_ends_at_the_given_end(stage: Stage) -> None:
    plan = stage.plan(end=11)
    run_out(stage.run(plan, stage.exactly_once(plan)))
    assert 11 == len(stage.records(C0)) == len(stage.records(C1))


def at_least_once(stage: Stage, plan: TopicCopy) -> AtLeastOnceWriter:
    """Return a writer as another process makes it: by the journal alone."""
    journal, state = CopyJournal.lock(stage.files, "/j", ProcessIdentity(1, "here", "lee"))
    if state is None:
        journal.begin(plan, ProcessIdentity(1, "here", "lee"))
    journal.close()
    stored: Mapping[TopicPartition, int] = {} if state is None else state.stored
    held = CopyJournal(stage.files, stage.files.hold("/j"))
    return AtLeastOnceWriter(stage.new_client(), plan, held, stored, ProducerOptions())


def test_at_least_once_loses_nothing_and_may_have_records_twice(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying_run, "_fetch_options", _few_bytes)
    plan = stage.plan(delivery=AT_LEAST_ONCE)
    writer = at_least_once(stage, plan)
    some_fetches(stage.run(plan, writer), 14)
    writer._journal.close()
    found = read_copy(stage.files, "/j")
    assert found is not None
    assert found.stored
    again = at_least_once(stage, plan)
    run_out(stage.run(plan, again))
    for here, there in ((T0, C0), (T1, C1)):
        copied = stage.contents(there)
        assert COUNT <= len(copied)
        assert set(stage.contents(here)) == set(copied)


def test_a_copy_whose_positions_are_lost_does_not_begin_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the coordinator has forgotten them after offsets.retention.minutes."""
    monkeypatch.setattr(copying_run, "_fetch_options", _few_bytes)
    plan = stage.plan()
    run = stage.run(plan, stage.exactly_once(plan))
    some_fetches(run, 7)
    run.commit()
    assert delete_groups(stage.client, [plan.name])[plan.name] is None
    before = stage.contents(C0)
    with pytest.raises(ProgressLost) as caught:
        stage.exactly_once(plan).positions()
    assert "offsets.retention.minutes" in str(caught.value.hint)
    assert before == stage.contents(C0)


def test_partitions_that_were_done_when_positions_are_lost_stay_done(stage: Stage) -> None:
    plan = stage.plan()
    run = stage.run(plan, stage.exactly_once(plan))
    run_out(run)
    assert delete_groups(stage.client, [plan.name])[plan.name] is None
    assert {T0: COUNT, T1: COUNT} == stage.exactly_once(plan).positions()


@pytest.mark.parametrize("delivery", [EXACTLY_ONCE, AT_LEAST_ONCE])
def test_a_topic_that_was_made_again_gets_all_its_records(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, delivery: str
) -> None:
    monkeypatch.setattr(copying_run, "_fetch_options", _few_bytes)
    plan = stage.plan(delivery=delivery)
    writer = stage.exactly_once if delivery == EXACTLY_ONCE else partial(at_least_once, stage)
    first = writer(plan)
    run = stage.run(plan, first)
    some_fetches(run, 7)
    run.commit()
    if isinstance(first, AtLeastOnceWriter):
        first._journal.close()
    stage.make_again("c")
    run_out(stage.run(plan, writer(plan)))
    for here, there in ((T0, C0), (T1, C1)):
        assert stage.contents(here) == stage.contents(there)


def test_a_source_that_is_made_again_during_the_copy_is_another_topic(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying_run, "_fetch_options", _few_bytes)
    topic_id = uuid_text(stage.client.view(["t"]).topics["t"].topic_id)
    plan = stage.plan()
    plan = plan._replace(topics=(plan.topics[0]._replace(source_id=topic_id),))
    run = stage.run(plan, stage.exactly_once(plan))
    some_fetches(run, 7)
    run.commit()
    stage.make_again("t")
    stage.fill(b"of another topic ")
    with pytest.raises(SourceReplaced):
        run_out(run)
    keys = [record.key for record in stage.records(C0)]
    assert keys == [b"k%d" % number for number in range(len(keys))]


def test_a_record_of_the_time_zero_keeps_it(stage: Stage) -> None:
    producer = Producer(stage.client)
    producer.add(OutgoingRecord("t", b"first", b"", (), 0, 0))
    producer.flush()
    plan = stage.plan()._replace(ranges={T0: CopyRange(COUNT, COUNT + 1)})
    run_out(stage.run(plan, stage.exactly_once(plan)))
    assert [(b"first", b"", 0, ())] == stage.contents(C0)


def test_a_range_without_offsets_is_done_before_it_is_read(stage: Stage) -> None:
    plan = stage.plan(end=0)
    run = stage.run(plan, stage.exactly_once(plan))
    assert run.is_done


def test_groups_are_translated_by_batches_that_leave_with_the_commit(stage: Stage) -> None:
    plan = stage.plan(*GROUPS)
    writer = stage.exactly_once(plan)
    linger = ProducerOptions(linger_ms=60_000)
    lingering = ExactlyOnceWriter(stage.new_client(), plan, writer._journal, {}, linger)
    run_out(stage.run(plan, lingering))
    assert b"17" == read_next(stage, "middle", C0)
    assert read_next(stage, "done", C1) is None


def test_a_batch_that_fails_with_the_commit_is_named_by_its_offset() -> None:
    stage = Stage(max_bytes=200)
    producer = Producer(stage.client)
    producer.add(OutgoingRecord("t", None, b"x" * 500, partition=0))
    producer.flush()
    plan = stage.plan()._replace(ranges={T0: CopyRange(COUNT, COUNT + 1)})
    writer = stage.exactly_once(plan)
    linger = ProducerOptions(linger_ms=60_000)
    run = stage.run(plan, ExactlyOnceWriter(stage.new_client(), plan, writer._journal, {}, linger))
    with pytest.raises(NotCopied, match=f"offset {COUNT} of t-0 is not copied"):
        run_out(run)


def test_a_copy_whose_topic_is_gone_was_never_written(stage: Stage) -> None:
    plan = stage.plan()
    run_out(stage.run(plan, stage.exactly_once(plan)))
    assert set() == find_never_written(stage.client, plan, plan.ranges)
    assert delete_topics(stage.client, ["c"])["c"] is None
    stage.cluster.pass_time(1_000)
    assert {T0, T1} == find_never_written(stage.new_client(), plan, plan.ranges)


def test_what_cannot_be_read_is_named_with_its_offset() -> None:
    error = PartitionUnreadable(T0, 7, api_error(TOPIC_AUTHORIZATION_FAILED))
    assert str(error).startswith("t-0 of the source, from offset 7 on: TOPIC_AUTHORIZATION_FAILED")
    assert (1, None) == (error.exit_code, error.hint)


def test_a_record_that_is_too_large_is_named_with_its_offset() -> None:
    stage = Stage(max_bytes=200)
    producer = Producer(stage.client)
    producer.add(OutgoingRecord("t", None, b"x" * 500, partition=0))
    producer.flush()
    plan = stage.plan(end=COUNT + 1)._replace(ranges={T0: CopyRange(0, COUNT + 1)})
    writer = stage.exactly_once(plan)
    run = stage.run(plan, writer)
    with pytest.raises(NotCopied) as caught:
        run_out(run)
    assert (T0, COUNT) == (caught.value.partition, caught.value.offset)
    assert "max.message.bytes" in str(caught.value.hint)
    writer.abandon()
    assert describe_transaction(stage.client, plan.name).state in ("CompleteAbort", "Empty")
    assert len(stage.records(C0)) <= COUNT


def test_records_that_the_source_has_deleted_are_an_error_with_what_to_do(stage: Stage) -> None:
    plan = stage.plan()._replace(ranges={T0: CopyRange(COUNT + 50, COUNT + 60)})
    run = stage.run(plan, stage.exactly_once(plan))
    with pytest.raises(PartitionUnreadable) as caught:
        run_out(run)
    assert "deleted at the source" in str(caught.value.hint)


def test_a_throttle_pauses_when_its_bytes_are_used_up(stage: Stage) -> None:
    plan = stage.plan()
    writer = stage.exactly_once(plan)
    client = stage.new_client()
    run = CopyingRun(client, plan, writer, writer.positions(), ContentRules(), rate_bytes_per_s=100)
    began_ms = client.clock.monotonic_ms()
    run_out(run)
    taken = run.counts.size_bytes.total()
    assert taken > 200
    # A second's worth is free at first, and the last piece need not be waited for.
    assert client.clock.monotonic_ms() - began_ms >= (taken - 100 - 200) * 10


def test_a_group_of_the_copy_is_nobody_elses(stage: Stage) -> None:
    plan = stage.plan()
    set_offsets(stage.client, "other", {C0: 3})
    run_out(stage.run(plan, stage.exactly_once(plan)))
    assert {C0: COUNT, C1: COUNT} == committed_offsets(stage.client, plan.name, [C0, C1])
    assert {C0: 3} == committed_offsets(stage.client, "other", [C0])
