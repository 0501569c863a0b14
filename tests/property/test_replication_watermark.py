"""The watermark under any order of appends, fetches, lag and answers of the controller."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.host.memory import ManualClock
from engine.log.log_config import LogConfig
from engine.replication.effects import Effect, HighWatermarkMoved, ProposeIsr
from engine.replication.partition import Partition
from engine.replication.partition_types import FetchSpec, PartitionState, ReplicationConfig
from engine.replication.watermark import leader_high_watermark
from tests.unit.log.writing import new_log, sent
from tests.unit.replication.replicas import REJECTED, committed

REPLICAS = (1, 2, 3)
OFFSETS = st.integers(0, 50)

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3)),
        st.tuples(st.just("fetch 2"), st.integers(0, 3)),
        st.tuples(st.just("fetch 3"), st.integers(0, 3)),
        st.tuples(st.just("wait"), st.sampled_from((100, 20_000, 31_000))),
        st.tuples(st.just("shrink"), st.just(0)),
        st.tuples(st.just("commit"), st.just(0)),
        st.tuples(st.just("reject"), st.just(0)),
        st.tuples(st.just("new epoch"), st.just(0)),
    ),
    max_size=40,
)


class Cluster:
    """A leader, what its followers have, and a controller that answers when told."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        log = new_log(LogConfig())
        self.leader = Partition(
            1, log, self.clock, config=ReplicationConfig(), is_alive=lambda _broker_id: True
        )
        self.ends = {2: 0, 3: 0}
        self.stored = PartitionState(1, 0, REPLICAS, 0, REPLICAS)
        self.proposed: list[ProposeIsr] = []
        self.take(self.leader.become_leader(self.stored).effects)

    def take(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            if isinstance(effect, ProposeIsr):
                self.proposed.append(effect)
            elif isinstance(effect, HighWatermarkMoved):
                assert effect.high_watermark == self.leader.high_watermark

    def run(self, name: str, number: int) -> None:
        if name == "append":
            self.take(self.leader.append(sent(number), 1).effects)
        elif name.startswith("fetch"):
            self.fetch(int(name[-1]), number)
        elif name == "wait":
            self.clock.advance(number)
        elif name == "shrink":
            self.take(self.leader.maybe_shrink_isr())
        elif name == "new epoch":
            stored = self.stored
            epochs = {
                "leader_epoch": stored.leader_epoch + 1,
                "partition_epoch": stored.partition_epoch + 1,
            }
            self.stored = stored._replace(**epochs)
            self.take(self.leader.become_leader(self.stored).effects)
        elif self.proposed:
            self.answer(self.proposed.pop(0), accepted=name == "commit")

    def fetch(self, replica_id: int, count: int) -> None:
        """Let a follower write some of what it has not, and fetch from there."""
        end = min(self.ends[replica_id] + count, self.leader.log.log_end_offset)
        self.ends[replica_id] = end
        spec = FetchSpec(end, 1 << 20, log_start_offset=0)
        self.take(
            self.leader.record_follower_fetch(replica_id, spec, self.leader.log.log_end_offset)
        )

    def answer(self, proposed: ProposeIsr, *, accepted: bool) -> None:
        """Answer as the controller does, which refuses proposals with an old epoch."""
        stored = self.stored
        current = (stored.leader_epoch, stored.partition_epoch)
        if not accepted or (proposed.leader_epoch, proposed.partition_epoch) != current:
            self.leader.on_isr_decided(proposed, REJECTED)
            return
        epoch = stored.partition_epoch + 1
        self.stored = stored._replace(isr=proposed.isr, partition_epoch=epoch)
        self.take(committed(self.leader, proposed.isr, stored.leader_epoch, epoch))


@given(STEPS)
def test_what_is_committed_is_on_every_member_of_the_stored_set(
    steps: list[tuple[str, int]],
) -> None:
    cluster = Cluster()
    leader = cluster.leader
    for name, number in steps:
        before = leader.high_watermark
        cluster.run(name, number)
        watermark = leader.high_watermark
        # It never goes back, and stays within the log.
        assert before <= watermark <= leader.log.log_end_offset
        assert leader.last_stable_offset <= watermark
        # Any member of the set may be elected: none may lack a committed record.
        held = [cluster.ends[id_] for id_ in cluster.stored.isr if id_ != 1]
        assert watermark <= min([leader.log.log_end_offset, *held])
        assert set(cluster.stored.isr) <= set(leader.in_sync.maximal_isr)
        assert set(leader.in_sync.isr) <= set(leader.in_sync.maximal_isr)
        assert 1 in leader.in_sync.isr


@given(OFFSETS, OFFSETS, st.lists(OFFSETS, max_size=4))
def test_the_leaders_watermark_is_the_least_end_and_never_lower(
    current: int, end: int, others: list[int]
) -> None:
    moved = leader_high_watermark(current, end, others)
    assert moved == max(current, min([end, *others]))
