"""Static members: after a restart the client takes over its former member without a rebalance.

| state | |
|---|---|
| Stable, the same protocol would be chosen | new id written, the present generation answered |
| Stable, another protocol would be chosen | a rebalance |
| CompletingRebalance | a rebalance: the leader may assign to the old id |
| PreparingRebalance | the member has joined the running rebalance |

Source: GroupCoordinator.updateStaticMemberAndRebalance of 3.9.1; KIP-345, KIP-814.
"""

from __future__ import annotations

from engine.groups.group import Group
from engine.groups.group_store import GroupStore
from engine.groups.member import UNKNOWN_MEMBER, GroupMember, JoinResult
from engine.groups.rebalances import Rebalances
from engine.groups.requests import JoinRequest
from engine.groups.states import GroupState
from engine.host.promise import Promise


class StaticMembers:
    """Replaces the member id of a static member whose client restarted."""

    def __init__(self, rebalances: Rebalances, store: GroupStore) -> None:
        self._rebalances = rebalances
        self._store = store

    def replace_member(
        self, group: Group, old_id: str, new_id: str, request: JoinRequest
    ) -> Promise[JoinResult]:
        """Give a static member a new id, because its client was restarted; promise the response.

        A Stable group whose protocol stays the same is not rebalanced: the change is written to the
        log, and the old id is restored if that fails.
        """
        instance_id = request.group_instance_id
        assert instance_id is not None, "only static members are replaced"
        leader_before = group.leader_id
        member = group.replace_static_member(instance_id, old_id, new_id)
        self._rebalances.restart_session(group, member)
        before = member.protocols, member.timeouts
        join: Promise[JoinResult] = Promise()
        group.update_member(member, request.protocols, request.timeouts, join)
        if not group.is_in(GroupState.STABLE):
            self._rebalances.maybe_prepare(group, f"static member {instance_id} joins again")
        elif group.select_protocol() != group.protocol_name:
            self._rebalances.maybe_prepare(group, "another protocol is to be chosen")
        else:
            stored = self._store.store_group(
                group, {m.member_id: m.assignment for m in group.members.values()}
            )

            def written() -> None:
                """Answer the join after the write.

                After a failed write the old id and protocols are restored.
                """
                code = stored.result()
                # The protocols of a removed member are removed already.
                if code and group.members.get(member.member_id) is member:
                    group.update_member(member, *before, join=member.join)
                    self._restore_member(group, member, instance_id, old_id)
                result = _build_response(group, member, request, leader_before, code)
                group.answer_join(member, result)
                # No timer runs against a member that waits for its response.
                if group.members.get(member.member_id) is member:
                    self._rebalances.restart_session(group, member)

            stored.watch(written)
        return join

    def _restore_member(
        self, group: Group, member: GroupMember, instance_id: str, old_id: str
    ) -> None:
        """Restore a member's old id after a failed write; no client knows the new id."""
        new_id = member.member_id
        del group.members[new_id]
        member.member_id = old_id
        group.members[old_id] = member
        if group.leader_id == new_id:
            group.leader_id = old_id
        group.static_members[instance_id] = old_id


def _build_response(
    group: Group, member: GroupMember, request: JoinRequest, leader_before: str | None, code: int
) -> JoinResult:
    """Return the JoinGroup response of a static member that joined again without a rebalance.

    `code` is the error code of the write; `leader_before` the leader's id before the new id.
    """
    if code:
        return JoinResult(
            UNKNOWN_MEMBER,
            code,
            group.generation_id,
            group.protocol_type,
            group.protocol_name,
            leader_before or UNKNOWN_MEMBER,
        )
    joined = group.build_join_result(member)
    if request.supports_skip_assignment:
        # The leader gets `skip_assignment`: the present assignment remains.
        return joined._replace(skip_assignment=member.member_id == group.leader_id)
    # This version has no skip flag: a leader gets its old id as the leader's, so that it acts as a
    # follower.
    return joined._replace(leader_id=leader_before or UNKNOWN_MEMBER, members=())
