"""Every client in every cell, beside a broker of Kafka: the same verdict and the same error."""

from __future__ import annotations

from collections.abc import Mapping

from tests.compat.secured.brokers import SecuredBroker
from tests.compat.secured.cells import cells
from tests.compat.secured.clients import Outcomes, aiokafka, java_of, kafka_python, librdkafka


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
    """Try all and print what differs; returns in how many cells something does."""
    tried = list(cells())
    differing = 0
    for name, outcomes in clients.items():
        found = [outcomes(tried, broker, broker.certificates) for broker in (real, ours)]
        verdicts = 0
        for cell, theirs, own in zip(tried, *found, strict=True):
            verdicts += (theirs == "ok") != (own == "ok")
            if theirs != own:
                differing += 1
                print(f"{name}, {cell.listener}, {cell.mechanism or '-'}, {cell.label}:")
                print(f"    real {theirs}\n    ours {own}")
        accepted = sum(outcome == "ok" for outcome in found[0])
        texts = sum(theirs != own for theirs, own in zip(*found, strict=True))
        print(
            f"# {name}: {len(tried)} cells, {accepted} let in by Kafka, {verdicts} other verdicts, "
            f"{texts} other texts",
            flush=True,
        )
    return differing
