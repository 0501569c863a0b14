"""Which cluster a command talks to, and how contexts are read from their file."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.host.real import RealFiles
from kctl.context import (
    BadContextFile,
    Choice,
    NoCluster,
    NoSuchContext,
    Profile,
    Profiles,
    choose,
    load_profiles,
    profiles_path,
    save_profiles,
)

PROD = Profile("prod:9092", "prod.properties", cluster_id="id")
DEV = Profile("dev:9092", is_protected=True)


class Place:
    """The files of this test, and an environment that names them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {"KCTL_CONFIG": str(folder / "config.yaml"), "HOME": str(folder)}

    def keep(self, current: str | None) -> None:
        profiles = Profiles(current, {"prod": PROD, "dev": DEV})
        save_profiles(RealFiles(), self.environment["KCTL_CONFIG"], profiles)

    def properties(self, text: str) -> str:
        path = self.folder / "client.properties"
        path.write_text(text)
        return str(path)

    def choose(self, b: str | None = None, context: str | None = None, file: str = "") -> Choice:
        return choose(
            self.environment,
            RealFiles(),
            bootstrap_server=b,
            context=context,
            command_config=file or None,
        )

    def load(self, text: str) -> Profiles:
        path = self.folder / "config.yaml"
        path.write_text(text)
        return load_profiles(RealFiles(), str(path))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_contexts_are_kept_where_the_environment_says() -> None:
    home = {"HOME": "/home/me", "XDG_CONFIG_HOME": ""}
    assert "/home/me/.config/kctl/config.yaml" == profiles_path(home)
    assert "/etc/xdg/kctl/config.yaml" == profiles_path({**home, "XDG_CONFIG_HOME": "/etc/xdg"})
    assert "/mine" == profiles_path({**home, "XDG_CONFIG_HOME": "/etc/xdg", "KCTL_CONFIG": "/mine"})


def test_contexts_are_read_as_they_were_kept(place: Place) -> None:
    path = place.environment["KCTL_CONFIG"]
    assert Profiles(None, {}) == load_profiles(RealFiles(), path)
    place.keep("prod")
    assert Profiles("prod", {"prod": PROD, "dev": DEV}) == load_profiles(RealFiles(), path)
    assert "null" not in Path(path).read_text()
    assert Profiles(None, {}) == place.load("")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("contexts: [", "not YAML"),
        ("- a list", "expected a mapping with `current` and `contexts`"),
        ("contexts: [prod]", "expected a mapping with `current` and `contexts`"),
        ("contexts: {prod: one}", "context prod has no `bootstrap_servers`"),
        ("contexts: {prod: {bootstrap_servers: 9}}", "context prod has no `bootstrap_servers`"),
        ("contexts: {p: {bootstrap_servers: b, protected: 1}}", "context p: protected and read"),
        ("contexts: {p: {bootstrap_servers: b, read_only: 'no'}}", "context p: protected and read"),
    ],
)
def test_a_file_of_something_else_is_refused_with_its_reason(
    place: Place, text: str, rule: str
) -> None:
    with pytest.raises(BadContextFile, match=rule):
        place.load(text)


def test_numbers_in_the_file_are_names_and_ids_too(place: Place) -> None:
    found = place.load("current: 1\ncontexts: {1: {bootstrap_servers: b, cluster_id: 2}}")
    assert Profiles("1", {"1": Profile("b", cluster_id="2")}) == found


def test_a_flag_comes_before_a_file_that_before_the_environment_and_what_is_kept_last(
    place: Place,
) -> None:
    file = place.properties("bootstrap.servers= file:9092 \n")
    place.keep("dev")
    environment = place.environment
    assert Choice("dev:9092", None, "current context dev", "dev") == place.choose()
    environment["KCTL_CONTEXT"] = "prod"
    kept = Choice("prod:9092", "prod.properties", "KCTL_CONTEXT prod", "prod", "id")
    assert kept == place.choose()
    environment["KCTL_BOOTSTRAP_SERVER"] = "env:9092"
    assert Choice("env:9092", None, "KCTL_BOOTSTRAP_SERVER") == place.choose()
    assert Choice("file:9092", file, f"bootstrap.servers in {file}") == place.choose(file=file)
    assert kept._replace(source="--context prod") == place.choose(context="prod")
    assert Choice("b:9092", None, "-b") == place.choose("b:9092")


def test_a_file_without_addresses_says_how_to_talk_to_the_chosen_cluster(place: Place) -> None:
    file = place.properties("client.id=me\n")
    place.keep("prod")
    assert Choice("prod:9092", file, "current context prod", "prod", "id") == place.choose(
        file=file
    )
    place.environment["KCTL_BOOTSTRAP_SERVER"] = "env:9092"
    assert Choice("env:9092", file, "KCTL_BOOTSTRAP_SERVER") == place.choose(file=file)
    assert Choice("b:9092", file, "-b") == place.choose("b:9092", file=file)


def test_addresses_beside_a_context_go_with_its_properties_and_its_id(place: Place) -> None:
    place.keep(None)
    found = place.choose("b:9092", "prod")
    assert Choice("b:9092", "prod.properties", "-b", "prod", "id") == found
    file = place.properties("")
    assert file == place.choose("b:9092", "prod", file).command_config
    assert file == place.choose(None, "prod", file).command_config


def test_without_a_choice_the_embedded_cluster_is_meant_and_there_is_none(place: Place) -> None:
    with pytest.raises(NoCluster):
        place.choose()


def test_the_embedded_cluster_has_a_name_where_no_context_has_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.keep("prod")
    with pytest.raises(NoCluster, match="the embedded cluster does not run"):
        place.choose(context="embedded")
    monkeypatch.setattr("kctl.context.running_servers", lambda _environment: "e:9092")
    monkeypatch.setattr("kctl.context.running_properties", lambda _environment: None)
    embedded = Choice("e:9092", None, "embedded cluster")
    assert embedded == place.choose(context="embedded")
    place.environment["KCTL_CONTEXT"] = "embedded"
    assert embedded == place.choose()
    kept = Profiles(None, {"embedded": PROD})
    save_profiles(RealFiles(), place.environment["KCTL_CONFIG"], kept)
    assert PROD.bootstrap_servers == place.choose().bootstrap_servers


def test_a_context_that_is_not_kept_is_refused_with_those_that_are(place: Place) -> None:
    with pytest.raises(NoSuchContext, match="no context 'x'; known: none"):
        place.choose(context="x")
    place.keep(None)
    with pytest.raises(NoSuchContext, match="no context 'x'; known: dev, prod"):
        place.choose("b:9092", "x")
