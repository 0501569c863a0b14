"""Consumer in a group of the consumer protocol: it reconciles its partitions with the target.

One `poll` of a member with a new target:

1. Processed records are committed in the member's epoch.
2. Partitions that are not in the target are revoked: `on_revoked`.
3. Added partitions begin at their committed offsets: `on_assigned`.
4. The next heartbeat acknowledges at once; other members get the revoked partitions.

A member that the group has fenced releases all its partitions, and rejoins in the same poll.

Source: AbstractMembershipManager.maybeReconcile, transitionToFenced of 4.3.0; KIP-848.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.client.auto_commit import commit_automatically
from engine.client.consumer_group_session import ConsumerGroupSession
from engine.client.consumer_heartbeat import SubscriptionPattern
from engine.client.group_consumer import GroupConsumer

#: The largest number of targets that one poll reconciles, if each heartbeat returns a new one.
_TARGETS_MAX = 10


class ReconcilingConsumer(GroupConsumer):
    """A member of a group of the consumer protocol that fetches its owned partitions."""

    session: ConsumerGroupSession

    def _new_session(self, topics: Sequence[str] | SubscriptionPattern) -> ConsumerGroupSession:
        """Return a session of the consumer protocol that has not joined yet."""
        return ConsumerGroupSession(self._client, self._settings, topics)

    def _stay_in_group(self) -> None:
        """Poll the session, and apply each target assignment until nothing is left to reconcile.

        Join again if all partitions are lost. Offsets are committed before partitions are revoked.
        """
        for _ in range(_TARGETS_MAX):
            if self.session.poll():
                return
            if self.session.has_lost_all:
                self._revoke_all()
                self.session.rejoin()
            else:
                # Without the commit the next owners read records again: so it is retried for its
                # own timeout, even beyond that of the poll.
                with self._client.bound_retries(None):
                    commit_automatically(self._commit_changed, self._group_id, self._processed)
                # The commit may have sent a heartbeat, whose response changed the target or fenced
                # the member.
                if self.session.is_reconciling:
                    self._reconcile()

    def _reconcile(self) -> None:
        """Revoke and add partitions by the target assignment.

        The target is acknowledged even if a listener raises.
        """
        partitions = self.session.take_target()
        try:
            self._take_over(partitions)
        finally:
            self.session.acknowledge()
