"""`kctl cluster`: a cluster on this machine, for rehearsals and development.

A plain `start` is parsed here, without importing Typer: the import takes a fifth of the time until
clients can connect. Every other command, and every error, is left to `typer_app.py`; a test
compares the two parsers.
"""

from __future__ import annotations

from kctl.commands.cluster.start_arguments import parse_simple_start


def run(args: list[str]) -> int:
    """Run one command of `kctl cluster`; returns the exit code.

    A `start` with few simple options is parsed without Typer, whose import takes long.
    """
    requested = parse_simple_start(args[1:]) if args[:1] == ["start"] else None
    if requested is None:
        from kctl.__main__ import run_typer
        from kctl.typer_alone import import_typer

        import_typer()
        from kctl.commands.cluster.typer_app import app

        return run_typer(app, "kctl cluster", args)
    from kctl.commands.cluster.lifecycle import StartRequest, start_cluster

    return start_cluster(StartRequest(**requested))


def __getattr__(name: str) -> object:
    """Import and return the Typer application on the first access of `app`.

    Raises AttributeError for any other name.
    """
    if name == "app":
        from kctl.commands.cluster.typer_app import app

        return app
    raise AttributeError(name)
