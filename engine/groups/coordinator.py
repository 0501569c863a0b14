"""The group coordinator of the `__consumer_offsets` partitions that this broker leads.

```
 Memberships ─ join, sync, heartbeat, leave ──┐
 OffsetCommits ─ commit, fetch, delete ───────┼─> GroupRegistry ─> Group
 GroupAdmin ─ list, describe, delete, expire ─┘        ^
 elected, resigned ────────────────────────────────────┘ loads from GroupLog
```

Source: GroupCoordinator, GroupMetadataManager of 3.9.1; D14.
"""

from __future__ import annotations

from engine.groups.delayed import GroupDelays
from engine.groups.group_admin import GroupAdmin
from engine.groups.group_store import GroupStore
from engine.groups.memberships import Memberships, Sources
from engine.groups.offset_commits import OffsetCommits
from engine.groups.ports import GroupPorts, GroupSettings
from engine.groups.rebalances import Rebalances
from engine.groups.registry import GroupRegistry
from engine.host.turns import LoopTurns


class GroupCoordinator:
    """The group coordinator of one broker; its parts serve the requests."""

    def __init__(self, settings: GroupSettings, ports: GroupPorts, turns: LoopTurns) -> None:
        """Create the group coordinator of this broker and its parts, without any groups.

        Groups are loaded when this broker becomes the leader of a partition of
        `__consumer_offsets`.
        """
        clock, log = ports.clock, ports.log
        #: The purgatory of groups; advanced by the broker's timer.
        self.delays = GroupDelays(clock, ports.note_deadline)
        store = GroupStore(log)
        rebalances = Rebalances(clock, self.delays, store, settings)
        self.registry = GroupRegistry(
            log,
            turns,
            on_loaded=rebalances.start_session_timers,
            on_unloaded=rebalances.answer_unloaded,
        )
        sources = Sources(clock, ports.entropy)
        self.memberships = Memberships(self.registry, rebalances, store, settings, sources)
        self.commits = OffsetCommits(self.registry, rebalances, log, settings, clock)
        self.admin = GroupAdmin(self.registry, self.commits, settings, clock)

    def stop(self) -> None:
        """Unload all groups and drop their delayed operations; parked requests get no response.

        The caller closes the connections of these requests.
        """
        self.registry.stop()
        self.delays.stop()
