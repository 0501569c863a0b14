"""`kctl logs`: raw log directories, without a broker: list, verify, repair, compare."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.options.cluster import FORMATS_HELP

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Verify, repair and list raw log directories.",
)

_Paths = Annotated[
    list[str],
    typer.Argument(metavar="DIR...", help="Log directories, or partition directories in them."),
]
_Output = Annotated[str, typer.Option("-o", "--output", metavar="FORMAT", help=FORMATS_HELP)]


@app.command("dirs")
def dirs(
    paths: _Paths,
    output: _Output = "table",
) -> int:
    """List the partitions of log directories: sizes, offsets, what is left over.

    A directory that a broker is using can be listed: nothing is written or locked.
    """
    from kctl.commands.logs.listing import list_dirs

    return list_dirs(paths, output)


@app.command("verify", epilog="Exit codes: 0 clean, 1 failed, 2 wrong usage, 4 problems found.")
def verify(
    paths: _Paths,
    deep: Annotated[
        bool, typer.Option("--deep", help="Open every batch and check its records as well.")
    ] = False,
    compacted: Annotated[
        bool | None,
        typer.Option(
            "--compacted/--not-compacted",
            help="Whether missing offsets are normal. Without either, by the files.",
        ),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Below the partitions, a row for each problem.")
    ] = False,
    notes: Annotated[
        bool,
        typer.Option("--notes", help="As --all, and what is no problem but worth knowing."),
    ] = False,
    output: _Output = "table",
) -> int:
    """Check every batch, index, epoch and snapshot of log directories.

    Checksums, offsets, leader epochs, the three indexes against the log, producer snapshots,
    leftovers. Nothing is written; a directory that a broker is using may show a torn last batch.
    Tables have a row for each partition, the other formats one for each problem.
    """
    from kctl.commands.logs.verify import VerifyRequest, verify_dirs

    request = VerifyRequest(
        deep=deep, compacted=compacted, notes=notes, show_all=show_all, output=output
    )
    return verify_dirs(paths, request)


@app.command(
    "repair",
    epilog="Exit codes: 0 repaired or nothing to do, 1 failed, 2 wrong usage, "
    "5 a dry run found something to do.",
)
def repair(
    path: Annotated[
        str, typer.Argument(metavar="DIR", help="A log directory or one partition directory.")
    ],
    into: Annotated[
        str | None,
        typer.Option("--to", metavar="DIR", help="Write repaired copies to this new directory."),
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Repair the directory itself.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, change nothing.")
    ] = False,
    backup: Annotated[
        bool,
        typer.Option(
            "--backup/--no-backup",
            help="Keep what is cut from logs in place as <name>.before-repair.",
        ),
    ] = True,
    from_recovery_point: Annotated[
        bool,
        typer.Option(
            "--from-recovery-point",
            help="Check only what a broker checks after a crash.",
        ),
    ] = False,
    rebuild_indexes: Annotated[
        bool,
        typer.Option("--rebuild-indexes", help="Rebuild right indexes as well, and trim them."),
    ] = False,
    cut_overlaps: Annotated[
        bool,
        typer.Option(
            "--cut-overlaps",
            help="Cut at batches whose offsets were there before, too; a broker keeps most.",
        ),
    ] = False,
    index_interval_bytes: Annotated[
        int, typer.Option(min=0, metavar="BYTES", help="Bytes of log between two index entries.")
    ] = 4096,
    yes: Annotated[
        bool, typer.Option("-y", "--yes", help="Do not ask before records are cut.")
    ] = False,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FORMAT", help=FORMATS_HELP)
    ] = "table",
) -> int:
    """Cut damaged tails, rebuild wrong indexes, finish or remove what a crash left.

    A log is cut at the first batch that a broker's recovery would cut at, and all that follows
    it goes: where another replica is healthy, delete this one and let it be fetched again instead.
    """
    from kctl.commands.logs.repair import RepairRequest, repair_dir

    request = RepairRequest(
        into=into,
        in_place=in_place,
        dry_run=dry_run,
        backup=backup,
        from_recovery_point=from_recovery_point,
        rebuild_indexes=rebuild_indexes,
        cut_overlaps=cut_overlaps,
        index_interval_bytes=index_interval_bytes,
        yes=yes,
        output=output,
    )
    return repair_dir(path, request)


@app.command("diff", epilog="Exit codes: 0 same, 1 failed, 2 wrong usage, 4 they differ.")
def diff(
    left: Annotated[str, typer.Argument(metavar="DIR", help="A partition directory.")],
    right: Annotated[
        str, typer.Argument(metavar="DIR", help="Another copy of the same partition.")
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Compare them even if they are of unlike topics.")
    ] = False,
    output: _Output = "table",
) -> int:
    """Compare two copies of a partition and show the first offset at which they differ.

    Replicas hold the same bytes. Where one starts later or ends earlier is no difference; damage
    there is.
    """
    from kctl.commands.logs.listing import diff_partitions

    return diff_partitions(left, right, output, force=force)
