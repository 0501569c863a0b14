"""The tools that are stood in for: from the words of a call to its exit code.

| words | Kafka's tools, and ours |
|---|---|
| none, or `--help` | help on stderr, exit code 1 |
| `--version` | the version on stdout, exit code 0 |
| options that do not fit | what is wrong on stderr, often with the help, exit code 1 |

Source: CommandLineUtils.maybePrintHelpOrVersion, printUsageAndExit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from engine.errors import EngineError
from kctl import exits
from kctl.compat.java_options import GivenOptions, OptionsRefused, read_options, usage_text
from kctl.connect import ClusterOptions, connect

if TYPE_CHECKING:
    from engine.client.blocking import KafkaClient
    from engine.host.ports import Files

#: The release whose output and exit codes are followed.
FOLLOWED_VERSION = "3.9.1"

REASSIGN_PARTITIONS = "kafka-reassign-partitions"
LEADER_ELECTION = "kafka-leader-election"
CONSUMER_GROUPS = "kafka-consumer-groups"
TOOLS = (REASSIGN_PARTITIONS, LEADER_ELECTION, CONSUMER_GROUPS)

#: How long a response is waited for by tools without an option for it.
_TIMEOUTS_S = {REASSIGN_PARTITIONS: 60.0, LEADER_ELECTION: 30.0}
_GROUPS_TIMEOUT_MS = 5000
_CONFIG_OPTIONS = {
    REASSIGN_PARTITIONS: "command-config",
    LEADER_ELECTION: "admin.config",
    CONSUMER_GROUPS: "command-config",
}

Connect = Callable[[ClusterOptions], "KafkaClient"]


def run_tool(
    tool: str, words: Sequence[str], *, connecting: Connect = connect, files: Files | None = None
) -> int:
    """Run one of TOOLS; returns its exit code."""
    module = _module(tool)
    usage = usage_text(tool, module.SUMMARY, module.OPTIONS)
    try:
        given = read_options(module.OPTIONS, words)
        if not words or given.has("help"):
            sys.stderr.write(usage)
            return exits.FAILED
        if given.has("version"):
            sys.stdout.write(f"{FOLLOWED_VERSION}\n")
            return exits.OK
        wanted = module.check_options(given)
        cluster = _cluster(tool, given)
    except EngineError as error:
        return _refuse(tool, error, usage)
    _enter(tool, given)
    opened = files or _real_files()
    client = lambda: connecting(cluster)  # noqa: E731
    if tool == REASSIGN_PARTITIONS:
        return int(module.perform(given, wanted, client, opened, sys.stdout))
    try:
        return int(module.perform(given, wanted, client, opened, sys.stdout, sys.stderr))
    except OptionsRefused as error:
        return _refuse(tool, error, usage)


def _refuse(tool: str, error: EngineError, usage: str) -> int:
    """Print why options do not fit; returns the exit code."""
    sys.stderr.write(f"{error}\n")
    shows_usage = isinstance(error, OptionsRefused) and error.shows_usage
    sys.stderr.write(usage if shows_usage else f"`{tool} --help` lists the options.\n")
    return exits.FAILED


def _enter(tool: str, given: GivenOptions) -> None:
    """Have the guards of contexts decide on a tool. Errors: those of `guard.enter`."""
    from kctl.guard import enter

    parameters: dict[str, object] = dict.fromkeys(given.names(), True)
    enter(f"compat {tool}", {**parameters, "bootstrap_server": given.needed("bootstrap-server")})


def _module(tool: str) -> ModuleType:
    if tool == REASSIGN_PARTITIONS:
        from kctl.compat import reassign_tool

        return reassign_tool
    if tool == CONSUMER_GROUPS:
        from kctl.compat import groups_tool

        return groups_tool
    from kctl.compat import election_tool

    return election_tool


def _cluster(tool: str, given: GivenOptions) -> ClusterOptions:
    timeout_s = _TIMEOUTS_S.get(tool)
    if timeout_s is None:
        # The tool itself reports a time that is no number, when it begins.
        text = given.texts("timeout")[-1:]
        is_number = bool(text) and text[0].isdecimal()
        timeout_s = (int(text[0]) if is_number else _GROUPS_TIMEOUT_MS) / 1000
    return ClusterOptions(
        bootstrap_server=given.needed("bootstrap-server"),
        command_config=given.text(_CONFIG_OPTIONS[tool]),
        timeout_s=timeout_s,
    )


def _real_files() -> Files:
    from engine.host.real import RealFiles

    return RealFiles()
