"""`kctl broker`: one broker in this process, configured like Kafka's kafka-server-start.sh."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.options.cluster import noun

app = noun("One broker, run from a server.properties.")


@app.callback()
def _broker() -> None:
    """Make Typer keep the subcommand `run`, though it is the only one."""


@app.command("run", epilog="Example: kctl broker run --config server.properties")
def run_(
    config: Annotated[
        str, typer.Option("--config", metavar="FILE", help="Kafka's server.properties.")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Setting that overrides the file; may be repeated."
        ),
    ] = None,
) -> int:
    """Run a broker until Ctrl-C or SIGTERM.

    Its metadata is in the ZooKeeper of zookeeper.connect; without that, in its first log directory.
    """
    from kctl.commands.broker.running import run_broker

    return run_broker(config, settings or [])
