"""`kafka-features`: shows the levels of a cluster's features, and changes them.

Source: FeatureCommand of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from engine.client.errors import NoCommonVersion, TimedOut, Unreachable
from engine.client.feature_admin import (
    FeatureChange,
    FeatureUpdate,
    describe_features,
    update_features,
)
from engine.client.feature_levels import METADATA, metadata_name
from engine.errors import EngineError
from kctl import exits
from kctl.compat.feature_levels import (
    dependency_lines,
    mapping_lines,
    metadata_version_level,
    parse_feature_level,
)
from kctl.compat.java_admin import TIMEOUT
from kctl.compat.java_commands import Arity, Command, CommandOption, GivenCommand
from kctl.compat.java_failures import TerseFailure, ToolFailure, as_java
from kctl.compat.java_options import GivenOptions
from kctl.compat.quorum_servers import SERVER_OPTIONS, required_server
from kctl.compat.releases import Release
from kctl.compat.tool_call import ToolCall

SUMMARY = "Shows and changes the levels of features."
_FEATURE: Final = CommandOption("feature", "", "FEATURE=LEVEL.", takes=Arity.APPENDED)
_NAME: Final = CommandOption("feature", "", "The name of a feature.", takes=Arity.APPENDED)
_METADATA_OPTION: Final = CommandOption("metadata", "", "A level of metadata.version, as 3.3-IV3.")
_RELEASE_OPTION: Final = CommandOption("release-version", "", "All features of a release, as 4.0.")
_NO_NODE: Final = "Timed out waiting for a node assignment. Call: updateFeatures"
_DRY_RUN: Final = CommandOption("dry-run", "", "Change nothing.", takes=Arity.NOTHING)
_UNSAFE: Final = CommandOption("unsafe", "", "Even if metadata is lost.", takes=Arity.NOTHING)


def commands(release: Release) -> tuple[Command, ...]:
    """Return the commands of kafka-features in a release, with their options."""
    levels: tuple[CommandOption, ...] = (_METADATA_OPTION,)
    if release.is_four:
        levels += (_RELEASE_OPTION,)
    shared = (
        Command("describe", "Show all features."),
        Command("upgrade", "Raise levels.", (*levels, _FEATURE, _DRY_RUN)),
        Command("downgrade", "Lower levels.", (*levels, _FEATURE, _UNSAFE, _DRY_RUN)),
        Command("disable", "Set levels to 0.", (_NAME, _UNSAFE, _DRY_RUN)),
    )
    if not release.is_four:
        return shared
    return (
        *shared,
        Command("version-mapping", "Show the features of a release.", (_RELEASE_OPTION,)),
        Command("feature-dependencies", "Show what levels require.", (_FEATURE,)),
    )


def common(release: Release) -> tuple[CommandOption, ...]:
    """Return the options of kafka-features that precede the command."""
    del release
    return SERVER_OPTIONS


def help_code(release: Release) -> int:
    """Return the exit code with which kafka-features ends after its help."""
    return exits.OK if release.is_four else exits.FAILED


def run_command(call: ToolCall, wanted: GivenCommand) -> int:
    """Run a command of kafka-features, and print the results; returns the exit code."""
    name, given = wanted.command.name, wanted.given
    try:
        if name == "version-mapping":
            _print(call, mapping_lines(given.text("release-version")))
        elif name == "feature-dependencies":
            _print_dependencies(call, given)
        elif name == "describe":
            _print_features(call, given)
        else:
            _update_features(call, name, given)
    except TerseFailure as failure:
        call.flush()
        call.err.write(f"{failure}\n")
        return exits.FAILED
    return exits.OK


def _print(call: ToolCall, lines: Sequence[str]) -> None:
    """Print lines of text on the tool's standard output."""
    call.out.writelines(f"{line}\n" for line in lines)


def _print_dependencies(call: ToolCall, given: GivenOptions) -> None:
    """Print the features that each --feature FEATURE=LEVEL depends on."""
    for text in given.texts("feature"):
        _print(call, dependency_lines(*parse_feature_level(text)))


# -- describe


