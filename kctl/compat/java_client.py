"""Failures of Kafka's tools while they create a client.

Source: ClientUtils.parseAndValidateAddresses, KafkaAdminClient.createInternal of 3.9.1.
"""

from __future__ import annotations

import re
from errno import EISDIR
from typing import TYPE_CHECKING, Final

from engine.client.errors import ClientSettingRefused
from engine.host.ports import FileMissing, FileRefused
from kctl.compat.java_failures import ToolFailure, has_messages_of_four
from kctl.compat.java_numbers import is_java_number
from kctl.connect import ClusterOptions, connect

if TYPE_CHECKING:
    from engine.client.blocking import KafkaClient

_ADDRESS: Final = re.compile(r".*?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")
CONFIG_EXCEPTION: Final = "org.apache.kafka.common.config.ConfigException"
_NO_SUCH_FILE: Final = "java.nio.file.NoSuchFileException"
_KAFKA: Final = "org.apache.kafka.common.KafkaException"


def check_bootstrap(text: str) -> str:
    """Return --bootstrap-server as addresses for the client; a missing host is this machine.

    Errors: ToolFailure as Java's client raises it for malformed or missing addresses.
    """
    addresses = [address.strip() for address in text.split(",")]
    if has_messages_of_four() and text.strip() and not all(addresses):
        message = "Configuration 'bootstrap.servers' values must not be empty."
        raise ToolFailure(CONFIG_EXCEPTION, message)
    addresses = [address for address in addresses if address]
    for address in addresses:
        if not _ADDRESS.fullmatch(address):
            raise no_client_failure(f"Invalid url in bootstrap.servers: {address}")
    if not addresses:
        raise no_client_failure("No resolvable bootstrap urls given in bootstrap.servers")
    return ",".join(f"localhost{one}" if one.startswith(":") else one for one in addresses)


def connect_resolved(options: ClusterOptions) -> KafkaClient:
    """Return a client of the cluster; raises ToolFailure like Java if no host name resolves.

    Other errors are those of `connect`.
    """
    from engine.client.settings import parse_addresses
    from engine.host.name_lookup import LookupFailed, look_up

    hosts = {address.host for address in parse_addresses(options.bootstrap_server or "")}
    client = connect(options)
    if all(isinstance(look_up(host), LookupFailed) for host in sorted(hosts)):
        client.close()
        raise no_client_failure("No resolvable bootstrap urls given in bootstrap.servers")
    return client


def refused_setting_failure(error: ClientSettingRefused) -> ToolFailure:
    """Return the ToolFailure for an invalid client property.

    Java reports an invalid number before it creates a client.
    """
    if error.rule != "must be a number of milliseconds":
        return no_client_failure(str(error))
    text = str(error.value).strip()
    why = "Value must be at least 0" if is_java_number(text) else "Not a number of type INT"
    message = f"Invalid value {text} for configuration {error.key}: {why}"
    return ToolFailure(CONFIG_EXCEPTION, message)


def no_client_failure(reason: str) -> ToolFailure:
    """Return the ToolFailure for settings with which no client can be created."""
    return ToolFailure(
        _KAFKA, "Failed to create new KafkaAdminClient", f"{CONFIG_EXCEPTION}: {reason}"
    )


def unreadable_properties_failure(path: str, error: FileMissing | FileRefused) -> ToolFailure:
    """Return the ToolFailure for a file of client properties that cannot be read."""
    if not path or (isinstance(error, FileRefused) and error.errno == EISDIR):
        # Java resolves an empty path to the working directory.
        return ToolFailure("java.io.IOException", "Is a directory")
    if isinstance(error, FileRefused):
        return ToolFailure("java.nio.file.AccessDeniedException", path)
    return ToolFailure(_NO_SUCH_FILE, path)
