"""Server options of tools that connect to brokers or controllers.

Source: CommandLineUtils.initializeBootstrapProperties.
"""

from __future__ import annotations

from typing import Final

from kctl.compat.java_commands import CommandOption
from kctl.compat.java_failures import TerseFailure
from kctl.compat.java_options import GivenOptions

SERVER_OPTIONS: Final = (
    CommandOption("bootstrap-server", "", "Brokers to ask first."),
    CommandOption("bootstrap-controller", "", "Controllers to ask first; not served."),
    CommandOption("command-config", "", "A file of client properties."),
)


def required_server(given: GivenOptions) -> str:
    """Return the value of --bootstrap-server.

    Errors: TerseFailure if it is missing, and for --bootstrap-controller, which kctl does not
    serve.
    """
    if given.has("bootstrap-server") and given.has("bootstrap-controller"):
        raise TerseFailure("You cannot specify both --bootstrap-controller and --bootstrap-server.")
    if given.has("bootstrap-controller"):
        raise TerseFailure("--bootstrap-controller is not served here: use --bootstrap-server")
    if not given.has("bootstrap-server"):
        raise TerseFailure("You must specify either --bootstrap-controller or --bootstrap-server.")
    return given.needed("bootstrap-server")
