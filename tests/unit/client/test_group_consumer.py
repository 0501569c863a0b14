"""A consumer in a group, on brokers in memory: joining, committing, beginning again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from engine.assignors.subscription import Subscription
from engine.assignors.user_data import (
    PreviousAssignment,
    decode_generation,
    decode_previous_assignment,
)
from engine.client.blocking import KafkaClient
from engine.client.consumer_protocol import decode_subscription
from engine.client.fetching import FetchOptions
from engine.client.group_admin import MemberToRemove, delete_groups, remove_members, set_offsets
from engine.client.group_consumer import GroupConsumer
from engine.client.group_session import GroupSession
from engine.client.groups import committed_offsets, describe_group, request_commits
from engine.client.member_session import MemberSettings, NotAMember
from engine.client.offsets import EARLIEST, list_offsets
from engine.client.topic_admin import NewPartitions, create_partitions
from engine.client.transaction_calls import GroupMembership
from engine.client.transactional_producer import TransactionalProducer, TransactionPhase
from engine.errors import ApiError, EngineError
from engine.kafka_errors import (
    FENCED_INSTANCE_ID,
    INVALID_SESSION_TIMEOUT,
    REBALANCE_IN_PROGRESS,
)
from engine.model import TopicPartition
from engine.wire import messages
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.reassign.memory_streams import MemoryStreams, client_of

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
SETTINGS = MemberSettings("g", session_timeout_ms=10_000, max_poll_interval_ms=20_000)
_INTERVAL_MS = 5_000


class Stage:
    """Three brokers with topic t of two partitions, five records in the first."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster(
            is_one_process=True,
            offsets_topic_num_partitions="1",
            group_initial_rebalance_delay_ms="0",
            transaction_state_log_num_partitions="1",
            transaction_state_log_min_isr="1",
        )
        self.cluster.create_topic("t", ((1, 2), (2, 1)))
        self.cluster.pass_time(1_000)
        for _ in range(5):
            self.cluster.produce(1, 1, key=T0)
        self.client = self.new_client()

    def new_client(self) -> KafkaClient:
        return client_of(self.cluster, MemoryStreams(self.cluster))

    def consumer(
        self,
        settings: MemberSettings = SETTINGS,
        client: KafkaClient | None = None,
        *,
        max_wait_ms: int = 100,
    ) -> GroupConsumer:
        """Return a consumer that begins with the first record where nothing is committed."""
        client = client or self.new_client()

        def start_of(
            partitions: Sequence[TopicPartition],
        ) -> Mapping[TopicPartition, int | EngineError]:
            found = list_offsets(client, dict.fromkeys(partitions, EARLIEST))
            return {
                key: row if isinstance(row, EngineError) else row.offset
                for key, row in found.items()
            }

        return GroupConsumer(
            client,
            settings,
            ["t"],
            start_of=start_of,
            fetch=FetchOptions(max_wait_ms=max_wait_ms),
            auto_commit_interval_ms=_INTERVAL_MS,
        )

    def committed(self) -> dict[TopicPartition, int]:
        return committed_offsets(self.client, "g")


def offsets_of(consumer: GroupConsumer, polls: int = 5) -> list[int]:
    """Return the offsets of t-0 that some polls give."""
    return [
        record.offset
        for _ in range(polls)
        for consumed in consumer.poll(200)
        if consumed.partition == T0
        for record, _ in consumed.records
    ]


@pytest.fixture(scope="module")
def shared_stage() -> Stage:
    return Stage()


@pytest.fixture
def stage(shared_stage: Stage) -> Iterator[Stage]:
    yield shared_stage
    group = describe_group(shared_stage.client, "g")
    if group.members:
        gone = [MemberToRemove(member.member_id) for member in group.members]
        remove_members(shared_stage.client, "g", gone)
    delete_groups(shared_stage.client, ["g"])


def test_a_member_alone_has_all_partitions_and_reads_them_from_the_start(stage: Stage) -> None:
    consumer = stage.consumer()
    given: list[Sequence[TopicPartition]] = []
    consumer.on_assigned = given.append
    assert [0, 1, 2, 3, 4] == offsets_of(consumer)
    assert [(), (T0, T1)] == given
    assert (T0, T1) == consumer.session.partitions
    (member,) = describe_group(stage.client, "g").members
    assert (T0, T1) == member.partitions


