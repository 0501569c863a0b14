"""`kctl logs`: list, verify, repair and compare log directories without a broker."""

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
    """List the partitions of log directories: sizes, offsets, leftover files.

    A directory that a broker uses can be listed: nothing is written or locked.
    """
    from kctl.commands.logs.listing import list_dirs

    return list_dirs(paths, output)


@app.command("verify", epilog="Exit codes: 0 clean, 1 failed, 2 wrong usage, 4 problems found.")
def verify(
    paths: _Paths,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also decompress every batch and check its records.")
    ] = False,
    compacted: Annotated[
        bool | None,
        typer.Option(
            "--compacted/--not-compacted",
            help="Whether missing offsets are normal; default: detected from the files.",
        ),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Print a row per problem below the partitions.")
    ] = False,
    notes: Annotated[
        bool,
        typer.Option("--notes", help="Like --all, with notes, which are not problems."),
    ] = False,
    output: _Output = "table",
) -> int:
    """Check every batch, index, epoch and snapshot of log directories.

    Checks checksums, offsets, leader epochs, the three indexes against the log, producer snapshots,
    and finds leftover files. Nothing is written; a directory in use by a broker may show a torn
    last batch. Tables have a row for each partition, other formats one for each problem.
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
        str, typer.Argument(metavar="DIR", help="Log directory or partition directory.")
    ],
    into: Annotated[
        str | None,
        typer.Option("--to", metavar="DIR", help="Write repaired copies to this new directory."),
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Repair the directory itself.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")
    ] = False,
    backup: Annotated[
        bool,
        typer.Option(
            "--backup/--no-backup",
            help="With --in-place: keep removed bytes as <name>.before-repair.",
        ),
    ] = True,
    from_recovery_point: Annotated[
        bool,
        typer.Option(
            "--from-recovery-point",
            help="Check only from the recovery point on, like a broker after a crash.",
        ),
    ] = False,
    rebuild_indexes: Annotated[
        bool,
        typer.Option("--rebuild-indexes", help="Rebuild and trim correct indexes, too."),
    ] = False,
    cut_overlaps: Annotated[
        bool,
        typer.Option(
            "--cut-overlaps",
            help="Also truncate at batches with repeated offsets, most of which brokers keep.",
        ),
    ] = False,
    index_interval_bytes: Annotated[
        int, typer.Option(min=0, metavar="BYTES", help="Log bytes between two index entries.")
    ] = 4096,
    yes: Annotated[
        bool, typer.Option("-y", "--yes", help="Do not ask before records are removed.")
    ] = False,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FORMAT", help=FORMATS_HELP)
    ] = "table",
) -> int:
    """Truncate damaged tails, rebuild wrong indexes, finish or remove leftovers of a crash.

    A log is truncated at the first batch at which a broker's recovery would truncate it, and all
    later records are lost: if another replica is healthy, delete this one instead, so that the
    broker fetches it again.
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
    left: Annotated[str, typer.Argument(metavar="DIR", help="Partition directory.")],
    right: Annotated[
        str, typer.Argument(metavar="DIR", help="Another copy of the same partition.")
    ],
    force: Annotated[
        bool,
        typer.Option("--force", help="Compare directories of different topics or partitions, too."),
    ] = False,
    output: _Output = "table",
) -> int:
    """Compare two copies of a partition, and show the first offset at which they differ.

    Replicas have the same bytes. A later start or an earlier end is no difference; damage is one.
    """
    from kctl.commands.logs.listing import diff_partitions

    return diff_partitions(left, right, output, force=force)
