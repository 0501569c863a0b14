"""Clients that Kafka's tools cannot make.

Source: ClientUtils.parseAndValidateAddresses, KafkaAdminClient.createInternal of 3.9.1.
"""

from __future__ import annotations

import re
from typing import Final

from kctl.compat.java_failures import ToolFailure

_ADDRESS: Final = re.compile(r".*?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")
_CONFIG: Final = "org.apache.kafka.common.config.ConfigException"
_KAFKA: Final = "org.apache.kafka.common.KafkaException"


def check_bootstrap(text: str) -> None:
    """Raise ToolFailure unless a list of addresses has a host and a port in each."""
    addresses = [address.strip() for address in text.split(",") if address.strip()]
    for address in addresses:
        if not _ADDRESS.fullmatch(address):
            raise no_client(f"Invalid url in bootstrap.servers: {address}")
    if not addresses:
        raise no_client("No resolvable bootstrap urls given in bootstrap.servers")


def no_client(reason: str) -> ToolFailure:
    """Return the failure of a tool whose settings make no client."""
    return ToolFailure(_KAFKA, "Failed to create new KafkaAdminClient", f"{_CONFIG}: {reason}")


def no_properties(path: str) -> ToolFailure:
    """Return the failure of a tool whose file of client properties is not there."""
    return ToolFailure("java.nio.file.NoSuchFileException", path)
