"""Formatters of Kafka's console consumer by class name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kctl.compat.java_failures import ToolFailure
from kctl.compat.record_formatters import DefaultFormatter, Formatter, no_op
from kctl.compat.releases import Release

_PACKAGE: Final = "org.apache.kafka.tools.consumer."
#: Formatters of coordinator records, and the kind of records that they print.
_INTERNAL: Final = {
    "OffsetsMessageFormatter": "offsets",
    "GroupMetadataMessageFormatter": "groups",
    "TransactionLogMessageFormatter": "transactions",
}


def create_formatter(name: str, properties: Mapping[str, str], release: Release) -> Formatter:
    """Return the function that formats records as the Java class of this name does.

    Errors: ToolFailure for an unknown class.
    """
    plain = name.removeprefix(_PACKAGE) if name.startswith(_PACKAGE) else ""
    if plain in ("DefaultMessageFormatter", "LoggingMessageFormatter"):
        return DefaultFormatter(properties, release)
    if plain == "NoOpMessageFormatter":
        return no_op
    if plain in _INTERNAL:
        from kctl.compat.internal_formatters import InternalFormatter

        return InternalFormatter(_INTERNAL[plain], release)
    raise ToolFailure("java.lang.ClassNotFoundException", name)