def test_heartbeats_and_commits_do_not_wait_behind_a_fetch_to_the_coordinator(
    stage: Stage,
) -> None:
    consumer = stage.consumer(max_wait_ms=2 * SETTINGS.session_timeout_ms)
    offsets_of(consumer)
    generation = consumer.session.generation_id
    clock = stage.cluster.clock
    for _ in range(12):
        began_ms = clock.monotonic_ms()
        consumer.poll(1_000)
        assert clock.monotonic_ms() - began_ms <= 1_500
    assert generation == consumer.session.generation_id
    assert 5 == stage.committed()[T0]
    consumer.close()


def test_partitions_begin_at_what_is_committed(stage: Stage) -> None:
    set_offsets(stage.client, "g", {T0: 3})
    assert [3, 4] == offsets_of(stage.consumer())


def test_what_a_poll_gave_is_committed_by_a_later_poll(stage: Stage) -> None:
    consumer = stage.consumer()
    offsets_of(consumer)
    assert {} == stage.committed()
    stage.cluster.pass_time(_INTERVAL_MS)
    consumer.poll(0)
    assert 5 == stage.committed()[T0]


def test_the_epoch_of_the_last_record_is_committed_unless_a_part_was_processed(
    stage: Stage,
) -> None:
    consumer = stage.consumer()
    offsets_of(consumer)
    consumer.close()
    assert 5 == request_commits(stage.client, "g")[T0].offset
    assert 0 <= request_commits(stage.client, "g")[T0].leader_epoch
    set_offsets(stage.client, "g", {T0: 0})
    consumer = stage.consumer()
    offsets_of(consumer)
    consumer.set_processed(T0, 3)
    consumer.close()
    assert (3, -1) == request_commits(stage.client, "g")[T0][:2]


def test_a_consumer_without_commits_leaves_none(stage: Stage) -> None:
    consumer = GroupConsumer(
        stage.new_client(),
        SETTINGS,
        ["t"],
        start_of=lambda keys: dict.fromkeys(keys, 0),
        commits=False,
    )
    consumer.poll(200)
    consumer.poll(200)
    consumer.close()
    assert {} == stage.committed()


def test_a_consumer_goes_on_at_the_given_offsets(stage: Stage) -> None:
    consumer = stage.consumer()
    offsets_of(consumer)
    consumer.seek(T0, 4)
    assert [4] == offsets_of(consumer)


def test_what_a_process_that_died_had_not_committed_is_read_again(stage: Stage) -> None:
    assert [0, 1, 2, 3, 4] == offsets_of(stage.consumer())
    stage.cluster.pass_time(SETTINGS.session_timeout_ms + 1_000)
    assert [0, 1, 2, 3, 4] == offsets_of(stage.consumer())


def test_closing_during_a_rebalance_commits_and_leaves_too(stage: Stage) -> None:
    consumer = stage.consumer()
    assert [0, 1, 2, 3, 4] == offsets_of(consumer)
    # A transaction's offsets were refused: the member would join again at the next poll.
    consumer.session.rejoin_if_refused(REBALANCE_IN_PROGRESS)
    consumer.close()
    assert () == describe_group(stage.client, "g").members
    assert 5 == stage.committed()[T0]


def test_a_member_whose_join_was_interrupted_leaves_on_another_connection(stage: Stage) -> None:
    other = GroupSession(stage.new_client(), SETTINGS, ["t"])
    other.join()
    streams = MemoryStreams(stage.cluster)
    consumer = stage.consumer(client=client_of(stage.cluster, streams))
    streams.on_wait = _interrupt
    with pytest.raises(KeyboardInterrupt):
        consumer.poll(200)
    streams.on_wait = lambda: None
    assert 2 == len(describe_group(stage.client, "g").members)
    began_ms = stage.cluster.clock.monotonic_ms()
    consumer.close()
    assert stage.cluster.clock.monotonic_ms() - began_ms < 1_000
    (member,) = describe_group(stage.client, "g").members
    assert other.member_id == member.member_id


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_closing_commits_what_was_processed_and_leaves(stage: Stage) -> None:
    consumer = stage.consumer()
    offsets_of(consumer)
    consumer.set_processed(T0, 2)
    consumer.close()
    assert 2 == stage.committed()[T0]
    assert "Empty" == describe_group(stage.client, "g").state


def test_the_start_of_a_partition_that_was_not_fetched_yet_is_committed_too(stage: Stage) -> None:
    consumer = stage.consumer()
    consumer.keep_membership()
    consumer.close()
    assert {T0: 0, T1: 0} == stage.committed()


