"""Changes of one context by two commands at the same time: none is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.host.real import RealFiles
from kctl.commands.context import contexts
from kctl.commands.context.contexts import ContextChange, set_context
from kctl.context import Profile, load_profiles

_NOTHING = ContextChange(None, None, None, None, None)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    found = str(tmp_path / "config.yaml")
    monkeypatch.setitem(os.environ, "KCTL_CONFIG", found)
    return found


def test_a_guard_that_is_set_while_the_cluster_is_asked_stays(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contexts, "_fetch_cluster_id", lambda _profile: None)
    set_context("prod", _NOTHING._replace(bootstrap="one:9092"), use=False)

    def ask(_profile: Profile) -> str | None:
        monkeypatch.setattr(contexts, "_fetch_cluster_id", lambda _profile: "id")
        set_context("prod", _NOTHING._replace(is_protected=True), use=False)
        return None

    monkeypatch.setattr(contexts, "_fetch_cluster_id", ask)
    set_context("prod", _NOTHING._replace(bootstrap="one:9092,two:9092"), use=False)
    kept = load_profiles(RealFiles(), path).by_name["prod"]
    assert Profile("one:9092,two:9092", None, is_protected=True, cluster_id="id") == kept
