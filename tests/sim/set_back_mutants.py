"""Planted faults of a store that is set back: what is put back wrongly, or left out after it."""

from __future__ import annotations

import pytest

from engine.replication.leadership import Leadership
from engine.sim import store
from engine.sim.store import WatchedJournal
from engine.sim.store_rollback import put_back
from engine.sim.stored_paths import STATE_PATH
from engine.znode.journal import Stored
from engine.znode.values import decode_partition_state, encode_partition_state


def nodes_outlive_their_sessions(patch: pytest.MonkeyPatch) -> None:
    """Put back what sessions owned, and no session."""
    patch.setattr(store, "put_back", lambda *stored: put_back(*stored)._replace(sessions={}))


def leader_epochs_are_set_back(patch: pytest.MonkeyPatch) -> None:
    """Let epochs begin once more that logs have already, and give ids of producers twice."""

    def as_it_was(snapshot: Stored, now: Stored) -> Stored:
        return snapshot._replace(zxid=now.zxid)

    patch.setattr(store, "put_back", as_it_was)


def equal_partitions_lose_their_sets(patch: pytest.MonkeyPatch) -> None:
    """Have the last member of each set lead alone, as no snapshot says it."""
    keep = WatchedJournal.put_back

    def put_back_smaller(self: WatchedJournal, stored: Stored) -> None:
        nodes = dict(stored.nodes)
        for path in filter(STATE_PATH.fullmatch, list(nodes)):
            state = decode_partition_state(nodes[path].data, path)
            last = state.isr[-1]
            data = encode_partition_state(state._replace(leader=last, isr=(last,)))
            nodes[path] = nodes[path]._replace(data=data)
        keep(self, stored._replace(nodes=list(nodes.items())))

    patch.setattr(WatchedJournal, "put_back", put_back_smaller)


def strays_are_not_set_aside(patch: pytest.MonkeyPatch) -> None:
    """Leave the log of a topic that is not stored any more to the next one of its name."""
    patch.setattr(Leadership, "_set_stray_aside", lambda *_: None)