def _print_features(call: ToolCall, given: GivenOptions) -> None:
    """Print each feature's supported range and finalized level (0 if it is not finalized)."""
    servers = required_server(given)
    call.admit(["describe", *given.names()], servers)
    with call.client(servers, call.properties(given.text("command-config"))) as client:
        try:
            found = describe_features(client)
        except EngineError as error:
            raise TerseFailure(str(as_java(error))) from error
    names = sorted({*found.supported, *found.finalized})
    form = _FORM_OF_FOUR if call.is_four else _FORM
    for name in names:
        supported = found.supported.get(name, (0, 0))
        levels = (*supported, found.finalized.get(name, 0))
        shown = [_level_text(name, level) for level in levels]
        epoch = "-" if found.epoch is None else str(found.epoch)
        call.out.write(form.format(name, *shown, epoch) + "\n")


_FORM: Final = (
    "Feature: {}\tSupportedMinVersion: {}\tSupportedMaxVersion: {}\t"
    "FinalizedVersionLevel: {}\tEpoch: {}"
)
_FORM_OF_FOUR: Final = (
    "Feature: {:<42}SupportedMinVersion: {:<17}SupportedMaxVersion: {:<17}"
    "FinalizedVersionLevel: {:<17}Epoch: {}"
)


def _level_text(name: str, level: int) -> str:
    """Return a feature's level as text: a number, or the name of a metadata.version."""
    if name != METADATA:
        return str(level)
    return metadata_name(level) or f"UNKNOWN [{level}]"


# -- update


def _update_features(call: ToolCall, name: str, given: GivenOptions) -> None:
    """Change levels of features, print each result; raises TerseFailure if one failed."""
    servers = required_server(given)
    updates = _parse_updates(name, given, call.release)
    if not updates:
        raise TerseFailure(f"You must specify at least one feature to {name}")
    call.admit([name, *given.names()], servers)
    dry_run = given.has("dry-run")
    with call.client(servers, call.properties(given.text("command-config"))) as client:
        try:
            results: Mapping[str, EngineError | None] = update_features(
                client, updates, validate_only=dry_run
            )
        except NoCommonVersion as error:
            raise TerseFailure("The node does not support UPDATE_FEATURES") from error
        except (Unreachable, TimedOut):
            # Java's client reports this error for each feature.
            lost = ToolFailure(TIMEOUT, _NO_NODE)
            results = dict.fromkeys((update.feature for update in updates), lost)
        except EngineError as error:
            raise TerseFailure(str(as_java(error))) from error
    lines = [
        _result_line(name, update, results[update.feature], dry_run=dry_run) for update in updates
    ]
    _print(call, sorted(lines))
    failures = sum(1 for error in results.values() if error is not None)
    if failures:
        raise TerseFailure(f"{failures} out of {len(updates)} operation(s) failed.")


def _parse_updates(name: str, given: GivenOptions, release: Release) -> list[FeatureUpdate]:
    """Return the level changes that upgrade, downgrade or disable requests.

    `name` is the command. Errors: TerseFailure, also for a feature that is given twice.
    """
    change = FeatureChange.UPGRADE
    if name != "upgrade":
        is_unsafe = given.has("unsafe")
        change = FeatureChange.UNSAFE_DOWNGRADE if is_unsafe else FeatureChange.SAFE_DOWNGRADE
    levels: dict[str, int] = {}
    if given.has("metadata"):
        levels[METADATA] = metadata_version_level(given.needed("metadata"), release)
    if given.has("release-version"):
        for line in mapping_lines(given.needed("release-version")):
            feature, _, text = line.partition("=")
            levels[feature] = int(text.split()[0])
    for text in given.texts("feature"):
        feature, level = (text, 0) if name == "disable" else parse_feature_level(text)
        if feature in levels:
            raise TerseFailure(f"Feature {feature} was specified more than once.")
        levels[feature] = level
    return [FeatureUpdate(feature, level, change) for feature, level in levels.items()]


def _result_line(
    name: str, update: FeatureUpdate, error: EngineError | None, *, dry_run: bool
) -> str:
    """Return the result of one update as a line."""
    feature = update.feature
    target = "" if name == "disable" else f" to {update.level}"
    if error is not None:
        return f"{'Can' if dry_run else 'Could'} not {name} {feature}{target}. {as_java(error)}"
    return f"{feature} {'can be' if dry_run else 'was'} {name}d{target}."
