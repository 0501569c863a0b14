"""Every client in every cell, beside a broker of Kafka: the same verdict and the same error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tests.compat.secured.brokers import SecuredBroker
from tests.compat.secured.cells import Cell, cells
from tests.compat.secured.certificates import FOREIGN_CLIENT
from tests.compat.secured.clients import Outcomes, aiokafka, java_of, kafka_python, librdkafka

#: What OpenSSL and Java's own words say of the alert that a server sent.
_ALERT: Final = re.compile(
    r"\S+ routines:ssl#_read_bytes:\S+ alert .*|tls\.alert: .*"
    r"|(error:\S+ routines::\S+ )?alert[: ][a-z_ ]+",
    re.I,
)
_GOES_ON: Final = "the client goes on behind the refusal, which Kafka answers and we do not"
#: What clients say of Kafka and of us, and why.
_ACCEPTED: Final = {
    (
        "unable to verify the first certificate",
        "self-signed certificate in certificate chain",
    ): "our server sends the authority that it trusts behind its certificate",
    (
        "No brokers in the broker pool",
        "Closed connection",
    ): _GOES_ON,
    ("NodeNotReadyError", "Unable to bootstrap"): _GOES_ON,
}


def clients_of(java_libs: Mapping[str, str]) -> dict[str, Outcomes]:
    """Return all clients by name; `java_libs` has the jars of each release."""
    found: dict[str, Outcomes] = {
        "librdkafka": librdkafka,
        "kafka-python": kafka_python,
        "aiokafka": aiokafka,
    }
    return found | {f"Java {release}": java_of(libs) for release, libs in java_libs.items()}


def compare_clients(
    real: SecuredBroker, ours: SecuredBroker, clients: Mapping[str, Outcomes]
) -> int:
    """Try all and print what differs; returns in how many cells something does that may not."""
    tried = list(cells())
    left = 0
    for name, outcomes in clients.items():
        found = [outcomes(tried, broker, broker.certificates) for broker in (real, ours)]
        differing = accepted = 0
        for cell, theirs, own in zip(tried, *found, strict=True):
            if theirs == own:
                continue
            reason = _accepted(cell, theirs, own)
            differing += reason is None
            accepted += reason is not None
            print(f"{name}, {cell.listener}, {cell.mechanism or '-'}, {cell.label}: {reason or ''}")
            print(f"    real {theirs}\n    ours {own}")
        left += differing
        entered = sum(outcome == "ok" for outcome in found[0])
        print(
            f"# {name}: {len(tried)} cells, {entered} let in by Kafka, {differing} differ, "
            f"{accepted} as accepted",
            flush=True,
        )
    return left


def _accepted(cell: Cell, real: str, ours: str) -> str | None:
    """Return why outcomes may differ, None if they may not."""
    if "ok" not in (real, ours):
        texts = [_ALERT.sub("alert", text) for text in (real, ours)]
        if texts[0] == texts[1]:
            return "another alert"
        for parts, reason in _ACCEPTED.items():
            if all(part in text for part, text in zip(parts, texts, strict=True)):
                return reason
        return None
    if cell.listener == "WANTED" and cell.certificate == FOREIGN_CLIENT and real == "ok":
        return "the client sent a certificate, for our server names no authorities"
    return None
