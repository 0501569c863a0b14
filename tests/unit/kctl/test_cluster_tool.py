"""The commands of kafka-cluster. The expectations were printed by the tool of 3.9.1."""

from __future__ import annotations

import pytest

from kctl.compat.cluster_tool import commands
from kctl.compat.java_commands import CommandRefused, HelpRequested, parse_command
from kctl.compat.releases import Release

COMMANDS = commands(Release.V3_9)


@pytest.mark.parametrize(
    ("words", "command", "servers"),
    [
        ("cluster-id -b b:1", "cluster-id", "b:1"),
        ("cluster --bootstrap-server=b:1", "cluster-id", "b:1"),
        ("cluster-id --bootstrap-s b:1 -b c:1", "cluster-id", "c:1"),
        ("unregister -bb:1 -i -4", "unregister", "b:1"),
    ],
)
def test_names_may_be_shortened_and_the_last_value_counts(
    words: str, command: str, servers: str
) -> None:
    found = parse_command("kafka-cluster", "", COMMANDS, words.split())
    assert (command, servers) == (found.command.name, found.given.text("bootstrap-server"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "too few arguments"),
        ("frob", "invalid choice: 'frob' (choose from 'cluster-id', 'unregister')"),
        ("cluster-id", "one of the arguments --bootstrap-server/-b --bootstrap-controller/-C"),
        ("cluster-id -b", "argument --bootstrap-server/-b: expected one argument"),
        ("cluster-id -b x extra", "unrecognized arguments: 'extra'"),
        ("cluster-id --frob", "unrecognized arguments: '--frob'"),
        ("cluster-id -b x -C y", "argument --bootstrap-controller/-C: not allowed with argument"),
        ("unregister -b x", "argument --id/-i is required"),
        ("unregister -b x -i y", "argument --id/-i: could not convert 'y' to Integer"),
    ],
)
def test_words_that_do_not_fit_are_refused(words: str, message: str) -> None:
    with pytest.raises(CommandRefused) as caught:
        parse_command("kafka-cluster", "", COMMANDS, words.split())
    assert f"kafka-cluster: error: {message}" in str(caught.value)


@pytest.mark.parametrize("words", ["-h", "cluster-id --help"])
def test_help_is_no_mistake(words: str) -> None:
    with pytest.raises(HelpRequested, match="usage: kafka-cluster"):
        parse_command("kafka-cluster", "", COMMANDS, words.split())
