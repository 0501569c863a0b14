"""Each script prints what it says, and would not if a rule were broken."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.controller import elections, partition_machine
from engine.controller.elections import Candidates, ElectionReason
from engine.controller.guarded_znodes import GuardedZnodes
from engine.replication import partition as partitions
from engine.replication.isr import FollowerProgress, InSyncSet, may_join
from engine.replication.leadership import Leadership
from engine.replication.partition import Partition
from engine.replication.partition_types import EpochEnd, PartitionState
from engine.znode import values
from tests.scripts import commands, loss_faults
from tests.scripts.commands import Script
from tests.scripts.language import BadScript, differences, parse, rewritten

FOLDER = Path(__file__).parent
SCRIPTS = sorted(FOLDER.glob("*.txt"))
Fault = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_prints_what_it_says(path: Path) -> None:
    found = differences(path.read_text(), Script().run)
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_names_its_rules_first(path: Path) -> None:
    first = parse(path.read_text())[0]
    assert re.search(r"^# Rules: .+\.$", "\n".join(first.comments), re.MULTILINE)
    assert first.commands[0].startswith("brokers ")


# -- planted faults ----------------------------------------------------------------------------


def first_of_the_isr(patch: pytest.MonkeyPatch) -> None:
    """Elect in the order of the in-sync set in place of the assignment."""

    def first(replicas: Any, isr: Any) -> int | None:
        return next((broker_id for broker_id in isr if broker_id in replicas), None)

    patch.setattr(elections, "_first", first)


def new_leaders_alone(patch: pytest.MonkeyPatch) -> None:
    """Begin with the leader alone in the in-sync set."""

    def first_state(live: Any, controller_epoch: int) -> values.PartitionStateNode:
        return values.PartitionStateNode(live[0], 0, (live[0],), controller_epoch)

    patch.setattr(partition_machine, "first_state", first_state)


def _changed_candidates(patch: pytest.MonkeyPatch, reason: ElectionReason, **fields: Any) -> None:
    rule = elections._RULES[reason]

    def changed(state: Any, candidates: Candidates, controller_epoch: int) -> Any:
        return rule(state, candidates._replace(**fields), controller_epoch)

    patch.setitem(elections._RULES, reason, changed)


def preferred_whoever_is_in_sync(patch: pytest.MonkeyPatch) -> None:
    """Let a preferred leader lead that is not in sync."""
    rule = elections._RULES[ElectionReason.PREFERRED]

    def ignoring(state: Any, candidates: Candidates, controller_epoch: int) -> Any:
        everyone = state._replace(isr=tuple(candidates.replicas))
        return rule(everyone, candidates, controller_epoch)

    patch.setitem(elections._RULES, ElectionReason.PREFERRED, ignoring)


def always_unclean(patch: pytest.MonkeyPatch) -> None:
    """Ignore unclean.leader.election.enable."""
    _changed_candidates(patch, ElectionReason.OFFLINE, is_unclean_allowed=True)


def stopping_brokers_stay_in_sync(patch: pytest.MonkeyPatch) -> None:
    """Leave a broker that stops in the in-sync set."""
    _changed_candidates(patch, ElectionReason.CONTROLLED_SHUTDOWN, shutting_down=frozenset())


def unguarded_writes(patch: pytest.MonkeyPatch) -> None:
    """Let a controller write without a look at the epoch's version."""

    async def write(self: GuardedZnodes, operations: Any) -> Any:
        return await self.client.multi(operations)

    patch.setattr(GuardedZnodes, "write", write)


def any_controller_is_obeyed(patch: pytest.MonkeyPatch) -> None:
    """Do what a controller orders that another one has followed."""
    patch.setattr(Leadership, "admit", lambda self, controller_epoch: None)


def silent_followers_lag(patch: pytest.MonkeyPatch) -> None:
    """Drop followers that have everything and say nothing."""

    def is_caught_up(self: FollowerProgress, _end: int, *, now_ms: int, lag_ms_max: int) -> bool:
        return now_ms - self.last_caught_up_ms <= lag_ms_max

    patch.setattr(FollowerProgress, "is_caught_up", is_caught_up)


