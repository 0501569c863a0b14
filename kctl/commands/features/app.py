"""`kctl features`: levels of features, and their upgrade and downgrade."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import DryRun, Output, Yes, noun, on_cluster

app = noun("Features of a cluster: list their levels, upgrade and downgrade them.")

_FeatureLevels = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FEATURE=LEVEL]...",
        help="transaction.version=2; metadata.version=4.3-IV0, 4.3 or 30.",
    ),
]


@app.command("list", epilog="Examples: kctl features list · kctl features list --check -o json")
@on_cluster
def list_(
    cluster: ClusterOptions,
    check: Annotated[
        bool,
        typer.Option("--check", help="Exit code 4 if brokers differ in levels."),
    ] = False,
    output: Output = "table",
) -> int:
    """List features: the finalized level, and the levels that all brokers support.

    DIFFERENT names brokers that support other levels, as during an upgrade of the cluster. A
    cluster with ZooKeeper has no features.
    """
    from kctl.commands.features.levels import list_features

    return list_features(cluster, check=check, output=output)


@app.command(
    "upgrade",
    epilog="Examples: kctl features upgrade --release 4.3 --dry-run · kctl features upgrade "
    "transaction.version=2",
)
@on_cluster
def upgrade(
    cluster: ClusterOptions,
    feature_levels: _FeatureLevels = None,
    release: Annotated[
        str | None,
        typer.Option(
            "--release",
            metavar="RELEASE",
            help="Upgrade all features to a release's levels, such as 4.3.",
        ),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Raise the levels of features; all brokers and controllers must support them.

    With --release, features that already have the level or a higher one are not changed.
    """
    from kctl.commands.features.levels import LevelsRequest, change_levels

    request = LevelsRequest(
        feature_levels or [],
        release,
        is_upgrade=True,
        unsafe=False,
        dry_run=dry_run,
        yes=yes,
        output=output,
    )
    return change_levels(cluster, request)


@app.command(
    "downgrade",
    epilog="Examples: kctl features downgrade transaction.version=1 --dry-run · kctl features "
    "downgrade share.version=0",
)
@on_cluster
def downgrade(
    cluster: ClusterOptions,
    feature_levels: _FeatureLevels = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Downgrade even if metadata is lost.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Lower the levels of features; level 0 disables a feature.

    The controller refuses a level that loses metadata, unless --unsafe is given.
    """
    from kctl.commands.features.levels import LevelsRequest, change_levels

    request = LevelsRequest(
        feature_levels or [],
        None,
        is_upgrade=False,
        unsafe=unsafe,
        dry_run=dry_run,
        yes=yes,
        output=output,
    )
    return change_levels(cluster, request)
