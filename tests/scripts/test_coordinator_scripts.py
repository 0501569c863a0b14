"""Scripts of groups and transactions print what they say, and find faults planted for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.groups.group import Group
from engine.groups.memberships import Memberships
from engine.groups.rebalances import Rebalances
from engine.groups.states import GroupState
from engine.kafka_errors import (
    NOT_LEADER_OR_FOLLOWER,
    REBALANCE_IN_PROGRESS,
    TRANSACTION_COORDINATOR_FENCED,
)
from engine.transactions import markers, transaction_ends
from engine.transactions.transaction import Transaction
from tests.scripts import group_commands, transaction_commands
from tests.scripts.group_commands import GroupScript
from tests.scripts.language import BadScript, differences, parse
from tests.scripts.transaction_commands import TransactionScript

FOLDER = Path(__file__).parent
SCRIPTS = sorted(
    f"{room}/{path.stem}"
    for room in ("groups", "transactions")
    for path in (FOLDER / room).glob("*.txt")
)
Fault = Callable[[pytest.MonkeyPatch], None]


def found_in(name: str) -> list[Any]:
    """Run a script; returns the blocks that printed something else."""
    script = GroupScript() if name.startswith("groups/") else TransactionScript()
    return differences((FOLDER / f"{name}.txt").read_text(), script.run)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_prints_what_it_says(name: str) -> None:
    found = found_in(name)
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_names_its_rules_first(name: str) -> None:
    first = parse((FOLDER / f"{name}.txt").read_text())[0]
    assert re.search(r"^# Rules: .+\.$", "\n".join(first.comments), re.MULTILINE)
    assert first.commands[0].startswith("coordinator")


# -- planted faults of groups ------------------------------------------------------------------


def the_first_join_waits_for_nobody(patch: pytest.MonkeyPatch) -> None:
    """Begin the first generation with the first member."""
    patch.setattr(Rebalances, "_wait_initially", lambda self, group, *_: self._wait_for_all(group))


def heartbeats_name_no_rebalance(patch: pytest.MonkeyPatch) -> None:
    """Answer heartbeats as if no rebalance were prepared."""
    heartbeat = Memberships.heartbeat

    def silent(self: Memberships, request: Any) -> int:
        code = heartbeat(self, request)
        return 0 if code == REBALANCE_IN_PROGRESS else code

    patch.setattr(Memberships, "heartbeat", silent)


def rebalances_take_all_their_time(patch: pytest.MonkeyPatch) -> None:
    """Wait for the time-out although all have joined."""
    patch.setattr(Group, "has_all_members_joined", property(lambda _self: False))


def the_last_to_join_leads(patch: pytest.MonkeyPatch) -> None:
    """Have another leader in each generation."""

    def elect(self: Group) -> bool:
        self.leader_id = next(reversed(self.members), None)
        return self.leader_id is not None

    patch.setattr(Group, "elect_joined_leader", elect)


def absent_members_stay(patch: pytest.MonkeyPatch) -> None:
    """Drop nobody at the time-out of a rebalance."""
    patch.setattr(Group, "remove_member", lambda _self, _member_id: None)


def assignments_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Give assignments to those alone that wait for them."""
    assign = Rebalances.complete_syncs

    def forgetting(self: Rebalances, group: Group, assignments: dict[str, bytes]) -> None:
        assign(self, group, assignments)
        for member in group.members.values():
            member.assignment = b""

    patch.setattr(Rebalances, "complete_syncs", forgetting)


def every_join_rebalances(patch: pytest.MonkeyPatch) -> None:
    """Take a repeated join for one that wants a rebalance."""
    patch.setattr(Memberships, "_may_answer_again", lambda *_: False)


def leaders_are_answered_again(patch: pytest.MonkeyPatch) -> None:
    """Take the join of a stable group's leader for a repeated one."""
    patch.setattr(
        Memberships,
        "_may_answer_again",
        lambda _self, group, *_: not group.is_in(GroupState.PREPARING_REBALANCE),
    )


def any_sync_completes(patch: pytest.MonkeyPatch) -> None:
    """Take the assignment of whoever syncs first."""
    park = Memberships._park_sync

    def hasty(self: Memberships, group: Group, member: Any, assignments: Any) -> Any:
        group.leader_id = member.member_id
        return park(self, group, member, assignments)

    patch.setattr(Memberships, "_park_sync", hasty)