def _joining(patch: pytest.MonkeyPatch, **fields: Any) -> None:
    def changed(in_sync: Any, replica_id: Any, progress: Any, **bounds: Any) -> bool:
        return may_join(in_sync, replica_id, progress, **{**bounds, **fields})

    patch.setattr(partitions, "may_join", changed)


def joining_below_the_watermark(patch: pytest.MonkeyPatch) -> None:
    """Take followers into the set that lack committed records."""
    _joining(patch, high_watermark=0)


def joining_below_the_epochs_start(patch: pytest.MonkeyPatch) -> None:
    """Take followers into the set that have reached an old watermark only."""
    _joining(patch, epoch_start_offset=0)


def committed_by_too_few(patch: pytest.MonkeyPatch) -> None:
    """Commit with fewer than min.insync.replicas."""
    patch.setattr(Partition, "is_under_min_isr", property(lambda self: False))


def appended_by_too_few(patch: pytest.MonkeyPatch) -> None:
    """Take acks=all with fewer than min.insync.replicas."""
    patch.setattr(Partition, "min_isr_count", property(lambda self: 1))


def the_smaller_set_commits(patch: pytest.MonkeyPatch) -> None:
    """Commit without the replicas that a proposal would drop."""
    patch.setattr(InSyncSet, "maximal_isr", InSyncSet.isr)


def shrinking_while_asking(patch: pytest.MonkeyPatch) -> None:
    """Make another proposal while one is in flight."""
    patch.setattr(InSyncSet, "is_in_flight", property(lambda self: False))


def truncating_to_the_watermark(patch: pytest.MonkeyPatch) -> None:
    """Cut a follower's log to its own watermark, as brokers did before KIP-101."""
    become_follower = Partition.become_follower

    def cutting(self: Partition, state: PartitionState) -> Any:
        change = become_follower(self, state)
        self.truncate_to(self.high_watermark)
        return change

    patch.setattr(Partition, "become_follower", cutting)


def no_divergence(patch: pytest.MonkeyPatch) -> None:
    """Tell no follower that its log has parted from the leader's."""
    patch.setattr(Partition, "find_divergence", lambda self, spec: None)


def the_end_alone(patch: pytest.MonkeyPatch) -> None:
    """Return where the log ends, and not of which epoch that is, as before KIP-279."""
    find_divergence = Partition.find_divergence

    def nameless(self: Partition, spec: Any) -> EpochEnd | None:
        found = find_divergence(self, spec)
        return None if found is None else found._replace(leader_epoch=spec.last_fetched_epoch)

    patch.setattr(Partition, "find_divergence", nameless)


def unfenced(patch: pytest.MonkeyPatch) -> None:
    """Answer requesters with another leader epoch."""
    require = Partition.ensure_serves

    def ignoring(self: Partition, _epoch: int | None, *, is_leader_required: bool) -> None:
        require(self, None, is_leader_required=is_leader_required)

    patch.setattr(Partition, "ensure_serves", ignoring)


def the_leader_commits_alone(patch: pytest.MonkeyPatch) -> None:
    """Commit what the leader has, the followers not asked."""
    patch.setattr(partitions, "leader_high_watermark", lambda current, end, _ends: end)
    patch.setattr(partitions, "is_watermark_held", lambda *_: False)


def answered_too_early(patch: pytest.MonkeyPatch) -> None:
    """Tell consumers an end that a new leader cannot vouch for."""
    patch.setattr(Partition, "_require_available", lambda self, isolation: None)


