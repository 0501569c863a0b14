"""Contexts that are kept, shown and forgotten: what is asked of the cluster, and what is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.client.errors import Unreachable
from engine.errors import EngineError
from engine.host.real import RealFiles
from kctl.arguments import UnreadableArgument
from kctl.commands.context import contexts
from kctl.commands.context.contexts import (
    ContextChange,
    delete_context,
    list_contexts,
    set_context,
    show_context,
    use_context,
)
from kctl.context import NoSuchContext, Profile, Profiles, load_profiles

_NOTHING = ContextChange(None, None, None, None, None)


class Place:
    """The file of contexts, and a cluster that says an id, or why it does not."""

    def __init__(self, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.says: str | EngineError | None = "id"
        self.asked: list[str] = []
        monkeypatch.setattr(contexts, "_fetch_cluster_id", self._ask)

    def _ask(self, profile: Profile) -> str | None:
        self.asked.append(profile.bootstrap_servers)
        if isinstance(self.says, EngineError):
            raise self.says
        return self.says

    def set(self, name: str = "prod", *, use: bool = False, **changes: Any) -> None:
        set_context(name, _NOTHING._replace(**changes), use=use)

    def kept(self) -> Profiles:
        return load_profiles(RealFiles(), self.path)

    def prod(self) -> Profile:
        return self.kept().by_name["prod"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    path = str(tmp_path / "kctl" / "config.yaml")
    monkeypatch.setenv("KCTL_CONFIG", path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for name in ("KCTL_CONTEXT", "KCTL_BOOTSTRAP_SERVER"):
        monkeypatch.delenv(name, raising=False)
    return Place(path, monkeypatch)


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_the_first_context_becomes_current_and_another_one_only_if_it_is_requested(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.says = None
    place.set(bootstrap="one:9092")
    place.set("dev", bootstrap="dev:9092", is_protected=True, is_read_only=True)
    assert "prod" == place.kept().current
    place.says = "id"
    place.set("dev", use=True, bootstrap="dev:9093")
    assert "dev" == place.kept().current
    assert [
        "context prod is kept and current",
        "context dev is kept: protected, read-only",
        "context dev is kept and current: protected, read-only, for cluster id",
    ] == said(capsys)


def test_what_is_not_given_stays_as_it_was(place: Place, tmp_path: Path) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text("client.id=me\n")
    place.set(bootstrap="one:9092", command_config=str(properties), is_protected=True)
    whole = Profile("one:9092", str(properties), is_protected=True, cluster_id="id")
    assert whole == place.prod()
    place.set(is_read_only=True)
    assert whole._replace(is_read_only=True) == place.prod()
    place.set(is_read_only=False, is_protected=False, command_config="")
    assert Profile("one:9092", cluster_id="id") == place.prod()


def test_addresses_may_come_from_the_properties_and_have_to_come_from_somewhere(
    place: Place, tmp_path: Path
) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text("bootstrap.servers=file:9092\n")
    place.set(command_config=str(properties))
    assert "file:9092" == place.prod().bootstrap_servers
    with pytest.raises(UnreadableArgument, match=r"a whole context.*bootstrap\.servers"):
        place.set("dev", is_protected=True)
    for name, bootstrap in (("\udcff", "one:9092"), ("dev", "\udcff:1"), ("dev", "one:port")):
        with pytest.raises(EngineError):
            place.set(name, bootstrap=bootstrap)
    assert {"prod"} == set(place.kept().by_name)


def test_the_id_is_requested_once_and_again_at_other_addresses(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.set(bootstrap="one:9092")
    place.set(bootstrap="one:9092", is_protected=True)
    assert ["one:9092"] == place.asked
    place.set(bootstrap="two:9092")
    assert ["one:9092", "two:9092"] == place.asked
    said(capsys)
    place.says = "another"
    place.set(bootstrap="three:9092")
    assert "another" == place.prod().cluster_id
    assert [
        "context prod is kept and current: protected, for cluster another",
        "note: it was for cluster id",
    ] == said(capsys)
    # A cluster that has none leaves the one that is kept.
    place.says = None
    place.set(bootstrap="four:9092")
    assert "another" == place.prod().cluster_id


def test_an_id_that_is_given_or_forgotten_is_not_requested(place: Place) -> None:
    place.set(bootstrap="one:9092", cluster_id="given")
    assert ("given", []) == (place.prod().cluster_id, place.asked)
    place.set(cluster_id="")
    assert (None, []) == (place.prod().cluster_id, place.asked)
    # What is not known is asked for whenever the context is set.
    place.set(is_protected=True)
    assert ("id", ["one:9092"]) == (place.prod().cluster_id, place.asked)


def test_a_cluster_that_does_not_answer_leaves_a_note(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.says = Unreachable("one", 9092, "refused")
    place.set(bootstrap="one:9092")
    assert "note: the cluster's id is learnt at the first use: " in said(capsys)[-1]
    place.set(cluster_id="id")
    place.set(bootstrap="two:9092")
    assert "note: the cluster's id is compared with id at the first use: " in said(capsys)[-1]
    assert "id" == place.prod().cluster_id


def test_contexts_are_listed_shown_used_and_forgotten(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.set(bootstrap="one:9092")
    place.set("dev", bootstrap="dev:9092", is_protected=True)
    said(capsys)
    list_contexts("json")
    rows = json.loads(capsys.readouterr().out)
    assert [("dev", False, True), ("prod", True, False)] == [
        (row["name"], row["is_current"], row["is_protected"]) for row in rows
    ]
    use_context("dev")
    show_context("dev", "json")
    shown = capsys.readouterr()
    assert json.loads(shown.out) == rows[0] | {"is_current": True}
    assert "context dev is current\n" == shown.err
    show_context(None, "json")
    choice = json.loads(capsys.readouterr().out)
    assert ("current context dev", "dev:9092", True) == (
        choice["source"],
        choice["bootstrap_servers"],
        choice["is_protected"],
    )
    delete_context("dev")
    assert "context dev is forgotten; none is current now\n" == capsys.readouterr().err
    assert Profiles(None, {"prod": place.prod()}) == place.kept()
    use_context("prod")
    place.set("dev", bootstrap="dev:9092")
    said(capsys)
    delete_context("dev")
    assert ["context dev is forgotten"] == said(capsys)
    assert "prod" == place.kept().current
    for act in (use_context, delete_context, lambda name: show_context(name, "json")):
        with pytest.raises(NoSuchContext):
            act("dev")


def test_the_choice_of_an_address_has_no_guards(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place.set(bootstrap="one:9092", is_protected=True)
    monkeypatch.setenv("KCTL_BOOTSTRAP_SERVER", "env:9092")
    capsys.readouterr()
    show_context(None, "json")
    choice = json.loads(capsys.readouterr().out)
    assert ("KCTL_BOOTSTRAP_SERVER", "env:9092", False, None) == (
        choice["source"],
        choice["bootstrap_servers"],
        choice["is_protected"],
        choice["cluster_id"],
    )