def parked_syncs_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Leave those without an answer that wait for an assignment as a rebalance begins."""
    patch.setattr(Rebalances, "fail_syncs", lambda *_: None)


# -- planted faults of transactions ------------------------------------------------------------


def aborts_keep_the_epoch(patch: pytest.MonkeyPatch) -> None:
    """Abort a transaction that takes too long in the epoch of its producer."""
    fence = Transaction.prepare_fence

    def keeping(self: Transaction) -> Any:
        epoch = self.producer_epoch
        return fence(self)._replace(producer_epoch=epoch)

    patch.setattr(Transaction, "prepare_fence", keeping)


def transactions_never_time_out(patch: pytest.MonkeyPatch) -> None:
    """Let transactions be open for ever."""
    patch.setattr(Transaction, "is_timed_out", lambda *_: False)


def decisions_may_be_repeated_otherwise(patch: pytest.MonkeyPatch) -> None:
    """Answer any EndTxn of a complete transaction."""
    patch.setattr(transaction_ends, "_check_repeated_end", lambda *_, **__: 0)


def fenced_markers_count(patch: pytest.MonkeyPatch) -> None:
    """Complete a transaction whose markers were refused for the coordinator's epoch."""
    patch.setattr(markers, "_FENCED", frozenset())
    patch.setattr(markers, "_NOT_NEEDED", frozenset((TRANSACTION_COORDINATOR_FENCED,)))


def markers_that_met_no_leader_count(patch: pytest.MonkeyPatch) -> None:
    """Complete a transaction whose markers met brokers that lead no more."""
    patch.setattr(markers, "_RETRIED", markers._RETRIED - {NOT_LEADER_OR_FOLLOWER})
    patch.setattr(markers, "_NOT_NEEDED", frozenset((NOT_LEADER_OR_FOLLOWER,)))


FAULTS: dict[str, tuple[Fault, ...]] = {
    "groups/first_consumer": (the_first_join_waits_for_nobody,),
    "groups/first_rejoins": (rebalances_take_all_their_time, the_last_to_join_leads),
    "groups/first_stays_away": (absent_members_stay,),
    "groups/follower_repeats": (every_join_rebalances,),
    "groups/late_sync": (assignments_are_forgotten,),
    "groups/leader_gone": (parked_syncs_are_forgotten,),
    "groups/leader_missed": (any_sync_completes, every_join_rebalances),
    "groups/leader_repeats": (leaders_are_answered_again,),
    "groups/second_joins": (heartbeats_name_no_rebalance,),
    "transactions/hanging": (aborts_keep_the_epoch, transactions_never_time_out),
    "transactions/late_end": (decisions_may_be_repeated_otherwise,),
    "transactions/new_leader": (markers_that_met_no_leader_count,),
    "transactions/zombie_coordinator": (fenced_markers_count,),
}


def test_every_script_has_a_fault_that_it_finds() -> None:
    assert sorted(FAULTS) == SCRIPTS


@pytest.mark.parametrize(
    ("name", "fault"),
    [(name, fault) for name, faults in FAULTS.items() for fault in faults],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_planted_fault_is_found(name: str, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    try:
        found = found_in(name)
    except AssertionError:
        # A rule of the engine itself noticed.
        return
    assert found


def test_every_fault_is_on_the_page() -> None:
    page = (FOLDER.parent.parent / "docs" / "internals" / "scripts.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z]+/[a-z_]+)\.txt` \|.*\| ([^|]+) \|$", page, re.MULTILINE))
    assert {
        name: ", ".join(f"`{fault.__name__}`" for fault in faults)
        for name, faults in FAULTS.items()
    } == rows


@pytest.mark.parametrize("script", [GroupScript, TransactionScript])
def test_a_line_that_cannot_be_done_is_refused(script: Any) -> None:
    with pytest.raises(BadScript, match="no command"):
        script().run("dance A")
    with pytest.raises(BadScript, match="begins with `coordinator`"):
        script().run("state")


@pytest.mark.parametrize(
    ("module", "script"),
    [(group_commands, GroupScript), (transaction_commands, TransactionScript)],
)
def test_every_command_is_in_the_table(module: Any, script: Any) -> None:
    listed = {
        name
        for row in re.findall(r"^\| (`.*?`) \|", module.__doc__, re.MULTILINE)
        for name in re.findall(r"`([a-z]+)[ `]", row)
    }
    assert {name.removeprefix("do_") for name in dir(script) if name.startswith("do_")} == listed
