"""Quotas as text: short names and amounts.

| quota | short | amount |
|---|---|---|
| `producer_byte_rate` | `produce` | bytes per second: 10MB, 1.5MiB/s |
| `consumer_byte_rate` | `consume` | bytes per second |
| `request_percentage` | `request` | time of request and network threads: 50%, 200% of two threads |
| `controller_mutation_rate` | `mutations` | partitions created and deleted per second: 5, 0.5/s |
| `connection_creation_rate` | `connections` | connections of an address per second: 10, 10/s |

Source: KIP-13, KIP-124, KIP-599, KIP-612.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kctl.arguments import UnreadableArgument
from kctl.sizes import exact_bytes_text, parse_bytes

PRODUCE: Final = "producer_byte_rate"
CONSUME: Final = "consumer_byte_rate"
REQUEST: Final = "request_percentage"
MUTATIONS: Final = "controller_mutation_rate"
CONNECTIONS: Final = "connection_creation_rate"
_SHORT: Final = {
    "produce": PRODUCE,
    "consume": CONSUME,
    "request": REQUEST,
    "mutations": MUTATIONS,
    "connections": CONNECTIONS,
}
_BYTE_RATES: Final = (PRODUCE, CONSUME)
_NUMBER: Final = r"([0-9]{1,15}(?:\.[0-9]{1,15})?)"


def parse_quota(argument: str) -> str:
    """Return Kafka's name of a quota, such as producer_byte_rate, given by it or a short name.

    Errors: UnreadableArgument.
    """
    name = argument.strip().lower().replace("-", "_")
    name = _SHORT.get(name, name)
    if name not in _SHORT.values():
        raise UnreadableArgument("a quota", argument, f"one of {', '.join(_SHORT)}")
    return name


def parse_quotas(arguments: Iterable[str]) -> dict[str, float]:
    """Parse QUOTA=AMOUNT arguments into amounts by Kafka's names of quotas.

    If a quota is given twice, the last amount counts. Raises UnreadableArgument.
    """
    found = {}
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if not equals:
            raise UnreadableArgument(
                "a quota and its amount", argument, "QUOTA=AMOUNT: produce=10MB"
            )
        quota = parse_quota(name)
        found[quota] = parse_amount(quota, text)
    return found


def parse_amount(quota: str, text: str) -> float:
    """Parse an amount in the quota's unit: bytes/s, % of a thread's time, or a number per second.

    Errors: UnreadableArgument.
    """
    if quota in _BYTE_RATES:
        return float(parse_bytes(text))
    unit = "%" if quota == REQUEST else "/s"
    match = re.fullmatch(rf"{_NUMBER}\s*(?:{unit})?", text.strip(), re.ASCII)
    if match is None:
        raise UnreadableArgument(f"an amount of {quota}", text, f"a number such as 10{unit}")
    return float(match[1])


def amount_text(quota: str, amount: float) -> str:
    """Return an amount as text that `parse_amount` parses to the same number."""
    is_whole = float(amount).is_integer()
    if quota in _BYTE_RATES and is_whole:
        return f"{exact_bytes_text(int(amount))}/s"
    number = str(int(amount)) if is_whole else repr(amount)
    return f"{number}{' %' if quota == REQUEST else '/s'}"
