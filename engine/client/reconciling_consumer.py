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

#: How many targets a poll follows at most, if each heartbeat brings another one.
_TARGETS_MAX = 10


class ReconcilingConsumer(GroupConsumer):
    """A member of a group of the consumer protocol that fetches its owned partitions."""

    session: ConsumerGroupSession

    def _new_session(self, topics: Sequence[str] | SubscriptionPattern) -> ConsumerGroupSession:
        return ConsumerGroupSession(self._client, self._settings, topics)

    def _stay_in_group(self) -> None:
        """Poll the session until nothing is left to reconcile; rejoin if it has lost all."""
        for _ in range(_TARGETS_MAX):
            if self.session.poll():
                return
            if self.session.has_lost_all:
                self._give_up_all()
                self.session.rejoin()
            else:
                # Partitions given up before a commit are read again by their next owners: the
                # commit is repeated for its own time, though the poll's may end before.
                with self._client.repeating_until(None):
                    commit_automatically(self._commit_changed, self._group_id, self._processed)
                # The commit may have sent a heartbeat: the target may be gone, the member fenced.
                if self.session.is_reconciling:
                    self._reconcile()

    def _reconcile(self) -> None:
        """Give up and begin partitions (2, 3); acknowledge the target even if a callback raises."""
        partitions = self.session.take_target()
        try:
            self._take_over(partitions)
        finally:
            self.session.acknowledge()
