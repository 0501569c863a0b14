"""`kafka-storage`: formats the log directories of a KRaft node, and shows their state.

Source: StorageTool of 3.9.1 and 4.3.0.

Differs: only quorums of `controller.quorum.voters` are supported. Formatting for other quorums
(`--standalone`, `--initial-controllers`, `--no-initial-controllers`, a level of kraft.version) or
with users (`--add-scram`) is refused, and so are feature levels with 3.9.1. Only the properties
that formatting needs are checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.controller.topic_ids import random_topic_id
from engine.errors import EngineError
from engine.host.real import RealClock, RealEntropy
from engine.ids import uuid_text
from engine.log.directory.bootstrap_snapshot import FeatureLevel
from kctl import exits
from kctl.compat.feature_levels import (
    dependency_lines,
    levels_to_format,
    mapping_lines,
    parse_feature_level,
)
from kctl.compat.java_commands import Arity, Command, CommandOption, GivenCommand
from kctl.compat.java_failures import TerseFailure, ToolFailure
from kctl.compat.java_options import GivenOptions
from kctl.compat.releases import Release
from kctl.compat.storage_dirs import NodeSettings, parse_node_settings, read_storage_info
from kctl.compat.storage_format import (
    Host,
    bootstrap_text,
    directories_to_format,
    format_directory,
    formatting_line,
    read_directory_states,
    verify_formatted,
)
from kctl.compat.tool_call import ToolCall

SUMMARY: Final = "The Kafka storage tool."
_CONFIG: Final = CommandOption("config", "c", "The properties of the node.", is_required=True)
_CLUSTER: Final = CommandOption("cluster-id", "t", "The id of the cluster.", is_required=True)
_RELEASE: Final = CommandOption("release-version", "r", "All features of a release, as 4.0.")
_FEATURE: Final = CommandOption("feature", "f", "FEATURE=LEVEL.", takes=Arity.APPENDED)
_REFUSED: Final = ("add-scram", "standalone", "no-initial-controllers", "initial-controllers")
_FORMAT: Final = (
    _CONFIG,
    _CLUSTER,
    CommandOption("add-scram", "S", "Not served.", takes=Arity.APPENDED),
    CommandOption("ignore-formatted", "g", "Format the others.", takes=Arity.NOTHING),
    _RELEASE,
    _FEATURE,
    CommandOption("standalone", "s", "Not served.", takes=Arity.NOTHING),
    CommandOption("no-initial-controllers", "N", "Not served.", takes=Arity.NOTHING),
    CommandOption("initial-controllers", "I", "Not served."),
)


def commands(release: Release) -> tuple[Command, ...]:
    """Return the commands of kafka-storage in a release, with their options."""
    shown = (
        Command("info", "Get information about the log directories of this node.", (_CONFIG,)),
        Command("format", "Format the log directories of this node.", _FORMAT),
    )
    identity = Command("random-uuid", "Print a random UUID.")
    if not release.is_four:
        return (*shown, identity)
    required = _FEATURE._replace(is_required=True)
    return (
        *shown,
        Command("version-mapping", "Show the features of a release.", (_RELEASE,)),
        Command("feature-dependencies", "Show what levels require.", (required,)),
        identity,
    )


def common(release: Release) -> tuple[CommandOption, ...]:
    """Return the options of kafka-storage that precede the command: none."""
    del release
    return ()


def help_code(release: Release) -> int:
    """Return the exit code with which kafka-storage ends after its help."""
    del release
    return exits.OK


def run_command(call: ToolCall, wanted: GivenCommand) -> int:
    """Run a command of kafka-storage, and print the results; returns the exit code."""
    name, given = wanted.command.name, wanted.given
    try:
        if name == "random-uuid":
            _print(call, [uuid_text(random_topic_id(RealEntropy()))])
        elif name == "version-mapping":
            _print(call, mapping_lines(given.text("release-version")))
        elif name == "feature-dependencies":
            for text in given.texts("feature"):
                _print(call, dependency_lines(*parse_feature_level(text)))
        elif name == "info":
            return _print_info(call, _settings(call, given))
        else:
            _format_directories(call, given)
    except TerseFailure as failure:
        call.flush()
        call.err.write(f"{failure}\n")
        return exits.FAILED
    return exits.OK


def _print(call: ToolCall, lines: Sequence[str]) -> None:
    """Print lines of text on the tool's standard output."""
    call.out.writelines(f"{line}\n" for line in lines)


def _settings(call: ToolCall, given: GivenOptions) -> NodeSettings:
    """Return the storage settings in the file of --config; raises ToolFailure."""
    return parse_node_settings(call.properties(given.needed("config")), is_four=call.is_four)


def _print_info(call: ToolCall, settings: NodeSettings) -> int:
    """Print the state of the node's log directories; returns FAILED if there are problems."""
    info = read_storage_info(call.files, settings)
    call.err.writelines(f"{line}\n" for line in info.errors)
    call.out.write(info.text)
    return exits.FAILED if info.has_problems else exits.OK


def _format_directories(call: ToolCall, given: GivenOptions) -> None:
    """Format the log directories that are not formatted yet (kafka-storage format).

    Errors: TerseFailure, ToolFailure.
    """
    settings, cluster_id = _settings(call, given), given.needed("cluster-id")
    if not settings.is_kraft:
        raise TerseFailure(
            "The kafka configuration file appears to be for a legacy cluster. Formatting is only "
            "supported for clusters in KRaft mode."
        )
    for option in _REFUSED:
        if given.has(option):
            raise TerseFailure(f"--{option} is not served here: use Kafka's own kafka-storage")
    levels = _parse_levels(given, call.release)
    states = read_directory_states(call.files, settings)
    _print(
        call,
        [f"I/O error trying to read log directory {d}. Ignoring..." for d in states.unreadable],
    )
    if not states.formatted and not states.empty:
        raise TerseFailure("No available log directories to format.")
    node_id = settings.node_id or ""
    verify_formatted(states, cluster_id, node_id)
    ignores = given.has("ignore-formatted")
    wanted = directories_to_format(states, ignores_formatted=ignores)
    if not wanted:
        _print(call, ["All of the log directories are already formatted."])
        return
    if call.is_four:
        _print(call, [bootstrap_text(levels)])
    host = Host(call.files, RealClock(), RealEntropy())
    for directory in wanted:
        _print(call, [formatting_line(directory, settings, levels)])
        try:
            format_directory(host, directory, cluster_id, node_id, levels)
        except EngineError as error:
            raise ToolFailure("java.io.IOException", str(error)) from error


def _parse_levels(given: GivenOptions, release: Release) -> list[FeatureLevel]:
    """Return the initial feature levels of the cluster; raises TerseFailure, ToolFailure."""
    try:
        wanted = dict(parse_feature_level(text) for text in given.texts("feature"))
    except TerseFailure as failure:
        raise ToolFailure("java.lang.RuntimeException", str(failure)) from failure
    return [
        FeatureLevel(name, level)
        for name, level in levels_to_format(given.text("release-version"), wanted, release)
    ]
