"""What of a cluster is asked for to be compared with files."""

from __future__ import annotations

from typing import Any

import pytest

from engine.declared.resources import (
    CurrentState,
    DeclaredPassword,
    DeclaredState,
    DeclaredUser,
    ResourceKind,
)
from engine.security.scram import ScramMechanism
from kctl.declared import pending_steps
from kctl.declared.pending_steps import compare_with_cluster, read_cluster_state

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


def test_users_who_could_not_log_in_are_noted_before_they_are_created(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    user = DeclaredUser({ScramMechanism.SCRAM_SHA_512: None}, DeclaredPassword("P", "secret"))
    users = {"jürgen": user, "alice": user, "jörg": user}
    declared = DeclaredState(kinds=frozenset((ResourceKind.USERS,)), users=users)
    there = {"jörg": {ScramMechanism.SCRAM_SHA_512: 4096}}
    monkeypatch.setattr(
        pending_steps, "read_cluster_state", lambda *_: CurrentState(frozenset((1,)), users=there)
    )
    client: Any = None
    assert 2 == len(compare_with_cluster(client, declared, prunes=False).steps)
    said = capsys.readouterr().err
    assert "jürgen" in said and "alice" not in said and "jörg" not in said