def test_a_static_member_stays_until_its_session_times_out(stage: Stage) -> None:
    settings = SETTINGS._replace(group_instance_id="one")
    consumer = stage.consumer(settings)
    offsets_of(consumer)
    consumer.close()
    (member,) = describe_group(stage.client, "g").members
    assert "one" == member.group_instance_id
    assert [] == offsets_of(stage.consumer(settings))
    stage.cluster.pass_time(SETTINGS.session_timeout_ms + 1_000)
    assert () == describe_group(stage.client, "g").members


def test_a_consumer_goes_back_to_what_is_committed(stage: Stage) -> None:
    consumer = stage.consumer()
    offsets_of(consumer)
    consumer.session.commit({T0: 3})
    consumer.rewind()
    assert [3, 4] == offsets_of(consumer)


def test_a_member_that_joins_waits_for_offsets_of_an_open_transaction(stage: Stage) -> None:
    producer = TransactionalProducer(stage.new_client(), "x")
    producer.begin()
    producer.send_offsets(GroupMembership("g"), {T0: 2})
    streams = MemoryStreams(stage.cluster)

    def commit_once() -> None:
        if producer.phase is TransactionPhase.OPEN:
            producer.commit()

    streams.on_wait = commit_once
    client = client_of(stage.cluster, streams)
    assert [2, 3, 4] == offsets_of(stage.consumer(client=client))


def test_a_member_that_was_removed_joins_again_as_a_new_one(stage: Stage) -> None:
    consumer = stage.consumer()
    offsets_of(consumer)
    first_id = consumer.session.member_id
    remove_members(stage.client, "g", [MemberToRemove(first_id)])
    stage.cluster.pass_time(SETTINGS.heartbeat_interval_ms)
    # Nothing was committed: it cannot commit as the member that it was.
    assert [0, 1, 2, 3, 4] == offsets_of(consumer)
    assert consumer.session.member_id not in ("", first_id)


def test_heartbeats_keep_a_member_whose_polls_give_nothing(stage: Stage) -> None:
    consumer = stage.consumer()
    offsets_of(consumer)
    member_id = consumer.session.member_id
    for _ in range(10):
        stage.cluster.pass_time(SETTINGS.heartbeat_interval_ms)
        consumer.poll(0)
    assert member_id == consumer.session.member_id
    assert 1 == consumer.session.generation_id


def test_a_commit_of_a_member_that_was_removed_is_refused(stage: Stage) -> None:
    session = GroupSession(stage.new_client(), SETTINGS, ["t"])
    session.join()
    remove_members(stage.client, "g", [MemberToRemove(session.member_id)])
    with pytest.raises(NotAMember, match="group g has another generation now"):
        session.commit({T0: 1})
    assert not session.is_joined
    assert {} == stage.committed()


def test_a_time_out_that_the_broker_does_not_allow_is_an_error(stage: Stage) -> None:
    session = GroupSession(stage.new_client(), SETTINGS._replace(session_timeout_ms=1), ["t"])
    with pytest.raises(ApiError) as caught:
        session.join()
    assert INVALID_SESSION_TIMEOUT == caught.value.code


def test_an_instance_that_another_process_took_over_is_fenced(stage: Stage) -> None:
    settings = SETTINGS._replace(group_instance_id="one")
    first, second = (GroupSession(stage.new_client(), settings, ["t"]) for _ in range(2))
    first.join()
    second.join()
    stage.cluster.pass_time(SETTINGS.heartbeat_interval_ms)
    with pytest.raises(ApiError) as caught:
        first.poll()
    assert FENCED_INSTANCE_ID == caught.value.code
    stage.cluster.pass_time(SETTINGS.session_timeout_ms + 1_000)


def sent_subscription(stage: Stage) -> Subscription:
    """Return what the one member of group g joined with."""
    response = stage.client.send_to_coordinator(
        "g",
        "DescribeGroups",
        messages.DescribeGroupsRequest(groups=["g"]),
        retriable_code=lambda message: message.groups[0].error_code,
    )
    (member,) = response.message.groups[0].members
    return decode_subscription(bytes(member.member_metadata), None)


def test_a_member_of_a_sticky_assignor_says_what_it_had(stage: Stage) -> None:
    session = GroupSession(stage.new_client(), SETTINGS._replace(assignors=("sticky",)), ["t"])
    assert (T0, T1) == session.join()
    assert Subscription(("t",)) == sent_subscription(stage)
    assert (T0, T1) == session.join()
    sent = sent_subscription(stage)
    assert ((), 1) == (sent.owned_partitions, sent.generation_id)
    assert PreviousAssignment((T0, T1), 1) == decode_previous_assignment(sent.user_data)


