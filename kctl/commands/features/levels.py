"""Implementation of `kctl features`: query all brokers, compare, request level changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.cluster_features import (
    ClusterFeature,
    ClusterFeatures,
    NoFeatures,
    checked_feature_update,
    cluster_features,
    range_text,
)
from engine.client.feature_admin import (
    FeatureChange,
    FeatureUpdate,
    features_by_broker,
    update_features,
)
from engine.client.feature_levels import (
    METADATA,
    METADATA_LEVELS,
    STABLE_METADATA_LEVEL,
    level_text,
    levels_of_release,
    metadata_level,
    metadata_name,
)
from kctl import exits
from kctl.arguments import UnreadableArgument, counted
from kctl.command_results import end_with
from kctl.connect import ClusterOptions, cluster_named, connect
from kctl.console import confirm, notify, report_error
from kctl.numbers import parse_whole_number
from kctl.render import Column, check_format, write_rows
from kctl.render.rows import OutputRow

LIST_COLUMNS: Final = (
    Column("feature", "FEATURE", is_name=True),
    Column("level", "LEVEL", right=True),
    Column("level_name", "NAME", kind="string?"),
    Column("supported_lowest", "FROM", right=True, kind="integer?"),
    Column("supported_highest", "TO", right=True, kind="integer?"),
    Column("highest_name", "TO-NAME", wide=True, kind="string?"),
    Column("may_rise", "MAY-RISE", kind="boolean"),
    Column("epoch", "EPOCH", right=True, kind="integer?"),
    Column("different", "DIFFERENT", kind="string{}"),
)
CHANGE_COLUMNS: Final = (
    Column("feature", "FEATURE", is_name=True),
    Column("old_level", "LEVEL", right=True),
    Column("new_level", "NEW-LEVEL", right=True),
    Column("new_name", "NAME", kind="string?"),
    Column("result", "RESULT"),
)
_LEVEL_MAX: Final = 32_767
_LEVELS: Final = range(min(METADATA_LEVELS.values()), max(METADATA_LEVELS.values()) + 1)


class LevelsRequest(NamedTuple):
    """The options of `kctl features upgrade` and `downgrade`."""

    feature_levels: Sequence[str]
    release: str | None
    is_upgrade: bool
    unsafe: bool
    dry_run: bool
    yes: bool
    output: str

    @property
    def change(self) -> FeatureChange:
        """Return the kind of change for UpdateFeatures: upgrade, safe or unsafe downgrade."""
        if self.is_upgrade:
            return FeatureChange.UPGRADE
        return FeatureChange.UNSAFE_DOWNGRADE if self.unsafe else FeatureChange.SAFE_DOWNGRADE


# -- list


def list_features(options: ClusterOptions, *, check: bool, output: str) -> int:
    """Print a row for each feature; returns the exit code.

    With `check` it is PROBLEMS_FOUND if brokers support different ranges, or have not read the
    newest levels.
    """
    check_format(output)
    with connect(options) as client:
        features, failures = _read_features(client)
    rows = [_feature_row(feature, features.epoch) for feature in features.by_name.values()]
    code = end_with(LIST_COLUMNS, rows, output, failures=failures)
    if not rows and not failures:
        notify(f"{NoFeatures()}; {NoFeatures.hint}")
    for broker_id, levels in features.behind.items():
        known = ", ".join(f"{name}={level}" for name, level in levels.items()) or "fewer levels"
        notify(f"broker {broker_id} has not read the latest metadata yet: it knows {known}")
    differs = features.behind or any(one.different for one in features.by_name.values())
    return exits.PROBLEMS_FOUND if check and differs and not code else code


def _read_features(client: KafkaClient) -> tuple[ClusterFeatures, int]:
    """Request the features of all brokers; return them, and the number of brokers that failed.

    The errors are printed.
    """
    views, failures = features_by_broker(client)
    for broker_id, error in failures.items():
        report_error(error, f"broker {broker_id}")
    return cluster_features(views), len(failures)


def _feature_row(feature: ClusterFeature, epoch: int | None) -> OutputRow:
    """Return the row of a feature: finalized level, supported range, brokers that differ."""
    supported = feature.supported
    return {
        "feature": feature.name,
        "level": feature.level,
        "level_name": _release_of_level(feature.name, feature.level),
        "supported_lowest": None if supported is None else supported.lowest,
        "supported_highest": None if supported is None else supported.highest,
        "highest_name": None
        if supported is None
        else _release_of_level(feature.name, supported.highest),
        "may_rise": feature.may_rise,
        "epoch": epoch,
        "different": {str(id_): range_text(one) for id_, one in feature.different.items()},
    }


def _release_of_level(feature: str, level: int) -> str | None:
    """Return the release of a metadata.version level, such as 4.0-IV3; None for other features."""
    return metadata_name(level) if feature == METADATA else None


# -- upgrade and downgrade


def change_levels(options: ClusterOptions, request: LevelsRequest) -> int:
    """Change the finalized levels of features, or validate the change in a dry run.

    Prints a row for each feature, and returns the exit code.
    """
    check_format(request.output)
    wanted = parse_wanted_levels(request)
    with connect(options) as client:
        features, unanswered = _read_features(client)
        if unanswered:
            # A broker that did not respond may not support the level, and would stop.
            return exits.FAILED
        updates = _planned_updates(features, wanted, request)
        if not updates:
            write_rows(CHANGE_COLUMNS, [], request.output)
            notify("every feature has the level of the release, or a higher one")
            return exits.OK
        if not request.dry_run:
            confirm(_confirmation_text(client, features, updates, request), yes=request.yes)
        results = update_features(client, updates, validate_only=request.dry_run)
    rows, failures = [], 0
    for update in updates:
        error = results[update.feature]
        if error is not None:
            report_error(error, f"{update.feature}={update.level}")
            failures += 1
            continue
        rows.append(_change_row(features, update, request))
    return end_with(CHANGE_COLUMNS, rows, request.output, failures=failures)


def parse_wanted_levels(request: LevelsRequest) -> dict[str, int]:
    """Return the requested level by feature: of FEATURE=LEVEL arguments or of --release.

    Errors: UnreadableArgument, also if neither or both are given.
    """
    if bool(request.feature_levels) == (request.release is not None):
        expected = "FEATURE=LEVEL..., or --release" if request.is_upgrade else "FEATURE=LEVEL..."
        given = " ".join([*request.feature_levels, *([request.release] if request.release else [])])
        raise UnreadableArgument("features to change", given, expected)
    if request.release is not None:
        level = metadata_level(request.release, _LEVELS, STABLE_METADATA_LEVEL)
        if level is None:
            raise UnreadableArgument("a release", request.release, "one from 3.3 to 4.3, as 4.0")
        return levels_of_release(level)
    levels: dict[str, int] = {}
    for argument in request.feature_levels:
        name, equals, text = argument.partition("=")
        if not name or not equals or name in levels:
            expected = "FEATURE=LEVEL, each feature once, as transaction.version=2"
            raise UnreadableArgument("a feature and its level", argument, expected)
        levels[name] = _parse_level(name, text)
    return levels


def _parse_level(feature: str, text: str) -> int:
    """Parse the level of a feature; metadata.version also accepts a release or IV name."""
    if feature == METADATA and not text.isdecimal():
        level = metadata_level(text, _LEVELS, STABLE_METADATA_LEVEL)
        if level is None:
            raise UnreadableArgument(f"a level of {METADATA}", text, "30, 4.3-IV0 or 4.3")
        return level
    return parse_whole_number(text, f"a level of {feature}", highest=_LEVEL_MAX)


def _planned_updates(
    features: ClusterFeatures, wanted: dict[str, int], request: LevelsRequest
) -> list[FeatureUpdate]:
    """Return the level changes to request; with --release, only those that raise a level.

    Errors: NoFeatures, those of `checked_feature_update` for an impossible change.
    """
    if not features.by_name:
        raise NoFeatures
    if request.release is not None:
        known = features.by_name
        wanted = {n: level for n, level in wanted.items() if n in known and level > known[n].level}
    return [
        checked_feature_update(features, name, level, request.change)
        for name, level in wanted.items()
    ]


def _confirmation_text(
    client: KafkaClient,
    features: ClusterFeatures,
    updates: Sequence[FeatureUpdate],
    request: LevelsRequest,
) -> str:
    """Return the confirmation prompt: old and new levels, and irreversible consequences."""
    changes = ", ".join(
        f"{it.feature} from {level_text(it.feature, features.by_name[it.feature].level)}"
        f" to {level_text(it.feature, it.level)}"
        for it in updates
    )
    verb = "raise" if request.is_upgrade else "lower"
    prompt = f"{verb} {counted(len(updates), 'feature')} of {cluster_named(client)}: {changes}"
    if request.unsafe:
        return f"{prompt}; metadata that the level does not know is lost"
    if request.is_upgrade and any(it.feature == METADATA for it in updates):
        return f"{prompt}; brokers of earlier releases cannot join after it"
    return prompt


def _change_row(
    features: ClusterFeatures, update: FeatureUpdate, request: LevelsRequest
) -> OutputRow:
    """Return the row of a level change, performed or in a dry run."""
    done = "upgraded" if request.is_upgrade else "downgraded"
    return {
        "feature": update.feature,
        "old_level": features.by_name[update.feature].level,
        "new_level": update.level,
        "new_name": _release_of_level(update.feature, update.level),
        "result": f"would be {done}" if request.dry_run else done,
    }
