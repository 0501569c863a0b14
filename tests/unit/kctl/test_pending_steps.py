"""What of a cluster is asked for to be compared with files."""

from __future__ import annotations

from typing import Any

import pytest

from engine.declared.resources import DeclaredState, ResourceKind
from kctl.declared import pending_steps
from kctl.declared.pending_steps import read_cluster_state

READERS = {
    ResourceKind.TOPICS: "read_topics",
    ResourceKind.USERS: "read_users",
    ResourceKind.ACLS: "read_rules",
    ResourceKind.QUOTAS: "read_quotas",
    ResourceKind.BROKERS: "read_brokers",
}


@pytest.mark.parametrize("kind", list(ResourceKind))
def test_only_kinds_that_are_declared_are_requested(
    kind: ResourceKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def reader(name: str) -> Any:
        def read(*_: Any, **__: Any) -> dict[str, Any]:
            asked.append(name)
            return {}

        return read

    monkeypatch.setattr(pending_steps, "read_broker_ids", lambda _client: frozenset((1,)))
    for name in READERS.values():
        monkeypatch.setattr(pending_steps, name, reader(name))
    client: Any = None
    state = read_cluster_state(client, DeclaredState(kinds=frozenset((kind,))))
    assert [READERS[kind]] == asked
    assert frozenset((1,)) == state.broker_ids