def test_a_member_of_the_cooperative_assignor_says_its_generation(stage: Stage) -> None:
    settings = SETTINGS._replace(assignors=("cooperative-sticky",))
    session = GroupSession(stage.new_client(), settings, ["t"])
    assert (T0, T1) == session.join()
    assert -1 == decode_generation(sent_subscription(stage).user_data)
    assert (T0, T1) == session.join()
    assert 1 == decode_generation(sent_subscription(stage).user_data)


def test_the_leader_joins_again_when_a_topic_has_grown() -> None:
    stage = Stage()
    consumer = stage.consumer()
    offsets_of(consumer)
    create_partitions(stage.client, {"t": NewPartitions(3)}, validate_only=False)
    stage.cluster.pass_time(1_000)
    for _ in range(SETTINGS.metadata_max_age_ms // SETTINGS.heartbeat_interval_ms + 2):
        stage.cluster.pass_time(SETTINGS.heartbeat_interval_ms)
        consumer.poll(0)
    assert (T0, T1, TopicPartition("t", 2)) == consumer.session.partitions


class Pair:
    """Two cooperative members of one thread."""

    def __init__(self, stage: Stage) -> None:
        settings = SETTINGS._replace(assignors=("cooperative-sticky",))
        self.streams = [MemoryStreams(stage.cluster) for _ in range(2)]
        self.members = [
            stage.consumer(settings, client_of(stage.cluster, streams)) for streams in self.streams
        ]
        self.offsets: dict[TopicPartition, list[int]] = {T0: [], T1: []}
        self._is_nested = False

    def poll(self, number: int) -> None:
        for consumed in self.members[number].poll(200):
            self.offsets[consumed.partition] += [row.offset for row, _ in consumed.records]

    def together(self) -> None:
        """Have the first poll while the second waits."""
        self.streams[1].on_wait = lambda: self._poll_nested(0)

    def _poll_nested(self, number: int) -> None:
        # One that joins once more waits for the other, which has to go on first.
        if not self._is_nested and not self.members[number].session._owes_rebalance:
            self._is_nested = True
            self.poll(number)
            self._is_nested = False

    def partitions(self) -> list[tuple[TopicPartition, ...]]:
        return [member.session.partitions for member in self.members]


def test_a_cooperative_member_keeps_what_it_does_not_give_up(stage: Stage) -> None:
    pair = Pair(stage)
    first = pair.members[0]
    given: list[Sequence[TopicPartition]] = []
    first.on_assigned = given.append
    for _ in range(5):
        pair.poll(0)
    assert {T0: [0, 1, 2, 3, 4], T1: []} == pair.offsets
    assert [(T0, T1), ()] == pair.partitions()
    pair.together()
    pair.poll(1)
    # The second gets nothing until the first has given up one partition.
    kept, nothing = pair.partitions()
    assert (1, ()) == (len(kept), nothing)
    assert [(), (T0, T1), kept] == given
    assert not first.session.poll()
    # The second leaves: the first joins once more, and was never without the one that it kept.
    remove_members(stage.client, "g", [MemberToRemove(pair.members[1].session.member_id)])
    pair.streams[0].on_wait = lambda: None
    pair.poll(0)
    assert [(), (T0, T1), kept, (T0, T1)] == given
    assert kept == tuple(first.session.kept_partitions)


def test_a_cooperative_member_that_was_removed_has_lost_its_partitions(stage: Stage) -> None:
    settings = SETTINGS._replace(assignors=("cooperative-sticky",))
    consumer = stage.consumer(settings)
    offsets_of(consumer)
    remove_members(stage.client, "g", [MemberToRemove(consumer.session.member_id)])
    stage.cluster.pass_time(SETTINGS.heartbeat_interval_ms)
    assert [0, 1, 2, 3, 4] == offsets_of(consumer)


def test_members_are_cooperative_only_if_all_assignors_are(stage: Stage) -> None:
    for assignors, expected in (
        (("cooperative-sticky",), True),
        (("cooperative-sticky", "range"), False),
        (("range",), False),
    ):
        session = GroupSession(stage.client, SETTINGS._replace(assignors=assignors), ["t"])
        assert expected == session.is_cooperative