FAULTS: dict[str, tuple[Fault, ...]] = {
    "ack_before_replication": (
        the_leader_commits_alone,
        loss_faults.acknowledged_when_appended,
    ),
    "controlled_shutdown": (stopping_brokers_stay_in_sync,),
    "diverging_logs": (no_divergence,),
    "early_growth": (joining_below_the_epochs_start, answered_too_early),
    "fast_failover": (the_end_alone, no_divergence),
    "fast_bounce": (loss_faults.bounced_brokers_are_not_noticed,),
    "isr_proposals": (the_smaller_set_commits, shrinking_while_asking, appended_by_too_few),
    "isr_shrink_and_grow": (silent_followers_lag, joining_below_the_watermark),
    "last_replica": (loss_faults.the_last_replica_leaves, appended_by_too_few),
    "min_isr": (committed_by_too_few, appended_by_too_few),
    "missed_order": (unfenced,),
    "new_partitions": (new_leaders_alone,),
    "offline_election": (first_of_the_isr, always_unclean),
    "preferred_election": (preferred_whoever_is_in_sync,),
    "retry_after_leader_change": (
        loss_faults.repeated_sequences_are_written,
        loss_faults.followers_forget_producers,
        loss_faults.restarts_forget_producers,
    ),
    "same_leader_again": (loss_faults.truncating_on_leader_change_alone, no_divergence),
    "shrink_after_append": (committed_by_too_few, loss_faults.acknowledged_when_appended),
    "swap_crash": (
        loss_faults.swaps_are_thrown_away,
        loss_faults.halves_of_a_replacement_are_finished,
    ),
    "two_records": (the_leader_commits_alone,),
    "unclean_election": (always_unclean,),
    "unseen_loss": (no_divergence,),
    "watermark_truncation": (truncating_to_the_watermark,),
    "zombie_controller": (unguarded_writes, any_controller_is_obeyed),
    "zombie_leader": (unfenced, no_divergence),
}


def test_every_script_has_a_fault_that_it_finds() -> None:
    assert [path.stem for path in SCRIPTS] == sorted(FAULTS)


@pytest.mark.parametrize(
    ("name", "fault"),
    [(name, fault) for name, faults in FAULTS.items() for fault in faults],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_planted_fault_is_found(name: str, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    text = (FOLDER / f"{name}.txt").read_text()
    try:
        found = differences(text, Script().run)
    except AssertionError:
        # A rule of the engine itself noticed.
        return
    assert found


def test_a_producer_gets_an_error_for_records_that_too_few_replicas_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    committed_by_too_few(monkeypatch)
    found = differences((FOLDER / "shrink_after_append.txt").read_text(), Script().run)
    told = "1: b refused, 20 NOT_ENOUGH_REPLICAS_AFTER_APPEND"
    assert told in [line for difference in found for line in difference.actual]


def test_every_fault_is_on_the_page() -> None:
    page = (FOLDER.parent.parent / "docs" / "internals" / "scripts.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z_]+)\.txt` \|.*\| ([^|]+) \|$", page, re.MULTILINE))
    assert {
        name: ", ".join(f"`{fault.__name__}`" for fault in faults)
        for name, faults in FAULTS.items()
    } == rows


# -- the language ------------------------------------------------------------------------------


def shout(line: str) -> list[str]:
    """Stand for commands."""
    return [] if line == "nothing" else [line.upper(), "!"]


def test_a_script_that_says_nothing_is_filled_in() -> None:
    text = "# why\nhello\n\nnothing\n\n\n# again\nhello\nworld\n----\nold\n"
    whole = (
        "# why\nhello\n----\nHELLO\n!\n\nnothing\n\n"
        "# again\nhello\nworld\n----\nHELLO\n!\nWORLD\n!\n"
    )
    assert whole == rewritten(text, shout)
    assert whole == rewritten(whole, shout)
    assert [] == differences(whole, shout)


def test_a_difference_says_where_and_what() -> None:
    (found,) = differences("hello\n----\nHELLO\n!\n\nnothing\n----\nmuch\n", shout)
    assert "line 6: nothing\n  expected  much\n  actual    nothing" == str(found)


def test_what_is_printed_and_not_expected_is_a_difference() -> None:
    (found,) = differences("hello\n", shout)
    assert ((), ("HELLO", "!")) == (found.expected, found.actual)


@pytest.mark.parametrize("text", ["hello\n----\n", "# why\n----\nHELLO\n"])
def test_a_block_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(BadScript):
        parse(text)


@pytest.mark.parametrize("line", ["dance 1", "state t-0"])
def test_a_line_that_cannot_be_done_is_refused(line: str) -> None:
    with pytest.raises(BadScript):
        Script().run(line)


def test_every_command_is_in_the_table() -> None:
    told = re.findall(r"`([a-z-]+)[ `]", commands.__doc__ or "")
    assert set(commands._COMMANDS) == set(told)
