"""`kctl compat`: Apache Kafka's command-line tools, with their names and options.

The arguments of a tool are parsed by `kctl/compat`, without importing Typer.
"""

from __future__ import annotations


def run(args: list[str]) -> int:
    """Run a tool of Kafka with its arguments unchanged, or else a Typer command of `kctl compat`.

    Importing Typer takes longer than a tool's start. Returns the exit code.
    """
    from kctl.compat.tools import TOOLS, run_tool

    if args and args[0] in TOOLS:
        return run_tool(args[0], args[1:])
    from kctl.__main__ import run_typer
    from kctl.typer_alone import import_typer

    import_typer()
    from kctl.commands.compat.typer_app import app

    return run_typer(app, "kctl compat", args)


def __getattr__(name: str) -> object:
    """Import and return the Typer application on the first access of `app`.

    Raises AttributeError for any other name.
    """
    if name == "app":
        from kctl.commands.compat.typer_app import app

        return app
    raise AttributeError(name)
