"""`kctl compat`: tools of Apache Kafka under their own names and options.

A tool's words are its own: they are read by `kctl/compat`, not by Typer, which is not imported.
"""

from __future__ import annotations


def run(args: list[str]) -> int:
    """Run a tool with its arguments unchanged, or a command of kctl."""
    from kctl.compat.tools import TOOLS, run_tool

    if args and args[0] in TOOLS:
        return run_tool(args[0], args[1:])
    from kctl.__main__ import run_typer
    from kctl.typer_alone import import_typer

    import_typer()
    from kctl.commands.compat.typer_app import app

    return run_typer(app, "kctl compat", args)


def __getattr__(name: str) -> object:
    """Import and return the Typer application at the first access."""
    if name == "app":
        from kctl.commands.compat.typer_app import app

        return app
    raise AttributeError(name)
