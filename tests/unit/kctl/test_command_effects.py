"""Every command is known to change something, or not to."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.client.connection import Call
from engine.client.request_checks import is_reading
from engine.wire import messages
from kctl.command_effects import CHANGES, EFFECTS, READS, effect_of
from kctl.context import Choice
from kctl.guard import Guard, check_guards, client_checks
from kctl.guard_errors import ReadOnlyCommand, ReadOnlyContext
from tests.cli.commands import all_leaves, parameter_names


def test_every_command_is_classified_and_no_other() -> None:
    assert set(EFFECTS) == set(all_leaves())


def test_a_command_that_nobody_classified_counts_as_one_that_changes() -> None:
    assert effect_of("topics explode").changes_something({})


def test_options_of_the_table_are_options_of_their_commands() -> None:
    for words, command in all_leaves().items():
        if words.startswith("compat "):
            continue
        effect = EFFECTS[words]
        named = {*effect.unless, *effect.only_with}
        assert named <= parameter_names(command), words


def test_a_command_with_dry_run_changes_nothing_by_it() -> None:
    for words, command in all_leaves().items():
        if "dry_run" in parameter_names(command) and EFFECTS[words].kind == CHANGES:
            assert not EFFECTS[words].changes_something({"dry_run": True, "clear": True}), words


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_a_dry_run_keeps_no_group_from_being_deleted(kind: str) -> None:
    effect = EFFECTS[f"compat kafka-{kind}-groups"]
    assert effect.changes_something({"delete": True, "dry-run": True})
    assert effect.changes_something({"reset-offsets": True, "execute": True})
    assert not effect.changes_something({"reset-offsets": True, "dry-run": True})
    assert not effect.changes_something({"describe": True})


def test_a_command_that_asks_first_is_none_that_reads() -> None:
    for words, command in all_leaves().items():
        if "yes" in parameter_names(command):
            assert EFFECTS[words].kind != READS, words


def test_validation_alone_is_reading() -> None:
    def create(*, validate_only: bool) -> Call:
        request = messages.CreateTopicsRequest(topics=[], timeout_ms=1, validate_only=validate_only)
        return Call("CreateTopics", request)

    assert is_reading(create(validate_only=True))
    assert not is_reading(create(validate_only=False))
    assert not is_reading(Call("Produce", lambda version: create(validate_only=True).message))


def test_the_client_of_a_reading_command_sends_nothing_that_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("command", "may_change", "confirmed"):
        monkeypatch.setattr(Guard, name, getattr(Guard, name))
    check_guards("topics list", {})
    on_call = client_checks(Choice("127.0.0.1:1", None, "-b")).on_call
    assert on_call is not None
    with pytest.raises(ReadOnlyCommand, match="DeleteTopics"):
        on_call(Call("DeleteTopics", messages.DeleteTopicsRequest(timeout_ms=1)))


def test_a_host_is_the_same_in_capitals(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("command", "may_change", "confirmed"):
        monkeypatch.setattr(Guard, name, getattr(Guard, name))
    path = tmp_path / "config.yaml"
    path.write_text("contexts: {prod: {bootstrap_servers: 'Kafka1:9092', read_only: true}}")
    monkeypatch.setenv("KCTL_CONFIG", str(path))
    with pytest.raises(ReadOnlyContext):
        check_guards("topics create", {"bootstrap": "other:9092,kafka1:9092"})
