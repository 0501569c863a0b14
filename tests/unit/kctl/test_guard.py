"""What guards of contexts decide: which contexts a command concerns, whose names open them."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.client.connection import Call
from engine.host.held_file import RealHeldFiles
from engine.host.process_identity import identify_process
from engine.host.real import RealFiles
from engine.reassign.journal import MoveJournal
from engine.reassign.journal_state import Begun, ExecutionSettings
from engine.wire import messages
from kctl.console import NotConfirmed
from kctl.context import Choice, Profile, Profiles, load_profiles, save_profiles
from kctl.guard import Guard, check_guards, client_checks, store_cluster_id
from kctl.guard_errors import (
    GuardedCluster,
    NameNotTyped,
    OtherCluster,
    ReadOnlyCommand,
    ReadOnlyContext,
)

PROD = Profile("one:9092,two:9092", is_protected=True, cluster_id="id")
ARCHIVE = Profile("old:9092", is_read_only=True, cluster_id="old-id")
FREE = Profile("free:9092", cluster_id="free-id")


class Kept:
    """The file of contexts of this test."""

    def __init__(self, path: str) -> None:
        self.path = path

    def keep(self, current: str | None = None, /, **profiles: Profile) -> None:
        save_profiles(RealFiles(), self.path, Profiles(current, profiles))

    def read(self) -> Profiles:
        return load_profiles(RealFiles(), self.path)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    found = Kept(str(tmp_path / "config.yaml"))
    monkeypatch.setenv("KCTL_CONFIG", found.path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for name in ("KCTL_CONFIRM", "KCTL_CONTEXT", "KCTL_BOOTSTRAP_SERVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    for name in ("command", "may_change", "confirmed"):
        monkeypatch.setattr(Guard, name, getattr(Guard, name))
    return found


def typing(text: str, monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Have a text typed at a terminal; returns what is shown there."""
    answers = io.StringIO(text)
    monkeypatch.setattr(answers, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", answers)
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


def at(bootstrap: str | None = None, context: str | None = None, **more: Any) -> dict[str, Any]:
    """Return the options of a command by which it finds its cluster."""
    return {"bootstrap": bootstrap, "context": context, "command_config": None, **more}


def is_refused(parameters: Mapping[str, Any], words: str = "topics create") -> bool:
    """Return whether a command would be refused at its begin, as nobody can be asked."""
    try:
        check_guards(words, parameters)
    except (NameNotTyped, ReadOnlyContext):
        return True
    return False


# -- which contexts a command concerns


def test_a_command_that_reads_or_only_tries_is_kept_from_nothing(kept: Kept) -> None:
    kept.keep(prod=PROD, archive=ARCHIVE)
    for context in ("prod", "archive"):
        check_guards("topics list", at(context=context))
        check_guards("topics create", at(context=context, dry_run=True))
        assert ("topics create", False) == (Guard.command, Guard.may_change)


def test_a_read_only_context_refuses_a_change_and_says_what_allows_it(kept: Kept) -> None:
    kept.keep(archive=ARCHIVE)
    with pytest.raises(ReadOnlyContext) as refused:
        check_guards("topics create", at(context="archive"))
    error = refused.value
    assert "context archive is read-only, and `kctl topics create` changes something" in str(error)
    assert "kctl context set archive --no-read-only` allows changes; --dry-run" in str(error.hint)
    with pytest.raises(ReadOnlyContext) as untried:
        check_guards("produce", at(context="archive"))
    assert "--dry-run" not in str(untried.value.hint)


def test_a_context_is_concerned_by_name_or_by_any_address_in_any_case(kept: Kept) -> None:
    kept.keep("prod", prod=PROD, archive=ARCHIVE, free=FREE)
    assert is_refused(at())
    assert is_refused(at(context="prod"))
    assert is_refused(at("TWO:9092"))
    assert is_refused({"bootstrap_server": "x:1,One:9092"}, "compat kafka-reassign-partitions")
    assert is_refused(at("free:9092", "archive"))
    assert not is_refused(at(context="free"))
    assert not is_refused(at("two:9093"))


def test_the_context_of_the_environment_counts_before_the_current_one(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.keep("free", prod=PROD, free=FREE)
    assert not is_refused(at())
    monkeypatch.setenv("KCTL_CONTEXT", "prod")
    assert is_refused(at())


def test_a_command_without_a_cluster_is_left_to_say_so_itself(kept: Kept) -> None:
    kept.keep(prod=PROD)
    assert not is_refused(at())
    assert not is_refused({"words": ["--execute"]}, "compat kafka-reassign-partitions")


@pytest.mark.parametrize(
    ("cluster_id", "current_id", "current", "refused"),
    [
        ("id", "id", None, True),
        ("id", "another", "prod", False),
        ("id", None, "prod", True),
        ("id", None, None, False),
        (None, "id", "prod", True),
        (None, "id", None, False),
    ],
)
def test_a_journal_concerns_contexts_of_its_cluster_and_the_one_in_use_while_one_is_unknown(
    kept: Kept,
    tmp_path: Path,
    cluster_id: str | None,
    current_id: str | None,
    current: str | None,
    *,
    refused: bool,
) -> None:
    path = str(tmp_path / "plan.journal")
    begun = Begun(cluster_id, (), ExecutionSettings())
    MoveJournal.create(RealHeldFiles(), path, begun, identify_process()).close()
    kept.keep(current, prod=PROD._replace(cluster_id=current_id), free=FREE)
    assert refused == is_refused({"journal": path}, "reassign pause")


# -- whose name opens them


def test_a_protected_context_asks_for_its_name_where_somebody_can_type_it(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.keep(prod=PROD, unknown=PROD._replace(bootstrap_servers="x:1", cluster_id=None))
    with pytest.raises(NameNotTyped) as untyped:
        check_guards("topics create", at(context="prod"))
    assert "context prod is protected: `kctl topics create` needs its name" in str(untyped.value)
    assert "KCTL_CONFIRM=prod kctl topics create" in str(untyped.value.hint)

    shown = typing(" prod \n", monkeypatch)
    check_guards("topics create", at(context="prod"))
    assert frozenset({"prod"}) == Guard.confirmed
    assert (
        "context prod is protected: `kctl topics create` changes something of cluster id at "
        "one:9092,two:9092\ntype the name of the context to go on: "
    ) == shown.getvalue()

    shown = typing("y\n", monkeypatch)
    with pytest.raises(NotConfirmed, match="`kctl topics create` in the protected context unknown"):
        check_guards("topics create", at(context="unknown"))
    assert "changes something of x:1\n" in shown.getvalue()
    assert frozenset() == Guard.confirmed


@pytest.mark.parametrize(
    ("other", "opens"),
    [
        (PROD, True),
        (PROD._replace(cluster_id="another"), False),
        (PROD._replace(cluster_id=None), False),
        (PROD._replace(is_protected=False), False),
    ],
)
def test_the_name_of_another_protected_context_opens_it_if_their_cluster_is_one(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, other: Profile, *, opens: bool
) -> None:
    kept.keep(prod=PROD, other=other._replace(bootstrap_servers="three:9092"))
    monkeypatch.setenv("KCTL_CONFIRM", "other")
    assert opens is not is_refused(at(context="prod"))
    monkeypatch.setenv("KCTL_CONFIRM", "prod")
    assert not is_refused(at(context="prod"))


def test_two_contexts_whose_clusters_are_not_known_do_not_open_each_other(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = PROD._replace(cluster_id=None)
    kept.keep(prod=unknown, other=unknown._replace(bootstrap_servers="three:9092"))
    monkeypatch.setenv("KCTL_CONFIRM", "other")
    assert is_refused(at(context="prod"))


def test_of_several_contexts_the_one_that_is_meant_is_requested_and_is_enough(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.keep(a=PROD, meant=PROD, z=PROD)
    shown = typing("meant\n", monkeypatch)
    check_guards("topics create", at(context="meant"))
    assert "context meant is protected" in shown.getvalue()
    assert frozenset({"meant"}) == Guard.confirmed


# -- while a command runs


def chosen(context: str | None = None, cluster_id: str | None = None) -> Choice:
    source = "-b" if context is None else "--context"
    return Choice("far:9092", None, source, context, cluster_id)


def found(choice: Choice, cluster_id: str | None) -> None:
    """Have the client of this run's command read the id of its cluster."""
    check = client_checks(choice).on_cluster
    assert check is not None
    check(cluster_id)


def test_a_command_that_reads_has_a_client_that_sends_nothing_else(kept: Kept) -> None:
    check_guards("topics list", at())
    check = client_checks(chosen()).on_call
    assert check is not None
    check(Call("Metadata", messages.MetadataRequest(topics=None)))
    with pytest.raises(
        ReadOnlyCommand, match=r"`kctl topics list` is not to change anything.*DeleteT"
    ):
        check(Call("DeleteTopics", messages.DeleteTopicsRequest()))
    for words in ("topics create", "cluster start"):
        check_guards(words, at())
        assert client_checks(chosen()).on_call is None


def test_without_a_context_and_a_guard_no_id_is_checked(kept: Kept) -> None:
    kept.keep(free=FREE)
    check_guards("topics create", at("far:9092"))
    assert client_checks(chosen()).on_cluster is None
    kept.keep(free=FREE, prod=PROD)
    assert client_checks(chosen()).on_cluster is not None
    check_guards("topics list", at("far:9092"))
    assert client_checks(chosen()).on_cluster is None


def test_other_addresses_of_a_guarded_cluster_are_known_by_its_id(kept: Kept) -> None:
    kept.keep(prod=PROD, archive=ARCHIVE)
    check_guards("topics create", at("far:9092"))
    with pytest.raises(GuardedCluster) as guarded:
        found(chosen(), "id")
    assert "cluster id, that of the protected context prod: `kctl topics create`" in str(
        guarded.value
    )
    assert "--context prod asks for its name; KCTL_CONFIRM=prod" in str(guarded.value.hint)
    with pytest.raises(ReadOnlyContext, match="context archive"):
        found(chosen(), "old-id")
    found(chosen(), "free-id")
    found(chosen(), None)


def test_a_read_only_context_goes_before_a_protected_one_of_its_cluster_and_no_name_opens_it(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    for names in (("a", "z"), ("z", "a")):
        protected, read_only = names
        kept.keep(**{protected: PROD, read_only: PROD._replace(is_read_only=True)})
        monkeypatch.setenv("KCTL_CONFIRM", protected)
        check_guards("topics create", at("far:9092"))
        with pytest.raises(ReadOnlyContext, match=f"context {read_only} "):
            found(chosen(), "id")


def test_a_name_that_was_given_opens_its_cluster_by_other_addresses_too(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.keep(prod=PROD, archive=ARCHIVE)
    monkeypatch.setenv("KCTL_CONFIRM", "prod")
    check_guards("topics create", at("far:9092"))
    found(chosen(), "id")


def test_another_cluster_than_the_context_is_kept_for_is_refused(kept: Kept) -> None:
    check_guards("topics list", at(context="prod"))
    found(chosen("prod", "id"), "id")
    with pytest.raises(OtherCluster) as other:
        found(chosen("prod", "id"), "another")
    assert "context prod is kept for cluster id, but far:9092 answers as cluster another" in str(
        other.value
    )
    assert "kctl context set prod --cluster-id another;" in str(other.value.hint)
    with pytest.raises(OtherCluster, match="answers as no cluster id") as unnamed:
        found(chosen("prod", "id"), None)
    assert "--cluster-id '';" in str(unnamed.value.hint)


def test_the_id_is_learnt_once_by_a_context_that_led_to_the_cluster(kept: Kept) -> None:
    unknown = FREE._replace(cluster_id=None)
    kept.keep(free=unknown)
    check_guards("topics list", at())
    check = client_checks(chosen("free")).on_cluster
    assert check is not None
    check(None)
    assert unknown == kept.read().by_name["free"]
    check("first")
    assert "first" == kept.read().by_name["free"].cluster_id
    with pytest.raises(OtherCluster):
        check("second")


def test_addresses_beside_a_context_teach_it_no_id(kept: Kept) -> None:
    kept.keep(free=FREE._replace(cluster_id=None))
    check_guards("topics list", at())
    found(chosen("free")._replace(source="-b"), "another")
    assert kept.read().by_name["free"].cluster_id is None


def test_an_id_that_is_kept_stays_and_no_context_is_made_of_one(kept: Kept) -> None:
    kept.keep(free=FREE)
    store_cluster_id("free", "another")
    store_cluster_id("gone", "another")
    assert {"free": FREE} == kept.read().by_name
